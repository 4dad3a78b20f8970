/*
 * What a box is shown of the host's tree beside the usual.
 *
 * A mount can be cloned only in the mount namespace that it is in. Root's spawner is in the one of
 * its caller, and clones what the descriptor is. An ordinary user's spawner is in one of its own,
 * where the same thing is found again by its path (by_path), and must be the same.
 */
#include "kernel/bind.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/idmap.h"
#include "kernel/program.h"

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

int nc_bind_program(const char *name, bool by_path, struct nacre_err *err)
{
	cleanup_close int fd = nc_program_open(name, err);
	int r = fd < 0 ? fd : nc_bind_image(fd, by_path);

	return r < 0 && fd >= 0 ? nc_err_errno(err, r, "Show %s to a box", name) : r;
}

int nc_bind_tree(int source_fd, bool by_path, const char *target, bool writable,
	const struct nc_slot *slot, struct nacre_err *err)
{
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
						    (writable ? 0U : MOUNT_ATTR_RDONLY)};
	cleanup_close int fd = clone_tree(source_fd, by_path);
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
	r = nc_idmap_mount(fd, &source, slot->first_id + NC_SANDBOX_ID);
	/* read-only it is of use all the same, for what everybody may read */
	if (r < 0 && writable)
		return nc_err_errno(err, r,
			"Bind to '%s': this file system or kernel cannot map its owner to the "
			"box's user; bind it read-only, or another one",
			target);
	return take_fd(fd);
}
