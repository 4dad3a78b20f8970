/* Files and directories of the caller's as the files of a request. */
#ifndef NC_GATHER_H
#define NC_GATHER_H

#include <jansson.h>

#include "base/error.h"

/*
 * Adds what word (SRC[:DST]) names to the files of a request: a file, or a directory with all that
 * is below it but hidden names. DST is the base name where it is not given; "." puts what is in a
 * directory at the top. Below SRC no symbolic link is followed: one that is there is an error.
 */
int nc_gather(json_t *files, const char *word, struct nacre_err *err);

/*
 * The same for all of a directory, at the top, but for one file: the program. That is what is
 * called main or __main__ with the ending of a language, or else the only file of any language.
 * *ret_name and *ret_code are fresh memory. -ENOTDIR: path is no directory, and nothing was done.
 */
int nc_gather_program(json_t *files, const char *path, char **ret_name, char **ret_code,
	size_t *ret_size, struct nacre_err *err);

#endif
