/* Programs of our own: where they are, and copies of those that run in boxes. */
#ifndef NC_PROGRAM_H
#define NC_PROGRAM_H

#include "base/error.h"

/* Where a program of ours is: beside us in the build tree, in libexec when installed. */
#define NC_PROGRAM_PATH_SIZE 4160
int nc_program_find(
	const char *name, char ret_path[static NC_PROGRAM_PATH_SIZE], struct nacre_err *err);

/* Opens the program of this name that stands beside us. A descriptor, or -errno with err. */
int nc_program_open(const char *name, struct nacre_err *err);

/*
 * A copy of an open program that nobody can change: what boxes execute is not the file on the disk.
 * source_fd stays the caller's. A descriptor, or -errno with err.
 */
int nc_program_load(int source_fd, const char *name, struct nacre_err *err);

#endif
