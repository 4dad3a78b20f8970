/*
 * SHA-256 and HMAC-SHA-256. A library of its own (base-hash), since it links libcrypto: the
 * privileged programs do not.
 */
#ifndef NC_HASH_H
#define NC_HASH_H

#include <stddef.h>

#define NC_SHA256_SIZE 32
/* 64 digits and a NUL. */
#define NC_SHA256_HEX_SIZE 65

void nc_sha256(const void *data, size_t size, unsigned char out[static NC_SHA256_SIZE]);

/* SHA-1, for the greeting of WebSockets, which proves nothing. */
#define NC_SHA1_SIZE 20
void nc_sha1(const void *data, size_t size, unsigned char out[static NC_SHA1_SIZE]);

/* The same as nc_sha256 piece by piece: begin, add, end. */
struct nc_sha256_state {
	unsigned long long opaque[16];
};
void nc_sha256_begin(struct nc_sha256_state *state);
void nc_sha256_add(struct nc_sha256_state *state, const void *data, size_t size);
void nc_sha256_end(struct nc_sha256_state *state, unsigned char out[static NC_SHA256_SIZE]);

/* The key has the size of a digest. */
void nc_hmac_sha256(const unsigned char key[static NC_SHA256_SIZE], const void *data, size_t size,
	unsigned char out[static NC_SHA256_SIZE]);

/* Whether two digests are the same, in a time that does not tell where they differ. */
int nc_sha256_equal(
	const unsigned char a[static NC_SHA256_SIZE], const unsigned char b[static NC_SHA256_SIZE]);

/* A digest as 64 small hexadecimal digits, and back: -EINVAL unless text begins with 64 of them. */
void nc_sha256_hex(
	const unsigned char digest[static NC_SHA256_SIZE], char out[static NC_SHA256_HEX_SIZE]);
int nc_sha256_parse(const char *text, unsigned char out[static NC_SHA256_SIZE]);

#endif
