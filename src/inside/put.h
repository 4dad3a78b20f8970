/* A stream of files (base/pack.h) that becomes files here. */
#ifndef NC_INSIDE_PUT_H
#define NC_INSIDE_PUT_H

#include <stdint.h>

#include "base/limits.h"

/* -ENODATA: there were fewer bytes. */
int nc_copy(int from_fd, int to_fd, uint64_t size);

/*
 * Reads the stream and makes its files below the working directory, each in place of what has its
 * name; no symbolic link is followed. Allocates nothing. -errno, and which file it was about.
 */
int nc_put(int from_fd, char ret_path[static NC_PATH_MAX + 1]);

#endif
