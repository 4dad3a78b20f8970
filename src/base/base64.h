/*
 * Base64 (RFC 4648, section 4), read strictly: padded, no blanks, no other alphabet, and the bits
 * that padding leaves over are zero, so that every text has one form only.
 */
#ifndef NC_BASE64_H
#define NC_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes that size bytes become, without a NUL. */
#define NC_BASE64_SIZE(size) (((size) + 2) / 3 * 4)

/*
 * Decodes into fresh memory with a NUL behind; the caller frees *ret_data. -EINVAL: it is not
 * base64, and *ret_at is the offset of the first byte that is wrong; -ENOMEM.
 */
int nc_base64_decode(
	const char *text, size_t size, char **ret_data, size_t *ret_size, size_t *ret_at);

/*
 * The same piece by piece, into memory for size / 4 * 3 bytes: only the last piece may end in
 * padding, and the size of each is a multiple of four.
 */
int nc_base64_piece(const char *text, size_t size, bool is_last, unsigned char *out,
	size_t *ret_size, size_t *ret_at);

/* Encodes into fresh memory, NUL-terminated; the caller frees *ret_text. 0 or -ENOMEM. */
int nc_base64_encode(const void *data, size_t size, char **ret_text);

#endif
