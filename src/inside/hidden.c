/*
 * What of the host's tree nobody may read.
 *
 * Root of a box is shown as the owner of what lies below its writable root, or it could change
 * nothing of that. As the owner it would read what the host has closed to everybody but root: a key
 * in /usr/local, of mode 0600. So each of these gets a whiteout in the layer above, before anything
 * foreign runs. What is put there later with such a mode is seen in boxes that are there already.
 */
#include "inside/hidden.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/limits.h"

/* A tree that is deeper is not shown at all. */
#define DEPTH_MAX 100

struct walk {
	int lower_fd, upper_fd;
	char path[NC_PATH_MAX + 1]; /* below both */
};

/* The directories above it, in the layer above; they look as those below them. */
static int make_way(struct walk *walk)
{
	struct stat status;

	for (char *slash = strchr(walk->path, '/'); slash; slash = strchr(slash + 1, '/')) {
		int r = 0;

		*slash = '\0';
		if (fstatat(walk->lower_fd, walk->path, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
			(mkdirat(walk->upper_fd, walk->path, 0700) < 0 && errno != EEXIST) ||
			fchmodat(walk->upper_fd, walk->path, status.st_mode & 07777U, 0) < 0)
			r = -errno;
		*slash = '/';
		if (r < 0)
			return r;
	}
	return 0;
}

/* What overlayfs takes for a name that is no more. */
static int hide(struct walk *walk)
{
	int r = make_way(walk);

	return r == 0 && mknodat(walk->upper_fd, walk->path, S_IFCHR, makedev(0, 0)) < 0 ? -errno
											 : r;
}

static int look_into(struct walk *walk, size_t length, int depth);

/* One name of a directory, whose path has that length. */
static int look_at(
	struct walk *walk, DIR *dir, const struct dirent *entry, size_t length, int depth)
{
	const int n = snprintf(walk->path + length, sizeof(walk->path) - length, "%s%s",
		length > 0 ? "/" : "", entry->d_name);
	struct stat status;

	if (n < 0 || length + (size_t)n >= sizeof(walk->path))
		return -ENAMETOOLONG;
	if (fstatat(dirfd(dir), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(status.st_mode))
		return (status.st_mode & (S_IROTH | S_IXOTH)) == (S_IROTH | S_IXOTH)
			       ? look_into(walk, length + (size_t)n, depth + 1)
			       : hide(walk);
	return status.st_mode & S_IROTH ? 0 : hide(walk);
}

static int look_into(struct walk *walk, size_t length, int depth)
{
	cleanup_closedir DIR *dir = NULL;
	const struct dirent *entry;
	int fd, r = 0;

	if (depth > DEPTH_MAX)
		return -ELOOP;
	fd = openat(walk->lower_fd, length > 0 ? walk->path : ".",
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return -errno;
	errno = 0;
	while (r == 0 && (entry = readdir(dir))) {
		if (entry->d_type != DT_LNK && strcmp(entry->d_name, ".") != 0 &&
			strcmp(entry->d_name, "..") != 0)
			r = look_at(walk, dir, entry, length, depth);
		errno = 0;
	}
	return r < 0 ? r : -errno;
}

int nc_hidden_cover(const char *lower, const char *upper)
{
	cleanup_close int lower_fd = open(lower, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_close int upper_fd = open(upper, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct walk walk = {.lower_fd = lower_fd, .upper_fd = upper_fd};

	return lower_fd < 0 || upper_fd < 0 ? -errno : look_into(&walk, 0, 0);
}
