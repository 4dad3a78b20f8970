/* Which addresses are somebody's on the internet. */
#include "unit.h"

#include <arpa/inet.h>
#include <string.h>

#include "egress/address.h"

static struct nc_address address_of(const char *text)
{
	struct nc_address address = {.family = strchr(text, ':') ? AF_INET6 : AF_INET};

	assert_int_equal(inet_pton(address.family, text, address.bytes), 1);
	return address;
}

static void check(const char *const *texts, size_t n, enum nc_reach reach)
{
	for (size_t i = 0; i < n; i++) {
		const struct nc_address address = address_of(texts[i]);

		if (nc_address_reach(&address) != reach)
			fail_msg("%s is %d", texts[i], nc_address_reach(&address));
	}
}

static void public_ones_are_public(void **state)
{
	static const char *const texts[] = {"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0",
		"100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255",
		"169.255.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0",
		"192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255",
		"168.63.129.15", "2606:4700::1111", "2001:4860:4860::8888", "2001:200::1",
		"2400:cb00::1", "2003::1", "64:ff9b::808:808"};

	(void)state;
	check(texts, unit_count(texts), NC_REACH_PUBLIC);
}

static void inner_ones_are_inner(void **state)
{
	static const char *const texts[] = {"10.0.0.0", "10.255.255.255", "100.64.0.0",
		"100.127.255.255", "127.0.0.1", "127.255.255.255", "172.16.0.0", "172.31.255.255",
		"192.168.0.0", "192.168.255.255", "192.0.2.1", "198.18.0.0", "198.19.255.255",
		"198.51.100.1", "203.0.113.255", "::1", "fc00::", "fdff::1", "2001:db8::1",
		"3fff::1", "64:ff9b::7f00:1", "64:ff9b::a00:1"};

	(void)state;
	check(texts, unit_count(texts), NC_REACH_PRIVATE);
}

static void special_ones_are_never_reached_by_name(void **state)
{
	static const char *const texts[] = {"0.0.0.0", "0.255.255.255", "169.254.0.0",
		"169.254.169.254", "169.254.255.255", "192.0.0.1", "192.0.0.192", "192.88.99.1",
		"224.0.0.0", "239.255.255.255", "240.0.0.0", "255.255.255.255", "168.63.129.16",
		"100.100.100.200", "::", "::2", "::7f00:1", "::ffff:8.8.8.8", "::ffff:127.0.0.1",
		"::ffff:0:127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1",
		"2001:20::1", "2001:1ff::1", "2002::1", "2002:7f00:1::1", "4000::1", "fe80::1",
		"febf::1", "fec0::1", "ff02::1", "fd00:ec2::254", "fd20:ce::254"};

	(void)state;
	check(texts, unit_count(texts), NC_REACH_NEVER);
}

static void this_host_is_told_apart(void **state)
{
	const struct nc_address own = address_of("127.0.0.1"), other = address_of("127.8.8.8");

	(void)state;
	assert_int_equal(nc_address_is_own(&own), 1);
	assert_int_equal(nc_address_is_own(&other), 1);
}

static void addresses_become_sockets_and_back(void **state)
{
	static const char *const texts[] = {"192.0.2.7", "2001:db8::7"};

	(void)state;
	for (size_t i = 0; i < unit_count(texts); i++) {
		const struct nc_address address = address_of(texts[i]);
		struct sockaddr_storage socket;
		struct nc_address back;
		char text[NC_ADDRESS_TEXT_SIZE];

		assert_true(nc_address_fill(&address, 80, &socket) > 0);
		assert_true(nc_address_take((const struct sockaddr *)&socket, &back));
		assert_true(nc_address_equal(&address, &back));
		nc_address_text(&back, text);
		assert_string_equal(text, texts[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(public_ones_are_public),
		cmocka_unit_test(inner_ones_are_inner),
		cmocka_unit_test(special_ones_are_never_reached_by_name),
		cmocka_unit_test(this_host_is_told_apart),
		cmocka_unit_test(addresses_become_sockets_and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
