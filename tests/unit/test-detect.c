/* Which language a program is in: by name, by shebang, by content (detect.txt, tests/policy). */
#include "sections.h"

#include <ftw.h>

#include "base/text.h"
#include "engine/detect.h"
#include "policy/bounds.h"
#include "runtime/runtime.h"

static const char *name_of(int r, const struct nc_detection *detection)
{
	return r == 0 ? nc_runtimes[detection->language]->name : "none";
}

static void test_content(void **state)
{
	struct nc_span file = sections_read("detect.txt"), rest = file;
	struct section section;
	size_t count = 0, wrong = 0;

	(void)state;
	while (section_next(&rest, &section)) {
		struct nc_detection detection = {0};
		char *reason = strchr(section.head, ' ');
		int r = nc_detect(NULL, section.body.text, section.body.size, &detection);

		count++;
		if (reason)
			*reason++ = '\0';
		if (nc_streq(name_of(r, &detection), section.head) &&
			(!reason || nc_text_after(detection.reason, reason)))
			continue;
		wrong++;
		print_error("%s expected, not %s (%s):\n%.*s\n", section.head,
			name_of(r, &detection), detection.reason, (int)section.body.size,
			section.body.text);
	}
	assert_int_equal(wrong, 0);
	assert_true(count >= 60);
	free((void *)(uintptr_t)file.text);
}

static void test_names_and_shebangs(void **state)
{
	static const struct {
		const char *file;
		const char *code;
		const char *language;
		const char *reason;
	} cases[] = {
		{"a/b.py", "", "python", "file name ends in .py"},
		{"x.rs", "print(1)", "rust", "file name ends in .rs"},
		{"x.py", "#!/usr/bin/python3\n", "python", "file name ends in .py"},
		{"x.py", "#!/bin/bash\n", "python",
			"file name ends in .py, though the shebang names bash"},
		{"x.sh", "#!/usr/bin/perl\n", "shell",
			"file name ends in .sh, though the shebang names perl"},
		{NULL, "#!/usr/bin/env python3\n", "python", "shebang names python3"},
		{"run", "#! /usr/bin/env -S python3.11 -u\n", "python", "shebang names python3.11"},
		{"x.txt", "#!/usr/bin/env -S A=b node --x\n", "javascript", "shebang names node"},
		{NULL, "#!/bin/sh", "shell", "shebang names sh"},
		{NULL, "#!/bin/bash\r\nprint(1)", "shell", "shebang names bash"},
		{NULL, "#!/usr/bin/perl\nprint(1)", "none", ""},
		{NULL, "#!/usr/bin/env\nprint(1)", "python", "it looks like python and parses"},
		{NULL, "#!\nprint(1)", "python", "it looks like python and parses"},
		{"x.txt", "print(1)", "python", "it looks like python and parses"},
		{NULL, "", "none", ""},
		{NULL, " \n\t\n", "none", ""},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++) {
		struct nc_detection detection = {0};
		int r = nc_detect(cases[i].file, cases[i].code, strlen(cases[i].code), &detection);

		assert_string_equal(name_of(r, &detection), cases[i].language);
		assert_non_null(nc_text_after(detection.reason, cases[i].reason));
	}
}

static void test_several_languages_are_weighed(void **state)
{
	static const char code[] = "import os\nclass A:\n    pass\n";
	struct nc_detection detection;

	(void)state;
	assert_int_equal(nc_detect(NULL, code, strlen(code), &detection), 0);
	assert_int_equal(detection.language, NC_PYTHON);
	assert_string_equal(detection.reason, "it parses as python and not as javascript");
}

/* How the programs of the policy's corpus were told, all of which have a name that says it. */
static size_t told, not_told, told_wrong;

static int tell(const char *path, const struct stat *st, int type, struct FTW *where)
{
	cleanup_close int fd = -EBADF;
	cleanup_free char *text = NULL;
	enum nc_language language = nc_language_of_file(path);
	struct nc_detection detection;
	size_t size = 0;
	int r;

	(void)st;
	(void)where;
	if (type != FTW_F || language < 0)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(nc_fd_read_all(fd, SECTIONS_FILE_MAX, &text, &size), 0);
	r = nc_detect(NULL, text, size, &detection);
	if (r < 0) {
		not_told++;
		print_message("%s: not told\n", path);
	} else if (detection.language == language ||
		   (language == NC_TYPESCRIPT && detection.language == NC_JAVASCRIPT)) {
		told++; /* TypeScript without types is JavaScript */
	} else {
		told_wrong++;
		print_error("%s: told as %s: %s\n", path, name_of(r, &detection), detection.reason);
	}
	return 0;
}

static void test_corpus_of_the_policy(void **state)
{
	(void)state;
	assert_int_equal(nftw(NC_UNIT_DIR "/../policy", tell, 8, FTW_PHYS), 0);
	assert_int_equal(told_wrong, 0);
	assert_true(told >= 150);
	assert_true(not_told <= told / 10);
}

/* Neither size nor nesting takes the time of more than one analysis. */
static void test_hostile_sizes(void **state)
{
	size_t size = NC_SOURCE_MAX + 1;
	char *code = malloc(size);
	struct nc_detection detection;

	(void)state;
	assert_non_null(code);
	memset(code, '(', size);
	memcpy(code, "print(", 6);
	assert_int_equal(nc_detect(NULL, code, size, &detection), -ENOENT);
	assert_int_equal(nc_detect(NULL, code, size - 1, &detection), -ENOENT);
	memset(code, '\n', size);
	assert_int_equal(nc_detect(NULL, code, size, &detection), -ENOENT);
	memset(code, 0, size);
	assert_int_equal(nc_detect(NULL, code, size, &detection), -ENOENT);
	free(code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_content),
		cmocka_unit_test(test_names_and_shebangs),
		cmocka_unit_test(test_several_languages_are_weighed),
		cmocka_unit_test(test_corpus_of_the_policy),
		cmocka_unit_test(test_hostile_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
