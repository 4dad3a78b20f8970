/* Starting nacre-recorder, and making the history that it writes. */
#ifndef NC_RECORDER_H
#define NC_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/hash.h"

struct nc_recorder_setup {
	const char *state_dir; /* NULL: see nc_state_path() */
	const char *program;   /* NULL: the nacre-recorder beside us, or in libexec */
	uint64_t blob_bytes;   /* most that all blobs may take; 0: no limit */
	uint64_t journal_bytes;
	uint64_t days;	/* what is older is removed */
	int witness_fd; /* the recorder's end of a pair to the spawner, or -EBADF; stays the
			   caller's */
	int place_fd;	/* where it meets the next worker; 0 or less: there is none; the same */
};

/*
 * Makes the history if there is none, with the caller's rights, and starts nacre-recorder on it,
 * for root as a user of its own. Returns the worker's end of its socket (SOCK_SEQPACKET, CLOEXEC),
 * for nc_record_start(); the recorder lives until that, the spawner's end and the place are closed
 * everywhere. *ret_pidfd is the caller's; a zombie is left if nobody waits. To be called while
 * there is one thread, before privilege is dropped.
 */
int nc_recorder_start(const struct nc_recorder_setup *setup, int *ret_pidfd, struct nacre_err *err);

/* Opens the history to read it; -ENOENT with a message: nothing was recorded yet. */
int nc_history_dir(const char *state_dir, int *ret_state_fd, struct nacre_err *err);

/* Reads the key that verifies the journal: the file at path, or that of the state directory. */
int nc_history_key(int state_fd, const char *path, unsigned char ret_key[static NC_SHA256_SIZE],
	struct nacre_err *err);

/*
 * The reader's last step before it looks at anything that the recorder wrote: no privilege (root
 * becomes the recorder's user), no other file, no other system call than moving bytes.
 */
int nc_history_lock_in(int history_fd, struct nacre_err *err);

#endif
