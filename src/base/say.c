/* What we print for people. */
#include "base/say.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

/* U+202A to U+202E and U+2066 to U+2069. */
static bool turns_direction(const unsigned char *c)
{
	return c[0] == 0xe2 && ((c[1] == 0x80 && c[2] >= 0xaa && c[2] <= 0xae) ||
				       (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9));
}

/* How many bytes at data are one character that can be shown as it is; 0: none. */
static size_t tame_size(const char *data, size_t size)
{
	const unsigned char *c = (const unsigned char *)data;
	size_t length = nc_text_utf8(data, size);

	if (c[0] == '\n' || c[0] == '\t')
		return 1;
	/* C1 too: some terminals obey them as they obey escape sequences */
	if (c[0] < ' ' || c[0] == 0x7f || (c[0] == 0xc2 && length == 2 && c[1] < 0xa0) ||
		(length == 3 && turns_direction(c)))
		return 0;
	return length;
}

void nc_show(FILE *out, const char *data, size_t size)
{
	size_t from = 0, at = 0; /* in one piece what is tame: stderr has no buffer */

	while (at < size) {
		size_t length = tame_size(data + at, size - at);

		if (length > 0) {
			at += length;
			continue;
		}
		(void)fwrite(data + from, 1, at - from, out);
		(void)fprintf(out, "\\x%02x", (unsigned char)data[at++]);
		from = at;
	}
	(void)fwrite(data + from, 1, at - from, out);
}

void nc_show_line(FILE *out, const char *data, size_t size)
{
	const char *end = data + size;

	while (data < end) {
		const char *newline = memchr(data, '\n', (size_t)(end - data));

		nc_show(out, data, (size_t)((newline ? newline : end) - data));
		if (newline)
			fputs("\\x0a", out);
		data = newline ? newline + 1 : end;
	}
}

void nc_say(FILE *out, const char *format, ...)
{
	cleanup_free char *text = NULL;
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (n < 0) {
		text = NULL; /* vasprintf leaves it undefined */
		fputs("(out of memory)\n", out);
		return;
	}
	nc_show(out, text, (size_t)n);
}
