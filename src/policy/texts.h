/* Texts that are put together from others. All return 0 for what cannot be told. */
#ifndef NC_TEXTS_H
#define NC_TEXTS_H

#include <sys/types.h>

#include "policy/scan.h"

/* A text, or a number in digits. */
uint32_t nc_texts_of(struct nc_scan *scan, uint32_t number);

/* A text that a decoder makes from another; hides: that is how code is hidden. */
uint32_t nc_texts_decode(struct nc_scan *scan, const struct nc_datum *from,
	ssize_t (*decode)(const char *text, size_t size, char *out), bool hides);

/* Texts of a list with a separator between them. */
uint32_t nc_texts_join(struct nc_scan *scan, const struct nc_datum *separator, uint32_t list);

/* Numbers of a list as the characters that they stand for. */
uint32_t nc_texts_characters(struct nc_scan *scan, const struct nc_datum *list);

/* A list of the parts of a text between separators, or between blanks if it is NULL. */
uint32_t nc_texts_split(
	struct nc_scan *scan, const struct nc_datum *text, const struct nc_datum *separator);

/* A text several times. */
uint32_t nc_texts_repeat(struct nc_scan *scan, uint32_t text, int64_t times);

/* "%s%d": each directive takes the next of values, a list or a single one. */
uint32_t nc_texts_percent(struct nc_scan *scan, const struct nc_datum *format, uint32_t values);

uint32_t nc_texts_replace(struct nc_scan *scan, const struct nc_datum *text,
	const struct nc_datum *old, const struct nc_datum *fresh);

/* The arguments of a call with slashes between them. */
uint32_t nc_texts_path(struct nc_scan *scan, const struct nc_call *call);

#endif
