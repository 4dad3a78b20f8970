/* Reads hostile bytes as JSON, as the inside of a string, and as text that must become JSON. */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"

/* The inside of a string, in pieces of every small size: what jansson makes of it, or nothing. */
static void unescape(const char *data, size_t size, size_t piece)
{
	nc_buf_cleanup struct nc_buf text = NC_BUF(size + 2);
	cleanup_free char *out = malloc(size + 1);
	cleanup_json json_t *value = NULL;
	size_t at = 0, written = 0, used, n;
	int r = 0;

	assert(out);
	nc_buf_addf(&text, "\"");
	nc_buf_add(&text, data, size);
	nc_buf_addf(&text, "\"");
	value = memchr(data, '\0', size) ? NULL
					 : json_loadb(text.data, text.size, JSON_DECODE_ANY, NULL);
	while (r == 0 && at < size) {
		n = size - at < piece ? size - at : piece;
		r = nc_json_unescape(data + at, n, at + n == size, out + written, &used, &n);
		at += r == 0 ? used : 0;
		written += r == 0 ? n : 0;
	}
	assert((r == 0) == (value != NULL));
	assert(r < 0 || (json_string_length(value) == written &&
				memcmp(json_string_value(value), out, written) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_json json_t *value = NULL;
	cleanup_json json_t *text = nc_json_text((const char *)data, size);
	struct nacre_err err = {0};
	int r = nc_json_parse((const char *)data, size, &value, &err);

	assert(r == err.code && (r == 0) == (value != NULL));
	for (size_t piece = 12; piece < 20; piece++)
		unescape((const char *)data, size, piece);
	assert(text && json_is_string(text)); /* jansson itself refuses what is not UTF-8 */
	return 0;
}
