/* Policies: what they come to, who wins, and that files use the words of those who obey them. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/strength.h"
#include "policy/book.h"
#include "policy/rules.h"

static char dir[] = "/tmp/nacre-book-XXXXXX";

static int make_dir(void **state)
{
	char path[64];

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/policies", dir);
	return mkdir(path, 0700);
}

static int remove_dir(void **state)
{
	static const char *const names[] = {"policies/mine.yaml", "policies/bad.yaml",
		"security_policies.yaml", "policies", ""};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[128];

		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		if (unlink(path) < 0)
			(void)rmdir(path);
	}
	return access(dir, F_OK) == 0 ? -1 : 0;
}

static void put(const char *name, const char *text)
{
	cleanup_close int fd = -EBADF;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(nc_fd_write_all(fd, text, strlen(text)), 0);
}

static enum nc_verdict judge(
	const struct nc_terms *terms, enum nc_language language, const char *code)
{
	cleanup_report struct nc_report *report = NULL;

	assert_int_equal(
		nc_policy_analyse(terms->analyser, language, code, strlen(code), &report), 0);
	return nc_report_verdict(report);
}

static const struct nc_terms *terms_of(struct nc_book *book, const char *policy, const char *tenant)
{
	const struct nc_terms *terms = NULL;
	struct nacre_err err = {0};

	assert_int_equal(nc_book_add(book, policy, &err), 0);
	assert_int_equal(nc_book_terms(book, policy, tenant, &terms, &err), 0);
	return terms;
}

static void files_use_the_words_of_others(void **state)
{
	(void)state;
	for (size_t i = 0; i < NC_PROFILE_MAX; i++)
		assert_string_equal(nc_policy_profiles[i], nc_profile_names[i]);
	assert_null(nc_policy_profiles[NC_PROFILE_MAX]);
	for (size_t i = 0; i < NC_SEVERITY_MAX; i++)
		assert_string_equal(nc_policy_levels[i], nc_severity_names[i]);
	assert_int_equal(NC_POLICY_PROPERTIES, NC_STRENGTH_MAX);
	for (size_t i = 0; i < NC_STRENGTH_MAX; i++)
		assert_string_equal(nc_policy_properties[i], nc_property_names[i]);
	for (size_t i = 0; i < NC_GRADE_MAX; i++)
		assert_string_equal(nc_policy_grades[i], nc_grade_names[i]);
	assert_null(nc_policy_grades[NC_GRADE_MAX]);
	/* the weakest tier stands for any */
	assert_string_equal(nc_policy_verdicts[NC_VERDICT_ALLOW], "process");
	for (size_t i = 1; i < NC_VERDICT_MAX; i++)
		assert_string_equal(nc_policy_verdicts[i], nc_verdict_names[i]);
	assert_null(nc_policy_verdicts[NC_VERDICT_MAX]);
}

static int check_name(
	void *context, const char *path, const struct nc_field *field, const struct nc_value *value)
{
	const struct nc_policy_values *values = context;

	(void)path;
	/* the fields of a group stand where its array has them */
	for (size_t i = 0; i < NC_STRENGTH_MAX; i++)
		if (value == &values->floor[i])
			assert_string_equal(field->name, nc_property_names[i]);
	for (size_t i = 0; i < NC_SEVERITY_MAX; i++)
		if (value == &values->risk[i])
			assert_string_equal(field->name, nc_severity_names[i]);
	for (size_t i = 1; i < NC_RULE_MAX; i++)
		if (value == &values->severity[i])
			assert_string_equal(field->name, nc_rules[i].id);
	return 0;
}

static void fields_stand_in_their_places(void **state)
{
	struct nc_policy_values values = {0};

	(void)state;
	assert_int_equal(nc_schema_visit(nc_policy_value_fields, &values, check_name, &values), 0);
}

