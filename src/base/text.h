/* Text: comparing, quoting foreign strings for messages and for JSON, finding the nearest word. */
#ifndef NC_TEXT_H
#define NC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"

static inline bool nc_streq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/* What follows prefix in text, or NULL if text does not begin with it. */
const char *nc_text_after(const char *text, const char *prefix);

/* Whether word is one of the parts into which separator divides list. */
bool nc_text_has_word(const char *list, char separator, const char *word);

/*
 * The length in bytes of the UTF-8 sequence at text, of which at most size bytes may be looked at;
 * 0 if there is none (overlong forms, surrogates and code points above U+10FFFF are none).
 */
size_t nc_text_utf8(const char *text, size_t size);

/* Appends size bytes as the inside of a JSON string; each byte that is not UTF-8 becomes U+FFFD. */
void nc_text_json(struct nc_buf *buf, const char *text, size_t size);

/* Room for nc_text_quote's longest answer. */
#define NC_TEXT_QUOTED_MAX 200

/*
 * Writes a foreign string as 'text' for use in a message: control characters, apostrophes,
 * backslashes and bytes that are not UTF-8 as \xNN, what is too long cut with "...". Returns out.
 */
const char *nc_text_quote(char out[static NC_TEXT_QUOTED_MAX], const char *text);

/* Keeps the best of the candidates that it is shown. Begin with {.word = what the user wrote}. */
struct nc_nearest {
	const char *word;
	const char *best; /* NULL: nothing is near enough to be suggested */
	size_t distance;
};

/* Borrows candidate until nearest is done with. */
void nc_nearest_offer(struct nc_nearest *nearest, const char *candidate);

#endif
