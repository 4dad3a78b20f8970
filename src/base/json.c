/* What jansson leaves to do. */
#include "base/json.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/text.h"

/*
 * Where the text goes deeper than allowed, counted on the brackets outside strings, whether or not
 * it is JSON; size if nowhere.
 */
static size_t find_too_deep(const char *text, size_t size)
{
	size_t depth = 0;
	bool in_string = false;

	for (size_t i = 0; i < size; i++) {
		char c = text[i];

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		} else if (c == '"') {
			in_string = true;
		} else if (c == '[' || c == '{') {
			if (++depth > NC_JSON_DEPTH_MAX)
				return i;
		} else if ((c == ']' || c == '}') && depth > 0) {
			depth--;
		}
	}
	return size;
}

static const char too_deep_text[] = "nested deeper than 64 levels";
_Static_assert(NC_JSON_DEPTH_MAX == 64, "the message says 64");

static int fault_at(const char *text, size_t at, const char *what, struct nacre_err *err)
{
	size_t line = 1, column = 1;

	for (size_t i = 0; i < at; i++) {
		column++;
		if (text[i] == '\n') {
			line++;
			column = 1;
		}
	}
	return nc_err_set(
		err, -EINVAL, "Invalid JSON at line %zu, column %zu: %s", line, column, what);
}

/* Of each piece: a secret is short, and a buffer that had one has it at its beginning, with up to
 * six bytes for each of its own; all of many megabytes would take a turn of the daemon's loop. */
#define WIPED_MAX (32U * 1024)

static void wipe_and_free(void *memory)
{
	const size_t size = memory ? malloc_usable_size(memory) : 0;

	if (memory)
		explicit_bzero(memory, size < WIPED_MAX ? size : WIPED_MAX);
	free(memory);
}

void nc_json_wipe(void)
{
	json_set_alloc_funcs(malloc, wipe_and_free);
}

int nc_json_parse(const char *text, size_t size, json_t **ret_value, struct nacre_err *err)
{
	const char *nul = memchr(text, '\0', size);
	size_t too_deep = find_too_deep(text, size);
	char quoted[NC_TEXT_QUOTED_MAX];
	json_error_t why;
	json_t *value;

	/* jansson takes a NUL behind the value for the end */
	if (nul)
		return fault_at(text, (size_t)(nul - text), "a NUL byte", err);
	if (too_deep < size)
		return fault_at(text, too_deep, too_deep_text, err);
	value = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
	if (!value) /* the reason may quote the text, hence the quoting */
		return nc_err_set(err, -EINVAL, "Invalid JSON at line %d, column %d: %s", why.line,
			why.column, nc_text_quote(quoted, why.text));
	*ret_value = value;
	return 0;
}

size_t nc_json_count(const char *text, size_t size)
{
	size_t count = 1;
	bool in_string = false;

	for (size_t i = 0; i < size; i++) {
		if (text[i] == '"')
			in_string = !in_string;
		else if (in_string)
			i += text[i] == '\\';
		else
			count += text[i] == ',' || text[i] == '[' || text[i] == '{';
	}
	return count;
}

json_t *nc_json_text(const char *text, size_t size)
{
	static const char replacement[] = "\xef\xbf\xbd";
	nc_buf_cleanup struct nc_buf clean = NC_BUF(size * 3); /* each byte may become three */

	while (size > 0) {
		size_t length = nc_text_utf8(text, size);

		if (length > 0)
			nc_buf_add(&clean, text, length);
		else
			nc_buf_adds(&clean, replacement);
		length += length == 0;
		text += length;
		size -= length;
	}
	return clean.error < 0 ? NULL : json_stringn(nc_buf_text(&clean), clean.size);
}

static bool is_utf8(const char *data, size_t size)
{
	for (size_t i = 0, n; i < size; i += n) {
		n = nc_text_utf8(data + i, size - i);
		if (n == 0)
			return false;
	}
	return true;
}

int nc_json_set_bytes(json_t *object, const char *name, const char *data, size_t size)
{
	cleanup_free char *encoded = NULL;
	char key[64];

	if (json_object_set_new(object, name, nc_json_text(data, size)) < 0)
		return -ENOMEM;
	if (is_utf8(data, size))
		return 0;
	(void)snprintf(key, sizeof(key), "%s_base64", name);
	return nc_base64_encode(data, size, &encoded) < 0 ||
			       json_object_set_new(object, key, json_string(encoded)) < 0
		       ? -ENOMEM
		       : 0;
}

