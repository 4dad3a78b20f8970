/* Filling and wrapping the public error object. */
#ifndef NC_ERROR_H
#define NC_ERROR_H

#include "nacre/nacre.h"

/*
 * Fills *err and returns code, which is a negative errno: the one way to make an error, so that
 * message and result cannot differ. err may be NULL. A message that does not fit ends in "...".
 */
int nc_err_set(struct nacre_err *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same, with the description of the errno behind the message: "Open '/x': Permission denied".
 */
int nc_err_errno(struct nacre_err *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts context in front of what is there: "Load policy: Open '/x': ...". Returns err->code. */
int nc_err_wrap(struct nacre_err *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The description of an errno, given negative or positive; never NULL, allocates nothing. */
const char *nc_errno_text(int code);

/* "EPERM" and the like; "E?" for a number that has no name. */
const char *nc_errno_name(int code);

#endif
