/* The process `nacre engine`: where its executable is, how it is started and ended. */
#ifndef NC_LIBRARY_PROGRAM_H
#define NC_LIBRARY_PROGRAM_H

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct nc_program {
	int fd;	   /* our end of the socket, non-blocking; or -EBADF */
	int pidfd; /* or -EBADF */
	pid_t pid; /* where there are no pidfds, as under valgrind; 0: pidfd holds it */
};

/*
 * Starts it. May be called by a process with threads: between fork and exec nothing is done that
 * may not be done there.
 */
int nc_program_start(struct nc_program *program, const struct nacre_engine_options *options,
	struct nacre_err *err);

/*
 * Runs `nacre` with these words, which end in NULL, and hands out what it prints, at most max
 * bytes, to be freed by the caller. program: see struct nacre_engine_options.
 */
int nc_program_ask(const char *program, const char *const *words, size_t max, char **ret_text,
	struct nacre_err *err);

/* Hangs up, waits for its end, and makes it end if that takes too long. */
void nc_program_end(struct nc_program *program);

#endif
