/* Where Nacre keeps what its worker may change. */
#include "box/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"
#include "kernel/privilege.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* The state directory, as text. */
static int state_path(char *out, size_t size, struct nacre_err *err)
{
	const char *state = getenv("NACRE_STATE"), *data = getenv("XDG_DATA_HOME");
	const char *home = getenv("HOME");
	int n;

	if (state && state[0] == '/')
		n = snprintf(out, size, "%s", state);
	else if (geteuid() == 0)
		n = snprintf(out, size, "/var/lib/nacre");
	else if (data && data[0] == '/')
		n = snprintf(out, size, "%s/nacre", data);
	else if (home && home[0] == '/')
		n = snprintf(out, size, "%s/.local/share/nacre", home);
	else
		return nc_err_set(
			err, -ENXIO, "HOME is not set, so there is no place for what Nacre keeps");
	if (n >= (int)size)
		return nc_err_set(err, -ENAMETOOLONG, "The place of what Nacre keeps");
	while (n > 1 && out[n - 1] == '/')
		out[--n] = '\0';
	return 0;
}

/*
 * With ranges: acts as the worker until nc_store_act_as_self(). The store is the worker's to
 * change, also while we look at it, and root's hand could be led anywhere by that.
 */
int nc_store_act_as_worker(bool ranges)
{
	if (!ranges)
		return 0;
	return setegid(NC_WORKER_ID) < 0 || seteuid(NC_WORKER_ID) < 0 ? -errno : 0;
}

void nc_store_act_as_self(bool ranges)
{
	int saved = errno;

	/* back to what we still are: neither can fail, and to go on in between would be worse */
	if (ranges && (seteuid(0) < 0 || setegid(getgid()) < 0))
		abort();
	errno = saved;
}

/*
 * Makes a directory that appears at once with its mode and its owner: another import may be waiting
 * for it. 0 too if there is one.
 */
static int make_dir(int above_fd, const char *name, mode_t mode, bool is_workers)
{
	cleanup_close int fd = -EBADF;
	char fresh[NC_ID_SIZE];
	int r = nc_id_new("st", fresh);

	if (r < 0 || faccessat(above_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return r;
	if (mkdirat(above_fd, fresh, 0700) < 0)
		return -errno;
	fd = openat(above_fd, fresh, DIR_FLAGS);
	if (fd < 0 || (is_workers && fchown(fd, NC_WORKER_ID, NC_WORKER_ID) < 0) ||
		fchmod(fd, mode) < 0 ||
		renameat2(above_fd, fresh, above_fd, name, RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(above_fd, fresh, AT_REMOVEDIR); /* empty, and ours */
	return r == -EEXIST ? 0 : r;
}

/*
 * Makes the state directory and all above it. They stay the caller's: beside the stores, which are
 * the worker's, there is what the worker must not touch.
 */
static int make_state(char *path, bool ranges)
{
	const mode_t mode = ranges ? 0755 : 0700;
	cleanup_close int above_fd = -EBADF;
	char *name = strrchr(path, '/');

	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		if (mkdir(path, mode) < 0 && errno != EEXIST)
			return -errno;
		*at = '/';
	}
	*name = '\0';
	above_fd = open(name == path ? "/" : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*name = '/';
	return above_fd < 0 ? -errno : make_dir(above_fd, name + 1, mode, false);
}

/* <state>/name, made if it is to be. A descriptor with flags, or -errno. */
static int open_store(const char *state, const char *name, bool make, bool ranges, int flags)
{
	/* the way there is the caller's to walk; the worker may have no right to */
	cleanup_close int state_fd = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_close int store_fd = -EBADF;
	int fd, r;

	if (state_fd < 0)
		return -errno;
	r = make ? make_dir(state_fd, name, 0700, ranges) : 0;
	if (r == 0) {
		store_fd = openat(state_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = store_fd < 0 ? -errno : nc_store_act_as_worker(ranges);
	}
	if (r < 0)
		return r;
	fd = openat(store_fd, ".", flags);
	nc_store_act_as_self(ranges);
	return fd < 0 ? -errno : fd;
}

/* A store of somebody else could be changed by him, and not by the worker. */
static int check_owner(
	int store_fd, const char *state, const char *name, bool ranges, struct nacre_err *err)
{
	uid_t wanted = ranges ? NC_WORKER_ID : geteuid();
	struct stat status;

	if (fstat(store_fd, &status) < 0)
		return nc_err_errno(err, -errno, "Look at '%s/%s'", state, name);
	if (status.st_uid == wanted && !(status.st_mode & (S_IWGRP | S_IWOTH)))
		return 0;
	return nc_err_set(err, -EPERM,
		"'%s/%s' must belong to user %u and to nobody else: chown -R %u:%u and chmod "
		"0700",
		state, name, wanted, wanted, wanted);
}

int nc_store_open(const char *name, bool make, bool ranges, struct nacre_err *err)
{
	cleanup_close int fd = -EBADF;
	char state[4096];
	int r = state_path(state, sizeof(state), err);

	if (r < 0)
		return r;
	r = make ? make_state(state, ranges) : 0;
	if (r == 0)
		r = fd = open_store(state, name, make, ranges, DIR_FLAGS);
	if (r == -ENOENT && !make)
		return r;
	if (r < 0)
		return nc_err_errno(err, r, "Open '%s/%s'%s", state, name,
			r == -EACCES && ranges ? ", which must be the worker's" : "");
	r = check_owner(fd, state, name, ranges, err);
	return r < 0 ? r : take_fd(fd);
}

int nc_store_find(const char *name, struct nacre_err *err)
{
	char state[4096];
	int r = state_path(state, sizeof(state), err);

	return r < 0 ? r
		     : open_store(state, name, false, false,
			       O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}
