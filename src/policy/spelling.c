/* Names that a language takes for others. */
#include "policy/spelling.h"

#include <stdint.h>
#include <string.h>

/*
 * Characters of identifiers that NFKC makes ASCII, as of Unicode 14: how many from the first on,
 * and what the first becomes. (Two Roman numerals that get longer are not here.)
 */
/* clang-format off */
static const struct {
	uint32_t first, count;
	char plain[4];
} compatible[] = {
	{0xaa, 1, "a"}, {0xba, 1, "o"}, {0x132, 1, "IJ"}, {0x133, 1, "ij"}, {0x17f, 1, "s"},
	{0x1c7, 1, "LJ"}, {0x1c8, 1, "Lj"}, {0x1c9, 1, "lj"}, {0x1ca, 1, "NJ"}, {0x1cb, 1, "Nj"},
	{0x1cc, 1, "nj"}, {0x1f1, 1, "DZ"}, {0x1f2, 1, "Dz"}, {0x1f3, 1, "dz"}, {0x2b0, 1, "h"},
	{0x2b2, 1, "j"}, {0x2b3, 1, "r"}, {0x2b7, 1, "w"}, {0x2b8, 1, "y"}, {0x2e1, 1, "l"},
	{0x2e2, 1, "s"}, {0x2e3, 1, "x"}, {0x1d2c, 1, "A"}, {0x1d2e, 1, "B"}, {0x1d30, 2, "D"},
	{0x1d33, 8, "G"}, {0x1d3c, 1, "O"}, {0x1d3e, 1, "P"}, {0x1d3f, 1, "R"}, {0x1d40, 2, "T"},
	{0x1d42, 1, "W"}, {0x1d43, 1, "a"}, {0x1d47, 1, "b"}, {0x1d48, 2, "d"}, {0x1d4d, 1, "g"},
	{0x1d4f, 1, "k"}, {0x1d50, 1, "m"}, {0x1d52, 1, "o"}, {0x1d56, 1, "p"}, {0x1d57, 2, "t"},
	{0x1d5b, 1, "v"}, {0x1d62, 1, "i"}, {0x1d63, 1, "r"}, {0x1d64, 2, "u"}, {0x1d9c, 1, "c"},
	{0x1da0, 1, "f"}, {0x1dbb, 1, "z"}, {0x2071, 1, "i"}, {0x207f, 1, "n"}, {0x2090, 1, "a"},
	{0x2091, 1, "e"}, {0x2092, 1, "o"}, {0x2093, 1, "x"}, {0x2095, 1, "h"}, {0x2096, 4, "k"},
	{0x209a, 1, "p"}, {0x209b, 2, "s"}, {0x2102, 1, "C"}, {0x210a, 1, "g"}, {0x210b, 1, "H"},
	{0x210c, 1, "H"}, {0x210d, 1, "H"}, {0x210e, 1, "h"}, {0x2110, 1, "I"}, {0x2111, 1, "I"},
	{0x2112, 1, "L"}, {0x2113, 1, "l"}, {0x2115, 1, "N"}, {0x2119, 3, "P"}, {0x211c, 1, "R"},
	{0x211d, 1, "R"}, {0x2124, 1, "Z"}, {0x2128, 1, "Z"}, {0x212a, 1, "K"}, {0x212c, 2, "B"},
	{0x212f, 1, "e"}, {0x2130, 2, "E"}, {0x2133, 1, "M"}, {0x2134, 1, "o"}, {0x2139, 1, "i"},
	{0x2145, 1, "D"}, {0x2146, 2, "d"}, {0x2148, 2, "i"}, {0x2160, 1, "I"},
	{0x2161, 1, "II"}, {0x2162, 1, "III"}, {0x2163, 1, "IV"}, {0x2164, 1, "V"},
	{0x2165, 1, "VI"}, {0x2166, 1, "VII"}, {0x2168, 1, "IX"}, {0x2169, 1, "X"},
	{0x216a, 1, "XI"}, {0x216b, 1, "XII"}, {0x216c, 1, "L"}, {0x216d, 2, "C"},
	{0x216f, 1, "M"}, {0x2170, 1, "i"}, {0x2171, 1, "ii"}, {0x2172, 1, "iii"},
	{0x2173, 1, "iv"}, {0x2174, 1, "v"}, {0x2175, 1, "vi"}, {0x2176, 1, "vii"},
	{0x2178, 1, "ix"}, {0x2179, 1, "x"}, {0x217a, 1, "xi"}, {0x217b, 1, "xii"},
	{0x217c, 1, "l"}, {0x217d, 2, "c"}, {0x217f, 1, "m"}, {0x2c7c, 1, "j"}, {0x2c7d, 1, "V"},
	{0xa7f2, 1, "C"}, {0xa7f3, 1, "F"}, {0xa7f4, 1, "Q"}, {0xfb00, 1, "ff"},
	{0xfb01, 1, "fi"}, {0xfb02, 1, "fl"}, {0xfb03, 1, "ffi"}, {0xfb04, 1, "ffl"},
	{0xfb05, 1, "st"}, {0xfb06, 1, "st"}, {0xfe33, 1, "_"}, {0xfe34, 1, "_"},
	{0xfe4d, 1, "_"}, {0xfe4e, 1, "_"}, {0xfe4f, 1, "_"}, {0xff10, 10, "0"},
	{0xff21, 26, "A"}, {0xff3f, 1, "_"}, {0xff41, 26, "a"}, {0x107a5, 1, "q"},
	{0x1d400, 26, "A"}, {0x1d41a, 26, "a"}, {0x1d434, 26, "A"}, {0x1d44e, 7, "a"},
	{0x1d456, 18, "i"}, {0x1d468, 26, "A"}, {0x1d482, 26, "a"}, {0x1d49c, 1, "A"},
	{0x1d49e, 2, "C"}, {0x1d4a2, 1, "G"}, {0x1d4a5, 2, "J"}, {0x1d4a9, 4, "N"},
	{0x1d4ae, 8, "S"}, {0x1d4b6, 4, "a"}, {0x1d4bb, 1, "f"}, {0x1d4bd, 7, "h"},
	{0x1d4c5, 11, "p"}, {0x1d4d0, 26, "A"}, {0x1d4ea, 26, "a"}, {0x1d504, 2, "A"},
	{0x1d507, 4, "D"}, {0x1d50d, 8, "J"}, {0x1d516, 7, "S"}, {0x1d51e, 26, "a"},
	{0x1d538, 2, "A"}, {0x1d53b, 4, "D"}, {0x1d540, 5, "I"}, {0x1d546, 1, "O"},
	{0x1d54a, 7, "S"}, {0x1d552, 26, "a"}, {0x1d56c, 26, "A"}, {0x1d586, 26, "a"},
	{0x1d5a0, 26, "A"}, {0x1d5ba, 26, "a"}, {0x1d5d4, 26, "A"}, {0x1d5ee, 26, "a"},
	{0x1d608, 26, "A"}, {0x1d622, 26, "a"}, {0x1d63c, 26, "A"}, {0x1d656, 26, "a"},
	{0x1d670, 26, "A"}, {0x1d68a, 26, "a"}, {0x1d7ce, 10, "0"}, {0x1d7d8, 10, "0"},
	{0x1d7e2, 10, "0"}, {0x1d7ec, 10, "0"}, {0x1d7f6, 10, "0"}, {0x1fbf0, 10, "0"},
};
/* clang-format on */

