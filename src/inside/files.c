/*
 * nacre-files: puts files into a box and takes them out, from inside, as the box's user.
 *
 *	nacre-files put				a stream of files on standard input, to here
 *	nacre-files get BYTES FILES PATTERN...	what matches from here, to standard output
 *	nacre-files stat|list|read|make|remove PATH, write MODE PATH, move FROM TO,
 *		touched PATH..., renewed PATH...	(tree_verbs.c)
 *	nacre-files watch DEEP PATH		(watch_verb.c)
 *	nacre-files dial PORT			(dial_verb.c)
 *	nacre-files sudo USER			(sudo_verb.c)
 *	nacre-files pack MAX PATH, unpack PATH, save MAX NAME, restore NAME	(tar_verbs.c)
 *
 * Theory of operation: it runs as a command of the box, behind everything that holds any other, so
 * that a link, a FIFO or a device planted there reaches nothing that the box could not. Nothing
 * else runs meanwhile. It follows no symbolic link all the same, and opens nothing that could make
 * it wait. Exit status 1 with a reason on standard error if anything could not be done.
 *
 * A pattern without a slash is matched with the last name of a path, in every directory; one with a
 * slash with the whole path, where "**" also crosses slashes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/pack.h"
#include "base/parse.h"
#include "base/text.h"
#include "inside/put.h"
#include "inside/tree_verbs.h"

#define DEPTH_MAX 64
/* Entries that are looked at, of all kinds: hostile trees are large. */
#define ENTRIES_MAX 200000U

static int fail(int r, const char *path)
{
	char quoted[NC_TEXT_QUOTED_MAX];

	fprintf(stderr, "%s: %s\n", nc_text_quote(quoted, path), nc_errno_text(r));
	return r;
}

static int put(void)
{
	char path[NC_PATH_MAX + 1];
	int r = nc_put(STDIN_FILENO, path);

	return r < 0 ? fail(r, path) : 0;
}

/* What is wanted, and what was found. */
struct search {
	char **patterns;
	uint64_t bytes_left;
	size_t entries_left;
	char *found[NC_CAPTURE_FILES_MAX];
	size_t n_found;
	char path[NC_PATH_MAX + 1]; /* where the search is */
	int error;		    /* why it is not all: the first reason */
};

static bool matches(const char *pattern, const char *path)
{
	const char *name = strrchr(path, '/');

	if (!strchr(pattern, '/'))
		return fnmatch(pattern, name ? name + 1 : path, 0) == 0;
	return fnmatch(pattern, path, strstr(pattern, "**") ? 0 : FNM_PATHNAME) == 0;
}

static void incomplete(struct search *search, int error)
{
	if (search->error == 0)
		search->error = error;
}

static void consider(struct search *search, const char *path)
{
	for (char **pattern = search->patterns; *pattern; pattern++) {
		if (!matches(*pattern, path))
			continue;
		if (search->n_found < NC_CAPTURE_FILES_MAX)
			search->found[search->n_found] = strdup(path);
		if (search->n_found == NC_CAPTURE_FILES_MAX || !search->found[search->n_found])
			incomplete(search, EMFILE);
		else
			search->n_found++;
		return;
	}
}

static void walk(struct search *search, int dir_fd, size_t length, int depth);

/* One entry of a directory whose path is the first length bytes of search->path. */
static void visit(struct search *search, int dir_fd, const char *name, size_t length, int depth)
{
	int size = snprintf(search->path + length, sizeof(search->path) - length, "%s", name);
	struct stat status;
	int fd;

	if (length + (size_t)size + 1 >= sizeof(search->path)) {
		incomplete(search, ENAMETOOLONG);
		return;
	}
	if (fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
		incomplete(search, errno);
	} else if (!S_ISDIR(status.st_mode)) {
		consider(search, search->path); /* what is no file is told as left behind */
	} else if (depth == DEPTH_MAX) {
		incomplete(search, ELOOP);
	} else {
		fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		length += (size_t)size;
		search->path[length] = '/';
		walk(search, fd, length + 1, depth + 1);
	}
}

