/*
 * What a box is shown of the host's tree beside the usual.
 *
 * A mount can be cloned only in the mount namespace that it is in. Root's spawner is in the one of
 * its caller, and clones what the descriptor is. An ordinary user's spawner is in one of its own,
 * where the same thing is found again by its path (by_path), and must be the same.
 */
#include "kernel/bind.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/pidfd.h"

static int clone_by_path(int fd)
{
	char link[32], path[4096];
	cleanup_close int found_fd = -EBADF;
	struct stat wanted, found;
	ssize_t size;
	int tree_fd;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	size = readlink(link, path, sizeof(path) - 1);
	if (size < 0)
		return -errno;
	path[size] = '\0';
	found_fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (found_fd < 0 || fstat(found_fd, &found) < 0 || fstat(fd, &wanted) < 0)
		return -errno;
	if (found.st_dev != wanted.st_dev || found.st_ino != wanted.st_ino)
		return -ESTALE;
	tree_fd = open_tree(
		found_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH);
	return tree_fd < 0 ? -errno : tree_fd;
}

static int clone_tree(int fd, bool by_path)
{
	int tree_fd;

	if (by_path)
		return clone_by_path(fd);
	tree_fd = open_tree(
		fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH);
	return tree_fd < 0 ? -errno : tree_fd;
}

static int set_attributes(int tree_fd, struct mount_attr *attributes)
{
	return mount_setattr(tree_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, attributes,
		       sizeof(*attributes)) < 0
		       ? -errno
		       : 0;
}

int nc_bind_image(int image_fd, bool by_path)
{
	struct mount_attr attributes = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
	cleanup_close int fd = clone_tree(image_fd, by_path);
	int r = fd < 0 ? fd : set_attributes(fd, &attributes);

	return r < 0 ? r : take_fd(fd);
}

/* A user namespace that maps one id to another, and nothing else: what such a mount is told by. */
static int map_owner(const struct stat *source, const struct nc_slot *slot)
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
	(void)snprintf(
		uids, sizeof(uids), "%u %u 1", source->st_uid, slot->first_id + NC_SANDBOX_ID);
	(void)snprintf(
		gids, sizeof(gids), "%u %u 1", source->st_gid, slot->first_id + NC_SANDBOX_ID);
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

int nc_bind_tree(int source_fd, bool by_path, const char *target, bool writable,
	const struct nc_slot *slot, struct nacre_err *err)
{
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
						    (writable ? 0U : MOUNT_ATTR_RDONLY)};
	cleanup_close int fd = clone_tree(source_fd, by_path);
	cleanup_close int map_fd = -EBADF;
	struct stat source;
	int r;

	if (fd < 0 || fstat(fd, &source) < 0)
		return nc_err_errno(
			err, fd < 0 ? fd : -errno, "Bind to '%s': clone the mount", target);
	r = set_attributes(fd, &attributes);
	if (r < 0)
		return nc_err_errno(err, r, "Bind to '%s': set its attributes", target);
	if (!slot->held)
		return take_fd(fd);
	map_fd = map_owner(&source, slot);
	if (map_fd < 0)
		return nc_err_errno(err, map_fd, "Bind to '%s': map its owner", target);
	attributes = (struct mount_attr){
		.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (unsigned int)map_fd};
	r = set_attributes(fd, &attributes);
	/* read-only it is of use all the same, for what everybody may read */
	if (r < 0 && writable)
		return nc_err_errno(err, r,
			"Bind to '%s': this file system or kernel cannot map its owner to the "
			"box's user; bind it read-only, or another one",
			target);
	return take_fd(fd);
}
