/* Configuration files: which may be read, and reading one. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/limits.h"
#include "config/schema.h"

static int open_file(const char *path, struct nacre_err *err)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat status;

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0)
		return nc_err_errno(err, -errno, "%s", path);
	if (fstat(fd, &status) < 0)
		return nc_err_errno(err, -errno, "%s", path);
	if (!S_ISREG(status.st_mode))
		return nc_err_set(
			err, -EINVAL, "%s: found something that is no regular file", path);
	if (status.st_mode & S_IWOTH)
		return nc_err_set(err, -EPERM,
			"%s: found a file that everybody may write (mode %04o), expected it to be "
			"protected: chmod o-w",
			path, status.st_mode & 07777);
	return take_fd(fd);
}

int nc_schema_load(
	const struct nc_field *fields, void *values, const char *path, struct nacre_err *err)
{
	cleanup_close int fd = open_file(path, err);
	cleanup_free char *text = NULL;
	size_t size;
	int r;

	if (fd < 0)
		return fd;
	r = nc_fd_read_all(fd, NC_CONFIG_FILE_MAX, &text, &size);
	if (r == -EFBIG)
		return nc_err_set(
			err, r, "%s: found more than %u KiB", path, NC_CONFIG_FILE_MAX / 1024);
	if (r < 0)
		return nc_err_errno(err, r, "%s", path);
	return nc_schema_read(fields, values, path, text, size, err);
}
