/*
 * Staging directories: how things get into a store whole or not at all, and out of it the same way.
 *
 * Theory of operation: what stands in a store under its name is whole. Everything else happens in a
 * staging directory, .stage-<random>, whose first part no name in a store has: what is new is made
 * in <staging>/root and renamed to its name, what goes is renamed into one, and in the end both
 * remove what is left. Whoever works in a staging directory holds a lock on it, so what a killed
 * process left can be told from what is in use.
 */
#ifndef NC_STAGING_H
#define NC_STAGING_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"

#define NC_STAGING_ROOT "root"

struct nc_staging {
	char name[sizeof(".stage-") + NC_ID_SIZE];
	int dir_fd; /* locked */
};

/*
 * Makes an empty staging directory and locks it. With ranges it is made as the worker, whose store
 * it is, so that nothing in there can lead a privileged hand astray. 0, or -errno with err.
 */
int nc_staging_open(int store_fd, bool ranges, struct nc_staging *ret_stage, struct nacre_err *err);

/* Makes <staging>/root, mode 0755, as nc_staging_open. A descriptor, or -errno. */
int nc_staging_root(const struct nc_staging *stage, bool ranges, struct nacre_err *err);

/* Removes it with all that is in it. 0 or -errno; what stays is swept later. */
int nc_staging_close(int store_fd, bool ranges, struct nc_staging *stage);

/* The rest is for the unprivileged side. Gives <staging>/root its name; -EEXIST: it has one. */
int nc_staging_commit(int store_fd, const struct nc_staging *stage, const char *name);

/* Takes what has this name out of the store and removes it. */
int nc_staging_remove(int store_fd, const char *name, struct nacre_err *err);

/* Removes what killed processes left. What fails is left to the next. */
void nc_staging_sweep(int store_fd);

/* What a directory takes on the disk, to a depth of 256. Best effort. */
uint64_t nc_staging_measure(int dir_fd, const char *name);

/* A stream of its own: the descriptor's position is shared with nobody. NULL: errno. */
DIR *nc_staging_list(int dir_fd, const char *name);

#endif
