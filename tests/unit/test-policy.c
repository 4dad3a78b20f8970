/* The security manager's entry points: reports, needs, risk, profiles, memory that runs out. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "policy/bounds.h"
#include "policy/policy.h"
#include "policy/scan.h"

/* Allocations until one fails; 0: none does. */
static unsigned int fail_at;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__real_nc_pages_alloc(size_t size);
void *__wrap_nc_pages_alloc(size_t size);

static bool fails(void)
{
	return fail_at > 0 && --fail_at == 0;
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
	return fails() ? NULL : __real_realloc(memory, size);
}

void *__wrap_nc_pages_alloc(size_t size)
{
	return fails() ? NULL : __real_nc_pages_alloc(size);
}

static struct nc_report *analyse(
	enum nc_profile profile, enum nc_language language, const char *text)
{
	struct nc_policy_options options = {.profile = profile};
	cleanup_policy struct nc_policy *policy = NULL;
	struct nc_report *report = NULL;

	assert_int_equal(nc_policy_new(&options, &policy), 0);
	assert_int_equal(nc_policy_analyse(policy, language, text, strlen(text), &report), 0);
	return report;
}

static const struct nc_finding *find(const struct nc_report *report, const char *rule)
{
	size_t count;
	const struct nc_finding *finding = nc_report_findings(report, &count);

	for (size_t i = 0; i < count; i++)
		if (strcmp(finding[i].rule, rule) == 0)
			return &finding[i];
	return NULL;
}

static void wrong_calls_are_refused(void **state)
{
	struct nc_policy_options options = {.profile = NC_PROFILE_MAX};
	cleanup_policy struct nc_policy *policy = NULL;
	struct nc_report *report = NULL;

	(void)state;
	assert_int_equal(nc_policy_new(&options, &policy), -EINVAL);
	options.profile = NC_PROFILE_INVALID;
	assert_int_equal(nc_policy_new(&options, &policy), -EINVAL);
	options.profile = NC_PROFILE_AUDIT;
	assert_int_equal(nc_policy_new(&options, &policy), 0);
	assert_int_equal(nc_policy_analyse(policy, NC_LANGUAGE_INVALID, "", 0, &report), -EINVAL);
	assert_int_equal(nc_policy_analyse(policy, NC_LANGUAGE_MAX, "", 0, &report), -EINVAL);
	assert_null(report);
	nc_policy_free(NULL);
	nc_report_free(NULL);
}

static void nothing_is_harmless_in_every_language(void **state)
{
	(void)state;
	for (enum nc_language i = 0; i < NC_LANGUAGE_MAX; i++) {
		cleanup_report struct nc_report *report = analyse(NC_PROFILE_STRICT, i, "");
		size_t count;

		(void)nc_report_findings(report, &count);
		assert_int_equal(count, 0);
		assert_int_equal(nc_report_verdict(report), NC_VERDICT_ALLOW);
		assert_int_equal(nc_report_sum(report), 0);
		assert_null(nc_report_needs(report)->paths[0]);
	}
}

static void a_finding_says_where_and_why(void **state)
{
	cleanup_report struct nc_report *report = analyse(NC_PROFILE_STANDARD, NC_PYTHON,
		"import os\n\ndef f():\n    os.system('cat  \\\n  x')\n");
	const struct nc_finding *finding = find(report, "process.shell");

	(void)state;
	assert_non_null(finding);
	assert_int_equal(finding->severity, NC_SEVERITY_MEDIUM);
	assert_int_equal(finding->line, 4);
	assert_int_equal(finding->column, 5);
	assert_int_equal(finding->end_line, 5);
	assert_int_equal(finding->end_column, 6);
	assert_string_equal(finding->snippet, "os.system('cat \\ x')");
	assert_string_equal(finding->within, "");
	assert_true(strlen(finding->why) > 0 && strlen(finding->remedy) > 0);
	assert_false(finding->refuses);
}

static void code_inside_code_points_outside(void **state)
{
	cleanup_report struct nc_report *report = analyse(NC_PROFILE_STANDARD, NC_PYTHON,
		"x = 1\nexec(\"import os; os.system('sudo id')\")\n");
	const struct nc_finding *finding = find(report, "system.privilege");

	(void)state;
	assert_non_null(finding);
	assert_string_equal(finding->within, "shell in python in python");
	assert_string_equal(finding->snippet, "sudo id");
	assert_int_equal(finding->line, 2);
}

