/* The state directory. */
#include "base/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/text.h"

int nc_state_path(const char *dir, char *out, size_t size, struct nacre_err *err)
{
	const char *chosen = dir ? dir : getenv("NACRE_STATE");
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int n;

	if (chosen && (dir || chosen[0] == '/'))
		n = snprintf(out, size, "%s", chosen);
	else if (geteuid() == 0)
		n = snprintf(out, size, "/var/lib/nacre");
	else if (state && state[0] == '/')
		n = snprintf(out, size, "%s/nacre", state);
	else if (home && home[0] == '/')
		n = snprintf(out, size, "%s/.local/state/nacre", home);
	else
		return nc_err_set(
			err, -ENXIO, "HOME is not set, so the state has no place: set NACRE_STATE");
	if (n == 0 || (size_t)n >= size)
		return nc_err_set(err, -ENAMETOOLONG, "The path of the state directory");
	while (n > 1 && out[n - 1] == '/')
		out[--n] = '\0';
	return 0;
}

static int make_dirs(char *path, mode_t mode)
{
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		if (mkdir(path, mode) < 0 && errno != EEXIST)
			return -errno;
		*at = '/';
	}
	return mkdir(path, mode) < 0 && errno != EEXIST ? -errno : 0;
}

static int check_owner(int fd, const char *path, struct nacre_err *err)
{
	char quoted[NC_TEXT_QUOTED_MAX];
	struct stat status;

	if (fstat(fd, &status) < 0)
		return nc_err_errno(err, -errno, "Look at %s", nc_text_quote(quoted, path));
	if (status.st_uid == geteuid() && !(status.st_mode & (S_IWGRP | S_IWOTH)))
		return 0;
	return nc_err_set(err, -EPERM, "%s must belong to user %u, and nobody else may write to it",
		nc_text_quote(quoted, path), geteuid());
}

int nc_state_open(const char *dir, bool make, struct nacre_err *err)
{
	char path[NC_PATH_MAX + 1], quoted[NC_TEXT_QUOTED_MAX];
	cleanup_close int fd = -EBADF;
	int r = nc_state_path(dir, path, sizeof(path), err);

	if (r < 0)
		return r;
	r = make ? make_dirs(path, geteuid() == 0 ? 0755 : 0700) : 0;
	if (r == 0) {
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = fd < 0 ? -errno : 0;
	}
	if (r < 0)
		return nc_err_errno(
			err, r, "Open the state directory %s", nc_text_quote(quoted, path));
	r = check_owner(fd, path, err);
	return r < 0 ? r : take_fd(fd);
}