static void profiles_need_no_file(void **state)
{
	cleanup_config struct nc_config config = {0};
	cleanup_book struct nc_book *book = NULL;
	const struct nc_terms *terms;
	struct nacre_err err = {0};

	(void)state;
	assert_int_equal(nc_book_new(&config, &book), 0);
	assert_string_equal(nc_book_usual(book), "standard");
	assert_int_equal(
		judge(terms_of(book, "standard", ""), NC_PYTHON, "import os\n"), NC_VERDICT_ALLOW);
	assert_int_equal(
		judge(terms_of(book, "strict", ""), NC_PYTHON, "import os\n"), NC_VERDICT_REFUSE);
	assert_int_equal(
		judge(terms_of(book, "audit", ""), NC_SHELL, "rm -rf /\n"), NC_VERDICT_MICROVM);
	/* a tenant that nobody knows is nobody in particular */
	assert_ptr_equal(terms_of(book, "strict", "acme"), terms_of(book, "strict", ""));
	assert_int_equal(nc_book_terms(book, "lax", "", &terms, &err), -EINVAL);
	assert_string_equal(err.message, "Unknown policy 'lax': there are standard, strict, audit");
	assert_int_equal(nc_book_add(book, "strikt", &err), -EINVAL);
	assert_string_equal(err.message, "Unknown policy 'strikt', did you mean 'strict'?");
}

static void later_ones_win(void **state)
{
	cleanup_config struct nc_config config = {0};
	cleanup_book struct nc_book *book = NULL;
	const struct nc_policy_values *values;
	struct nacre_err err = {0};

	(void)state;
	put("security_policies.yaml", "inherits: audit\n"
				      "limits: {memory_mb: 400, disk_mb: 40, cpu_cores: 4}\n"
				      "tenants: {acme: {limits: {cpu_cores: 3}}}\n");
	put("policies/mine.yaml", "inherits: standard\n"
				  "python: {forbidden_imports: []}\n"
				  "limits: {memory_mb: 300, max_processes: 30}\n"
				  "tenants: {acme: {mode: audit, limits: {memory_mb: 200}}}\n");
	assert_int_equal(nc_config_load(&config, dir, &err), 0);
	assert_int_equal(nc_book_new(&config, &book), 0);
	assert_string_equal(nc_book_usual(book), "audit");
	values = &terms_of(book, "mine", "")->values;
	assert_int_equal(values->limits.memory_mb.number, 300);
	assert_int_equal(values->limits.disk_mb.number, 40);
	assert_int_equal(values->limits.cpu_cores.number, 4000);
	assert_int_equal(values->limits.max_processes.number, 30);
	assert_false(values->limits.execution_time_seconds.given);
	assert_int_equal(values->mode.number, NC_MODE_ENFORCE);
	assert_null(values->mode.file);
	assert_string_equal(values->limits.memory_mb.file, nc_book_path(book, "mine"));
	assert_int_equal(values->limits.memory_mb.line, 3);
	values = &terms_of(book, "mine", "acme")->values;
	assert_string_equal(terms_of(book, "mine", "acme")->tenant, "acme");
	assert_int_equal(values->limits.memory_mb.number, 200);
	assert_int_equal(values->limits.cpu_cores.number, 3000);
	assert_int_equal(values->mode.number, NC_MODE_AUDIT);
	assert_int_equal(values->mode.line, 4);
	/* the site's file holds for the shipped ones too */
	assert_int_equal(terms_of(book, "strict", "")->values.limits.memory_mb.number, 400);
}

static void severities_and_risk_are_the_policys(void **state)
{
	cleanup_config struct nc_config config = {0};
	cleanup_book struct nc_book *book = NULL;
	const struct nc_terms *terms;
	struct nacre_err err = {0};

	(void)state;
	put("security_policies.yaml", "");
	put("policies/mine.yaml", "inherits: standard\n"
				  "severities: {process.run: critical, file.destroy: low}\n"
				  "risk: {low: container, critical: microvm, high: refuse}\n");
	assert_int_equal(nc_config_load(&config, dir, &err), 0);
	assert_int_equal(nc_book_new(&config, &book), 0);
	terms = terms_of(book, "mine", "");
	assert_int_equal(judge(terms, NC_PYTHON, "1\n"), NC_VERDICT_CONTAINER);
	assert_int_equal(judge(terms, NC_SHELL, "rm -rf /\n"), NC_VERDICT_CONTAINER);
	assert_int_equal(judge(terms, NC_PYTHON, "import subprocess\nsubprocess.run(['ls'])\n"),
		NC_VERDICT_MICROVM);
	assert_int_equal(judge(terms, NC_SHELL, "sudo ls\n"), NC_VERDICT_REFUSE);
}

