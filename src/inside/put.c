/*
 * A stream of files that becomes files here. It runs in boxes, in nacre-files or in the payload
 * itself, behind everything that holds any other program there.
 */
#include "inside/put.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/pack.h"
#include "base/path.h"

#define CHUNK (128U * 1024)
#define DAY_S (24 * 60 * 60)

/* Opens the directory of path's last name, which is made if it is missing; no openat2() here. */
static int open_parent(const char *path, const char **ret_name)
{
	cleanup_close int at_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *slash;

	if (at_fd < 0)
		return -errno;
	for (; (slash = strchr(path, '/')); path = slash + 1) {
		char name[NC_NAME_MAX + 1];
		int fd;

		(void)snprintf(name, sizeof(name), "%.*s", (int)(slash - path), path);
		if (mkdirat(at_fd, name, 0755) < 0 && errno != EEXIST)
			return -errno;
		fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		(void)nc_fd_close(at_fd);
		at_fd = fd;
	}
	*ret_name = path;
	return take_fd(at_fd);
}

/* A fresh file, in place of what has its name. */
static int create(const char *path, bool executable)
{
	const char *name;
	cleanup_close int parent_fd = open_parent(path, &name);
	int fd;

	if (parent_fd < 0)
		return parent_fd;
	if (unlinkat(parent_fd, name, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(parent_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		executable ? 0755 : 0644);
	return fd < 0 ? -errno : fd;
}

int nc_copy(int from_fd, int to_fd, uint64_t size)
{
	static char chunk[CHUNK];

	while (size > 0) {
		ssize_t n = nc_fd_read_upto(from_fd, chunk, size < CHUNK ? (size_t)size : CHUNK);
		int r;

		if (n <= 0)
			return n < 0 ? (int)n : -ENODATA;
		r = nc_fd_write_all(to_fd, chunk, (size_t)n);
		if (r < 0)
			return r;
		size -= (uint64_t)n;
	}
	return 0;
}

/* Some weeks ago, and not read since. */
static int make_old(int fd)
{
	const struct timespec then = {.tv_sec = time(NULL) - 37 * DAY_S};
	const struct timespec both[] = {then, then};

	return futimens(fd, both) < 0 ? -errno : 0;
}

static int put_file(int from_fd, const struct nc_pack_head *head, const char *path)
{
	cleanup_close int fd = nc_path_is_plain(path) ? create(path, head->executable) : -EINVAL;

	int r = fd < 0 ? fd : nc_copy(from_fd, fd, head->size);

	return r == 0 && head->old ? make_old(fd) : r;
}

int nc_put(int from_fd, char ret_path[static NC_PATH_MAX + 1])
{
	unsigned char bytes[NC_PACK_HEAD_SIZE];
	struct nc_pack_head head;
	int r = 0;

	while (r == 0) {
		(void)snprintf(ret_path, NC_PATH_MAX + 1, "the stream");
		if (nc_fd_read_upto(from_fd, bytes, sizeof(bytes)) != sizeof(bytes) ||
			nc_pack_get_head(bytes, &head) < 0 || head.kind == NC_PACK_SKIPPED)
			return -EBADMSG;
		if (head.kind == NC_PACK_END)
			return 0;
		if (nc_fd_read_upto(from_fd, ret_path, head.path_size) != head.path_size)
			return -EBADMSG;
		ret_path[head.path_size] = '\0';
		r = put_file(from_fd, &head, ret_path);
	}
	return r;
}
