/* What jansson leaves to do: a depth limit, one error form, foreign bytes as text. */
#ifndef NC_JSON_H
#define NC_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/error.h"

static inline void nc_json_decrefp(json_t **place)
{
	json_decref(*place);
}

#define cleanup_json nc_cleanup(nc_json_decrefp)

/*
 * From now on what JSON values had in memory is erased when they go: requests bring secrets. Before
 * the first value.
 */
void nc_json_wipe(void);

/*
 * Parses foreign JSON: one value with nothing behind it, no key twice in an object, at most
 * NC_JSON_DEPTH_MAX levels. The caller owns *ret_value. -EINVAL with the position otherwise.
 */
int nc_json_parse(const char *text, size_t size, json_t **ret_value, struct nacre_err *err);

/*
 * How many values text may hold: as many as it has commas and brackets outside of strings, and one.
 * Each costs jansson some 100 bytes, so who parses much foreign text looks here first.
 */
size_t nc_json_count(const char *text, size_t size);

/* A new string value; each byte that is not UTF-8 becomes U+FFFD. NULL: out of memory. */
json_t *nc_json_text(const char *text, size_t size);

/*
 * Sets name of object to the bytes as text. If they are not UTF-8, NAME_base64 beside it has them:
 * nothing of what a program printed is changed without a mark. -ENOMEM.
 */
int nc_json_set_bytes(json_t *object, const char *name, const char *data, size_t size);

/*
 * Decodes the inside of a JSON string, piece by piece: as much of text as is whole, into out, which
 * has room for size bytes. *ret_used bytes were read; of all but the last piece up to 12 may be
 * left, for the next one to begin with. -EINVAL: what stands at *ret_used is none of JSON's, or
 * NUL.
 */
int nc_json_unescape(
	const char *text, size_t size, bool is_last, char *out, size_t *ret_used, size_t *ret_size);

/* Appends value on one line, as replies have it; out->error tells whether that was possible. */
struct nc_buf;
void nc_json_dump(const json_t *value, struct nc_buf *out);

/* Texts of more than max bytes, however deep in value, become null. */
void nc_json_shorten(json_t *value, size_t max);

/*
 * Writes value, indented for people or on one line, and a newline. Takes over the reference to
 * value; NULL stands for memory that ran out while it was built. 0 or -errno.
 */
int nc_json_print(FILE *out, json_t *value, bool indented);

#endif
