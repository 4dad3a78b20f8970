/* Pieces of foreign bytes. */
#include "base/span.h"

#include <string.h>

#include "base/text.h"

bool nc_span_line(struct nc_span *rest, struct nc_span *ret_line)
{
	const char *end;

	if (rest->size == 0)
		return false;
	end = memchr(rest->text, '\n', rest->size);
	*ret_line = end ? nc_span_before(*rest, end) : *rest;
	*rest = nc_span_behind(*rest, end ? end + 1 : rest->text + rest->size);
	if (ret_line->size > 0 && ret_line->text[ret_line->size - 1] == '\r')
		ret_line->size--;
	return true;
}

bool nc_span_begins(struct nc_span span, const char *word)
{
	size_t length = strlen(word);

	return span.size >= length && memcmp(span.text, word, length) == 0;
}

bool nc_span_begins_any(struct nc_span span, const char *characters)
{
	/* strchr would find a NUL in every list */
	return span.size > 0 && span.text[0] != '\0' && strchr(characters, span.text[0]);
}

bool nc_span_skip(struct nc_span *span, const char *word)
{
	if (!nc_span_begins(*span, word))
		return false;
	*span = nc_span_behind(*span, span->text + strlen(word));
	return true;
}

size_t nc_span_skip_blanks(struct nc_span *span)
{
	size_t count = 0;

	while (count < span->size && (span->text[count] == ' ' || span->text[count] == '\t'))
		count++;
	*span = nc_span_behind(*span, span->text + count);
	return count;
}

bool nc_span_number(struct nc_span *span, uint32_t *ret_number)
{
	uint32_t number = 0;
	size_t i = 0;

	for (; i < span->size && span->text[i] >= '0' && span->text[i] <= '9'; i++) {
		if (number > (UINT32_MAX - 9) / 10)
			return false;
		number = number * 10 + (uint32_t)(span->text[i] - '0');
	}
	if (i == 0)
		return false;
	*span = nc_span_behind(*span, span->text + i);
	*ret_number = number;
	return true;
}

const char *nc_span_find(struct nc_span span, const char *word)
{
	return span.size > 0 ? memmem(span.text, span.size, word, strlen(word)) : NULL;
}

const char *nc_span_find_last(struct nc_span span, const char *word)
{
	size_t length = strlen(word);

	for (size_t i = span.size; i >= length; i--)
		if (memcmp(span.text + i - length, word, length) == 0)
			return span.text + i - length;
	return NULL;
}

struct nc_span nc_span_before(struct nc_span span, const char *at)
{
	return (struct nc_span){span.text, (size_t)(at - span.text)};
}

struct nc_span nc_span_behind(struct nc_span span, const char *at)
{
	return (struct nc_span){at, span.size - (size_t)(at - span.text)};
}

/* C1 controls and what turns the direction of writing could fool a terminal and its reader. */
static bool is_invisible(const char *text, size_t length)
{
	static const char *const invisible[] = {"\u200e", "\u200f", "\u202a", "\u202b", "\u202c",
		"\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069"};

	if (length == 1)
		return (unsigned char)text[0] < ' ' || text[0] == '\x7f';
	if (length == 2)
		return text[0] == '\xc2' && (unsigned char)text[1] < 0xa0;
	for (size_t i = 0; length == 3 && i < sizeof(invisible) / sizeof(invisible[0]); i++)
		if (memcmp(text, invisible[i], length) == 0)
			return true;
	return false;
}

void nc_span_copy(struct nc_span span, char *out, size_t size)
{
	size_t used = 0;

	while (span.size > 0) {
		size_t length = nc_text_utf8(span.text, span.size);
		bool shown = length > 0 && !is_invisible(span.text, length);
		size_t room = shown ? length : 1;

		if (used + room >= size)
			break;
		if (shown)
			memcpy(out + used, span.text, length);
		else
			out[used] = length > 0 && span.text[0] == '\t' ? ' ' : '?';
		used += room;
		span = nc_span_behind(span, span.text + (length > 0 ? length : 1));
	}
	out[used] = '\0';
}
