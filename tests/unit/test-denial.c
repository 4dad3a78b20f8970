/* Denials: every call that a filter may refuse, every limit and every rule has its texts. */
#include "unit.h"

#include <string.h>

#include "base/text.h"
#include "kernel/filter_table.h"
#include "policy/denial.h"

static void assert_whole(const struct nc_denial *denial, const char *layer)
{
	size_t size = strlen(layer);

	assert_string_equal(denial->layer, layer);
	assert_true(strncmp(denial->id, layer, size) == 0 && denial->id[size] == '.');
	assert_true(strlen(denial->id) < NC_DENIAL_ID_MAX - 1); /* nothing was cut */
	assert_true(*denial->rule && *denial->object && *denial->message && *denial->instead);
	assert_true(!denial->allow_with || *denial->allow_with);
	/* sentences are put together with others: no stop, one line */
	assert_null(strchr(denial->message, '\n'));
	assert_int_not_equal(denial->message[strlen(denial->message) - 1], '.');
	assert_int_not_equal(denial->instead[strlen(denial->instead) - 1], '.');
}

/* Every call of the words, which may begin with "?", is explained and not by the last resort. */
static void assert_explained(const char *calls, enum nc_denial_box box)
{
	char copy[4096], *rest = copy, *word;

	assert_true((size_t)snprintf(copy, sizeof(copy), "%s", calls) < sizeof(copy));
	while ((word = strsep(&rest, " "))) {
		struct nc_denial denial;

		word += *word == '?';
		nc_denial_of_call(word, box, 3, &denial);
		assert_whole(&denial, "seccomp");
		if (nc_streq(denial.rule, "other"))
			fail_msg("%s has no text", word);
		assert_string_equal(denial.object, word);
		assert_int_equal(denial.count, 3);
	}
}

static void every_refused_call_is_explained(void **state)
{
	static const enum nc_filter profiles[NC_DENIAL_BOX_MAX] = {
		[NC_DENIAL_IN_CONTAINER] = NC_FILTER_SHARED,
		[NC_DENIAL_IN_PROCESS] = NC_FILTER_PROCESS,
		[NC_DENIAL_ALONE] = NC_FILTER_ALONE};
	size_t n_groups = sizeof(nc_filter_groups) / sizeof(nc_filter_groups[0]);
	size_t n_rules = sizeof(nc_filter_rules) / sizeof(nc_filter_rules[0]);

	(void)state;
	for (enum nc_denial_box box = 0; box < NC_DENIAL_BOX_MAX; box++) {
		unsigned int bit = 1U << profiles[box];

		for (size_t i = 0; i < n_groups; i++)
			if (!((nc_filter_groups[i].allowed_in | nc_filter_groups[i].absent_in) &
				    bit) &&
				!nc_streq(nc_filter_groups[i].reason, "reading them"))
				assert_explained(nc_filter_groups[i].calls, box);
		for (size_t i = 0; i < n_rules; i++)
			if (nc_filter_rules[i].verdict == NC_FILTER_REFUSE &&
				nc_filter_rules[i].profiles & bit)
				assert_explained(nc_filter_rules[i].call, box);
	}
}

static void the_box_decides_on_the_reason(void **state)
{
	struct nc_denial container, process, alone;

	(void)state;
	nc_denial_of_call("clone", NC_DENIAL_IN_CONTAINER, 1, &container);
	nc_denial_of_call("clone", NC_DENIAL_IN_PROCESS, 1, &process);
	nc_denial_of_call("clone", NC_DENIAL_ALONE, 1, &alone);
	assert_string_equal(container.rule, "namespaces");
	assert_string_equal(process.rule, "namespaces");
	assert_string_equal(alone.rule, "new-processes");
	assert_string_equal(alone.id, "seccomp.clone");
	assert_null(container.allow_with);
	assert_non_null(alone.allow_with);
	nc_denial_of_call("frobnicate", NC_DENIAL_IN_CONTAINER, 1, &container);
	assert_whole(&container, "seccomp");
	assert_string_equal(container.rule, "other");
}

static void limits_and_requests_are_explained(void **state)
{
	struct nc_denial denial;

	(void)state;
	for (enum nc_denial_limit i = 0; i < NC_DENIAL_LIMIT_MAX; i++) {
		nc_denial_of_limit(i, 1, &denial);
		assert_whole(&denial, "limit");
		assert_non_null(denial.allow_with);
	}
	for (enum nc_denial_request i = 0; i < NC_DENIAL_REQUEST_MAX; i++) {
		nc_denial_of_request(i, "x", &denial);
		assert_whole(&denial, "request");
	}
	nc_denial_of_risk(NC_SEVERITY_HIGH, &denial);
	assert_whole(&denial, "static");
	assert_string_equal(denial.object, "high");
}

static void every_rule_becomes_a_denial(void **state)
{
	const struct nc_rule_text *rule;

	(void)state;
	for (size_t i = 0; (rule = nc_policy_rule(i)); i++) {
		const struct nc_finding finding = {.rule = rule->id,
			.object = "x",
			.line = 7,
			.why = rule->why,
			.remedy = rule->remedy};
		struct nc_denial denial;

		nc_denial_of_finding(&finding, &denial);
		assert_whole(&denial, "static");
		assert_string_equal(denial.rule, rule->id);
		assert_int_equal(denial.line, 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_refused_call_is_explained),
		cmocka_unit_test(the_box_decides_on_the_reason),
		cmocka_unit_test(limits_and_requests_are_explained),
		cmocka_unit_test(every_rule_becomes_a_denial),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
