/* Base64: the RFC's vectors, every wrong form, and memory that runs out. */
#include "unit.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/base64.h"
#include "base/cleanup.h"

static bool out_of_memory;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	return out_of_memory ? NULL : __real_malloc(size);
}

static const struct {
	const char *plain;
	const char *coded;
} vectors[] = {
	{"", ""},
	{"f", "Zg=="},
	{"fo", "Zm8="},
	{"foo", "Zm9v"},
	{"foob", "Zm9vYg=="},
	{"fooba", "Zm9vYmE="},
	{"foobar", "Zm9vYmFy"},
	{"\xff\xff\xff", "////"},
	{"\xfb\xef\xbe", "++++"},
};

static void test_vectors(void **state)
{
	(void)state;
	for (size_t i = 0; i < unit_count(vectors); i++) {
		cleanup_free char *coded = NULL;
		cleanup_free char *plain = NULL;
		size_t size = 99, at = 99;

		assert_int_equal(
			nc_base64_encode(vectors[i].plain, strlen(vectors[i].plain), &coded), 0);
		assert_string_equal(coded, vectors[i].coded);
		assert_int_equal(NC_BASE64_SIZE(strlen(vectors[i].plain)), strlen(coded));
		assert_int_equal(nc_base64_decode(coded, strlen(coded), &plain, &size, &at), 0);
		assert_int_equal(size, strlen(vectors[i].plain));
		assert_string_equal(plain, vectors[i].plain);
	}
}

static void test_every_byte_comes_back(void **state)
{
	unsigned char bytes[256];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)i;
	for (size_t n = 0; n <= sizeof(bytes); n++) {
		cleanup_free char *coded = NULL;
		cleanup_free char *plain = NULL;
		size_t size, at;

		assert_int_equal(nc_base64_encode(bytes, n, &coded), 0);
		assert_int_equal(nc_base64_decode(coded, strlen(coded), &plain, &size, &at), 0);
		assert_int_equal(size, n);
		assert_memory_equal(plain, bytes, n);
	}
}

static void test_wrong_forms(void **state)
{
	static const struct {
		const char *text;
		size_t at;
	} wrong[] = {
		{"Z", 1},
		{"Zg", 2},
		{"Zg=", 3},
		{"Zg==Z", 5},
		{"Zg== ", 5},
		{" Zg=", 0},
		{"Zm 9", 2},
		{"Zm9\n", 3},
		{"Z-_9", 1},
		{"Zh==", 1},
		{"Zm9=", 2},
		{"====", 0},
		{"Z===", 1},
		{"Zg==Zg==", 2},
		{"Zm9v=m9v", 4},
		{"\xc3\xa9gg", 0},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(wrong); i++) {
		char *untouched = (char *)"", *plain = untouched;
		size_t size = 7, at = 99;
		int r = nc_base64_decode(wrong[i].text, strlen(wrong[i].text), &plain, &size, &at);

		if (r != -EINVAL || at != wrong[i].at)
			fail_msg("%s: %d at %zu", wrong[i].text, r, at);
		assert_ptr_equal(plain, untouched);
		assert_int_equal(size, 7);
	}
}

static void test_out_of_memory(void **state)
{
	char *text = NULL;
	size_t size, at;
	int encoded, decoded;

	(void)state;
	out_of_memory = true;
	encoded = nc_base64_encode("x", 1, &text);
	decoded = nc_base64_decode("Zg==", 4, &text, &size, &at);
	out_of_memory = false;
	assert_int_equal(encoded, -ENOMEM);
	assert_int_equal(decoded, -ENOMEM);
	assert_int_equal(nc_base64_encode("x", SIZE_MAX, &text), -ENOMEM);
	assert_null(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_every_byte_comes_back),
		cmocka_unit_test(test_wrong_forms),
		cmocka_unit_test(test_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
