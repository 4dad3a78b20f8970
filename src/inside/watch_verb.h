/* nacre-files tells what happens to files, until somebody ends it. */
#ifndef NC_INSIDE_WATCH_VERB_H
#define NC_INSIDE_WATCH_VERB_H

#include "base/error.h"

/*
 * DEEP PATH: what happens in a directory or, with "1", below it, to standard output. Records of a
 * letter (s: it begins, c: created, m: modified, r: removed, v: moved, o: some are missing),
 * another of what it is (d: a directory, f: anything else), a path and a NUL; v has where it went
 * behind that, and a NUL. It ends when the directory does.
 */
int nc_verb_watch(char **argv, struct nacre_err *err);

#endif