static void needs_and_imports_are_listed(void **state)
{
	cleanup_report struct nc_report *report = analyse(NC_PROFILE_STANDARD, NC_SHELL,
		"curl https://a.example:8443/x -o /data/x\ngit clone ssh://me@b.example/r\n");
	const struct nc_needs *needs = nc_report_needs(report);
	cleanup_report struct nc_report *python =
		analyse(NC_PROFILE_STANDARD, NC_PYTHON, "import a.b, c as d\nfrom e import f\n");
	size_t count;
	const struct nc_import *imports = nc_report_imports(python, &count);

	(void)state;
	assert_string_equal(needs->hosts[0], "a.example");
	assert_string_equal(needs->hosts[1], "b.example");
	assert_null(needs->hosts[2]);
	assert_string_equal(needs->paths[0], "/data/x");
	assert_string_equal(needs->commands[0], "curl");
	assert_true(needs->network && !needs->threads);
	assert_int_equal(count, 3);
	assert_string_equal(imports[0].name, "a.b");
	assert_string_equal(imports[1].name, "c");
	assert_string_equal(imports[2].name, "e");
	assert_int_equal(imports[2].line, 2);
}

static void risk_is_the_sum_of_its_points(void **state)
{
	cleanup_report struct nc_report *report =
		analyse(NC_PROFILE_STANDARD, NC_SHELL, "rm -r a\nrm -r b\nsudo x\nhistory -c\n");
	size_t count;
	const struct nc_points *points = nc_report_points(report, &count);

	(void)state;
	assert_int_equal(count, 3);
	assert_int_equal(points[0].points, 25);
	assert_int_equal(points[1].points, 25);
	assert_string_equal(points[2].rule, "file.delete");
	assert_int_equal(points[2].hits, 2);
	assert_int_equal(points[2].points, 1);
	assert_int_equal(nc_report_sum(report), 51);
	assert_int_equal(nc_report_risk(report), NC_SEVERITY_HIGH);
	assert_int_equal(nc_report_verdict(report), NC_VERDICT_MICROVM);
}

static void profiles_judge_differently(void **state)
{
	static const char *const critical = "rm -rf /\n";
	cleanup_report struct nc_report *standard =
		analyse(NC_PROFILE_STANDARD, NC_SHELL, critical);
	cleanup_report struct nc_report *audit = analyse(NC_PROFILE_AUDIT, NC_SHELL, critical);
	cleanup_report struct nc_report *strict =
		analyse(NC_PROFILE_STRICT, NC_PYTHON, "import sys\n");

	(void)state;
	assert_int_equal(nc_report_verdict(standard), NC_VERDICT_REFUSE);
	assert_true(find(standard, "file.destroy")->refuses);
	assert_int_equal(nc_report_verdict(audit), NC_VERDICT_MICROVM);
	assert_false(find(audit, "file.destroy")->refuses);
	assert_int_equal(nc_report_verdict(strict), NC_VERDICT_REFUSE);
	assert_true(find(strict, "policy.import")->refuses);
	assert_int_equal(nc_profile_parse("strict"), NC_PROFILE_STRICT);
	assert_int_equal(nc_profile_parse("lax"), NC_PROFILE_INVALID);
}

static void languages_are_guessed(void **state)
{
	static const struct {
		const char *name, *text;
		enum nc_language language;
	} cases[] = {
		{"a.py", "", NC_PYTHON},
		{"b/c.d.mjs", "", NC_JAVASCRIPT},
		{"x.d/run", "#!/bin/sh\n", NC_SHELL},
		{"run", "#!/usr/bin/env -S python3.11 -u\n", NC_PYTHON},
		{"run", "#! /usr/bin/node", NC_JAVASCRIPT},
		{"run", "#!", NC_LANGUAGE_INVALID},
		{"run", "print(1)", NC_LANGUAGE_INVALID},
		{"a.cobol", "#!/bin/bash", NC_SHELL},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++)
		assert_int_equal(nc_policy_guess_language(
					 cases[i].name, cases[i].text, strlen(cases[i].text)),
			cases[i].language);
	for (enum nc_language i = 0; i < NC_LANGUAGE_MAX; i++)
		assert_int_equal(nc_policy_parse_language(nc_policy_language_names[i]), i);
}

static void assert_sorted(const struct nc_name_rule *table, size_t count)
{
	for (size_t i = 1; i < count; i++)
		assert_true(strcmp(table[i - 1].name, table[i].name) < 0);
}

static void tables_are_sorted(void **state)
{
	static const struct nc_analyser *const analysers[] = {
		&nc_python, &nc_javascript, &nc_go, &nc_rust, &nc_shell};

	(void)state;
	for (size_t i = 0; i < unit_count(analysers); i++) {
		assert_sorted(analysers[i]->names, analysers[i]->n_names);
		assert_sorted(analysers[i]->imports, analysers[i]->n_imports);
	}
}

static void every_rule_has_its_texts(void **state)
{
	size_t count = 0;
	const struct nc_rule_text *rule;

	(void)state;
	for (; (rule = nc_policy_rule(count)); count++) {
		assert_non_null(rule->id);
		assert_non_null(strchr(rule->id, '.'));
		assert_true(strlen(rule->why) > 0 && strlen(rule->remedy) > 0);
	}
	assert_int_equal(count, NC_RULE_MAX - 1);
}

