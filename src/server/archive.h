/*
 * The past, for the daemon: a process of its own reads the history, since the daemon may not. It
 * has the rights of `nacre history` (the recorder's user, no other file, no other system call) and
 * answers questions as frames (base/frame.h), one after the other, so that a long answer holds up
 * nobody but those who ask for the past.
 *
 *	{"n": 1, "op": "list", "status"?, "language"?, "since"?, "tenant"?, "before"?, "limit"}
 *		-> {"n": 1, "executions": [...], "more"}; of half a megabyte at most, or one
 *	{"op": "show", "id", "tenant"?}		-> {"executions": [...]}, the last of that id
 *	{"op": "blob", "id", "tenant"?, "which"}	-> {"base64"}; which: code, stdout, stderr
 *	{"op": "head"}				-> {"head"}
 *	{"op": "verify", "head"?}		-> {"ok", "lines", "damages", ...}
 *	anything that fails			-> {"error", "code"}
 */
#ifndef NC_ARCHIVE_H
#define NC_ARCHIVE_H

#include <stdbool.h>
#include <uv.h>

#include "base/json.h"

/* Blobs come in pieces of this size: {"op": "blob", "at": OFFSET}. */
#define NC_ARCHIVE_PIECE (96U * 1024)

struct nc_archive;

/*
 * Forks the reader, with the caller's rights: to be called before privilege is dropped, while there
 * is one thread, after the recorder has made the history. index_fd is a directory for its index,
 * place_fd its end of where it meets the next daemon (base/meeting.h); both stay the caller's.
 * Returns our end of the socket; *ret_pidfd is the caller's. It ends when the socket and the place
 * are closed everywhere.
 */
int nc_archive_start(int index_fd, int place_fd, int *ret_pidfd, struct nacre_err *err);

/* Takes over the socket. */
int nc_archive_new(uv_loop_t *loop, int fd, struct nc_archive **ret_archive);
void nc_archive_free(struct nc_archive *archive);

bool nc_archive_is_up(const struct nc_archive *archive);

/* About once a second: who does not answer is given up. */
void nc_archive_tick(struct nc_archive *archive);

/* The next reader, after one that died; takes over the socket. 0 or -errno. */
int nc_archive_meet(struct nc_archive *archive, int fd);

/* Borrows the answer; NULL: the reader is gone. */
typedef void (*nc_archive_answer)(void *context, const json_t *answer);

/*
 * Asks for a tenant, which take turns; takes over the question, which has no "n" yet. answer
 * follows, from the loop. -EAGAIN: too many wait, in all or of this tenant; -ECONNRESET: the reader
 * is gone; -EMSGSIZE; -ENOMEM.
 */
int nc_archive_ask(struct nc_archive *archive, const char *tenant, json_t *question,
	nc_archive_answer answer, void *context);

/* Nobody waits for what would be told to this context any more. */
void nc_archive_forget(struct nc_archive *archive, const void *context);

#endif
