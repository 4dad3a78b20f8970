/* Text: quoting foreign strings and finding the nearest word. */
#include "base/text.h"

#include <stdint.h>
#include <stdio.h>

const char *nc_text_after(const char *text, const char *prefix)
{
	size_t size = strlen(prefix);

	return strncmp(text, prefix, size) == 0 ? text + size : NULL;
}

bool nc_text_has_word(const char *list, char separator, const char *word)
{
	size_t size = strlen(word);

	for (;;) {
		size_t length = (size_t)(strchrnul(list, separator) - list);

		if (length == size && memcmp(list, word, size) == 0)
			return true;
		if (list[length] == '\0')
			return false;
		list += length + 1;
	}
}

static bool is_continuation(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

size_t nc_text_utf8(const char *text, size_t size)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t length, i;

	if (size == 0)
		return 0;
	if (at[0] < 0x80)
		return 1;
	if (at[0] >= 0xc2 && at[0] <= 0xdf)
		length = 2;
	else if (at[0] >= 0xe0 && at[0] <= 0xef)
		length = 3;
	else if (at[0] >= 0xf0 && at[0] <= 0xf4)
		length = 4;
	else
		return 0;
	if (size < length)
		return 0;
	for (i = 1; i < length; i++)
		if (!is_continuation(at[i]))
			return 0;
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
		(at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	return length;
}

/* U+0080 to U+009F: some terminals obey them as they obey escape sequences. */
static bool is_c1_control(const char *text)
{
	return (unsigned char)text[0] == 0xc2 && (unsigned char)text[1] < 0xa0;
}

static void json_ascii(struct nc_buf *buf, char c)
{
	switch (c) {
	case '"':
		nc_buf_adds(buf, "\\\"");
		break;
	case '\\':
		nc_buf_adds(buf, "\\\\");
		break;
	case '\n':
		nc_buf_adds(buf, "\\n");
		break;
	case '\r':
		nc_buf_adds(buf, "\\r");
		break;
	case '\t':
		nc_buf_adds(buf, "\\t");
		break;
	default:
		if ((unsigned char)c < 0x20 || c == 0x7f)
			nc_buf_addf(buf, "\\u%04x", (unsigned char)c);
		else
			nc_buf_add(buf, &c, 1);
	}
}

void nc_text_json(struct nc_buf *buf, const char *text, size_t size)
{
	while (size > 0) {
		size_t length = nc_text_utf8(text, size);

		if (length == 1)
			json_ascii(buf, *text);
		else if (length == 0)
			nc_buf_adds(buf, "\\ufffd");
		else if (is_c1_control(text))
			nc_buf_addf(buf, "\\u00%02x", (unsigned char)text[1]);
		else
			nc_buf_add(buf, text, length);
		length += length == 0;
		text += length;
		size -= length;
	}
}

const char *nc_text_quote(char out[static NC_TEXT_QUOTED_MAX], const char *text)
{
	static const char cut[] = "...'";
	size_t used = 0, left = strlen(text);

	out[used++] = '\'';
	while (left > 0) {
		size_t length = nc_text_utf8(text, left);
		unsigned char c = (unsigned char)*text;
		bool plain = length > 1 ? !is_c1_control(text)
					: length == 1 && c >= 0x20 && c != 0x7f && c != '\'' &&
						  c != '\\';

		/* the longest piece is four bytes */
		if (used + 4 + sizeof(cut) > NC_TEXT_QUOTED_MAX) {
			memcpy(out + used, cut, sizeof(cut));
			return out;
		}
		if (!plain)
			length = 1;
		if (plain) {
			memcpy(out + used, text, length);
			used += length;
		} else {
			used += (size_t)snprintf(out + used, 5, "\\x%02x", c);
		}
		text += length;
		left -= length;
	}
	out[used++] = '\'';
	out[used] = '\0';
	return out;
}

/* Words longer than this are not compared: nobody mistypes a key of ours that way. */
#define WORD_MAX 48

/* The least number of insertions, deletions, replacements and swaps of neighbours. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t rows[3][WORD_MAX + 1]; /* the row at work and the two before it, in turn */
	size_t size_a = strlen(a), size_b = strlen(b), i, j;

	if (size_a > WORD_MAX || size_b > WORD_MAX)
		return SIZE_MAX / 4; /* too far to be suggested, and still multiplied */
	for (j = 0; j <= size_b; j++)
		rows[0][j] = j;
	for (i = 1; i <= size_a; i++) {
		size_t *row = rows[i % 3];
		const size_t *above = rows[(i + 2) % 3], *above_that = rows[(i + 1) % 3];

		row[0] = i;
		for (j = 1; j <= size_b; j++) {
			size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);

			if (best > above[j] + 1)
				best = above[j] + 1;
			if (best > row[j - 1] + 1)
				best = row[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
				best > above_that[j - 2] + 1)
				best = above_that[j - 2] + 1;
			row[j] = best;
		}
	}
	return rows[size_a % 3][size_b];
}

void nc_nearest_offer(struct nc_nearest *nearest, const char *candidate)
{
	size_t distance = edit_distance(nearest->word, candidate);

	/* a third of the word may differ: "dcotor" is doctor, "run" is not "ps" */
	if (distance * 3 > strlen(candidate) + 1)
		return;
	if (!nearest->best || distance < nearest->distance) {
		nearest->best = candidate;
		nearest->distance = distance;
	}
}
