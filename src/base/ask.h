/*
 * Asking programs of the host a question (their version, mostly) and reading the answer, several at
 * once. They run without privilege: as nobody if we are root, with an environment made from
 * scratch, in an empty session of their own, with bounded output and a deadline.
 */
#ifndef NC_ASK_H
#define NC_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Where programs are looked for: what a box of the host image has, not the caller's PATH. */
#define NC_ASK_PATH "/usr/local/bin:/usr/bin:/bin"

struct nc_ask {
	const char *const *argv; /* NULL-terminated; argv[0] is looked up in NC_ASK_PATH */
	const void *input;	 /* standard input, copied; NULL: nothing */
	size_t input_size;
	/* the answer */
	char program[256];    /* the path that was found; "" if there is none */
	struct nc_buf output; /* standard output and error */
	int status; /* exit status; 128 + n for signal n; -errno if it could not be asked */
	/* while it runs */
	int pidfd;
	int output_fd;
};

/* Starts the program. What goes wrong is in ask->status; -ENOENT: there is no such program. */
void nc_ask_start(struct nc_ask *ask);

/* Reads the answers of n started programs; those that run at the deadline end with -ETIMEDOUT. */
void nc_ask_finish(struct nc_ask *asks, size_t n, uint64_t deadline_ns);

/* Whether it was asked and answered with exit status 0. */
static inline bool nc_ask_ok(const struct nc_ask *ask)
{
	return ask->status == 0 && ask->output.error == 0;
}

/* Frees the answer. */
void nc_ask_done(struct nc_ask *ask);

#endif
