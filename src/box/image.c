/* Directory images. */
#include "box/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "box/store.h"

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

int nc_image_open(const char *name, struct nacre_err *err)
{
	cleanup_close int store_fd = -EBADF;
	int r = nc_image_name_check(name, err);

	if (r < 0)
		return r;
	store_fd = nc_store_find("images", err);
	return err->code < 0 ? err->code : nc_image_at(store_fd, name, err);
}

int nc_image_at(int store_fd, const char *name, struct nacre_err *err)
{
	int fd, r = nc_image_name_check(name, err);

	if (r < 0)
		return r;
	/* to read: the spawner takes no mere path descriptor, which a worker has of everything */
	fd = store_fd < 0 ? (store_fd == -EBADF ? -ENOENT : store_fd)
			  : openat(store_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (store_fd >= 0 && fd < 0)
		fd = -errno;
	if (fd == -ENOENT)
		return nc_err_set(err, -ENOENT,
			"There is no image '%s': nacre image import %s DIRECTORY|TAR", name, name);
	return fd < 0 ? nc_err_errno(err, fd, "Open image '%s'", name) : fd;
}

int nc_image_store_open(bool make, bool ranges, struct nacre_err *err)
{
	return nc_store_open("images", make, ranges, err);
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

int nc_image_commit(int store_fd, const struct nc_staging *stage, const char *name, bool replace,
	struct nacre_err *err)
{
	int r = nc_staging_commit(store_fd, stage, name);

	if (r == -EEXIST && replace)
		r = renameat2(stage->dir_fd, NC_STAGING_ROOT, store_fd, name, RENAME_EXCHANGE) < 0
			    ? -errno
			    : 0;
	if (r == 0)
		return 0;
	return r == -EEXIST ? taken(name, err) : nc_err_errno(err, r, "Name the image '%s'", name);
}

int nc_image_remove(int store_fd, const char *name, struct nacre_err *err)
{
	int r = nc_image_name_check(name, err);

	if (r < 0)
		return r;
	r = nc_staging_remove(store_fd, name, err);
	return r == -ENOENT ? nc_err_set(err, r, "There is no image '%s'", name) : r;
}

int nc_image_visit(int store_fd, int (*visit)(void *context, const struct nc_image_entry *entry),
	void *context)
{
	cleanup_closedir DIR *dir = nc_staging_list(store_fd, ".");
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
		image.bytes = nc_staging_measure(store_fd, entry->d_name);
		image.imported =
			status.st_ctim; /* the rename to its name; mtime is the archive's */
		r = visit(context, &image);
	}
	return r < 0 ? r : 0;
}
