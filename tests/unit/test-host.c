/* Hosts that a policy allows: what is one, and what only looks like one. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "config/host.h"

static void hosts_are_taken(void **state)
{
	static const char *const good[] = {"example.org", "localhost", "a", "*.example.org",
		"x-1.example.org:443", "*.a.b:1", "192.0.2.1", "192.0.2.1:65535", "[2001:db8::1]",
		"[::1]:80", "1e100.net", "xn--bcher-kva.example"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!nc_host_is_pattern(good[i]))
			fail_msg("%s is a host", good[i]);
}

static void others_are_refused(void **state)
{
	static const char *const bad[] = {"", "*", "*.org", "a.*.org", "*a.example.org",
		"**.example.org", "Example.org", "https://example.org", "example.org/x", "a b",
		"example.org:", "example.org:0", "example.org:65536", "example.org:080",
		"example.org:443:443", ".example.org", "example.org.", "a..b", "-a.org", "a-.org",
		"a_b.org", "192.0.2", "192.0.2.256", "010.0.0.1", "0x7f000001.0", "1",
		"2001:db8::1", "[2001:db8::1", "[2001:db8::1]x", "[192.0.2.1]", "[::1%eth0]",
		"user@example.org", "b\303\274cher.example"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (nc_host_is_pattern(bad[i]))
			fail_msg("%s is no host", bad[i]);
}

static void lengths_are_bounded(void **state)
{
	char label[128] = "", name[300] = "";

	(void)state;
	memset(label, 'a', 63);
	assert_true(nc_host_is_pattern(label));
	label[63] = 'a';
	assert_false(nc_host_is_pattern(label));
	for (size_t i = 0; i < 253; i++)
		name[i] = i % 2 ? '.' : 'a';
	assert_true(nc_host_is_pattern(name));
	name[253] = '.';
	name[254] = 'a';
	assert_false(nc_host_is_pattern(name));
}

/* What programs ask for, and what is compared and dialled. */
static void hosts_have_one_form(void **state)
{
	static const struct {
		const char *asked, *text;
		enum nc_host_kind kind;
		uint16_t port;
	} cases[] = {
		{"example.org", "example.org", NC_HOST_NAME, 0},
		{"EXAMPLE.org.", "example.org", NC_HOST_NAME, 0},
		{"Example.Org.:443", "example.org", NC_HOST_NAME, 443},
		{"192.0.2.1:80", "192.0.2.1", NC_HOST_V4, 80},
		{"[::FFFF:127.0.0.1]:80", "::ffff:127.0.0.1", NC_HOST_V6, 80},
		{"[0:0:0:0:0:0:0:1]", "::1", NC_HOST_V6, 0},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++) {
		struct nc_host host;
		uint16_t port = 1;

		assert_int_equal(
			nc_host_parse_port(cases[i].asked, strlen(cases[i].asked), &host, &port),
			0);
		assert_string_equal(host.text, cases[i].text);
		assert_int_equal(host.kind, cases[i].kind);
		assert_int_equal(port, cases[i].port);
	}
}

/* Each of these is an address for some parser, or two different hosts for two of them. */
static void tricks_are_no_hosts(void **state)
{
	static const char *const bad[] = {"127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1",
		"0x7F.0.0.1", "0177.0.0.1", "127.0.0.01", "127.0.0.0x1", "017700000001",
		"127.0.0.1.", "0x", "1.0x", "example.org.1", "example.org.0xa", "127.0.0.1:080",
		"127.0.0.1:+80", "127.0.0.1: 80", "127.0.0.1:", ":80", "", ".", "..",
		"example.org..", "a..b", "user@127.0.0.1", "127.0.0.1#example.org",
		"127.0.0.1%00.example.org", "example.org\\@127.0.0.1", "example.org/..",
		"ex ample.org", "example.org\t", "example.org\r\n", "ex\xc3\xa4mple.org",
		"\xe2\x91\xa0\xe2\x91\xa1.com", "[::1", "::1]", "::1", "[::1]80", "[::1]:80:80",
		"[fe80::1%25lo]", "[fe80::1%lo]", "[127.0.0.1]", "[::ffff:0x7f.1]", "[::127.1]",
		"[example.org]", "[]", "[].", "[::1].", "example.org:99999", "example.org:443:80",
		"example.org:443443", "*.example.org", "a_b.org"};
	struct nc_host host;
	uint16_t port;

	(void)state;
	for (size_t i = 0; i < unit_count(bad); i++)
		if (nc_host_parse_port(bad[i], strlen(bad[i]), &host, &port) == 0)
			fail_msg("%s was taken for %s", bad[i], host.text);
	/* what is checked up to a NUL may be dialled beyond it */
	assert_int_equal(nc_host_parse("good.org\0.evil.org", 18, &host), -EINVAL);
	assert_int_equal(nc_host_parse("good.org\0", 9, &host), -EINVAL);
}

static void patterns_are_taken_apart(void **state)
{
	struct nc_host_pattern pattern;

	(void)state;
	assert_int_equal(nc_host_parse_pattern("*.example.org:8443", &pattern), 0);
	assert_true(pattern.wild);
	assert_string_equal(pattern.host.text, "example.org");
	assert_int_equal(pattern.port, 8443);
	assert_int_equal(nc_host_parse_pattern("*.192.0.2.1", &pattern), -EINVAL);
	assert_int_equal(nc_host_parse_pattern("*.[::1]", &pattern), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_are_taken),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(lengths_are_bounded),
		cmocka_unit_test(hosts_have_one_form),
		cmocka_unit_test(tricks_are_no_hosts),
		cmocka_unit_test(patterns_are_taken_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
