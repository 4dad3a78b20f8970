/* The list of a box: what it allows, what it denies, and why. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "egress/rules.h"

static struct nc_verdict judge(const struct nc_rules *rules, const char *host, uint16_t port,
	enum nc_method method, const char *path)
{
	struct nc_host parsed;
	struct nc_wish wish = {.host = &parsed,
		.port = port,
		.tunnel = path == NULL,
		.method = method,
		.path = {path ? path : "", path ? strlen(path) : 0}};

	assert_int_equal(nc_host_parse(host, strlen(host), &parsed), 0);
	return nc_rules_judge(rules, &wish);
}

static void expect(
	const struct nc_rules *rules, const char *host, uint16_t port, enum nc_reason reason)
{
	struct nc_verdict verdict = judge(rules, host, port, NC_METHOD_GET, NULL);

	if (verdict.reason != reason)
		fail_msg("%s:%u: %s", host, port, nc_reason_id(verdict.reason));
}

static void add(struct nc_rules *rules, struct nc_egress_rule rule)
{
	assert_int_equal(nc_rules_add(rules, &rule), 0);
}

static void an_empty_list_denies(void **state)
{
	struct nc_rules rules = {0};

	(void)state;
	expect(&rules, "example.org", 443, NC_REASON_NOT_LISTED);
	expect(&rules, "192.0.2.1", 443, NC_REASON_LITERAL);
}

static void hosts_and_ports(void **state)
{
	struct nc_rules rules = {0};

	(void)state;
	add(&rules, (struct nc_egress_rule){.host = "example.org"});
	add(&rules, (struct nc_egress_rule){.host = "*.wild.example:8443"});
	add(&rules, (struct nc_egress_rule){.host = "192.0.2.1:53"});
	add(&rules, (struct nc_egress_rule){.host = "[2001:db8::1]"});
	expect(&rules, "example.org", 80, NC_REASON_ALLOWED);
	expect(&rules, "EXAMPLE.org.", 443, NC_REASON_ALLOWED);
	expect(&rules, "example.org", 22, NC_REASON_PORT);
	expect(&rules, "www.example.org", 443, NC_REASON_NOT_LISTED);
	expect(&rules, "notexample.org", 443, NC_REASON_NOT_LISTED);
	expect(&rules, "a.wild.example", 8443, NC_REASON_ALLOWED);
	expect(&rules, "a.b.wild.example", 8443, NC_REASON_ALLOWED);
	expect(&rules, "a.wild.example", 443, NC_REASON_PORT);
	expect(&rules, "wild.example", 8443, NC_REASON_NOT_LISTED);
	expect(&rules, "awild.example", 8443, NC_REASON_NOT_LISTED);
	expect(&rules, "192.0.2.1", 53, NC_REASON_ALLOWED);
	expect(&rules, "192.0.2.2", 53, NC_REASON_LITERAL);
	expect(&rules, "[2001:DB8:0::1]", 443, NC_REASON_ALLOWED);
	expect(&rules, "[::ffff:192.0.2.1]", 53, NC_REASON_LITERAL);
	nc_rules_done(&rules);
}

static void deny_wins(void **state)
{
	struct nc_rules rules = {0};

	(void)state;
	add(&rules, (struct nc_egress_rule){.host = "*.example.org"});
	add(&rules, (struct nc_egress_rule){.host = "bad.example.org", .deny = true});
	add(&rules, (struct nc_egress_rule){.host = "bad.example.org"});
	expect(&rules, "good.example.org", 443, NC_REASON_ALLOWED);
	expect(&rules, "bad.example.org", 443, NC_REASON_DENIED);
	expect(&rules, "bad.example.org", 8080, NC_REASON_DENIED);
	expect(&rules, "x.bad.example.org", 443, NC_REASON_ALLOWED);
	nc_rules_done(&rules);
}

static void reach_is_the_farthest_of_those_that_allow(void **state)
{
	struct nc_rules rules = {0};

	(void)state;
	add(&rules, (struct nc_egress_rule){.host = "*.example.org"});
	add(&rules, (struct nc_egress_rule){.host = "in.example.org", .inner = true});
	add(&rules, (struct nc_egress_rule){.host = "out.example.org:1", .inner = true});
	add(&rules, (struct nc_egress_rule){.host = "127.0.0.1"});
	assert_int_equal(
		judge(&rules, "a.example.org", 80, NC_METHOD_GET, NULL).reach, NC_REACH_PUBLIC);
	assert_int_equal(
		judge(&rules, "in.example.org", 80, NC_METHOD_GET, NULL).reach, NC_REACH_PRIVATE);
	/* its inner entry is for another port */
	assert_int_equal(
		judge(&rules, "out.example.org", 80, NC_METHOD_GET, NULL).reach, NC_REACH_PUBLIC);
	assert_int_equal(judge(&rules, "127.0.0.1", 80, NC_METHOD_GET, NULL).reach, NC_REACH_NEVER);
	nc_rules_done(&rules);
}