/* Four hexadecimal digits, or -1. */
static long code_unit(const char *text)
{
	long value = 0;

	for (size_t i = 0; i < 4; i++) {
		char c = text[i];
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
			    : c >= 'A' && c <= 'F' ? c - 'A' + 10
						   : -1;

		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

static size_t put_utf8(long code, char *out)
{
	const unsigned long c = (unsigned long)code;

	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* "u", and its digits, or those of two that make one: their size behind the backslash. 0: it is
 * none; more than there is: it is not whole. */
static size_t unescape_code(const char *text, size_t size, char *out, size_t *written)
{
	long code, low;

	if (size < 5)
		return 5;
	code = code_unit(text + 1);
	if (code <= 0 || (code >= 0xdc00 && code < 0xe000))
		return 0;
	if (code < 0xd800 || code >= 0xe000) {
		*written += put_utf8(code, out);
		return 5;
	}
	if (size < 11)
		return 11;
	low = text[5] == '\\' && text[6] == 'u' ? code_unit(text + 7) : -1;
	if (low < 0xdc00 || low >= 0xe000)
		return 0;
	*written += put_utf8(0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00), out);
	return 11;
}

/* The same for everything that may stand behind a backslash. */
static size_t unescape_one(const char *text, size_t size, char *out, size_t *written)
{
	static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
	const char *name = size > 0 && text[0] ? strchr(names, text[0]) : NULL;

	if (size == 0)
		return 1;
	if (text[0] == 'u')
		return unescape_code(text, size, out, written);
	if (!name)
		return 0;
	*out = bytes[name - names];
	(*written)++;
	return 1;
}

int nc_json_unescape(
	const char *text, size_t size, bool is_last, char *out, size_t *ret_used, size_t *ret_size)
{
	size_t i = 0, written = 0;

	while (i < size) {
		size_t n, left = size - i;

		if (text[i] == '\\') {
			n = unescape_one(text + i + 1, left - 1, out + written, &written);
			n += n > 0;
		} else {
			n = (unsigned char)text[i] < ' ' || text[i] == '"'
				    ? 0
				    : nc_text_utf8(text + i, left);
			if (n == 0 && !is_last && left < 4 && (unsigned char)text[i] >= 0xc0)
				break; /* the rest of it is to come */
			memcpy(out + written, text + i, n);
			written += n;
		}
		if (n > left && !is_last)
			break;
		if (n == 0 || n > left) {
			*ret_used = i;
			return -EINVAL;
		}
		i += n;
	}
	*ret_used = i;
	*ret_size = written;
	return 0;
}

static int add_text(const char *data, size_t size, void *out)
{
	nc_buf_add(out, data, size);
	return ((const struct nc_buf *)out)->error;
}

void nc_json_dump(const json_t *value, struct nc_buf *out)
{
	if (json_dump_callback(value, add_text, out,
		    JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15)) < 0 &&
		out->error == 0)
		out->error = -ENOMEM;
}

void nc_json_shorten(json_t *value, size_t max)
{
	const char *key;
	json_t *member;
	size_t i;

	json_object_foreach(value, key, member) if (json_string_length(member) > max)(void)
		json_object_set_new(value, key, json_null()); /* or it stays */
	else nc_json_shorten(member, max);
	json_array_foreach(value, i, member) if (json_string_length(member) > max)(void)
		json_array_set_new(value, i, json_null());
	else nc_json_shorten(member, max);
}

int nc_json_print(FILE *out, json_t *value, bool indented)
{
	cleanup_json json_t *owned = value;
	/* C1 control characters are no control characters to JSON, but to terminals */
	size_t flags = JSON_ENCODE_ANY | (indented ? JSON_INDENT(2) : JSON_COMPACT) |
		       (isatty(fileno(out)) ? JSON_ENSURE_ASCII : 0);

	if (!owned)
		return -ENOMEM;
	if (json_dumpf(owned, out, flags) < 0 || fputc('\n', out) == EOF || fflush(out) == EOF)
		return -EIO;
	return 0;
}
