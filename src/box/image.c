/* Directory images. */
#include "box/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "kernel/privilege.h"
#include "kernel/tree.h"

#define STAGE_PREFIX ".stage-"
#define STAGE_ROOT "root"

/* Each level holds a descriptor open, and real trees have a few dozen. */
#define MEASURE_DEPTH 256U

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static bool name_ok(const char *name)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t size = strlen(name);

	return size > 0 && size <= NC_IMAGE_NAME_MAX && name[0] != '.' && name[0] != '-' &&
	       strspn(name, allowed) == size;
}

int nc_image_name_check(const char *name, struct nacre_err *err)
{
	char quoted[NC_TEXT_QUOTED_MAX];

	if (nc_streq(name, NC_IMAGE_HOST))
		return nc_err_set(err, -EINVAL,
			"Image '" NC_IMAGE_HOST
			"' is this machine's own tree: choose another name");
	if (name_ok(name))
		return 0;
	return nc_err_set(err, -EINVAL,
		"Image %s: not a name: up to %u letters, digits, '.', '_' and '-', beginning with "
		"a "
		"letter, a digit or '_'",
		nc_text_quote(quoted, name), NC_IMAGE_NAME_MAX);
}

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
		return nc_err_set(err, -ENXIO, "HOME is not set, so images have no place");
	if (n >= (int)size)
		return nc_err_set(err, -ENAMETOOLONG, "The place of images");
	while (n > 1 && out[n - 1] == '/')
		out[--n] = '\0';
	return 0;
}

/*
 * With ranges: acts as the worker until act_as_self(). The store is the worker's to change, also
 * while we look at it, and root's hand could be led anywhere by that.
 */
static int act_as_worker(bool ranges)
{
	if (!ranges)
		return 0;
	return setegid(NC_WORKER_ID) < 0 || seteuid(NC_WORKER_ID) < 0 ? -errno : 0;
}

static void act_as_self(bool ranges)
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
 * Makes the state directory and all above it. They stay the caller's: beside the images, which are
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

/* <state>/images, made if it is to be. A descriptor with flags, or -errno. */
static int open_store(const char *state, bool make, bool ranges, int flags)
{
	/* the way there is the caller's to walk; the worker may have no right to */
	cleanup_close int state_fd = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd, r;

	if (state_fd < 0)
		return -errno;
	r = make ? make_dir(state_fd, "images", 0700, ranges) : 0;
	if (r == 0)
		r = act_as_worker(ranges);
	if (r < 0)
		return r;
	fd = openat(state_fd, "images", flags);
	act_as_self(ranges);
	return fd < 0 ? -errno : fd;
}

