/* The programs of our own that run in boxes. */
#ifndef NC_PROGRAM_H
#define NC_PROGRAM_H

#include "base/error.h"

/* Opens the program of this name that stands beside us. A descriptor, or -errno with err. */
int nc_program_open(const char *name, struct nacre_err *err);

/*
 * A copy of an open program that nobody can change: what boxes execute is not the file on the disk.
 * source_fd stays the caller's. A descriptor, or -errno with err.
 */
int nc_program_load(int source_fd, const char *name, struct nacre_err *err);

#endif
