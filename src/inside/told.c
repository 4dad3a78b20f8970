/*
 * What programs in a box are told of its limits.
 *
 * They look at control groups as of version 2, whichever version the host has: what is shown in
 * their place are four small files, whose contents come with the order. Java also wants a mount of
 * that type in the list of mounts, which no box has: a variable tells it (child.c).
 */
#include "inside/told.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/fd.h"
#include "inside/mounts.h"

#define PLACE "sys/fs/cgroup"

enum { MEMORY, CPU, PROCESSORS, MEMINFO };

static const char *const names[NC_TOLD_FILES] = {
	[MEMORY] = "memory.max",
	[CPU] = "cpu.max",
	[PROCESSORS] = "cpus", /* /sys/devices/system/cpu/online leads to it */
	[MEMINFO] = "meminfo",
};

int nc_told_make(int scratch_fd)
{
	cleanup_close int dir_fd = -EBADF, mount_fd = -EBADF;
	int r;

	if (mkdirat(scratch_fd, "told", 0755) < 0)
		return -errno;
	dir_fd = openat(scratch_fd, "told", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return -errno;
	for (size_t i = 0; i < NC_TOLD_FILES; i++)
		if (mknodat(dir_fd, names[i], S_IFREG | 0644, 0) < 0)
			return -errno;
	mount_fd = r = nc_mount_copy(dir_fd, "", false);
	if (r >= 0)
		r = nc_mount_restrict(mount_fd,
			NC_MOUNT_LOCKED_DOWN | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC, false);
	return r < 0 ? r : nc_mount_attach(mount_fd, AT_FDCWD, PLACE);
}

int nc_told_cover(void)
{
	if (mount(PLACE "/meminfo", "proc/meminfo", NULL, MS_BIND, NULL) < 0)
		return -errno;
	/* a kernel without control groups has no such file */
	return mount("sys/cgroups", "proc/cgroups", NULL, MS_BIND, NULL) < 0 && errno != ENOENT
		       ? -errno
		       : 0;
}

void nc_told_open(struct nc_told *told)
{
	/* nobody can write where the box has them: by a mount of our own that is attached nowhere
	 */
	struct mount_attr writable = {.attr_clr = MOUNT_ATTR_RDONLY};
	cleanup_close int dir_fd = nc_mount_copy(AT_FDCWD, "/" PLACE, false);
	struct stat status;

	told->n = 0;
	if (dir_fd < 0 || mount_setattr(dir_fd, "", AT_EMPTY_PATH, &writable, sizeof(writable)) < 0)
		return;
	for (; told->n < NC_TOLD_FILES; told->n++) {
		int fd = openat(dir_fd, names[told->n], O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

		if (fd < 0)
			return;
		told->fd[told->n] = fd;
		told->stale[told->n] = fstat(fd, &status) < 0 || status.st_size > 0;
	}
}

static unsigned int count_processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) < 0 ? 1 : (unsigned int)CPU_COUNT(&set);
}

unsigned int nc_told_fewer(uint64_t milli)
{
	uint64_t wanted = (milli + 999) / 1000;

	return wanted < count_processors() ? (unsigned int)wanted : 0;
}

int nc_told_write(const struct nc_told *told, const struct nc_box_limits *limits)
{
	char text[NC_TOLD_FILES][256];
	struct sysinfo host = {0};
	unsigned long long bytes = limits->memory_bytes, all;
	unsigned int fewer = nc_told_fewer(limits->cpu_milli),
		     processors = fewer > 0 ? fewer : count_processors();

	if (told->n < NC_TOLD_FILES)
		return 0;
	if (sysinfo(&host) < 0)
		return -errno;
	all = (unsigned long long)host.totalram * host.mem_unit;
	bytes = bytes == 0 || bytes > all ? all : bytes;
	(void)snprintf(text[MEMORY], sizeof(text[MEMORY]), "%llu\n", bytes);
	if (limits->cpu_milli > 0)
		(void)snprintf(text[CPU], sizeof(text[CPU]), "%llu 100000\n",
			(unsigned long long)limits->cpu_milli * 100);
	else
		(void)snprintf(text[CPU], sizeof(text[CPU]), "max 100000\n");
	(void)snprintf(text[PROCESSORS], sizeof(text[PROCESSORS]),
		processors > 1 ? "0-%u\n" : "0\n", processors - 1);
	(void)snprintf(text[MEMINFO], sizeof(text[MEMINFO]),
		"MemTotal:       %8llu kB\nMemFree:        %8llu kB\nMemAvailable:   %8llu kB\n"
		"Buffers:               0 kB\nCached:                0 kB\n"
		"SwapTotal:             0 kB\nSwapFree:              0 kB\n",
		bytes >> 10, bytes >> 10, bytes >> 10);
	for (size_t i = 0; i < NC_TOLD_FILES; i++) {
		ssize_t size = (ssize_t)strlen(text[i]);

		if (pwrite(told->fd[i], text[i], (size_t)size, 0) != size ||
			(told->stale[i] && ftruncate(told->fd[i], size) < 0))
			return errno == ENOSPC ? 0
					       : -errno; /* a disk of nothing: it does without */
	}
	return 0;
}
