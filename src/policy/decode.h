/* Decoders of text: pure functions over bytes. Each returns the number of bytes, or -EINVAL. */
#ifndef NC_DECODE_H
#define NC_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* out has room for size bytes, which none of these exceeds. */
ssize_t nc_decode_base64(const char *text, size_t size, char *out);
ssize_t nc_decode_base32(const char *text, size_t size, char *out);
ssize_t nc_decode_hex(const char *text, size_t size, char *out);
ssize_t nc_decode_rot13(const char *text, size_t size, char *out);
ssize_t nc_decode_reverse(const char *text, size_t size, char *out);

/* Percent-encoding, as of URLs. */
ssize_t nc_decode_percent(const char *text, size_t size, char *out);

/* Writes a code point as UTF-8; out has room for 4 bytes. 0 if it is none. */
size_t nc_decode_code_point(long long code, char *out);

/*
 * Backslash escapes as C, Python, JavaScript, Go, Rust and $'...' write them: \n \xNN \uNNNN
 * \u{N} \UNNNNNNNN \NNN, a backslash before a newline, and every other character for itself.
 */
ssize_t nc_decode_escapes(const char *text, size_t size, char *out);

/* A whole number as the languages write it: 12, 0x1f, 0o17, 0b11, 1_000. Returns 0 or -EINVAL. */
int nc_decode_number(const char *text, size_t size, long long *ret_number);

/* Whether bytes could be source code: UTF-8, a third of it letters, no control characters. */
bool nc_decode_is_readable(const char *text, size_t size);

#endif
