/*
 * Environment variables that are code: interpreters, loaders and tools read them when they start,
 * or before each command, and run, load or obey what they name. A policy that holds programs inside
 * of their language cannot let a caller set them.
 */
#ifndef NC_VARIABLES_H
#define NC_VARIABLES_H

#include <stddef.h>

#include "policy/book.h"

struct nc_variable {
	const char *name;   /* with "*" at its end: all that begin so */
	const char *reason; /* what reads it, and what it does with it; NULL: harmless */
};

extern const struct nc_variable nc_variables[];
extern const size_t nc_n_variables;

/* Why the terms refuse a variable; NULL: they do not. */
const char *nc_variable_refused(const struct nc_terms *terms, const char *name);

#endif
