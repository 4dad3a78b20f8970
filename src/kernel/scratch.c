/* Where process boxes work. */
#include "kernel/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/pidfd.h"
#include "kernel/caps.h"
#include "kernel/privilege.h"
#include "kernel/tree.h"

/* Who clears up has this long; what is left then is for the next sweep. */
#define CLEAN_NS (60 * NC_NS_PER_S)

static const char *const places[] = {"workspace", "tmp"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Root's are where nobody else may write; not in /run, from where programs often may not be run.
 * Users' are named by the host's number for them, which their user namespace shows as another.
 */
static void above_path(const struct nc_scratch *scratch, char *out, size_t size)
{
	if (scratch->ranges)
		(void)snprintf(out, size, "/var/lib/nacre-boxes");
	else
		(void)snprintf(out, size, "/tmp/nacre-%u", scratch->user);
}

void nc_scratch_path(const struct nc_scratch *scratch, char out[NC_BOX_DIR_MAX + 1])
{
	char above[64];

	above_path(scratch, above, sizeof(above));
	(void)snprintf(out, NC_BOX_DIR_MAX + 1, "%s/%s", above, scratch->id);
}

/* Everybody may write to /tmp: what is there under our name must be ours alone. */
static int open_above(struct nc_scratch *scratch)
{
	char path[64];
	struct stat status;
	cleanup_close int fd = -EBADF;

	above_path(scratch, path, sizeof(path));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	if (status.st_uid != geteuid() || (status.st_mode & 022) != 0)
		return -EPERM;
	scratch->above_fd = take_fd(fd);
	return 0;
}

/* Our own directory, with its lock. -ENOENT: the last one to leave has just taken all away. */
static int open_own(struct nc_scratch *scratch)
{
	char path[64];
	int r;

	above_path(scratch, path, sizeof(path));
	if (mkdir(path, 0711) < 0 && errno != EEXIST)
		return -errno;
	scratch->above_fd = nc_fd_close(scratch->above_fd);
	r = open_above(scratch);
	if (r < 0)
		return r;
	if (mkdirat(scratch->above_fd, scratch->id, 0711) < 0)
		return -errno;
	scratch->fd = openat(
		scratch->above_fd, scratch->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return scratch->fd < 0 || flock(scratch->fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
}

static int open_box(const struct nc_scratch *scratch, const char *name)
{
	int fd = openat(scratch->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void box_name(uint64_t id, char out[32])
{
	(void)snprintf(out, 32, "%llu", (unsigned long long)id);
}

int nc_scratch_make(
	struct nc_scratch *scratch, uint64_t id, unsigned int owner, struct nacre_err *err)
{
	cleanup_close int fd = -EBADF;
	char name[32], path[NC_BOX_DIR_MAX + 1];
	int r = scratch->fd >= 0 ? 0 : open_own(scratch);

	for (int i = 0; r == -ENOENT && i < 3; i++)
		r = open_own(scratch);
	box_name(id, name);
	if (r == 0 && mkdirat(scratch->fd, name, 0700) < 0)
		r = -errno;
	if (r == 0)
		r = fd = open_box(scratch, name);
	for (size_t i = 0; r >= 0 && i < COUNT(places); i++)
		if (mkdirat(fd, places[i], 0700) < 0 ||
			(owner > 0 &&
				fchownat(fd, places[i], owner, owner, AT_SYMLINK_NOFOLLOW) < 0))
			r = -errno;
	if (r >= 0 && owner > 0 && fchown(fd, owner, owner) < 0)
		r = -errno;
	if (r < 0) {
		nc_scratch_path(scratch, path);
		return nc_err_errno(err, r, "Make the box's directories in %s", path);
	}
	return 0;
}

/* As their owner: none of what it meets can make it touch what is another's. */
_Noreturn static void clean(int dir_fd)
{
	uint64_t deadline = nc_clock_ns() + CLEAN_NS;
	struct stat status;

	if (fstat(dir_fd, &status) < 0 ||
		(status.st_uid != geteuid() &&
			(setresgid(status.st_gid, status.st_gid, status.st_gid) < 0 ||
				setresuid(status.st_uid, status.st_uid, status.st_uid) < 0 ||
				nc_caps_set(0) < 0)))
		nc_child_exit(1);
	for (size_t i = 0; i < COUNT(places); i++)
		(void)nc_tree_remove(dir_fd, places[i], deadline); /* seen by whoever removes it */
	nc_child_exit(0);
}

int nc_scratch_clean(const struct nc_scratch *scratch, uint64_t id)
{
	char name[32];
	int dir_fd, pidfd, r;

	box_name(id, name);
	dir_fd = open_box(scratch, name);
	if (dir_fd < 0)
		return dir_fd;
	r = nc_fork(&pidfd);
	if (r == 0)
		clean(dir_fd);
	(void)close(dir_fd);
	return r < 0 ? r : pidfd;
}

int nc_scratch_remove(const struct nc_scratch *scratch, uint64_t id)
{
	char name[32];

	box_name(id, name);
	return unlinkat(scratch->fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* The boxes of a spawner that is gone: its lock is ours now. */
static void sweep_spawner(int fd)
{
	int list_fd = nc_fd_dup(fd);
	cleanup_closedir DIR *dir = list_fd < 0 ? NULL : fdopendir(list_fd);
	struct nc_scratch dead = {.fd = fd};

	for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
		uint64_t id = strtoull(entry->d_name, NULL, 10);
		siginfo_t info;
		int cleaner_fd;

		if (entry->d_name[0] == '.')
			continue;
		cleaner_fd = nc_scratch_clean(&dead, id);
		if (cleaner_fd < 0)
			continue;
		(void)nc_pidfd_wait(cleaner_fd, nc_clock_ns() + CLEAN_NS, &info);
		(void)nc_pidfd_end(cleaner_fd);
		(void)nc_scratch_remove(&dead, id);
	}
}

void nc_scratch_sweep(struct nc_scratch *scratch)
{
	cleanup_closedir DIR *dir = NULL;
	int fd;

	if (!scratch->ranges)
		scratch->user = nc_privilege_outer_id();
	fd = open_above(scratch) < 0 ? -EBADF : nc_fd_dup(scratch->above_fd);
	dir = fd < 0 ? NULL : fdopendir(fd);
	for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
		cleanup_close int dead_fd = -EBADF;

		if (strncmp(entry->d_name, "sp_", 3) != 0)
			continue;
		dead_fd = openat(scratch->above_fd, entry->d_name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (dead_fd < 0 || flock(dead_fd, LOCK_EX | LOCK_NB) < 0)
			continue;
		sweep_spawner(dead_fd);
		(void)unlinkat(scratch->above_fd, entry->d_name, AT_REMOVEDIR);
	}
	scratch->above_fd = nc_fd_close(scratch->above_fd);
}

void nc_scratch_close(struct nc_scratch *scratch)
{
	char path[64];

	above_path(scratch, path, sizeof(path));
	/* each stays if there is anything in it */
	if (scratch->fd >= 0 && unlinkat(scratch->above_fd, scratch->id, AT_REMOVEDIR) == 0)
		(void)rmdir(path);
	scratch->fd = nc_fd_close(scratch->fd);
	scratch->above_fd = nc_fd_close(scratch->above_fd);
}
