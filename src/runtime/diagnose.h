/*
 * Where and why a program failed, read from what its compiler or it itself wrote. The text comes
 * from hostile programs: what is read here is shown to people, never acted upon. Pure functions
 * over bytes, each linear in their number.
 */
#ifndef NC_DIAGNOSE_H
#define NC_DIAGNOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

enum nc_step {
	NC_STEP_COMPILE,
	NC_STEP_RUN,
	NC_STEP_MAX,
};

/* All texts are UTF-8 without control characters. */
struct nc_diagnostic {
	char file[256];	       /* relative to the source's directory; "" if not known */
	uint32_t line, column; /* from 1, columns in characters; 0: not known */
	char kind[64];	       /* "ZeroDivisionError", "E0308", "panic"; "" if there is none */
	char message[512];     /* in one line */
};

/* What there is to read. Everything is borrowed. */
struct nc_failure {
	enum nc_step step;
	const char *source; /* the source's path in the box */
	const char *code;   /* the source; NULL: not at hand, which costs Python's columns */
	size_t code_size;
	const char *text; /* standard error of the step */
	size_t size;
};

/* A place in a file. */
struct nc_place_read {
	struct nc_span file;
	uint32_t line, column; /* column 0: none was given */
};

/* Takes "file:line:column" or "file:line" off the beginning. The file holds no blanks, and no colon
 * before a digit.
 */
bool nc_span_place(struct nc_span *span, struct nc_place_read *ret_place);

/*
 * Puts a place into the diagnostic, if it is in a file of the user's own: below the source's
 * directory, and not in a folder of installed packages. Returns whether it is.
 */
bool nc_diagnostic_place(struct nc_diagnostic *diagnostic, const struct nc_failure *failure,
	const struct nc_place_read *place);

/*
 * For compilers that write "file:line:column: message": finds the first error at a place of the
 * user's own. read_message takes what is behind the place; it fills in kind and message, or
 * returns false if this is no error.
 */
bool nc_diagnose_first(const struct nc_failure *failure,
	bool (*read_message)(struct nc_span message, struct nc_diagnostic *diagnostic),
	struct nc_diagnostic *diagnostic);

/* Fills in kind and message. */
void nc_diagnostic_say(struct nc_diagnostic *diagnostic, const char *kind, struct nc_span message);

/* Splits "Kind: message" as exceptions are written. Without a kind all of it is message. */
void nc_diagnostic_title(struct nc_diagnostic *diagnostic, struct nc_span title);

#endif
