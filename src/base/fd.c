/* File descriptors. */
#include "base/fd.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/limits.h"

int nc_fd_close(int fd)
{
	int saved = errno;

	if (fd >= 0)
		(void)close(fd); /* Linux has closed it even when this says EINTR */
	errno = saved;
	return -EBADF;
}

int nc_fd_dup(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	return copy < 0 ? -errno : copy;
}

int nc_fd_write_all(int fd, const void *data, size_t size)
{
	const char *at = data;

	while (size > 0) {
		ssize_t n = write(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

ssize_t nc_fd_read_upto(int fd, void *data, size_t size)
{
	char *at = data;
	size_t done = 0;

	while (done < size) {
		ssize_t n = read(fd, at + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int nc_fd_read_all(int fd, size_t max, char **ret_data, size_t *ret_size)
{
	cleanup_free char *data = NULL;
	size_t capacity = 0, size = 0;

	if (max >= SIZE_MAX / 4)
		return -EINVAL;
	for (;;) {
		size_t wanted = capacity ? capacity * 2 : 4096;
		char *grown;
		ssize_t n;

		/* one byte more than allowed tells "too big" from "just fits" */
		if (wanted > max + 1)
			wanted = max + 1;
		grown = realloc(data, wanted + 1);
		if (!grown)
			return -ENOMEM;
		data = grown;
		capacity = wanted;
		n = nc_fd_read_upto(fd, data + size, capacity - size);
		if (n < 0)
			return (int)n;
		size += (size_t)n;
		if (size < capacity)
			break;
		if (size > max)
			return -EFBIG;
	}
	data[size] = '\0';
	*ret_data = take_ptr(data);
	*ret_size = size;
	return 0;
}

int nc_fd_read_proc(const char *path, char **ret_data)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	size_t size;

	if (fd < 0)
		return -errno;
	return nc_fd_read_all(fd, NC_PROC_FILE_MAX, ret_data, &size);
}

int nc_fd_write_control(int dir_fd, const char *path, const char *text)
{
	cleanup_close int fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
	size_t size = strlen(text);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, size);
	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EIO;
}

bool nc_fd_is_file(int fd)
{
	const int flags = fcntl(fd, F_GETFL);
	struct stat status;

	return flags >= 0 && !(flags & O_PATH) && fstat(fd, &status) == 0 &&
	       S_ISREG(status.st_mode);
}

bool nc_fd_is_stream(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 &&
	       (S_ISFIFO(status.st_mode) ||
		       (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3)));
}
