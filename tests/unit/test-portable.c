/* Policies and reports as bytes: they come back as they were, and nothing else is taken. */
#include "unit-files.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "policy/json.h"
#include "policy/portable.h"

static const char code[] = "import os, subprocess\n"
			   "os.system('rm -rf /')\n"
			   "__import__('so' + 'cket').socket().connect(('example.org', 80))\n"
			   "open('/etc/shadow').read()\n"
			   "exec('import ctypes')\n";

static const char *const forbidden[] = {"os", "socket", NULL}, *const nothing[] = {NULL};

static struct nc_policy *make_policy(enum nc_profile profile)
{
	struct nc_policy_options options = {.profile = profile};
	struct nc_policy *policy = NULL;

	options.lists[NC_PYTHON].forbidden_imports = forbidden;
	options.lists[NC_SHELL].allowed_commands = nothing;
	assert_int_equal(nc_policy_new(&options, &policy), 0);
	return policy;
}

static char *report_text(const struct nc_report *report)
{
	json_t *value = nc_report_json(report, "file", NC_PYTHON);
	char *text = json_dumps(value, JSON_SORT_KEYS);

	assert_non_null(text);
	json_decref(value);
	return text;
}

static char *analyse(struct nc_policy *policy, struct nc_report **ret_report)
{
	assert_int_equal(nc_policy_analyse(policy, NC_PYTHON, code, strlen(code), ret_report), 0);
	return report_text(*ret_report);
}

static void they_come_back(void **state)
{
	(void)state;
	for (enum nc_profile profile = 0; profile < NC_PROFILE_MAX; profile++) {
		nc_buf_cleanup struct nc_buf policy_bytes = NC_BUF(NC_PORTABLE_POLICY_MAX);
		nc_buf_cleanup struct nc_buf report_bytes = NC_BUF(NC_PORTABLE_REPORT_MAX);
		cleanup_policy struct nc_policy *here = make_policy(profile), *there = NULL;
		cleanup_report struct nc_report *made = NULL, *other = NULL, *read = NULL;
		cleanup_free char *first = analyse(here, &made), *second = NULL, *third = NULL;

		nc_policy_pack(here, &policy_bytes);
		assert_int_equal(policy_bytes.error, 0);
		assert_int_equal(nc_policy_unpack(policy_bytes.data, policy_bytes.size, &there), 0);
		nc_policy_learn(there, here);
		second = analyse(there, &other);
		assert_string_equal(first, second);
		nc_report_pack(other, &report_bytes);
		assert_int_equal(nc_report_unpack(report_bytes.data, report_bytes.size, &read), 0);
		third = report_text(read);
		assert_string_equal(first, third);
		assert_int_equal(nc_report_verdict(read), nc_report_verdict(made));
		assert_int_equal(nc_report_sum(read), nc_report_sum(made));
	}
}

/* Every shorter message is refused, and so is one with a byte more. */
static void what_is_cut_is_refused(void **state)
{
	nc_buf_cleanup struct nc_buf bytes = NC_BUF(NC_PORTABLE_REPORT_MAX);
	cleanup_policy struct nc_policy *policy = make_policy(NC_PROFILE_STRICT);
	cleanup_report struct nc_report *report = NULL;
	cleanup_free char *text = analyse(policy, &report);

	(void)state;
	(void)text;
	nc_report_pack(report, &bytes);
	for (size_t size = 0; size < bytes.size; size++) {
		struct nc_report *read = NULL;

		assert_int_equal(nc_report_unpack(bytes.data, size, &read), -EBADMSG);
		assert_null(read);
	}
	nc_buf_add(&bytes, "", 1);
	assert_int_equal(nc_report_unpack(bytes.data, bytes.size, &report), -EBADMSG);
}

/* No byte that is changed does harm, and what is taken has values that there are. */
static void what_is_changed_does_no_harm(void **state)
{
	nc_buf_cleanup struct nc_buf bytes = NC_BUF(NC_PORTABLE_REPORT_MAX);
	cleanup_policy struct nc_policy *policy = make_policy(NC_PROFILE_STRICT);
	cleanup_report struct nc_report *report = NULL;
	cleanup_free char *text = analyse(policy, &report);

	(void)state;
	(void)text;
	nc_report_pack(report, &bytes);
	for (size_t i = 0; i < bytes.size; i++) {
		cleanup_report struct nc_report *read = NULL;
		const char was = bytes.data[i];

		bytes.data[i] = (char)(was ^ 0xff);
		if (nc_report_unpack(bytes.data, bytes.size, &read) == 0) {
			assert_true(nc_report_risk(read) < NC_SEVERITY_MAX);
			assert_true(nc_report_verdict(read) < NC_VERDICT_MAX);
			free(report_text(read));
		}
		bytes.data[i] = was;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_test_fds(they_come_back),
		unit_test_fds(what_is_cut_is_refused),
		unit_test_fds(what_is_changed_does_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