int nc_image_open(const char *name, struct nacre_err *err)
{
	cleanup_close int store_fd = -EBADF;
	char state[4096];
	int fd, r = nc_image_name_check(name, err);

	if (r == 0)
		r = state_path(state, sizeof(state), err);
	if (r < 0)
		return r;
	store_fd = open_store(state, false, false, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* to read: the spawner takes no mere path descriptor, which a worker has of everything */
	fd = store_fd < 0 ? store_fd
			  : openat(store_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (store_fd >= 0 && fd < 0)
		fd = -errno;
	if (fd == -ENOENT)
		return nc_err_set(err, -ENOENT,
			"There is no image '%s': nacre image import %s DIRECTORY|TAR", name, name);
	return fd < 0 ? nc_err_errno(err, fd, "Open image '%s'", name) : fd;
}

/* A store of somebody else could be changed by him, and not by the worker. */
static int check_owner(int store_fd, const char *state, bool ranges, struct nacre_err *err)
{
	uid_t wanted = ranges ? NC_WORKER_ID : geteuid();
	struct stat status;

	if (fstat(store_fd, &status) < 0)
		return nc_err_errno(err, -errno, "Look at '%s/images'", state);
	if (status.st_uid == wanted && !(status.st_mode & (S_IWGRP | S_IWOTH)))
		return 0;
	return nc_err_set(err, -EPERM,
		"'%s/images' must belong to user %u and to nobody else: chown -R %u:%u and chmod "
		"0700",
		state, wanted, wanted, wanted);
}

int nc_image_store_open(bool make, bool ranges, struct nacre_err *err)
{
	cleanup_close int fd = -EBADF;
	char state[4096];
	int r = state_path(state, sizeof(state), err);

	if (r < 0)
		return r;
	r = make ? make_state(state, ranges) : 0;
	if (r == 0)
		r = fd = open_store(state, make, ranges, DIR_FLAGS);
	if (r == -ENOENT && !make)
		return r;
	if (r < 0)
		return nc_err_errno(err, r, "Open '%s/images'%s", state,
			r == -EACCES && ranges ? ", which must be the worker's" : "");
	r = check_owner(fd, state, ranges, err);
	return r < 0 ? r : take_fd(fd);
}

/* -EAGAIN: a sweep was at it before we had locked it. */
static int make_stage(int store_fd, struct nc_image_stage *stage)
{
	char id[NC_ID_SIZE];
	struct stat status;
	int r = nc_id_new("st", id);

	if (r < 0)
		return r;
	(void)snprintf(stage->name, sizeof(stage->name), STAGE_PREFIX "%s", id);
	if (mkdirat(store_fd, stage->name, 0700) < 0)
		return -errno;
	stage->dir_fd = openat(store_fd, stage->name, DIR_FLAGS);
	if (stage->dir_fd >= 0 && flock(stage->dir_fd, LOCK_EX | LOCK_NB) == 0 &&
		fstat(stage->dir_fd, &status) == 0 && status.st_nlink > 0)
		return 0;
	stage->dir_fd = nc_fd_close(stage->dir_fd);
	return -EAGAIN;
}

int nc_image_stage_open(
	int store_fd, bool ranges, struct nc_image_stage *ret_stage, struct nacre_err *err)
{
	struct nc_image_stage stage = {.dir_fd = -EBADF};
	int r = act_as_worker(ranges);

	if (r == 0) {
		r = -EAGAIN;
		for (int i = 0; r == -EAGAIN && i < 8; i++)
			r = make_stage(store_fd, &stage);
		act_as_self(ranges);
	}
	if (r < 0)
		return nc_err_errno(err, r, "Make a staging directory among the images");
	*ret_stage = stage;
	return 0;
}

int nc_image_stage_root(const struct nc_image_stage *stage, bool ranges, struct nacre_err *err)
{
	cleanup_close int fd = -EBADF;
	int r = act_as_worker(ranges);

	if (r == 0) {
		if (mkdirat(stage->dir_fd, STAGE_ROOT, 0755) < 0)
			r = -errno;
		else
			r = fd = openat(stage->dir_fd, STAGE_ROOT, DIR_FLAGS | O_PATH);
		act_as_self(ranges);
	}
	return r < 0 ? nc_err_errno(err, r, "Make a staging directory among the images")
		     : take_fd(fd);
}

int nc_image_stage_close(int store_fd, bool ranges, struct nc_image_stage *stage)
{
	int r = act_as_worker(ranges);

	if (r < 0)
		return r;
	r = nc_tree_remove(store_fd, stage->name, UINT64_MAX);
	stage->dir_fd = nc_fd_close(stage->dir_fd);
	act_as_self(ranges);
	return r;
}

static int taken(const char *name, struct nacre_err *err)
{
	return nc_err_set(err, -EEXIST,
		"There is an image '%s' already: use another name, or --replace", name);
}

int nc_image_check_free(int store_fd, const char *name, struct nacre_err *err)
{
	struct stat status;

	return fstatat(store_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? taken(name, err) : 0;
}

int nc_image_commit(int store_fd, const struct nc_image_stage *stage, const char *name,
	bool replace, struct nacre_err *err)
{
	int r = renameat2(stage->dir_fd, STAGE_ROOT, store_fd, name, RENAME_NOREPLACE);

	if (r < 0 && errno == EEXIST && replace)
		r = renameat2(stage->dir_fd, STAGE_ROOT, store_fd, name, RENAME_EXCHANGE);
	if (r == 0)
		return 0;
	return errno == EEXIST ? taken(name, err)
			       : nc_err_errno(err, -errno, "Name the image '%s'", name);
}

int nc_image_remove(int store_fd, const char *name, struct nacre_err *err)
{
	struct nc_image_stage stage = {.dir_fd = -EBADF};
	int r = nc_image_name_check(name, err);

	if (r == 0)
		r = nc_image_stage_open(store_fd, false, &stage, err);
	if (r < 0)
		return r;
	/* first out of sight as a whole: a half-removed image must not be found */
	if (renameat(store_fd, name, stage.dir_fd, STAGE_ROOT) < 0)
		r = errno == ENOENT ? nc_err_set(err, -ENOENT, "There is no image '%s'", name)
				    : nc_err_errno(err, -errno, "Remove image '%s'", name);
	if (r < 0) {
		(void)nc_image_stage_close(store_fd, false, &stage); /* the first error counts */
		return r;
	}
	r = nc_image_stage_close(store_fd, false, &stage);
	return r < 0 ? nc_err_errno(err, r, "Remove all of image '%s'", name) : 0;
}

static void sweep_stage(int store_fd, const char *name)
{
	cleanup_close int fd = openat(store_fd, name, DIR_FLAGS);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		(void)nc_tree_remove(store_fd, name, UINT64_MAX);
}

/* A stream of its own: the descriptor's position is shared with nobody. */
static DIR *open_dir(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, DIR_FLAGS);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		(void)nc_fd_close(fd);
	return dir;
}

void nc_image_sweep(int store_fd)
{
	cleanup_closedir DIR *dir = open_dir(store_fd, ".");

	for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir))
		if (nc_text_after(entry->d_name, STAGE_PREFIX))
			sweep_stage(store_fd, entry->d_name);
}

/* What a directory takes on the disk. Best effort: it is a number for people. */
static uint64_t measure(int dir_fd, const char *name, unsigned int depth)
{
	cleanup_closedir DIR *dir = depth > 0 ? open_dir(dir_fd, name) : NULL;
	struct stat status;
	uint64_t bytes = 0;

	for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
		if (nc_streq(entry->d_name, "..") ||
			fstatat(dirfd(dir), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (!S_ISDIR(status.st_mode)) /* each of several names counts for its share */
			bytes += (uint64_t)status.st_blocks * 512 /
				 (status.st_nlink > 0 ? status.st_nlink : 1);
		else if (nc_streq(entry->d_name, "."))
			bytes += (uint64_t)status.st_blocks * 512;
		else
			bytes += measure(dirfd(dir), entry->d_name, depth - 1);
	}
	return bytes;
}

int nc_image_visit(int store_fd, int (*visit)(void *context, const struct nc_image_entry *entry),
	void *context)
{
	cleanup_closedir DIR *dir = open_dir(store_fd, ".");
	struct stat status;
	int r = 0;

	if (!dir)
		return -errno;
	for (struct dirent *entry = readdir(dir); r >= 0 && entry; entry = readdir(dir)) {
		struct nc_image_entry image = {.name = entry->d_name};

		if (!name_ok(entry->d_name) ||
			fstatat(store_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISDIR(status.st_mode))
			continue;
		image.bytes = measure(store_fd, entry->d_name, MEASURE_DEPTH);
		image.imported =
			status.st_ctim; /* the rename to its name; mtime is the archive's */
		r = visit(context, &image);
	}
	return r < 0 ? r : 0;
}
