/*
 * Where process boxes work: they have no file systems of their own, but directories of the host's,
 * /tmp/nacre-<uid>/<spawner>/<box>/{workspace,tmp}, root's in /var/lib/nacre-boxes. The spawner's
 * directory is locked while it lives; whoever finds one unlocked clears it up.
 */
#ifndef NC_SCRATCH_H
#define NC_SCRATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"
#include "kernel/boxwire.h"

struct nc_scratch {
	char id[NC_ID_SIZE]; /* the spawner's */
	bool ranges;	     /* boxes have ids of their own: we are root */
	unsigned int user;   /* if not: our id outside; from the first sweep on */
	int above_fd;	     /* /tmp/nacre-<uid>; -EBADF: not needed yet */
	int fd;		     /* the spawner's own directory, locked */
};

/* The path of the spawner's directory, whether it exists yet or not. */
void nc_scratch_path(const struct nc_scratch *scratch, char out[NC_BOX_DIR_MAX + 1]);

/* Makes the directories of a box for owner (0: us); their path is nc_scratch_path/<id>. */
int nc_scratch_make(
	struct nc_scratch *scratch, uint64_t id, unsigned int owner, struct nacre_err *err);

/*
 * Starts a process that empties the directories of a dead box, as their owner, so that nothing it
 * meets there can lead it to what is another's. Returns its pidfd.
 */
int nc_scratch_clean(const struct nc_scratch *scratch, uint64_t id);

/* Removes the emptied directory. 0 or -errno; what is left is for the sweep. */
int nc_scratch_remove(const struct nc_scratch *scratch, uint64_t id);

/* Clears up after spawners that are gone, where there is anything at all. */
void nc_scratch_sweep(struct nc_scratch *scratch);

void nc_scratch_close(struct nc_scratch *scratch);

#endif
