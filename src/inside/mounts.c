/* Steps on mounts that are not attached anywhere yet. */
#include "inside/mounts.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fd.h"

int nc_mount_new(const char *type, const char *const *options, uint64_t attributes)
{
	cleanup_close int context_fd = fsopen(type, FSOPEN_CLOEXEC);
	int fd;

	if (context_fd < 0)
		return -errno;
	for (; *options; options += 2)
		if (fsconfig(context_fd, options[1] ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG,
			    options[0], options[1], 0) < 0)
			return -errno;
	if (fsconfig(context_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = fsmount(context_fd, FSMOUNT_CLOEXEC, (unsigned int)attributes);
	return fd < 0 ? -errno : fd;
}

int nc_mount_copy(int at_fd, const char *path, bool recursive)
{
	int fd = open_tree(at_fd, path,
		OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH |
			(recursive ? AT_RECURSIVE : 0U));

	return fd < 0 ? -errno : fd;
}

int nc_mount_restrict(int mount_fd, uint64_t attributes, bool recursive)
{
	struct mount_attr change = {.attr_set = attributes};
	unsigned int flags = AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0U);

	return mount_setattr(mount_fd, "", flags, &change, sizeof(change)) < 0 ? -errno : 0;
}

int nc_mount_attach(int mount_fd, int at_fd, const char *path)
{
	return move_mount(mount_fd, "", at_fd, path, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}
