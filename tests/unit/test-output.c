/* What a program printed: head and tail at hand, the whole in memory, characters never cut. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/output.h"

static void assert_text(const struct nc_output *output, const char *expected)
{
	nc_buf_cleanup struct nc_buf text = NC_BUF(4096);

	assert_int_equal(nc_output_text(output, &text), 0);
	assert_string_equal(nc_buf_text(&text), expected);
}

static void assert_whole(const struct nc_output *output, const char *expected)
{
	char data[4096] = "";

	assert_true(output->whole_fd >= 0);
	assert_int_equal(output->error, 0);
	assert_int_equal(pread(output->whole_fd, data, sizeof(data), 0), strlen(expected));
	assert_string_equal(data, expected);
}

static void what_fits_is_all_there(void **state)
{
	struct nc_output output;

	(void)state;
	nc_output_init(&output, 10);
	assert_text(&output, "");
	nc_output_add(&output, "abc", 3);
	nc_output_add(&output, "", 0);
	assert_text(&output, "abc");
	assert_int_equal(output.whole_fd, -EBADF);
	nc_output_add(&output, "defghij", 7);
	assert_text(&output, "abcdefghij");
	assert_false(nc_output_is_cut(&output));
	assert_whole(&output, "abcdefghij");
	nc_output_done(&output);
}

static void more_than_fits_has_head_and_tail(void **state)
{
	struct nc_output output;

	(void)state;
	nc_output_init(&output, 10);
	for (const char *c = "0123456789abcdefghijklmno"; *c; c++)
		nc_output_add(&output, c, 1);
	assert_true(nc_output_is_cut(&output));
	assert_text(&output, "01234\n... 15 bytes left out ...\nklmno");
	assert_whole(&output, "0123456789abcdefghijklmno");
	nc_output_add(&output, "ABCDEFGHIJKLMNOPQRST", 20); /* more than the ring at once */
	assert_text(&output, "01234\n... 35 bytes left out ...\nPQRST");
	assert_int_equal(output.bytes, 45);
	nc_output_done(&output);
}

static void characters_are_not_cut(void **state)
{
	struct nc_output output;

	(void)state;
	nc_output_init(&output, 10);
	/* an e with its accent is at 4 and 5, across the end of the head; another across the tail
	 */
	nc_output_add(&output, "abcd\xc3\xa9xxxxxxxx\xc3\xa9wxyz", 20);
	assert_text(&output, "abcd\n... 12 bytes left out ...\nwxyz");
	nc_output_done(&output);
}

static void one_too_much_in_the_ring_is_exact(void **state)
{
	struct nc_output output;

	(void)state;
	nc_output_init(&output, 4);
	nc_output_add(&output, "abcde", 5);
	assert_text(&output, "ab\n... 1 bytes left out ...\nde");
	nc_output_done(&output);
}

static void bytes_become_text_in_json(void **state)
{
	struct nc_output output;
	json_t *text;

	(void)state;
	nc_output_init(&output, 100);
	nc_output_add(&output, "a\0b\xff", 4);
	text = nc_output_json(&output);
	assert_int_equal(json_string_length(text), 6);
	assert_memory_equal(json_string_value(text), "a\0b\xef\xbf\xbd", 6);
	json_decref(text);
	nc_output_done(&output);
}

static void one_that_was_never_begun_is_empty(void **state)
{
	struct nc_output output = {0};
	json_t *text = nc_output_json(&output);

	(void)state;
	assert_string_equal(json_string_value(text), "");
	json_decref(text);
	assert_false(nc_output_is_cut(&output));
	nc_output_done(&output); /* and closes nothing of ours */
	assert_true(fcntl(0, F_GETFD) >= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits_is_all_there),
		cmocka_unit_test(more_than_fits_has_head_and_tail),
		cmocka_unit_test(characters_are_not_cut),
		cmocka_unit_test(one_too_much_in_the_ring_is_exact),
		cmocka_unit_test(bytes_become_text_in_json),
		cmocka_unit_test(one_that_was_never_begun_is_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
