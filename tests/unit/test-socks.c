/* SOCKS5, cut everywhere. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "egress/socks.h"

#define BYTES(text) (const unsigned char *)(text), sizeof(text) - 1

static void greetings(void **state)
{
	(void)state;
	assert_int_equal(nc_socks_greeting(BYTES("\x05\x01\0")), 3);
	assert_int_equal(nc_socks_greeting(BYTES("\x05\x03\x02\x01\0more")), 5);
	assert_int_equal(nc_socks_greeting(BYTES("\x05\x02\x02\x01")), -EBADMSG);
	assert_int_equal(nc_socks_greeting(BYTES("\x05\0")), -EBADMSG);
	assert_int_equal(nc_socks_greeting(BYTES("\x04\x01")), -EBADMSG);
	assert_int_equal(nc_socks_greeting(BYTES("\x05")), 0);
	assert_int_equal(nc_socks_greeting(BYTES("\x05\x02\0")), 0);
	assert_int_equal(nc_socks_greeting(BYTES("")), 0);
}

static void requests(void **state)
{
	static const char name[] = "\x05\x01\0\x03\x0b"
				   "Example.ORG\x01\xbb";
	struct nc_host host;
	uint16_t port;

	(void)state;
	for (size_t i = 0; i < sizeof(name) - 1; i++)
		assert_int_equal(nc_socks_request((const unsigned char *)name, i, &host, &port), 0);
	assert_int_equal(nc_socks_request(BYTES(name), &host, &port), sizeof(name) - 1);
	assert_string_equal(host.text, "example.org");
	assert_int_equal(port, 443);
	assert_int_equal(
		nc_socks_request(BYTES("\x05\x01\0\x01\x7f\0\0\x01\0\x50"), &host, &port), 10);
	assert_int_equal(host.kind, NC_HOST_V4);
	assert_string_equal(host.text, "127.0.0.1");
	assert_int_equal(
		nc_socks_request(
			BYTES("\x05\x01\0\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\0\x50"),
			&host, &port),
		22);
	assert_string_equal(host.text, "2001:db8::1");
	/* a name that is an address is judged as one */
	assert_int_equal(nc_socks_request(BYTES("\x05\x01\0\x03\x09"
						"127.0.0.1"
						"\0\x50"),
				 &host, &port),
		16);
	assert_int_equal(host.kind, NC_HOST_V4);
}

static void others_are_refused(void **state)
{
	struct nc_host host;
	uint16_t port;

	(void)state;
	assert_int_equal(nc_socks_request(BYTES("\x05\x02\0\x01\x7f\0\0\x01\0\x50"), &host, &port),
		-EOPNOTSUPP);
	assert_int_equal(nc_socks_request(BYTES("\x05\x03\0\x01\x7f\0\0\x01\0\x50"), &host, &port),
		-EOPNOTSUPP);
	assert_int_equal(nc_socks_request(BYTES("\x05\x01\0\x02\x7f\0\0\x01\0\x50"), &host, &port),
		-EAFNOSUPPORT);
	assert_int_equal(
		nc_socks_request(BYTES("\x05\x01\x01\x01\x7f\0\0\x01\0\x50"), &host, &port),
		-EBADMSG);
	assert_int_equal(nc_socks_request(BYTES("\x04\x01\0\x01\x7f\0\0\x01\0\x50"), &host, &port),
		-EBADMSG);
	assert_int_equal(
		nc_socks_request(BYTES("\x05\x01\0\x01\x7f\0\0\x01\0\0"), &host, &port), -EINVAL);
	assert_int_equal(nc_socks_request(BYTES("\x05\x01\0\x03\0\0\x50"), &host, &port), -EINVAL);
	assert_int_equal(nc_socks_request(BYTES("\x05\x01\0\x03\x05"
						"a\0b.c"
						"\0\x50"),
				 &host, &port),
		-EINVAL);
	assert_int_equal(nc_socks_request(BYTES("\x05\x01\0\x03\x05"
						"127.1"
						"\0\x50"),
				 &host, &port),
		-EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(greetings),
		cmocka_unit_test(requests),
		cmocka_unit_test(others_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
