/* File descriptors: an empty one is -EBADF, 0 is a valid one, all are born with CLOEXEC. */
#ifndef NC_FD_H
#define NC_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* Closes fd if it is one, keeps errno, and returns -EBADF: fd = nc_fd_close(fd). */
int nc_fd_close(int fd);

static inline void nc_fd_closep(int *place)
{
	*place = nc_fd_close(*place);
}

#define cleanup_close nc_cleanup(nc_fd_closep)

/* A duplicate with CLOEXEC that is never 0, 1 or 2. */
int nc_fd_dup(int fd);

/* Writes all of it, through interruptions and short writes. 0 or -errno. */
int nc_fd_write_all(int fd, const void *data, size_t size);

/*
 * Reads until size bytes are there or the file ends, whichever is first. Returns the number of
 * bytes; fewer than size means the end of the file.
 */
ssize_t nc_fd_read_upto(int fd, void *data, size_t size);

/*
 * Reads to the end into fresh memory, NUL-terminated behind the data; the caller frees *ret_data.
 * More than max bytes is -EFBIG.
 */
int nc_fd_read_all(int fd, size_t max, char **ret_data, size_t *ret_size);

/* The whole of a small file below /proc or /sys, as nc_fd_read_all. */
int nc_fd_read_proc(const char *path, char **ret_data);

/* Writes text with one write(), as control files of the kernel want it. 0 or -errno. */
int nc_fd_write_control(int dir_fd, const char *path, const char *text);

/* Whether it is a pipe or /dev/null: a file could be read back, a directory entered, a socket carry
 * descriptors. */
bool nc_fd_is_stream(int fd);

/* Whether it is a regular file, and not a mere path to one. */
bool nc_fd_is_file(int fd);

#endif
