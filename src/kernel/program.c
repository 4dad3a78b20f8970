/* Programs of our own: where they are, and copies of those that run in boxes. */
#include "kernel/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/fd.h"

/* nacre-init is a few kilobytes, nacre-files has libc in it; sanitizers make it larger. */
#define PROGRAM_SIZE_MAX (16U << 20)

int nc_program_find(
	const char *name, char ret_path[static NC_PROGRAM_PATH_SIZE], struct nacre_err *err)
{
	char own[4096];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

	if (length < 0)
		return nc_err_errno(err, -errno, "Find our own executable");
	own[length] = '\0';
	*strrchr(own, '/') = '\0';
	(void)snprintf(ret_path, NC_PROGRAM_PATH_SIZE, "%s/%s", own, name);
	if (access(ret_path, X_OK) < 0)
		(void)snprintf(ret_path, NC_PROGRAM_PATH_SIZE, NACRE_LIBEXECDIR "/%s", name);
	if (access(ret_path, X_OK) < 0)
		return nc_err_errno(err, -errno, "Find %s", ret_path);
	return 0;
}

int nc_program_open(const char *name, struct nacre_err *err)
{
	char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 64);
	int fd;

	if (length < 0)
		return nc_err_errno(err, -errno, "Find %s", name);
	path[length] = '\0';
	(void)snprintf(strrchr(path, '/') + 1, 64, "%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? nc_err_errno(err, -errno, "Open %s", path) : fd;
}

/* The whole file, without a way through our own memory. */
static int copy(int source_fd, int target_fd)
{
	size_t left = PROGRAM_SIZE_MAX;

	while (left > 0) {
		ssize_t n = sendfile(target_fd, source_fd, NULL, left);

		if (n == 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		left -= n < 0 ? 0 : (size_t)n;
	}
	return -EFBIG;
}

int nc_program_load(int source_fd, const char *name, struct nacre_err *err)
{
	cleanup_close int memory_fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (memory_fd < 0)
		return nc_err_errno(err, -errno, "Copy %s", name);
	r = copy(source_fd, memory_fd);
	if (r == 0 && fcntl(memory_fd, F_ADD_SEALS,
			      F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		r = -errno;
	return r < 0 ? nc_err_errno(err, r, "Copy %s", name) : take_fd(memory_fd);
}
