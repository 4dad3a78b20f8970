/* Pieces of foreign bytes, which end where their size says and may hold anything. */
#ifndef NC_SPAN_H
#define NC_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nc_span {
	const char *text;
	size_t size;
};

/* Takes the next line off rest, without its end. False: there is none. */
bool nc_span_line(struct nc_span *rest, struct nc_span *ret_line);

/* Takes word off the beginning; false, and nothing is taken, if span does not begin with it. */
bool nc_span_skip(struct nc_span *span, const char *word);

/* Whether span begins with word. */
bool nc_span_begins(struct nc_span span, const char *word);

/* Whether span begins with one of these characters. */
bool nc_span_begins_any(struct nc_span span, const char *characters);

/* Takes blanks off the beginning and returns their number. */
size_t nc_span_skip_blanks(struct nc_span *span);

/* Takes a number off the beginning; false if there is none, or one that is too large. */
bool nc_span_number(struct nc_span *span, uint32_t *ret_number);

/* Where word begins in span, for the first or the last time; NULL: nowhere. */
const char *nc_span_find(struct nc_span span, const char *word);
const char *nc_span_find_last(struct nc_span span, const char *word);

/* What stands before and behind at, which is in span. */
struct nc_span nc_span_before(struct nc_span span, const char *at);
struct nc_span nc_span_behind(struct nc_span span, const char *at);

/* Copies what can be shown of a span: cut where out ends, other bytes replaced. */
void nc_span_copy(struct nc_span span, char *out, size_t size);

#endif
