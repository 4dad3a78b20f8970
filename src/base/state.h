/* The state directory: where Nacre keeps what outlives a run. */
#ifndef NC_STATE_H
#define NC_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/*
 * Its path: dir if it is not NULL, else $NACRE_STATE if that is absolute, else /var/lib/nacre for
 * root, else nacre in $XDG_STATE_HOME or ~/.local/state. 0 or -errno.
 */
int nc_state_path(const char *dir, char *out, size_t size, struct nacre_err *err);

/*
 * Opens it, after making it and what is missing above it if it is to be made: for root with mode
 * 0755, since parts of it belong to our other ids, else 0700. It must be a directory of ours, no
 * link, that nobody else may write to: -EPERM. -ENOENT, with a message, if it is not there. Returns
 * a descriptor.
 */
int nc_state_open(const char *dir, bool make, struct nacre_err *err);

#endif
