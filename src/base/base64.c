/* Base64, strictly. */
#include "base/base64.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

/* Decodes n digits, 2 to 4 of them, into n - 1 bytes. The offset of a wrong one, or n. */
static size_t decode_group(const char *text, size_t n, unsigned char *out)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < n; i++) {
		int value = digit(text[i]);

		if (value < 0)
			return i;
		bits |= (uint32_t)value << (18 - 6 * i);
	}
	if (n < 4 && (bits & (n == 2 ? 0xffffU : 0xffU)))
		return n - 1; /* bits that belong to no byte */
	for (size_t i = 0; i + 1 < n; i++)
		out[i] = (unsigned char)(bits >> (16 - 8 * i));
	return n;
}

int nc_base64_piece(const char *text, size_t size, bool is_last, unsigned char *out,
	size_t *ret_size, size_t *ret_at)
{
	size_t used = 0, digits = size;

	while (is_last && digits > 0 && size - digits < 2 && text[digits - 1] == '=')
		digits--;
	if (size % 4 != 0) {
		*ret_at = size;
		return -EINVAL;
	}
	for (size_t i = 0; i < digits; i += 4) {
		size_t n = digits - i < 4 ? digits - i : 4;
		size_t right = decode_group(text + i, n, out + used);

		if (right < n) {
			*ret_at = i + right;
			return -EINVAL;
		}
		used += n - 1;
	}
	*ret_size = used;
	return 0;
}

int nc_base64_decode(
	const char *text, size_t size, char **ret_data, size_t *ret_size, size_t *ret_at)
{
	cleanup_free unsigned char *data = malloc(size / 4 * 3 + 1);
	size_t used;
	int r;

	if (!data)
		return -ENOMEM;
	r = nc_base64_piece(text, size, true, data, &used, ret_at);
	if (r < 0)
		return r;
	data[used] = '\0';
	*ret_data = (char *)take_ptr(data);
	*ret_size = used;
	return 0;
}

int nc_base64_encode(const void *data, size_t size, char **ret_text)
{
	const unsigned char *from = data;
	size_t groups = size / 3 + (size % 3 != 0), used = 0, total;
	char *text;

	if (__builtin_mul_overflow(groups, 4, &total) || __builtin_add_overflow(total, 1, &total))
		return -ENOMEM;
	text = malloc(total);
	if (!text)
		return -ENOMEM;
	for (size_t i = 0; i < size; i += 3) {
		size_t n = size - i < 3 ? size - i : 3;
		uint32_t bits = 0;

		for (size_t j = 0; j < n; j++)
			bits |= (uint32_t)from[i + j] << (16 - 8 * j);
		memcpy(text + used, "====", 4);
		for (size_t j = 0; j <= n; j++)
			text[used + j] = alphabet[bits >> (18 - 6 * j) & 63];
		used += 4;
	}
	text[used] = '\0';
	*ret_text = text;
	return 0;
}
