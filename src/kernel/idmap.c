/* Mounts that show the files of one owner as another's. */
#include "kernel/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/pidfd.h"

/* A user namespace that maps one id to another, and nothing else: what such a mount is told by. */
static int open_map(const struct stat *source, unsigned int id)
{
	cleanup_process int pidfd = -EBADF;
	char path[64], uids[64], gids[64];
	struct clone_args arguments = {.flags = CLONE_NEWUSER | CLONE_PIDFD,
		.pidfd = (uintptr_t)&pidfd,
		.exit_signal = SIGCHLD};
	const pid_t parent = getpid();
	long pid = syscall(SYS_clone3, &arguments, sizeof(arguments));
	int dir_fd, fd, r;

	if (pid < 0)
		return -errno;
	if (pid == 0) { /* it only has to be there; whoever made it ends it, or takes it along */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
			_exit(1);
		for (;;)
			(void)pause();
	}
	(void)snprintf(path, sizeof(path), "/proc/%ld", pid);
	(void)snprintf(uids, sizeof(uids), "%u %u 1", source->st_uid, id);
	(void)snprintf(gids, sizeof(gids), "%u %u 1", source->st_gid, id);
	dir_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return -errno;
	r = nc_fd_write_control(dir_fd, "gid_map", gids);
	if (r == 0)
		r = nc_fd_write_control(dir_fd, "uid_map", uids);
	fd = r < 0 ? r : openat(dir_fd, "ns/user", O_RDONLY | O_CLOEXEC);
	if (r == 0 && fd < 0)
		fd = -errno;
	(void)close(dir_fd);
	return fd;
}

int nc_idmap_mount(int mount_fd, const struct stat *source, unsigned int id)
{
	cleanup_close int map_fd = open_map(source, id);
	struct mount_attr attributes = {
		.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (unsigned int)map_fd};

	if (map_fd < 0)
		return map_fd;
	return mount_setattr(mount_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes,
		       sizeof(attributes)) < 0
		       ? -errno
		       : 0;
}

int nc_idmap_lower(int source_fd, unsigned int id)
{
	struct mount_attr attributes = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
	cleanup_close int fd =
		open_tree(source_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	struct stat source;
	int r;

	if (fd < 0 || fstat(fd, &source) < 0 ||
		mount_setattr(fd, "", AT_EMPTY_PATH, &attributes, sizeof(attributes)) < 0)
		return -errno;
	r = nc_idmap_mount(fd, &source, id);
	return r < 0 ? r : take_fd(fd);
}
