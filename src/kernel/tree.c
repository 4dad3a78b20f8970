/*
 * Removing a directory tree that somebody hostile has made.
 *
 * Theory of operation: a walk with one directory open at a time, beside the root of the tree. An
 * entry is unlinked, or else it is a directory with something in it, which is entered. The way back
 * is "..", and it is taken only if it leads to the directory that we came from, by device and
 * inode.
 *
 * A directory is read again until one pass through it has removed nothing: positions in a directory
 * that is changing are not reliable in every file system. What cannot be removed is passed over, so
 * the last pass ends, and with it the walk.
 *
 * What must be remembered per level is bounded by LEVELS: a directory below that is moved up to the
 * root of the tree, where the next pass through the root finds it. That needs room in the root on
 * the disk, so it is not done for every level.
 */
#include "kernel/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/path.h"

/* Few enough that even a short deadline leaves time to come to the end of them and do something. */
#define LEVELS 256

/* Small, since what is left in it is read again when the walk comes back from a directory. */
#define ENTRIES_SIZE 4096

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452 /* Linux 6.6, the same number everywhere */
#endif

/* A directory between the root of the tree and where the walk is. */
struct level {
	dev_t dev;
	ino_t ino;
	off_t next;   /* where reading goes on after the directory below has been dealt with */
	bool changed; /* this pass has removed something */
	char name[NC_NAME_MAX + 1]; /* in the level above */
};

struct walk {
	struct level *levels; /* LEVELS of them */
	size_t depth;	      /* of the directory that is open; the root of the tree has 0 */
	int root_fd;
	int fd;
	uint64_t deadline_ns;
	int error; /* the first */
};

static void walk_done(struct walk *walk)
{
	nc_freep(&walk->levels);
	walk->root_fd = nc_fd_close(walk->root_fd);
	walk->fd = nc_fd_close(walk->fd);
}

static void note(struct walk *walk, int error)
{
	if (walk->error == 0)
		walk->error = error;
}

/* ---- single entries ---- */

/* Takes off what keeps even the owner from changing a file. Failure shows when it is removed. */
static void clear_flags(int fd)
{
	int flags;

	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0 || !(flags & (FS_IMMUTABLE_FL | FS_APPEND_FL)))
		return;
	flags &= ~(FS_IMMUTABLE_FL | FS_APPEND_FL);
	(void)ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

static void clear_flags_at(int dir_fd, const char *name)
{
	cleanup_close int fd = -EBADF;
	struct stat status;

	/* only these have such flags, and opening a device can set it going */
	if (fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
		(!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)))
		return;
	fd = nc_path_open(dir_fd, name, O_RDONLY | O_NOFOLLOW, 0);
	if (fd >= 0)
		clear_flags(fd);
}

static int unlink_any(int dir_fd, const char *name)
{
	if (unlinkat(dir_fd, name, 0) == 0)
		return 0;
	if (errno == EISDIR && unlinkat(dir_fd, name, AT_REMOVEDIR) == 0)
		return 0;
	return -errno;
}

/* 0: it is removed. -ENOTEMPTY: a directory, and there is something in it. */
static int remove_entry(int dir_fd, const char *name)
{
	int r = unlink_any(dir_fd, name);

	if (r == -EPERM) {
		clear_flags_at(dir_fd, name);
		r = unlink_any(dir_fd, name);
	}
	return r == -EEXIST ? -ENOTEMPTY : r; /* POSIX leaves file systems the choice */
}

/*
 * Gives this user the rights that he took from himself. By a path descriptor, which needs no right
 * to the directory and cannot be a link; the name could have become one.
 */
static void make_accessible(int dir_fd, const char *name)
{
	cleanup_close int fd = nc_path_open(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	char path[32];

	if (fd < 0 || syscall(SYS_fchmodat2, fd, "", 0700, AT_EMPTY_PATH) == 0 || errno != ENOSYS)
		return;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	(void)chmod(path, 0700); /* failure shows when it is opened */
}

static int open_dir(int dir_fd, const char *name, struct stat *ret_status)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
	cleanup_close int fd = nc_path_open(dir_fd, name, flags, 0);

	if (fd == -EACCES) {
		make_accessible(dir_fd, name);
		fd = nc_path_open(dir_fd, name, flags, 0);
	}
	if (fd < 0)
		return fd;
	if (fstat(fd, ret_status) < 0)
		return -errno;
	clear_flags(fd);
	if ((ret_status->st_mode & S_IRWXU) != S_IRWXU)
		(void)fchmod(fd, 0700); /* another's directory: failure shows when it is changed */
	return take_fd(fd);
}

/* ---- the walk ---- */

static void set_level(struct walk *walk, const char *name, const struct stat *status)
{
	struct level *level = &walk->levels[walk->depth];

	level->dev = status->st_dev;
	level->ino = status->st_ino;
	level->next = 0;
	level->changed = false;
	(void)snprintf(level->name, sizeof(level->name), "%s", name);
}

