/* The first message of TLS, built by hand and cut everywhere. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "egress/hello.h"

struct greeting {
	unsigned char bytes[1024];
	size_t size;
};

static void put(struct greeting *greeting, const void *bytes, size_t size)
{
	memcpy(greeting->bytes + greeting->size, bytes, size);
	greeting->size += size;
}

static void put16(struct greeting *greeting, size_t value)
{
	const unsigned char bytes[] = {(unsigned char)(value >> 8), (unsigned char)value};

	put(greeting, bytes, 2);
}

/* A greeting with these extensions. */
static struct greeting greet(const void *extensions, size_t size)
{
	static const unsigned char fixed[] = {3, 3, [2 ... 33] = 7, 0, 0, 2, 0x13, 1, 1, 0};
	const size_t body = sizeof(fixed) + 2 + size;
	struct greeting greeting = {0};

	put(&greeting, "\x16\x03\x01", 3);
	put16(&greeting, body + 4);
	put(&greeting, "\x01\x00", 2);
	put16(&greeting, body);
	put(&greeting, fixed, sizeof(fixed));
	put16(&greeting, size);
	put(&greeting, extensions, size);
	return greeting;
}

#define NAME                                                                                       \
	"\0\0\0\x0e\0\x0c\0\0\x09"                                                                 \
	"good.test"
#define EMPTY_GREASE "\x0a\x0a\0\0"
#define ECH "\xfe\x0d\0\x01x"

static void the_name_is_found_when_all_is_there(void **state)
{
	const struct greeting greeting =
		greet(EMPTY_GREASE NAME EMPTY_GREASE, sizeof(EMPTY_GREASE NAME EMPTY_GREASE) - 1);
	struct nc_hello hello;

	(void)state;
	for (size_t i = 0; i < greeting.size; i++)
		assert_int_equal(nc_hello_parse(greeting.bytes, i, &hello), 0);
	assert_int_equal(nc_hello_parse(greeting.bytes, greeting.size, &hello), 1);
	assert_true(hello.named && !hello.hidden);
	assert_string_equal(hello.host.text, "good.test");
}

static void what_is_not_there_is_not_there(void **state)
{
	const struct greeting greeting = greet(EMPTY_GREASE ECH, sizeof(EMPTY_GREASE ECH) - 1);
	struct nc_hello hello;

	(void)state;
	assert_int_equal(nc_hello_parse(greeting.bytes, greeting.size, &hello), 1);
	assert_true(!hello.named && hello.hidden);
}

static void a_greeting_may_come_in_records(void **state)
{
	const struct greeting whole = greet(NAME, sizeof(NAME) - 1);
	struct nc_hello hello;

	(void)state;
	for (size_t cut = 1; cut < whole.size - 5; cut++) {
		struct greeting split = {0};

		put(&split, whole.bytes, 3);
		put16(&split, cut);
		put(&split, whole.bytes + 5, cut);
		put(&split, whole.bytes, 3);
		put16(&split, whole.size - 5 - cut);
		put(&split, whole.bytes + 5 + cut, whole.size - 5 - cut);
		assert_int_equal(nc_hello_parse(split.bytes, split.size - 1, &hello), 0);
		assert_int_equal(nc_hello_parse(split.bytes, split.size, &hello), 1);
		assert_string_equal(hello.host.text, "good.test");
	}
}

static void sly_greetings_are_none(void **state)
{
	static const struct {
		const char *extensions;
		size_t size;
	} cases[] = {
#define CASE(text) {text, sizeof(text) - 1}
		CASE(NAME NAME),
		CASE("\0\0\0\x0e\0\x0c\0\0\x09"
		     "good test"),
		CASE("\0\0\0\x0e\0\x0c\0\0\x09"
		     "good\0test"),
		CASE("\0\0\0\x0e\0\x0c\0\0\x09"
		     "127.0.0.1"),
		CASE("\0\0\0\x0e\0\x0c\x01\0\x09"
		     "good.test"),
		CASE("\0\0\0\x0e\0\x0b\0\0\x09"
		     "good.test"),
		CASE("\0\0\0\x0e\0\x0c\0\0\x08"
		     "good.test"),
		CASE("\0\0\0\x0e\0\x0c\0\0\x0a"
		     "good.test"),
		CASE("\0\0\0\x0f\0\x0c\0\0\x09"
		     "good.test"),
		CASE("\0\0\0\0"),
		CASE("\x0a\x0a\0\x05x"),
		CASE("\x0a"),
	};
	const struct greeting good = greet(NAME, sizeof(NAME) - 1);
	struct nc_hello hello;

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++) {
		const struct greeting greeting = greet(cases[i].extensions, cases[i].size);

		if (nc_hello_parse(greeting.bytes, greeting.size, &hello) != -EBADMSG)
			fail_msg("case %zu", i);
	}
	for (size_t at = 0; at < 6; at++) { /* its kind, version, size and type */
		struct greeting changed = good;

		changed.bytes[at] ^= 0x80;
		if (at != 2)
			assert_int_not_equal(
				nc_hello_parse(changed.bytes, changed.size, &hello), 1);
	}
	assert_int_equal(nc_hello_parse((const unsigned char *)"GET ", 4, &hello), -EBADMSG);
	assert_int_equal(
		nc_hello_parse((const unsigned char *)"\x16\x03\x01\0\0", 5, &hello), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_name_is_found_when_all_is_there),
		cmocka_unit_test(what_is_not_there_is_not_there),
		cmocka_unit_test(a_greeting_may_come_in_records),
		cmocka_unit_test(sly_greetings_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
