/*
 * SHA-256 and HMAC-SHA-256.
 *
 * libcrypto's block functions without EVP: EVP brings every algorithm of the default provider, a
 * configuration file that is looked for on first use, and half a millisecond of start; these bring
 * a few kilobytes. OpenSSL 3 calls them deprecated, not unsafe (docs/decisions/0005).
 */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "base/hash.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <string.h>

#define BLOCK_SIZE 64

_Static_assert(NC_SHA256_SIZE == SHA256_DIGEST_LENGTH, "a digest");

void nc_sha256(const void *data, size_t size, unsigned char out[static NC_SHA256_SIZE])
{
	SHA256_CTX context;

	(void)SHA256_Init(&context); /* none of the three can fail */
	(void)SHA256_Update(&context, data, size);
	(void)SHA256_Final(out, &context);
}

void nc_sha1(const void *data, size_t size, unsigned char out[static NC_SHA1_SIZE])
{
	SHA_CTX context;

	(void)SHA1_Init(&context);
	(void)SHA1_Update(&context, data, size);
	(void)SHA1_Final(out, &context);
}

_Static_assert(sizeof(SHA256_CTX) <= sizeof(struct nc_sha256_state), "room for it");

void nc_sha256_begin(struct nc_sha256_state *state)
{
	(void)SHA256_Init((SHA256_CTX *)state->opaque);
}

void nc_sha256_add(struct nc_sha256_state *state, const void *data, size_t size)
{
	(void)SHA256_Update((SHA256_CTX *)state->opaque, data, size);
}

void nc_sha256_end(struct nc_sha256_state *state, unsigned char out[static NC_SHA256_SIZE])
{
	(void)SHA256_Final(out, (SHA256_CTX *)state->opaque);
}

/* One half of RFC 2104: the hash of the padded key and then the data. */
static void keyed(const unsigned char *key, unsigned char pad, const void *data, size_t size,
	unsigned char *out)
{
	unsigned char block[BLOCK_SIZE];
	SHA256_CTX context;

	memset(block, pad, sizeof(block));
	for (size_t i = 0; i < NC_SHA256_SIZE; i++)
		block[i] ^= key[i];
	(void)SHA256_Init(&context);
	(void)SHA256_Update(&context, block, sizeof(block));
	(void)SHA256_Update(&context, data, size);
	(void)SHA256_Final(out, &context);
	explicit_bzero(block, sizeof(block));
	explicit_bzero(&context, sizeof(context));
}

void nc_hmac_sha256(const unsigned char key[static NC_SHA256_SIZE], const void *data, size_t size,
	unsigned char out[static NC_SHA256_SIZE])
{
	unsigned char inner[NC_SHA256_SIZE];

	keyed(key, 0x36, data, size, inner);
	keyed(key, 0x5c, inner, sizeof(inner), out);
}

int nc_sha256_equal(
	const unsigned char a[static NC_SHA256_SIZE], const unsigned char b[static NC_SHA256_SIZE])
{
	return CRYPTO_memcmp(a, b, NC_SHA256_SIZE) == 0;
}

void nc_sha256_hex(
	const unsigned char digest[static NC_SHA256_SIZE], char out[static NC_SHA256_HEX_SIZE])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < NC_SHA256_SIZE; i++) {
		out[2 * i] = digits[digest[i] >> 4];
		out[2 * i + 1] = digits[digest[i] & 15];
	}
	out[2 * NC_SHA256_SIZE] = '\0';
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -EINVAL;
}

int nc_sha256_parse(const char *text, unsigned char out[static NC_SHA256_SIZE])
{
	unsigned char digest[NC_SHA256_SIZE];

	for (size_t i = 0; i < NC_SHA256_SIZE; i++) {
		int high = digit(text[2 * i]);
		int low = high < 0 ? high : digit(text[2 * i + 1]);

		if (low < 0)
			return -EINVAL;
		digest[i] = (unsigned char)(high << 4 | low);
	}
	memcpy(out, digest, sizeof(digest));
	return 0;
}
