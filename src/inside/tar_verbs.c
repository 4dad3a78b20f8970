/* What nacre-files does with archives. */
#include "inside/tar_verbs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/tarball.h"
#include "base/text.h"
#include "inside/tree_verbs.h"
#include "kernel/tree.h"

#define REMOVE_NS (60 * NC_NS_PER_S)
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

/* Where users of a container box can write, and files stay. */
static const char *const places[] = {"workspace", "tmp", NULL};

static int pack(int base_fd, const char *const *names, const char *leave_out, const char *max,
	struct nacre_err *err)
{
	struct nc_tarball_pack pack = {.base_fd = base_fd, .names = names, .leave_out = leave_out};

	if (nc_parse_u64(max, 0, INT64_MAX, &pack.max) < 0)
		return -EINVAL;
	return nc_tarball_pack(&pack, STDOUT_FILENO, err);
}

int nc_verb_pack(char **argv, struct nacre_err *err)
{
	const char *names[] = {".", NULL};
	cleanup_close int base_fd = open(argv[1], DIR_FLAGS);
	char *slash = strrchr(argv[1], '/');

	if (base_fd < 0 && (errno != ENOTDIR || !slash || !slash[1]))
		return -errno;
	if (base_fd < 0) { /* a file, in its directory */
		names[0] = slash + 1;
		*slash = '\0';
		base_fd = open(*argv[1] ? argv[1] : "/", DIR_FLAGS);
	}
	return base_fd < 0 ? -errno : pack(base_fd, names, NULL, argv[0], err);
}

int nc_verb_unpack(char **argv, struct nacre_err *err)
{
	int r = nc_verb_make(argv, err);
	cleanup_close int base_fd = r < 0 ? -EBADF : open(argv[0], DIR_FLAGS);

	if (r < 0)
		return r;
	return base_fd < 0 ? -errno : nc_tarball_unpack(base_fd, STDIN_FILENO, NULL, err);
}

int nc_verb_save(char **argv, struct nacre_err *err)
{
	char leave_out[NC_PATH_MAX + 16];
	cleanup_close int base_fd = open("/", DIR_FLAGS);

	(void)snprintf(leave_out, sizeof(leave_out), "%s/%s", places[0], argv[1]);
	return base_fd < 0 ? -errno : pack(base_fd, places, leave_out, argv[0], err);
}

/* Removes everything in a directory but what is called so; NULL: everything. */
static int clear(const char *path, const char *leave_out)
{
	cleanup_closedir DIR *dir = opendir(path);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && (errno = 0, entry = readdir(dir))) {
		if (nc_streq(entry->d_name, ".") || nc_streq(entry->d_name, "..") ||
			(leave_out && nc_streq(entry->d_name, leave_out)))
			continue;
		r = nc_tree_remove(dirfd(dir), entry->d_name, nc_clock_ns() + REMOVE_NS);
	}
	return r < 0 ? r : -errno;
}

int nc_verb_restore(char **argv, struct nacre_err *err)
{
	cleanup_close int base_fd = open("/", DIR_FLAGS);
	int r = base_fd < 0 ? -errno : 0;

	for (size_t i = 0; r == 0 && places[i]; i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "/%s", places[i]);
		r = clear(path, i == 0 ? argv[0] : NULL);
	}
	return r < 0 ? r : nc_tarball_unpack(base_fd, STDIN_FILENO, NULL, err);
}
