/* Hosts that a policy allows: what is one, and what only looks like one. */
#include "unit.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_are_taken),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(lengths_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