/* Moves a directory that is too deep up to the root of the tree, under a name that is free. */
static int move_up(struct walk *walk, const char *name)
{
	char fresh[NC_ID_SIZE];
	int r = nc_id_new(".n", fresh);

	if (r < 0)
		return r;
	if (renameat(walk->fd, name, walk->root_fd, fresh) < 0)
		return -errno;
	walk->levels[walk->depth].changed = true;
	walk->levels[0].changed = true; /* so there is another pass, which finds it */
	return 0;
}

/* Goes into a directory, from where reading goes on at next. 1 if it did, 0 if it was moved. */
static int enter(struct walk *walk, const char *name, off_t next)
{
	struct stat status;
	int fd = open_dir(walk->fd, name, &status);

	if (fd < 0)
		return fd;
	if (walk->depth + 1 == LEVELS) {
		/* opened all the same: a directory is moved by who may write it */
		(void)nc_fd_close(fd);
		return move_up(walk, name);
	}
	walk->levels[walk->depth].next = next;
	walk->depth++;
	set_level(walk, name, &status);
	(void)nc_fd_close(walk->fd);
	walk->fd = fd;
	return 1;
}

/* Goes back to the directory above, removes the one that it comes from, and is at its place. */
static int leave(struct walk *walk)
{
	const struct level *from = &walk->levels[walk->depth];
	struct level *to = &walk->levels[walk->depth - 1];
	cleanup_close int fd = openat(walk->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	/* somebody has moved the directory that we are in: above it may be anything */
	if (status.st_dev != to->dev || status.st_ino != to->ino)
		return -ESTALE;
	if (unlinkat(fd, from->name, AT_REMOVEDIR) == 0)
		to->changed = true;
	else
		note(walk, -errno);
	if (lseek(fd, to->next, SEEK_SET) < 0)
		return -errno;
	(void)nc_fd_close(walk->fd);
	walk->fd = take_fd(fd);
	walk->depth--;
	return 0;
}

static bool is_dots(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* Removes some entries: all that are in the buffer, or those in front of a directory it enters. */
static int handle_entries(struct walk *walk, const char *entries, size_t size)
{
	for (size_t at = 0; at < size;) {
		const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
		int r;

		at += entry->d_reclen;
		if (is_dots(entry->d_name))
			continue;
		if (nc_clock_ns() >= walk->deadline_ns)
			return -ETIMEDOUT;
		r = remove_entry(walk->fd, entry->d_name);
		if (r == 0)
			walk->levels[walk->depth].changed = true;
		if (r == -ENOTEMPTY)
			r = enter(walk, entry->d_name, (off_t)entry->d_off);
		if (r > 0)
			return 0;
		/* what is not there is no error, and no change either, or there would be no end */
		if (r < 0 && r != -ENOENT)
			note(walk, r);
	}
	return 0;
}

/*
 * A directory from its beginning. By a new descriptor: one that has been set to the end, as it is
 * after the last subdirectory, reads nothing after lseek(0) in ext4 (Linux 6.18).
 */
static int reopen(struct walk *walk)
{
	int fd = openat(walk->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	(void)nc_fd_close(walk->fd);
	walk->fd = fd;
	return 0;
}

/* At the end of a directory: reads it again, or leaves it. 1: that was the root. */
static int end_pass(struct walk *walk, int error)
{
	struct level *level = &walk->levels[walk->depth];

	if (error < 0)
		note(walk, error);
	if (error < 0 || !level->changed)
		return walk->depth == 0 ? 1 : leave(walk);
	level->changed = false;
	return reopen(walk);
}

/* Until the root of the tree holds nothing more that can be removed. */
static int walk_all(struct walk *walk)
{
	char entries[ENTRIES_SIZE] __attribute__((aligned(__alignof__(struct dirent64))));
	int r = 0;

	while (r == 0) {
		ssize_t size = getdents64(walk->fd, entries, sizeof(entries));

		if (size > 0)
			r = handle_entries(walk, entries, (size_t)size);
		else
			r = end_pass(walk, size < 0 ? -errno : 0);
	}
	return r < 0 ? r : 0;
}

static int remove_below(int dir_fd, const char *name, uint64_t deadline_ns)
{
	nc_cleanup(walk_done) struct walk walk = {
		.root_fd = -EBADF, .fd = -EBADF, .deadline_ns = deadline_ns};
	struct stat status;
	int r;

	walk.root_fd = open_dir(dir_fd, name, &status);
	if (walk.root_fd < 0)
		return walk.root_fd;
	walk.fd = nc_fd_dup(walk.root_fd);
	if (walk.fd < 0)
		return walk.fd;
	walk.levels = malloc(LEVELS * sizeof(*walk.levels));
	if (!walk.levels)
		return -ENOMEM;
	set_level(&walk, name, &status);
	r = walk_all(&walk);
	return r < 0 ? r : walk.error;
}

int nc_tree_remove(int dir_fd, const char *name, uint64_t deadline_ns)
{
	int r;

	if (!nc_path_is_plain(name) || strchr(name, '/'))
		return -EINVAL;
	if (nc_clock_ns() >= deadline_ns)
		return -ETIMEDOUT;
	r = remove_entry(dir_fd, name);
	if (r == -ENOTEMPTY) {
		r = remove_below(dir_fd, name, deadline_ns);
		if (r == 0)
			r = remove_entry(dir_fd, name);
	}
	return r == -ENOENT ? 0 : r;
}
