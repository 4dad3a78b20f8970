/*
 * For programs that are linked with musl: what it has no functions for, and what glibc's
 * FORTIFY_SOURCE does for the others. meson includes this header ahead of every file of theirs.
 */
#ifndef NC_SMALL_H
#define NC_SMALL_H

#include <features.h>
#ifndef __GLIBC__ /* which has all of it */

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/fs.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int __rlimit_resource_t;

static inline int open_tree(int dir_fd, const char *path, unsigned int flags)
{
	return (int)syscall(SYS_open_tree, dir_fd, path, flags);
}

static inline int move_mount(
	int from_fd, const char *from, int to_fd, const char *to, unsigned int flags)
{
	return (int)syscall(SYS_move_mount, from_fd, from, to_fd, to, flags);
}

static inline int mount_setattr(int dir_fd, const char *path, unsigned int flags,
	struct mount_attr *attributes, size_t size)
{
	return (int)syscall(SYS_mount_setattr, dir_fd, path, flags, attributes, size);
}

static inline int fsopen(const char *type, unsigned int flags)
{
	return (int)syscall(SYS_fsopen, type, flags);
}

static inline int fspick(int dir_fd, const char *path, unsigned int flags)
{
	return (int)syscall(SYS_fspick, dir_fd, path, flags);
}

static inline int fsconfig(
	int fd, unsigned int command, const char *key, const void *value, int aux)
{
	return (int)syscall(SYS_fsconfig, fd, command, key, value, aux);
}

static inline int fsmount(int fd, unsigned int flags, unsigned int attributes)
{
	return (int)syscall(SYS_fsmount, fd, flags, attributes);
}

static inline int close_range(unsigned int first, unsigned int last, int flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

static inline int renameat2(
	int from_fd, const char *from, int to_fd, const char *to, unsigned int flags)
{
	return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}

#undef getdents64
static inline ssize_t getdents64(int fd, void *entries, size_t size)
{
	return syscall(SYS_getdents64, fd, entries, size);
}

/* The kernel takes an unsigned number, of which an int has all bits. */
#define ioctl(fd, request, ...) ioctl(fd, (int)(request), __VA_ARGS__)

/* It points into constant text here, and asks no locale. */
static inline const char *strerrordesc_np(int code)
{
	return strerror(code);
}

static inline const char *strerrorname_np(int code)
{
	(void)code;
	return NULL; /* only replies in JSON have names */
}

/* As many bytes as are asked for, if the object is known to hold them or nothing is known of it. */
#define NC_CHECKED static inline __attribute__((always_inline))

NC_CHECKED size_t nc_fit(const void *object, size_t size)
{
	if (size > __builtin_dynamic_object_size(object, 0))
		__builtin_trap();
	return size;
}

NC_CHECKED void *nc_memcpy(void *to, const void *from, size_t size)
{
	return __builtin_memcpy(to, from, nc_fit(to, size));
}

NC_CHECKED void *nc_memmove(void *to, const void *from, size_t size)
{
	return __builtin_memmove(to, from, nc_fit(to, size));
}

NC_CHECKED void *nc_memset(void *to, int byte, size_t size)
{
	return __builtin_memset(to, byte, nc_fit(to, size));
}

NC_CHECKED ssize_t nc_read(int fd, void *to, size_t size)
{
	return read(fd, to, nc_fit(to, size));
}

NC_CHECKED ssize_t nc_pread(int fd, void *to, size_t size, off_t offset)
{
	return pread(fd, to, nc_fit(to, size), offset);
}

NC_CHECKED ssize_t nc_readlink(const char *path, char *to, size_t size)
{
	return readlink(path, to, nc_fit(to, size));
}

NC_CHECKED ssize_t nc_readlinkat(int dir_fd, const char *path, char *to, size_t size)
{
	return readlinkat(dir_fd, path, to, nc_fit(to, size));
}

NC_CHECKED __attribute__((format(printf, 3, 0))) int nc_vsnprintf(
	char *to, size_t size, const char *format, va_list arguments)
{
	return vsnprintf(to, nc_fit(to, size), format, arguments);
}

#define memcpy nc_memcpy
#define memmove nc_memmove
#define memset nc_memset
#define read nc_read
#define pread nc_pread
#define readlink nc_readlink
#define readlinkat nc_readlinkat
#define vsnprintf nc_vsnprintf
#define snprintf(to, size, ...)                                                                    \
	({                                                                                         \
		char *nc_to = (to);                                                                \
		snprintf(nc_to, nc_fit(nc_to, (size)), __VA_ARGS__);                               \
	})

#endif
#endif
