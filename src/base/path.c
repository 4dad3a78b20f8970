/* Files below a directory that we hold open. */
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/text.h"

/* The kernel says EAGAIN when a rename elsewhere made its check uncertain; it is rare. */
#define OPEN_TRIES 8

bool nc_path_is_plain(const char *path)
{
	size_t size = strlen(path);
	const char *name = path;

	if (size == 0 || size > NC_PATH_MAX)
		return false;
	for (;;) {
		const char *end = strchrnul(name, '/');
		size_t length = (size_t)(end - name);

		if (length == 0 || length > NC_NAME_MAX || (length == 1 && name[0] == '.') ||
			(length == 2 && name[0] == '.' && name[1] == '.'))
			return false;
		if (*end == '\0')
			return true;
		name = end + 1;
	}
}

int nc_path_open(int dir_fd, const char *path, int flags, mode_t mode)
{
	/* a path descriptor opens nothing, so there is nothing to wait for, and no other flag
	 * allowed */
	unsigned int more = flags & O_PATH ? O_CLOEXEC : O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	struct open_how how = {
		.flags = (unsigned int)flags | more,
		.mode = mode,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
			   RESOLVE_NO_XDEV,
	};
	long fd = -1;

	if (!nc_path_is_plain(path))
		return -EINVAL;
	for (int i = 0; i < OPEN_TRIES; i++) {
		fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return fd < 0 ? -errno : (int)fd;
}

int nc_path_read(int dir_fd, const char *path, size_t max, char **ret_data, size_t *ret_size)
{
	cleanup_close int fd = nc_path_open(dir_fd, path, O_RDONLY, 0);
	struct stat status;

	if (fd < 0)
		return fd == -ENXIO ? -EINVAL : fd; /* a socket cannot be opened at all */
	if (fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -EINVAL;
	if (status.st_nlink != 1)
		return -EMLINK;
	return nc_fd_read_all(fd, max, ret_data, ret_size);
}

/* Opens the directory that path's last name is in; *ret_name points to that name within path. */
static int open_parent(int dir_fd, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	char parent[NC_PATH_MAX + 1];
	int fd;

	if (!nc_path_is_plain(path))
		return -EINVAL;
	if (slash) {
		memcpy(parent, path, (size_t)(slash - path));
		parent[slash - path] = '\0';
		fd = nc_path_open(dir_fd, parent, O_RDONLY | O_DIRECTORY, 0);
	} else {
		fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			fd = -errno;
	}
	if (fd >= 0)
		*ret_name = slash ? slash + 1 : path;
	return fd;
}

static int write_synced(int dir_fd, const char *name, const void *data, size_t size, mode_t mode)
{
	cleanup_close int fd = nc_path_open(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL, mode);
	int r;

	if (fd < 0)
		return fd;
	r = nc_fd_write_all(fd, data, size);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	return r;
}

int nc_path_write(int dir_fd, const char *path, const void *data, size_t size, mode_t mode)
{
	char temporary[NC_ID_SIZE];
	const char *name;
	cleanup_close int parent_fd = open_parent(dir_fd, path, &name);
	int r;

	if (parent_fd < 0)
		return parent_fd;
	r = nc_id_new(".n", temporary);
	if (r < 0)
		return r;
	r = write_synced(parent_fd, temporary, data, size, mode);
	if (r == 0 && renameat(parent_fd, temporary, parent_fd, name) < 0)
		r = -errno;
	if (r < 0 && r != -EEXIST)
		(void)unlinkat(parent_fd, temporary, 0); /* may not have been made */
	if (r == 0 && fsync(parent_fd) < 0)
		r = -errno;
	return r;
}

int nc_path_make_dirs(int dir_fd, const char *path, mode_t mode)
{
	cleanup_close int at_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *name = path;

	if (!nc_path_is_plain(path))
		return -EINVAL;
	if (at_fd < 0)
		return -errno;
	while (*name) {
		const char *end = strchrnul(name, '/');
		char part[NC_NAME_MAX + 1];
		int fd;

		memcpy(part, name, (size_t)(end - name));
		part[end - name] = '\0';
		if (mkdirat(at_fd, part, mode) < 0 && errno != EEXIST)
			return -errno;
		fd = nc_path_open(at_fd, part, O_RDONLY | O_DIRECTORY, 0);
		if (fd < 0)
			return fd;
		(void)nc_fd_close(at_fd);
		at_fd = fd;
		name = *end ? end + 1 : end;
	}
	return 0;
}
