/* Staging directories. */
#include "box/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "box/store.h"
#include "kernel/tree.h"

#define STAGE_PREFIX ".stage-"

/* Each level holds a descriptor open, and real trees have a few dozen. */
#define MEASURE_DEPTH 256U

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* -EAGAIN: a sweep was at it before we had locked it. */
static int make_stage(int store_fd, struct nc_staging *stage)
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

int nc_staging_open(int store_fd, bool ranges, struct nc_staging *ret_stage, struct nacre_err *err)
{
	struct nc_staging stage = {.dir_fd = -EBADF};
	int r = nc_store_act_as_worker(ranges);

	if (r == 0) {
		r = -EAGAIN;
		for (int i = 0; r == -EAGAIN && i < 8; i++)
			r = make_stage(store_fd, &stage);
		nc_store_act_as_self(ranges);
	}
	if (r < 0)
		return nc_err_errno(err, r, "Make a staging directory");
	*ret_stage = stage;
	return 0;
}

int nc_staging_root(const struct nc_staging *stage, bool ranges, struct nacre_err *err)
{
	cleanup_close int fd = -EBADF;
	int r = nc_store_act_as_worker(ranges);

	if (r == 0) {
		if (mkdirat(stage->dir_fd, NC_STAGING_ROOT, 0755) < 0)
			r = -errno;
		else
			r = fd = openat(stage->dir_fd, NC_STAGING_ROOT, DIR_FLAGS | O_PATH);
		nc_store_act_as_self(ranges);
	}
	return r < 0 ? nc_err_errno(err, r, "Make a staging directory") : take_fd(fd);
}

int nc_staging_close(int store_fd, bool ranges, struct nc_staging *stage)
{
	int r = nc_store_act_as_worker(ranges);

	if (r < 0)
		return r;
	r = nc_tree_remove(store_fd, stage->name, UINT64_MAX);
	stage->dir_fd = nc_fd_close(stage->dir_fd);
	nc_store_act_as_self(ranges);
	return r;
}

static void sweep_stage(int store_fd, const char *name)
{
	cleanup_close int fd = openat(store_fd, name, DIR_FLAGS);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		(void)nc_tree_remove(store_fd, name, UINT64_MAX);
}

DIR *nc_staging_list(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, DIR_FLAGS);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		(void)nc_fd_close(fd);
	return dir;
}

void nc_staging_sweep(int store_fd)
{
	cleanup_closedir DIR *dir = nc_staging_list(store_fd, ".");

	for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir))
		if (nc_text_after(entry->d_name, STAGE_PREFIX))
			sweep_stage(store_fd, entry->d_name);
}

/* What a directory takes on the disk. Best effort: it is a number for people. */
static uint64_t measure(int dir_fd, const char *name, unsigned int depth)
{
	cleanup_closedir DIR *dir = depth > 0 ? nc_staging_list(dir_fd, name) : NULL;
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

uint64_t nc_staging_measure(int dir_fd, const char *name)
{
	return measure(dir_fd, name, MEASURE_DEPTH);
}

int nc_staging_commit(int store_fd, const struct nc_staging *stage, const char *name)
{
	return renameat2(stage->dir_fd, NC_STAGING_ROOT, store_fd, name, RENAME_NOREPLACE) < 0
		       ? -errno
		       : 0;
}

int nc_staging_remove(int store_fd, const char *name, struct nacre_err *err)
{
	struct nc_staging stage = {.dir_fd = -EBADF};
	int left, r = nc_staging_open(store_fd, false, &stage, err);

	if (r < 0)
		return r;
	/* first out of sight as a whole: what is half removed must not be found */
	if (renameat(store_fd, name, stage.dir_fd, NC_STAGING_ROOT) < 0)
		r = nc_err_errno(err, -errno, "Remove '%s'", name);
	left = nc_staging_close(store_fd, false, &stage);
	if (r == 0 && left < 0)
		r = nc_err_errno(err, left, "Remove all of '%s'", name);
	return r; /* the first error counts */
}
