/* The programs of our own that run in boxes. */
#include "kernel/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"

/* nacre-init is a few kilobytes, nacre-files has libc in it; sanitizers make it larger. */
#define PROGRAM_SIZE_MAX (16U << 20)

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

int nc_program_load(int source_fd, const char *name, struct nacre_err *err)
{
	cleanup_free char *text = NULL;
	cleanup_close int memory_fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t size;
	int r;

	if (memory_fd < 0)
		return nc_err_errno(err, -errno, "Copy %s", name);
	r = nc_fd_read_all(source_fd, PROGRAM_SIZE_MAX, &text, &size);
	if (r == 0)
		r = nc_fd_write_all(memory_fd, text, size);
	if (r == 0 && fcntl(memory_fd, F_ADD_SEALS,
			      F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		r = -errno;
	return r < 0 ? nc_err_errno(err, r, "Copy %s", name) : take_fd(memory_fd);
}
