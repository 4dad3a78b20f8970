/* Decoders of text. */
#include "policy/decode.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/text.h"

static int digit_of(char c, int base)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = memchr(digits, tolower((unsigned char)c), (size_t)base);

	return at ? (int)(at - digits) : -1;
}

static int base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+' || c == '-')
		return 62;
	return c == '/' || c == '_' ? 63 : -1;
}

static int base32_digit(char c)
{
	c = (char)toupper((unsigned char)c);
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	return c >= '2' && c <= '7' ? c - '2' + 26 : -1;
}

/* Digits of width bits each, padded with '='; blanks are skipped. */
static ssize_t decode_bits(
	const char *text, size_t size, char *out, int (*digit)(char c), unsigned int width)
{
	unsigned int bits = 0, have = 0;
	size_t used = 0;
	bool ended = false;

	for (size_t i = 0; i < size; i++) {
		int value = digit(text[i]);

		if (isspace((unsigned char)text[i]))
			continue;
		if (text[i] == '=') {
			ended = true;
			continue;
		}
		if (value < 0 || ended)
			return -EINVAL;
		bits = (bits << width | (unsigned int)value) & 0xffff;
		have += width;
		if (have >= 8) {
			have -= 8;
			out[used++] = (char)(bits >> have & 0xff);
		}
	}
	return (ssize_t)used;
}

ssize_t nc_decode_base64(const char *text, size_t size, char *out)
{
	return decode_bits(text, size, out, base64_digit, 6);
}

ssize_t nc_decode_base32(const char *text, size_t size, char *out)
{
	return decode_bits(text, size, out, base32_digit, 5);
}

ssize_t nc_decode_hex(const char *text, size_t size, char *out)
{
	size_t used = 0;
	int high = -1;

	for (size_t i = 0; i < size; i++) {
		int value = digit_of(text[i], 16);

		if (isspace((unsigned char)text[i]))
			continue;
		if (value < 0)
			return -EINVAL;
		if (high < 0) {
			high = value;
			continue;
		}
		out[used++] = (char)(high * 16 + value);
		high = -1;
	}
	return high < 0 ? (ssize_t)used : -EINVAL;
}

ssize_t nc_decode_rot13(const char *text, size_t size, char *out)
{
	for (size_t i = 0; i < size; i++) {
		char c = text[i];

		if (c >= 'a' && c <= 'z')
			c = (char)('a' + (c - 'a' + 13) % 26);
		else if (c >= 'A' && c <= 'Z')
			c = (char)('A' + (c - 'A' + 13) % 26);
		out[i] = c;
	}
	return (ssize_t)size;
}

ssize_t nc_decode_reverse(const char *text, size_t size, char *out)
{
	for (size_t i = 0; i < size; i++)
		out[i] = text[size - 1 - i];
	return (ssize_t)size;
}

ssize_t nc_decode_percent(const char *text, size_t size, char *out)
{
	size_t used = 0;

	for (size_t i = 0; i < size; i++) {
		if (text[i] == '%' && size - i > 2 && digit_of(text[i + 1], 16) >= 0 &&
			digit_of(text[i + 2], 16) >= 0) {
			out[used++] =
				(char)(digit_of(text[i + 1], 16) * 16 + digit_of(text[i + 2], 16));
			i += 2;
		} else {
			out[used++] = text[i];
		}
	}
	return (ssize_t)used;
}

size_t nc_decode_code_point(long long code, char *out)
{
	unsigned int bits = (unsigned int)code;

	if (code < 0 || code > 0x10ffff)
		return 0;
	if (code < 0x80) {
		out[0] = (char)bits;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | bits >> 6);
		out[1] = (char)(0x80 | (bits & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (char)(0xe0 | bits >> 12);
		out[1] = (char)(0x80 | (bits >> 6 & 0x3f));
		out[2] = (char)(0x80 | (bits & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | bits >> 18);
	out[1] = (char)(0x80 | (bits >> 12 & 0x3f));
	out[2] = (char)(0x80 | (bits >> 6 & 0x3f));
	out[3] = (char)(0x80 | (bits & 0x3f));
	return 4;
}

/* Reads up to most digits of a base; returns how many there were. */
static size_t read_digits(
	const char *text, size_t size, size_t most, int base, long long *ret_number)
{
	size_t count = 0;

	*ret_number = 0;
	while (count < size && count < most && digit_of(text[count], base) >= 0)
		*ret_number = *ret_number * base + digit_of(text[count++], base);
	return count;
}

/* One escape behind its backslash. Returns how much of text it took; at least 1. */
static size_t decode_escape(const char *text, size_t size, char *out, size_t *used)
{
	static const char letters[] = "abfnrtve";
	static const char meanings[] = "\a\b\f\n\r\t\v\033";
	const char *letter = memchr(letters, text[0], sizeof(letters) - 1);
	long long code = 0;
	size_t taken;

	if (text[0] == '\n')
		return 1;
	if (letter) {
		out[(*used)++] = meanings[letter - letters];
		return 1;
	}
	if (text[0] >= '0' && text[0] <= '7') {
		taken = read_digits(text, size, 3, 8, &code);
		out[(*used)++] = (char)code;
		return taken;
	}
	if ((text[0] == 'u' || text[0] == 'x') && size > 1 && text[1] == '{') {
		taken = read_digits(text + 2, size - 2, 6, 16, &code);
		if (taken > 0 && taken + 2 < size && text[taken + 2] == '}') {
			*used += nc_decode_code_point(code, out + *used);
			return taken + 3;
		}
	}
	if (text[0] == 'x' || text[0] == 'u' || text[0] == 'U') {
		taken = read_digits(text + 1, size - 1,
			text[0] == 'x'	 ? 2
			: text[0] == 'u' ? 4
					 : 8,
			16, &code);
		if (taken > 0 && text[0] == 'x')
			out[(*used)++] = (char)code;
		else if (taken > 0)
			*used += nc_decode_code_point(code, out + *used);
		if (taken > 0)
			return taken + 1;
	}
	out[(*used)++] = text[0];
	return 1;
}

ssize_t nc_decode_escapes(const char *text, size_t size, char *out)
{
	size_t used = 0;

	for (size_t i = 0; i < size;) {
		if (text[i] == '\\' && i + 1 < size)
			i += 1 + decode_escape(text + i + 1, size - i - 1, out, &used);
		else
			out[used++] = text[i++];
	}
	return (ssize_t)used;
}

int nc_decode_number(const char *text, size_t size, long long *ret_number)
{
	int base = 10;
	long long number = 0;
	size_t i = 0;

	if (size > 2 && text[0] == '0') {
		char prefix = (char)tolower((unsigned char)text[1]);

		base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 10;
		i = base == 10 ? 0 : 2;
	}
	if (i == size)
		return -EINVAL;
	for (; i < size; i++) {
		int digit = digit_of(text[i], base);

		if (text[i] == '_')
			continue;
		if (digit < 0 || __builtin_mul_overflow(number, base, &number) ||
			__builtin_add_overflow(number, digit, &number))
			return -EINVAL;
	}
	*ret_number = number;
	return 0;
}

bool nc_decode_is_readable(const char *text, size_t size)
{
	size_t letters = 0, length;

	for (size_t i = 0; i < size; i += length) {
		unsigned char c = (unsigned char)text[i];

		length = nc_text_utf8(text + i, size - i);
		if (length == 0 || c == 0x7f || (c < ' ' && c != '\n' && c != '\t' && c != '\r'))
			return false;
		letters += c < 0x80 && isalpha(c);
	}
	return letters * 3 > size;
}