/* Everything below a directory, which is closed. */
static void walk(struct search *search, int dir_fd, size_t length, int depth)
{
	cleanup_closedir DIR *dir = dir_fd < 0 ? NULL : fdopendir(dir_fd);
	struct dirent *entry;

	if (!dir) {
		incomplete(search, errno);
		(void)nc_fd_close(dir_fd);
		return;
	}
	while ((errno = 0, entry = readdir(dir))) {
		if (nc_streq(entry->d_name, ".") || nc_streq(entry->d_name, ".."))
			continue;
		if (search->entries_left == 0) {
			incomplete(search, E2BIG);
			return;
		}
		search->entries_left--;
		visit(search, dirfd(dir), entry->d_name, length, depth);
	}
	if (errno != 0)
		incomplete(search, errno);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int tell(enum nc_pack_kind kind, const char *path, uint64_t size, bool executable, int error)
{
	struct nc_pack_head head = {.kind = kind,
		.executable = executable,
		.path_size = (uint16_t)strlen(path),
		.error = (uint32_t)error,
		.size = size};
	unsigned char bytes[NC_PACK_HEAD_SIZE];
	int r;

	nc_pack_put_head(bytes, &head);
	r = nc_fd_write_all(STDOUT_FILENO, bytes, sizeof(bytes));
	return r < 0 ? r : nc_fd_write_all(STDOUT_FILENO, path, strlen(path));
}

/* Directories above it were no links a moment ago, and nobody is there who could change them. */
static int get_file(struct search *search, const char *path)
{
	cleanup_close int fd =
		open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat status = {0};
	uint64_t size;
	int r;

	if (fd < 0 || fstat(fd, &status) < 0)
		return tell(NC_PACK_SKIPPED, path, 0, false, errno);
	size = (uint64_t)status.st_size;
	if (!S_ISREG(status.st_mode) || size > search->bytes_left)
		return tell(NC_PACK_SKIPPED, path, size, false,
			S_ISREG(status.st_mode) ? EFBIG : EINVAL);
	search->bytes_left -= size;
	r = tell(NC_PACK_FILE, path, size, (status.st_mode & 0111) != 0, 0);
	return r < 0 ? r : nc_copy(fd, STDOUT_FILENO, size);
}

static int get(int argc, char **argv)
{
	static struct search search = {.entries_left = ENTRIES_MAX};
	uint64_t files;
	int r = 0;

	if (argc < 3 || nc_parse_u64(argv[0], 0, UINT64_MAX, &search.bytes_left) < 0 ||
		nc_parse_u64(argv[1], 0, NC_CAPTURE_FILES_MAX, &files) < 0)
		return -EINVAL;
	search.patterns = argv + 2;
	walk(&search, open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0, 0);
	qsort(search.found, search.n_found, sizeof(search.found[0]), compare);
	if (search.n_found > files) {
		search.n_found = (size_t)files;
		incomplete(&search, EMFILE);
	}
	for (size_t i = 0; r == 0 && i < search.n_found; i++)
		r = get_file(&search, search.found[i]);
	if (r < 0)
		return fail(r, "stdout");
	return tell(NC_PACK_END, "", search.n_found, false, search.error);
}

int main(int argc, char **argv)
{
	int r = argc > 1 ? nc_tree_verb(argc - 1, argv + 1) : -1;

	if (r >= 0)
		return r;
	r = -EINVAL;
	if (argc == 2 && nc_streq(argv[1], "put"))
		r = put();
	else if (argc > 2 && nc_streq(argv[1], "get"))
		r = get(argc - 2, argv + 2);
	else
		fputs("nacre-files is started in a box by nacre, not by hand\n", stderr);
	return r < 0 ? 1 : 0;
}
