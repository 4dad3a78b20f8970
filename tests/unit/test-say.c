/* What is printed for people holds no control character of a stranger's. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/say.h"

static void strangers_words_are_tamed(void **state)
{
	static const struct {
		const char *text, *shown, *line;
	} cases[] = {
		{"plain, é, 漢\tx", "plain, é, 漢\tx", "plain, é, 漢\tx"},
		{"a\nb", "a\nb", "a\\x0ab"},
		{"\x1b[2J\x1b]0;x\a", "\\x1b[2J\\x1b]0;x\\x07", "\\x1b[2J\\x1b]0;x\\x07"},
		{"\r\b\x7f", "\\x0d\\x08\\x7f", "\\x0d\\x08\\x7f"},
		{"\xc2\x9b"
		 "31m\xc2\xa0",
			"\\xc2\\x9b31m\xc2\xa0", "\\xc2\\x9b31m\xc2\xa0"},
		{"\xe2\x80\xae"
		 "x\xe2\x80\x94",
			"\\xe2\\x80\\xaex\xe2\x80\x94", "\\xe2\\x80\\xaex\xe2\x80\x94"},
		{"\x9b"
		 "31m\xff",
			"\\x9b31m\\xff", "\\x9b31m\\xff"},
		{"", "", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *shown = NULL, *said = NULL, *line = NULL;
		size_t sizes[3];
		FILE *out[] = {open_memstream(&shown, &sizes[0]), open_memstream(&said, &sizes[1]),
			open_memstream(&line, &sizes[2])};

		nc_show(out[0], cases[i].text, strlen(cases[i].text));
		nc_say(out[1], "%s", cases[i].text);
		nc_show_line(out[2], cases[i].text, strlen(cases[i].text));
		for (size_t j = 0; j < 3; j++)
			(void)fclose(out[j]);
		assert_string_equal(shown, cases[i].shown);
		assert_string_equal(said, cases[i].shown);
		assert_string_equal(line, cases[i].line);
		free(shown);
		free(said);
		free(line);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strangers_words_are_tamed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