/* In C, which is read without tree-sitter: that one ends the process when memory runs out. */
static void memory_that_runs_out_is_an_error(void **state)
{
	int r = -ENOMEM;

	(void)state;
	for (unsigned int i = 1; r == -ENOMEM; i++) {
		struct nc_policy_options options = {.profile = NC_PROFILE_STANDARD};
		cleanup_policy struct nc_policy *policy = NULL;
		cleanup_report struct nc_report *report = NULL;

		assert_true(i < 1000);
		fail_at = i;
		r = nc_policy_new(&options, &policy);
		if (r == 0)
			r = nc_policy_analyse(
				policy, NC_C, "#include <dlfcn.h>\nint x;", 26, &report);
		fail_at = 0;
		assert_true(r == 0 || r == -ENOMEM);
		assert_true((r == 0) == (report != NULL));
	}
}

/* Raw strings and digits of C++ hide nothing behind them. */
static void test_cpp_tokens(void **state)
{
	static const struct {
		enum nc_language language;
		const char *code;
		bool found;
	} cases[] = {
		{NC_CPP, "auto a = R\"(\")\"; int x = system(\"x\"); auto b = R\"(\")\";", true},
		{NC_CPP, "auto a = u8R\"end(\")\" )end\"; int x = std::system(\"x\");", true},
		{NC_CPP, "int a = 1'000; int x = system(\"x\"); int b = 1'000;", true},
		{NC_CPP, "auto a = R\"(system(\"x\"))\";", false},
		{NC_CPP, "auto R = 1; char c = '\"'; int x = system(\"x\");", true},
		{NC_C, "int x = system(\"x\");", true},
	};
	struct nc_policy_options options = {.profile = NC_PROFILE_STANDARD};
	cleanup_policy struct nc_policy *policy = NULL;

	(void)state;
	assert_int_equal(nc_policy_new(&options, &policy), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cleanup_report struct nc_report *report = NULL;
		const struct nc_finding *finding;
		bool found = false;
		size_t count;

		assert_int_equal(nc_policy_analyse(policy, cases[i].language, cases[i].code,
					 strlen(cases[i].code), &report),
			0);
		finding = nc_report_findings(report, &count);
		for (size_t j = 0; j < count; j++)
			found |= strcmp(finding[j].rule, "process.shell") == 0;
		assert_int_equal(found, cases[i].found);
	}
}

/* How badly a text fits a grammar. */
static void test_faults(void **state)
{
	static const char good[] = "def f(x):\n    return x\n", bad[] = "echo hi there (\n";
	uint64_t deadline_ns = nc_clock_ns() + NC_PARSE_TIME_NS;
	size_t faults = 77;

	(void)state;
	assert_int_equal(
		nc_policy_faults(NC_C, good, strlen(good), deadline_ns, &faults), -EOPNOTSUPP);
	assert_int_equal(nc_policy_faults(NC_LANGUAGE_MAX, good, 1, deadline_ns, &faults), -EINVAL);
	assert_int_equal(
		nc_policy_faults(NC_LANGUAGE_INVALID, good, 1, deadline_ns, &faults), -EINVAL);
	assert_int_equal(
		nc_policy_faults(NC_GO, good, NC_SOURCE_MAX + 1, deadline_ns, &faults), -EFBIG);
	assert_int_equal(faults, 77);
	assert_int_equal(nc_policy_faults(NC_PYTHON, good, strlen(good), deadline_ns, &faults), 0);
	assert_int_equal(faults, 0);
	assert_int_equal(nc_policy_faults(NC_GO, good, strlen(good), deadline_ns, &faults), 0);
	assert_in_range(faults, 1, strlen(good));
	assert_int_equal(nc_policy_faults(NC_PYTHON, bad, strlen(bad), deadline_ns, &faults), 0);
	assert_in_range(faults, 5, strlen(bad));
	assert_int_equal(nc_policy_faults(NC_PYTHON, NULL, 0, deadline_ns, &faults), 0);
	assert_int_equal(faults, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpp_tokens),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(wrong_calls_are_refused),
		cmocka_unit_test(nothing_is_harmless_in_every_language),
		cmocka_unit_test(a_finding_says_where_and_why),
		cmocka_unit_test(code_inside_code_points_outside),
		cmocka_unit_test(needs_and_imports_are_listed),
		cmocka_unit_test(risk_is_the_sum_of_its_points),
		cmocka_unit_test(profiles_judge_differently),
		cmocka_unit_test(languages_are_guessed),
		cmocka_unit_test(tables_are_sorted),
		cmocka_unit_test(every_rule_has_its_texts),
		cmocka_unit_test(memory_that_runs_out_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
