/* The languages: their names, their steps, and what the answer to a version question tells. */
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

static void test_names(void **state)
{
	static const struct {
		const char *name;
		enum nc_language language;
	} cases[] = {
		{"python", NC_PYTHON},
		{"py", NC_PYTHON},
		{"python3", NC_PYTHON},
		{"javascript", NC_JAVASCRIPT},
		{"js", NC_JAVASCRIPT},
		{"node", NC_JAVASCRIPT},
		{"ts", NC_TYPESCRIPT},
		{"bash", NC_SHELL},
		{"sh", NC_SHELL},
		{"golang", NC_GO},
		{"rs", NC_RUST},
		{"c", NC_C},
		{"", NC_LANGUAGE_INVALID},
		{"Python", NC_LANGUAGE_INVALID},
		{"perl", NC_LANGUAGE_INVALID},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++)
		assert_int_equal(nc_language_parse(cases[i].name), cases[i].language);
	for (enum nc_language i = 0; i < NC_LANGUAGE_MAX; i++) {
		assert_int_equal(nc_runtimes[i]->language, i);
		assert_int_equal(nc_language_parse(nc_runtimes[i]->name), i);
		assert_int_equal(nc_language_of_file(nc_runtimes[i]->source_name), i);
	}
}

static void test_files(void **state)
{
	(void)state;
	assert_int_equal(nc_language_of_file("a/b.tar.py"), NC_PYTHON);
	assert_int_equal(nc_language_of_file("x.mts"), NC_TYPESCRIPT);
	assert_int_equal(nc_language_of_file("py"), NC_LANGUAGE_INVALID);
	assert_int_equal(nc_language_of_file("a.py/b"), NC_LANGUAGE_INVALID);
	assert_int_equal(nc_language_of_file("a."), NC_LANGUAGE_INVALID);
	assert_int_equal(nc_language_of_file(""), NC_LANGUAGE_INVALID);
}

static void test_interpreters(void **state)
{
	(void)state;
	assert_int_equal(nc_language_of_interpreter("python3.11"), NC_PYTHON);
	assert_int_equal(nc_language_of_interpreter("python"), NC_PYTHON);
	assert_int_equal(nc_language_of_interpreter("node-22"), NC_JAVASCRIPT);
	assert_int_equal(nc_language_of_interpreter("bash"), NC_SHELL);
	assert_int_equal(nc_language_of_interpreter("bashful"), NC_LANGUAGE_INVALID);
	assert_int_equal(nc_language_of_interpreter(""), NC_LANGUAGE_INVALID);
}

static void test_source_names(void **state)
{
	static const struct {
		const char *code;
		bool module;
	} cases[] = {
		{"import fs from 'fs';", true},
		{"  import{a} from 'b'", true},
		{"import 'a'", true},
		{"const a = 1;\nexport default a;", true},
		{"/* import x */ let a;\n/* \n*/\nexport { a };", true},
		{"let s = 'it`s'; // `\nimport a from 'b';", true},
		{"const x = await import('fs');", false},
		{"import('fs').then(1);", false},
		{"import.meta", false},
		{"exports.a = 1; importantly();", false},
		{"/*\nimport a from 'b';\n*/", false},
		{"let s = `\nimport a from 'b';\n`;", false},
		{"let s = `\\`\nexport { a };\n`;", false},
		{"", false},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++) {
		const char *code = cases[i].code;

		assert_string_equal(
			nc_runtime_source_name(&nc_runtime_javascript, code, strlen(code)),
			cases[i].module ? "main.mjs" : "main.js");
		assert_string_equal(
			nc_runtime_source_name(&nc_runtime_typescript, code, strlen(code)),
			cases[i].module ? "main.mts" : "main.ts");
	}
	assert_string_equal(nc_runtime_source_name(&nc_runtime_go, "import", 6), "main.go");
}

static void test_steps(void **state)
{
	static const char *const template[] = {
		"cc", "-o{program}{program}", "{source}", "{", "{x}", "", NULL};
	char *args[] = {(char[]){"a b"}, (char[]){""}, (char[]){"{source}"}};
	static const char expected[] = "cc\0-opp\0/s\0{\0{x}\0\0a b\0\0{source}";
	nc_buf_cleanup struct nc_buf words = NC_BUF(sizeof(expected));
	nc_buf_cleanup struct nc_buf small = NC_BUF(sizeof(expected) - 1);
	size_t count = 77;

	(void)state;
	assert_int_equal(nc_runtime_argv(template, "/s", "p", args, 3, &small, &count), -E2BIG);
	assert_int_equal(count, 77);
	assert_int_equal(nc_runtime_argv(template, "/s", "p", args, 3, &words, &count), 0);
	assert_int_equal(count, 9);
	assert_int_equal(words.size, sizeof(expected));
	assert_memory_equal(words.data, expected, sizeof(expected));
	assert_int_equal(nc_runtime_argv(NULL, "", "", NULL, 0, &words, &count), 0);
	assert_int_equal(count, 0);
}

/* Node 22.6 to 22.17 and 23.0 to 23.5 strip types when told to; all texts are real answers. */
static void test_typescript_by_version(void **state)
{
	static const struct {
		const char *answer;
		size_t words;
	} cases[] = {
		{"20.20.2 typescript=no", 0},
		{"20.20.2 typescript=no package=no", 0},
		{"20.20.2 typescript=no package=yes", 5},
		{"20.5.1 typescript=no package=yes", 0},
		{"18.20.0 typescript=no package=yes", 0},
		{"22.6.0 typescript=no package=yes", 4},
		{"22.5.1 typescript=no", 0},
		{"22.6.0 typescript=no", 4},
		{"22.18.0 typescript=strip", 3},
		{"23.0.0 typescript=no", 4},
		{"24.0.0 typescript=strip", 3},
		{"", 0},
		{"x", 0},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++) {
		const char *const *argv =
			nc_runtime_run_argv(&nc_runtime_typescript, cases[i].answer);
		size_t count = 0;

		while (argv && argv[count])
			count++;
		assert_int_equal(count, cases[i].words);
	}
	assert_non_null(nc_runtime_run_argv(&nc_runtime_python, ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_program_elsewhere),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_interpreters),
		cmocka_unit_test(test_source_names),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_typescript_by_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
