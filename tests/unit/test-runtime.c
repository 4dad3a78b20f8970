/* What the answer to a version question tells about a language. */
#include "unit.h"

#include <string.h>

#include "runtime/runtime.h"

static void judge(enum nc_language language, int status, const char *answer,
	struct nc_runtime_report *ret_report)
{
	struct nc_ask ask = {.argv = nc_runtimes[language]->version_argv,
		.program = "/usr/bin/x",
		.output = NC_BUF(1024),
		.status = status};

	nc_buf_adds(&ask.output, answer);
	nc_runtime_judge(nc_runtimes[language], &ask, ret_report);
	nc_buf_done(&ask.output);
}

static void test_versions(void **state)
{
	static const struct {
		enum nc_language language;
		const char *answer;
		const char *version;
	} cases[] = {
		{NC_PYTHON, "Python 3.11.2\n", "3.11.2"},
		{NC_JAVASCRIPT, "20.20.2 typescript=no\n", "20.20.2"},
		{NC_TYPESCRIPT, "22.18.0 typescript=strip\n", "22.18.0"},
		{NC_SHELL, "GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)\n", "5.2.15"},
		{NC_GO, "go version go1.19.8 linux/amd64\n", "1.19.8"},
		{NC_RUST, "rustc 1.63.0\n", "1.63.0"},
		{NC_C, "12.2.0\n", "12.2.0"},
		{NC_C, "14 and 15.1", "15.1"},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++) {
		struct nc_runtime_report report;

		judge(cases[i].language, 0, cases[i].answer, &report);
		assert_true(report.ok);
		assert_string_equal(report.version, cases[i].version);
		assert_string_equal(report.program, "/usr/bin/x");
		assert_string_equal(report.reason, "");
	}
}

static void test_faults(void **state)
{
	static const struct {
		enum nc_language language;
		int status;
		const char *answer;
		const char *reason;
	} cases[] = {
		{NC_PYTHON, 0, "", "does not tell its version"},
		{NC_PYTHON, 0, "no number at all 7.", "does not tell its version"},
		{NC_PYTHON, 1, "Python 3.11.2", "exit status 1"},
		{NC_PYTHON, -ETIMEDOUT, "", "timed out"},
		{NC_TYPESCRIPT, 0, "20.20.2 typescript=no", "22.6"},
		{NC_GO, -ENOENT, "", "no go in /usr/local/bin:/usr/bin:/bin"},
	};

	(void)state;
	assert_int_equal(setenv("PATH", "/nonexistent", 1), 0);
	for (size_t i = 0; i < unit_count(cases); i++) {
		struct nc_runtime_report report;

		judge(cases[i].language, cases[i].status, cases[i].answer, &report);
		assert_false(report.ok);
		assert_non_null(strstr(report.reason, cases[i].reason));
	}
}

/* A program that the caller has, but no box would see. */
static void test_program_elsewhere(void **state)
{
	struct nc_runtime_report report;

	(void)state;
	assert_int_equal(setenv("PATH", "/nonexistent:/usr/bin", 1), 0);
	judge(NC_SHELL, -ENOENT, "", &report);
	assert_string_equal(
		report.reason, "/usr/bin/bash is outside of /usr, where boxes cannot see it");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_program_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
