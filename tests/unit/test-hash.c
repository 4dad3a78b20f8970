/* SHA-256 and HMAC-SHA-256 against the vectors of FIPS 180-4 and RFC 4231. */
#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "unit.h"

static void hash_is(const char *text, const char *hex)
{
	unsigned char digest[NC_SHA256_SIZE];
	char found[NC_SHA256_HEX_SIZE];

	nc_sha256(text, strlen(text), digest);
	nc_sha256_hex(digest, found);
	assert_string_equal(found, hex);
}

static void sha256(void **state)
{
	(void)state;
	hash_is("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	hash_is("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	hash_is("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

/* Keys shorter than a digest count as if filled with zeros. */
static void hmac_is(const char *key, const char *text, const char *hex)
{
	unsigned char full[NC_SHA256_SIZE] = {0}, mac[NC_SHA256_SIZE];
	char found[NC_SHA256_HEX_SIZE];

	memcpy(full, key, strlen(key));
	nc_hmac_sha256(full, text, strlen(text), mac);
	nc_sha256_hex(mac, found);
	assert_string_equal(found, hex);
}

static void hmac(void **state)
{
	(void)state;
	/* RFC 4231, test cases 1 and 2 */
	hmac_is("\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b",
		"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	hmac_is("Jefe", "what do ya want for nothing?",
		"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

static void hexadecimal(void **state)
{
	unsigned char digest[NC_SHA256_SIZE], again[NC_SHA256_SIZE];
	char text[NC_SHA256_HEX_SIZE];

	(void)state;
	nc_sha256("x", 1, digest);
	nc_sha256_hex(digest, text);
	assert_int_equal(nc_sha256_parse(text, again), 0);
	assert_true(nc_sha256_equal(digest, again));
	again[31] ^= 1;
	assert_false(nc_sha256_equal(digest, again));
	text[63] = 'g';
	assert_int_equal(nc_sha256_parse(text, again), -EINVAL);
	text[63] = 'A';
	assert_int_equal(nc_sha256_parse(text, again), -EINVAL);
	text[10] = '\0';
	assert_int_equal(nc_sha256_parse(text, again), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sha256),
		cmocka_unit_test(hmac),
		cmocka_unit_test(hexadecimal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
