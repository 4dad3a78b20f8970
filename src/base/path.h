/*
 * Files below a directory that we hold open, where somebody hostile may change the tree under our
 * feet. Nothing here follows a symbolic link, leaves the directory or waits on a FIFO.
 */
#ifndef NC_PATH_H
#define NC_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * Whether path may be used below a directory: relative, no empty component, no "." or "..", names
 * of at most 255 bytes, 4095 in all.
 */
bool nc_path_is_plain(const char *path);

/*
 * openat2() beneath dir_fd, without symbolic links, magic links or other file systems. flags get
 * O_CLOEXEC and, unless O_PATH is among them, O_NOCTTY and O_NONBLOCK. -EINVAL: not a plain path;
 * -ELOOP: a link; -EXDEV: it leaves.
 */
int nc_path_open(int dir_fd, const char *path, int flags, mode_t mode);

/*
 * Reads a regular file of at most max bytes into fresh memory with a NUL behind. The caller frees
 * *ret_data. -EINVAL: no regular file; -EMLINK: it has a second name, so it may be a file of
 * somebody else; -EFBIG.
 */
int nc_path_read(int dir_fd, const char *path, size_t max, char **ret_data, size_t *ret_size);

/* Writes a file whole or not at all: a fresh name, fsync, rename over path. 0 or -errno. */
int nc_path_write(int dir_fd, const char *path, const void *data, size_t size, mode_t mode);

/* Makes a directory and those above it that are missing, each with mode. 0 or -errno. */
int nc_path_make_dirs(int dir_fd, const char *path, mode_t mode);

#endif