static void methods_and_paths(void **state)
{
	static const char *const paths[] = {"/api", "/d/"};
	struct nc_rules rules = {0};

	(void)state;
	add(&rules, (struct nc_egress_rule){.host = "a.example",
			    .methods = 1U << NC_METHOD_GET | 1U << NC_METHOD_HEAD,
			    .paths = paths,
			    .n_paths = 2});
	assert_int_equal(
		judge(&rules, "a.example", 80, NC_METHOD_GET, "/api/x").reason, NC_REASON_ALLOWED);
	assert_int_equal(
		judge(&rules, "a.example", 80, NC_METHOD_HEAD, "/d/").reason, NC_REASON_ALLOWED);
	assert_int_equal(
		judge(&rules, "a.example", 80, NC_METHOD_POST, "/api").reason, NC_REASON_METHOD);
	assert_int_equal(
		judge(&rules, "a.example", 80, NC_METHOD_OTHER, "/api").reason, NC_REASON_METHOD);
	assert_int_equal(
		judge(&rules, "a.example", 80, NC_METHOD_GET, "/apis").reason, NC_REASON_PATH);
	assert_int_equal(
		judge(&rules, "a.example", 80, NC_METHOD_GET, "/d/../x").reason, NC_REASON_PATH);
	assert_int_equal(judge(&rules, "a.example", 80, NC_METHOD_GET, "").reason, NC_REASON_PATH);
	expect(&rules, "a.example", 443, NC_REASON_PLAIN_ONLY);
	nc_rules_done(&rules);
}

static void paths_that_can_be_read_in_two_ways(void **state)
{
	static const char *const plain[] = {
		"/", "/a", "/a/", "/a/b.c", "/a?x=../..", "/...", "/%41"};
	static const char *const sly[] = {"", "a", "?", "//", "/a//b", "/.", "/..", "/./a", "/a/..",
		"/%2e", "/%2E%2e/", "/a%2fb", "/a%5Cb", "/a\\b", "/%252e", "/a;b", "/%00"};

	(void)state;
	for (size_t i = 0; i < unit_count(plain); i++)
		assert_true(nc_path_is_unambiguous((struct nc_span){plain[i], strlen(plain[i])}));
	for (size_t i = 0; i < unit_count(sly); i++)
		if (nc_path_is_unambiguous((struct nc_span){sly[i], strlen(sly[i])}))
			fail_msg("%s", sly[i]);
}

static void bad_entries_are_refused(void **state)
{
	static const char *const not_rooted[] = {"api"}, *const query[] = {"/a?b"};
	const struct nc_egress_rule bad[] = {{.host = ""}, {.host = "*"}, {.host = "a b"},
		{.host = "127.1"}, {.host = "a.example", .methods = 1U << 20},
		{.host = "a.example", .paths = not_rooted, .n_paths = 1},
		{.host = "a.example", .paths = query, .n_paths = 1}};
	struct nc_rules rules = {0};

	(void)state;
	for (size_t i = 0; i < unit_count(bad); i++)
		assert_int_equal(nc_rules_add(&rules, &bad[i]), -EINVAL);
	for (size_t i = 0; i < NC_EGRESS_RULES_MAX; i++)
		add(&rules, (struct nc_egress_rule){.host = "a.example"});
	assert_int_equal(
		nc_rules_add(&rules, &(struct nc_egress_rule){.host = "a.example"}), -E2BIG);
	nc_rules_done(&rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_list_denies),
		cmocka_unit_test(hosts_and_ports),
		cmocka_unit_test(deny_wins),
		cmocka_unit_test(reach_is_the_farthest_of_those_that_allow),
		cmocka_unit_test(methods_and_paths),
		cmocka_unit_test(paths_that_can_be_read_in_two_ways),
		cmocka_unit_test(bad_entries_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
