/* Steps on mounts that are not attached anywhere yet. */
#ifndef NC_INSIDE_MOUNTS_H
#define NC_INSIDE_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/mount.h>

#define NC_MOUNT_LOCKED_DOWN (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/*
 * A file system of its own, detached; options are pairs of name and value, and NULL; one with the
 * value NULL is a flag. A descriptor (CLOEXEC) or -errno, as below.
 */
int nc_mount_new(const char *type, const char *const *options, uint64_t attributes);

/* A detached copy of what is at path, which is not followed. */
int nc_mount_copy(int at_fd, const char *path, bool recursive);

/* Adds attributes (MOUNT_ATTR_*). 0 or -errno, as below. */
int nc_mount_restrict(int mount_fd, uint64_t attributes, bool recursive);

/* Puts it where path is. */
int nc_mount_attach(int mount_fd, int at_fd, const char *path);

#endif