static void allowed_lists_leave_nothing_else(void **state)
{
	cleanup_config struct nc_config config = {0};
	cleanup_book struct nc_book *book = NULL;
	const struct nc_terms *terms;
	struct nacre_err err = {0};

	(void)state;
	/* without inherits a file stands on strict: what it does not allow is refused */
	put("policies/mine.yaml", "python: {allowed_imports: [json, os.path],\n"
				  "  allowed_functions: [print, json.dumps]}\n"
				  "javascript: {allowed_imports: []}\n"
				  "shell: {allowed_commands: [echo, ls]}\n");
	assert_int_equal(nc_config_load(&config, dir, &err), 0);
	assert_int_equal(nc_book_new(&config, &book), 0);
	terms = terms_of(book, "mine", "");
	assert_int_equal(terms->profile, NC_PROFILE_STRICT);
	assert_int_equal(judge(terms, NC_PYTHON, "import json.decoder\n"), NC_VERDICT_ALLOW);
	assert_int_equal(judge(terms, NC_PYTHON, "import math\n"), NC_VERDICT_REFUSE);
	assert_int_equal(judge(terms, NC_PYTHON, "__import__(x)\n"), NC_VERDICT_REFUSE);
	assert_int_equal(judge(terms, NC_PYTHON, "def f(): print(1)\nf()\n"), NC_VERDICT_ALLOW);
	assert_int_equal(judge(terms, NC_PYTHON, "sorted([])\n"), NC_VERDICT_REFUSE);
	assert_int_equal(judge(terms, NC_PYTHON, "s = sorted\ns([])\n"), NC_VERDICT_REFUSE);
	assert_int_equal(judge(terms, NC_JAVASCRIPT, "import 'x'\n"), NC_VERDICT_REFUSE);
	assert_int_equal(judge(terms, NC_JAVASCRIPT, "let a = 1\n"), NC_VERDICT_ALLOW);
	assert_int_equal(judge(terms, NC_SHELL, "ls | cat\n"), NC_VERDICT_REFUSE);
	assert_int_equal(judge(terms, NC_SHELL, "/bin/ls; echo x\n"), NC_VERDICT_ALLOW);
	assert_int_equal(judge(terms, NC_SHELL, "$x y\n"), NC_VERDICT_REFUSE);
	/* a command is one in every language */
	assert_int_equal(judge(terms, NC_GO,
				 "package main\nimport \"os/exec\"\n"
				 "func main() { exec.Command(\"cat\").Run() }\n"),
		NC_VERDICT_REFUSE);
}

static void bad_files_are_no_policies(void **state)
{
	cleanup_config struct nc_config config = {0};
	cleanup_book struct nc_book *book = NULL;
	struct nacre_err err = {0};
	char **names = NULL;
	size_t count = 0;

	(void)state;
	put("policies/bad.yaml", "mode: on\n");
	put("policies/mine.yaml", "");
	assert_int_equal(nc_config_load(&config, dir, &err), 0);
	assert_int_equal(nc_book_new(&config, &book), 0);
	assert_int_equal(nc_book_add(book, "bad", &err), -EINVAL);
	assert_non_null(strstr(err.message, "bad.yaml:1: mode: found 'on'"));
	assert_null(nc_book_path(book, "bad"));
	assert_int_equal(nc_book_add_all(book, &err), -EINVAL);
	assert_int_equal(nc_book_add(book, "/nonexistent/x.yaml", &err), -ENOENT);
	assert_int_equal(nc_book_add(book, ".", &err), -EINVAL);
	assert_int_equal(nc_book_add(book, "", &err), -EINVAL);
	assert_true(nc_book_is_path("x.yaml") && nc_book_is_path("./x"));
	assert_false(nc_book_is_path("x") || nc_book_is_path(".yaml"));
	assert_int_equal(nc_book_names(&config, &names, &count), 0);
	assert_int_equal(count, 2);
	assert_string_equal(names[0], "bad");
	assert_string_equal(names[1], "mine");
	free(names[0]);
	free(names[1]);
	free(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_use_the_words_of_others),
		cmocka_unit_test(fields_stand_in_their_places),
		cmocka_unit_test(profiles_need_no_file),
		cmocka_unit_test(later_ones_win),
		cmocka_unit_test(severities_and_risk_are_the_policys),
		cmocka_unit_test(allowed_lists_leave_nothing_else),
		cmocka_unit_test(bad_files_are_no_policies),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
