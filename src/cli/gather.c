/* Files and directories of the caller's as the files of a request. */
#include "cli/gather.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "runtime/runtime.h"

/* As deep as a request's paths may be. */
#define DEPTH_MAX 32

struct gathering {
	json_t *files;
	const char *leave_out;	    /* the path of the program; or NULL */
	char path[NC_PATH_MAX + 1]; /* where the walk is */
	struct nacre_err *err;
};

static int fault(const struct gathering *gathering, int code, const char *why)
{
	char quoted[NC_TEXT_QUOTED_MAX];

	(void)nc_text_quote(quoted, gathering->path);
	return why ? nc_err_set(gathering->err, code, "%s: %s", quoted, why)
		   : nc_err_errno(gathering->err, code, "%s", quoted);
}

/* One open file, which is closed by the caller. */
static int add_file(struct gathering *gathering, int fd, const struct stat *status)
{
	cleanup_free char *data = NULL, *text = NULL;
	size_t size = 0;
	int r;

	if (json_object_size(gathering->files) >= NC_REQUEST_FILES_MAX)
		return fault(gathering, -E2BIG, "more files than a request may have");
	r = nc_fd_read_all(fd, NC_REQUEST_FILES_SIZE_MAX, &data, &size);
	if (r == 0)
		r = nc_base64_encode(data, size, &text);
	if (r < 0)
		return fault(
			gathering, r, r == -EFBIG ? "more bytes than a request may have" : NULL);
	/* a name that is not UTF-8 cannot be said in a request */
	if (json_object_set_new(gathering->files, gathering->path,
		    json_pack("{s:s, s:b}", "base64", text, "executable",
			    (status->st_mode & 0111) != 0)) < 0)
		return fault(gathering, -EINVAL, "the name is not UTF-8");
	return 0;
}

static int add_below(struct gathering *gathering, int dir_fd, int depth);

/* What path names now, as name in a directory. */
static int add_entry(struct gathering *gathering, int dir_fd, const char *name, int depth)
{
	cleanup_close int fd =
		openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0)
		return fault(gathering, -errno,
			errno == ELOOP ? "a symbolic link, which is not followed" : NULL);
	if (S_ISREG(status.st_mode))
		return add_file(gathering, fd, &status);
	if (!S_ISDIR(status.st_mode))
		return fault(gathering, -EINVAL, "neither a file nor a directory");
	if (depth == DEPTH_MAX)
		return fault(gathering, -ELOOP, "deeper than files of a request may be");
	return add_below(gathering, take_fd(fd), depth + 1);
}

/* Everything in a directory, which is closed. */
static int add_below(struct gathering *gathering, int dir_fd, int depth)
{
	cleanup_closedir DIR *dir = dir_fd < 0 ? NULL : fdopendir(dir_fd);
	size_t length = strlen(gathering->path);
	struct dirent *entry;
	int r = 0;

	if (!dir) {
		r = fault(gathering, -errno, NULL);
		(void)nc_fd_close(dir_fd);
		return r;
	}
	while (r == 0 && (errno = 0, entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (snprintf(gathering->path + length, sizeof(gathering->path) - length, "%s%s",
			    length > 0 ? "/" : "",
			    entry->d_name) >= (int)(sizeof(gathering->path) - length))
			r = fault(gathering, -ENAMETOOLONG, NULL);
		else if (!gathering->leave_out || !nc_streq(gathering->leave_out, gathering->path))
			r = add_entry(gathering, dirfd(dir), entry->d_name, depth);
		if (r == 0)
			gathering->path[length] = '\0';
	}
	return r == 0 && errno != 0 ? fault(gathering, -errno, NULL) : r;
}

/* What is called so: a file, or a directory whose own name is path. */
static int add_named(struct gathering *gathering, const char *source)
{
	cleanup_close int fd = open(source, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0)
		return nc_err_errno(gathering->err, -errno, "'%s'", source);
	if (S_ISDIR(status.st_mode))
		return add_below(gathering, take_fd(fd), 0);
	return add_file(gathering, fd, &status);
}

int nc_gather(json_t *files, const char *word, struct nacre_err *err)
{
	struct gathering gathering = {.files = files, .err = err};
	cleanup_free char *source = strdup(word);
	char *colon = source ? strrchr(source, ':') : NULL;
	const char *target;
	size_t length;

	if (!source)
		return nc_err_errno(err, -ENOMEM, "Option '--file'");
	if (colon)
		*colon = '\0';
	for (length = strlen(source); length > 1 && source[length - 1] == '/'; length--)
		source[length - 1] = '\0';
	target = colon ? colon + 1 : strrchr(source, '/') ? strrchr(source, '/') + 1 : source;
	if (!nc_streq(target, "."))
		(void)snprintf(gathering.path, sizeof(gathering.path), "%s", target);
	return add_named(&gathering, source) < 0 ? nc_err_wrap(err, "Option '--file'") : 0;
}

static bool is_main(const char *name)
{
	return nc_text_after(name, "__main__.") || nc_text_after(name, "main.");
}

/* The name of the program in a directory, in fresh memory; NULL: err says why not. */
static char *find_main(const char *path, struct nacre_err *err)
{
	cleanup_closedir DIR *dir = opendir(path);
	char *found[2] = {NULL, NULL}; /* the one of any language, the one that is called main */
	size_t count[2] = {0, 0};
	struct dirent *entry;
	char *name;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || nc_language_of_file(entry->d_name) < 0)
			continue;
		for (int i = 0; i < 1 + is_main(entry->d_name); i++) {
			free(found[i]);
			found[i] = strdup(entry->d_name);
			count[i]++;
		}
	}
	name = count[1] == 1 ? found[1] : count[1] == 0 && count[0] == 1 ? found[0] : NULL;
	if (!name)
		(void)nc_err_set(err, -EINVAL,
			"'%s': which file is the program? Call one of them main, or: nacre run "
			"FILE --file DIR:.",
			path);
	for (int i = 0; i < 2; i++)
		if (found[i] != name)
			free(found[i]);
	return name;
}

int nc_gather_program(json_t *files, const char *path, char **ret_name, char **ret_code,
	size_t *ret_size, struct nacre_err *err)
{
	struct gathering gathering = {.files = files, .err = err};
	cleanup_close int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -EBADF;
	cleanup_free char *name = NULL;
	int r;

	if (dir_fd < 0)
		return -ENOTDIR; /* or not there at all, which whoever reads the file says */
	name = find_main(path, err);
	if (!name)
		return err->code;
	fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	gathering.leave_out = name;
	r = add_below(&gathering, nc_fd_dup(dir_fd), 0);
	if (r == 0) {
		r = fd < 0 ? -errno : nc_fd_read_all(fd, NC_REQUEST_CODE_MAX, ret_code, ret_size);
		if (r < 0)
			return nc_err_errno(err, r, "'%s/%s'", path, name);
		*ret_name = take_ptr(name);
	}
	return r;
}
