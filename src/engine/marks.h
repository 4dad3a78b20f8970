/* Marks: words and signs by which a language shows. Cheap, and no more than a hint. */
#ifndef NC_MARKS_H
#define NC_MARKS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/language.h"

/*
 * Counts, per language, how many different marks code has; 0 for those that it cannot be, since
 * what they cannot do without is missing. Returns whether there is any.
 */
bool nc_marks_count(const char *code, size_t size, unsigned int ret_marks[static NC_LANGUAGE_MAX]);

/*
 * How badly code fits C, by its tokens: the bytes of lines that end where no statement ends, and
 * one for each bracket without its partner.
 */
size_t nc_marks_c_faults(const char *code, size_t size);

#endif