/* The character at the beginning of text; 0: it is ASCII, or not UTF-8. */
static uint32_t read_character(const char *text, size_t size, size_t *ret_length)
{
	static const struct {
		unsigned char mask, lead;
		size_t length;
	} forms[] = {{0xe0, 0xc0, 2}, {0xf0, 0xe0, 3}, {0xf8, 0xf0, 4}};
	unsigned char lead = (unsigned char)*text;

	*ret_length = 1;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		uint32_t code = lead & (unsigned char)~forms[i].mask;

		if ((lead & forms[i].mask) != forms[i].lead || forms[i].length > size)
			continue;
		for (size_t k = 1; k < forms[i].length; k++)
			code = code << 6 | ((unsigned char)text[k] & 0x3fU);
		*ret_length = forms[i].length;
		return code;
	}
	return 0;
}

static int is_plain(const char *name, size_t size)
{
	while (size > 0 && (unsigned char)name[size - 1] < 0x80)
		size--;
	return size == 0;
}

size_t nc_spell_python(const char *name, size_t size, char *out)
{
	size_t used = 0, length;
	int changed = 0;

	if (is_plain(name, size))
		return 0;
	for (size_t at = 0; at < size; at += length) {
		uint32_t code = read_character(name + at, size - at, &length);
		size_t row = 0;

		while (row < sizeof(compatible) / sizeof(compatible[0]) &&
			(code < compatible[row].first ||
				code >= compatible[row].first + compatible[row].count))
			row++;
		if (code == 0 || row == sizeof(compatible) / sizeof(compatible[0])) {
			memcpy(out + used, name + at, length);
			used += length;
			continue;
		}
		changed = 1;
		for (const char *plain = compatible[row].plain;
			*plain && plain < compatible[row].plain + 4; plain++)
			out[used++] = *plain;
		/* a run is of single characters, one after the other */
		if (compatible[row].count > 1)
			out[used - 1] = (char)(compatible[row].plain[0] +
					       (char)(code - compatible[row].first));
	}
	return changed ? used : 0;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'		    ? c - '0'
	       : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
						    : -1;
}

/* \uXXXX or \u{X...}: its character and length; 0: it is none, or none of ASCII. */
static char read_escape(const char *text, size_t size, size_t *ret_length)
{
	size_t at = 2;
	uint32_t code = 0;
	int braces;

	if (size < 4 || text[0] != '\\' || text[1] != 'u')
		return 0;
	braces = text[at] == '{';
	at += (size_t)braces;
	for (size_t digits = 0; at < size && hex_digit(text[at]) >= 0 && (braces || digits < 4);
		at++, digits++)
		code = code > 0xffffff ? code : code << 4 | (uint32_t)hex_digit(text[at]);
	if (braces && (at >= size || text[at++] != '}'))
		return 0;
	*ret_length = at;
	return (char)(code < 0x80 ? code : 0);
}

size_t nc_spell_javascript(const char *name, size_t size, char *out)
{
	size_t used = 0, length;
	int changed = 0;

	if (!memchr(name, '\\', size))
		return 0;
	for (size_t at = 0; at < size; at += length) {
		char plain = read_escape(name + at, size - at, &length);

		changed |= plain != 0;
		if (!plain)
			length = 1;
		out[used++] = plain ? plain : name[at];
	}
	return changed ? used : 0;
}
