/*
 * What nacre-files does with single paths, as the box's user and as the box sees them: links are
 * followed as any program there would. The exit status is the errno, so that whoever asked can
 * tell a missing file from a forbidden one.
 */
#include "inside/tree_verbs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/text.h"
#include "inside/dial_verb.h"
#include "inside/sudo_verb.h"
#include "inside/tar_verbs.h"
#include "inside/watch_verb.h"
#include "kernel/tree.h"

/* Decoys are older than that, and what a program makes is not. */
#define RECENT_S (24 * 60 * 60)
#define CHUNK (128U * 1024)
#define REMOVE_NS (60 * NC_NS_PER_S)

static char letter_of(mode_t mode)
{
	return S_ISREG(mode) ? 'f' : S_ISDIR(mode) ? 'd' : S_ISLNK(mode) ? 'l' : 'o';
}

/* "f 12 644 1700000000.000000000 name" and a NUL. */
static int tell_entry(const char *name, const struct stat *status)
{
	int n = printf("%c %lld %o %lld.%09ld %s%c", letter_of(status->st_mode),
		(long long)status->st_size, (unsigned int)status->st_mode & 07777U,
		(long long)status->st_mtim.tv_sec, status->st_mtim.tv_nsec, name, '\0');

	return n < 0 ? -EIO : 0;
}

static int do_stat(char **argv, struct nacre_err *err)
{
	struct stat status;

	(void)err;
	if (stat(argv[0], &status) < 0 && lstat(argv[0], &status) < 0)
		return -errno;
	return tell_entry(argv[0], &status);
}

static int do_list(char **argv, struct nacre_err *err)
{
	cleanup_closedir DIR *dir = opendir(argv[0]);
	struct dirent *entry;
	size_t left = NC_LISTING_MAX;

	(void)err;
	if (!dir)
		return -errno;
	while ((errno = 0, entry = readdir(dir))) {
		struct stat status;

		if (nc_streq(entry->d_name, ".") || nc_streq(entry->d_name, ".."))
			continue;
		if (left-- == 0)
			return -E2BIG;
		if (fstatat(dirfd(dir), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
			tell_entry(entry->d_name, &status) < 0)
			return -EIO;
	}
	return -errno;
}

static int copy(int from_fd, int to_fd)
{
	static char chunk[CHUNK];

	for (;;) {
		ssize_t n = nc_fd_read_upto(from_fd, chunk, sizeof(chunk));
		int r = n <= 0 ? (int)n : nc_fd_write_all(to_fd, chunk, (size_t)n);

		if (n <= 0 || r < 0)
			return r;
	}
}

/* Regular files only: whoever asks for a FIFO would wait for ever. */
static int do_read(char **argv, struct nacre_err *err)
{
	cleanup_close int fd = open(argv[0], O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat status;

	(void)err;
	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode))
		return S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
	return copy(fd, STDOUT_FILENO);
}

/* Directories above path, each that is missing. */
static int make_above(char *path)
{
	for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
		int r;

		*slash = '\0';
		r = mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
		*slash = '/';
		if (r < 0)
			return r;
	}
	return 0;
}

int nc_verb_make(char **argv, struct nacre_err *err)
{
	struct stat status;
	int r = make_above(argv[0]);

	(void)err;
	if (r == 0 && mkdir(argv[0], 0755) < 0)
		r = -errno;
	if (r == -EEXIST && stat(argv[0], &status) == 0 && S_ISDIR(status.st_mode))
		r = 0;
	return r;
}

/* Whole or not at all: a fresh name beside it first. */
static int do_write(char **argv, struct nacre_err *err)
{
	char fresh[NC_PATH_MAX + 16];
	struct stat status;
	uint64_t mode;
	int fd, r = make_above(argv[1]);

	(void)err;
	if (r < 0)
		return r;
	if (nc_parse_u64(argv[0], 0, 0777, &mode) < 0)
		return -EINVAL;
	if (stat(argv[1], &status) == 0 && S_ISDIR(status.st_mode))
		return -EISDIR;
	(void)snprintf(fresh, sizeof(fresh), "%s.XXXXXX", argv[1]);
	fd = mkostemp(fresh, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = copy(STDIN_FILENO, fd);
	if (r == 0 && (fchmod(fd, (mode_t)mode) < 0 || rename(fresh, argv[1]) < 0))
		r = -errno;
	if (r < 0)
		(void)unlink(fresh);
	(void)close(fd);
	return r;
}

static int do_move(char **argv, struct nacre_err *err)
{
	int r = make_above(argv[1]);

	(void)err;
	if (r < 0)
		return r;
	return rename(argv[0], argv[1]) < 0 ? -errno : 0;
}

static int do_remove(char **argv, struct nacre_err *err)
{
	char *slash = strrchr(argv[0], '/');
	cleanup_close int dir_fd = -EBADF;
	struct stat status;

	(void)err;
	if (!slash || !slash[1])
		return -EINVAL;
	if (lstat(argv[0], &status) < 0)
		return -errno;
	*slash = '\0';
	dir_fd = open(slash == argv[0] ? "/" : argv[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return -errno;
	return nc_tree_remove(dir_fd, slash + 1, nc_clock_ns() + REMOVE_NS);
}

/* Whether it is a file of which nobody has read anything since its times were set. */
static bool is_unread(const struct stat *status)
{
	return status->st_atim.tv_sec == status->st_mtim.tv_sec &&
	       status->st_atim.tv_nsec == status->st_mtim.tv_nsec;
}

/*
 * Whether each of some old files was read or changed since it was put here, as a digit: the first
 * reading gives it another time of access than of change. Then takes away what is still as old.
 */
static int do_touched(char **argv, struct nacre_err *err)
{
	const time_t recent = time(NULL) - RECENT_S;

	(void)err;
	for (; *argv; argv++) {
		struct stat status;
		bool there = lstat(*argv, &status) == 0 && S_ISREG(status.st_mode);
		char *slash = strrchr(*argv, '/');

		(void)putchar(there && is_unread(&status) ? '0' : '1');
		if (!there || status.st_mtim.tv_sec > recent)
			continue;
		(void)unlink(*argv); /* else it is captured, if anything is */
		if (slash)
			*slash = '\0';
		if (slash)
			(void)rmdir(*argv); /* not if it has anything else */
	}
	return 0;
}

/*
 * The same for files that stay: 0 is one that nobody has read, 1 one that was read and looks again
 * as if it was not, 2 one that is not that file any more.
 */
static int do_renewed(char **argv, struct nacre_err *err)
{
	const time_t recent = time(NULL) - RECENT_S;

	(void)err;
	for (; *argv; argv++) {
		struct stat status;
		bool old = lstat(*argv, &status) == 0 && S_ISREG(status.st_mode) &&
			   status.st_mtim.tv_sec <= recent;
		const struct timespec times[2] = {status.st_mtim, status.st_mtim};

		(void)putchar(!old ? '2' : is_unread(&status) ? '0' : '1');
		/* one that cannot be renewed is told again */
		if (old && !is_unread(&status))
			(void)utimensat(AT_FDCWD, *argv, times, AT_SYMLINK_NOFOLLOW);
	}
	return 0;
}

static const struct {
	const char *name;
	int words; /* -1: any */
	int (*run)(char **argv, struct nacre_err *err);
} verbs[] = {
	{"stat", 1, do_stat},
	{"list", 1, do_list},
	{"read", 1, do_read},
	{"write", 2, do_write},
	{"make", 1, nc_verb_make},
	{"move", 2, do_move},
	{"remove", 1, do_remove},
	{"touched", -1, do_touched},
	{"renewed", -1, do_renewed},
	{"watch", 2, nc_verb_watch},
	{"dial", 1, nc_verb_dial},
	{"sudo", 1, nc_verb_sudo},
	{"pack", 2, nc_verb_pack},
	{"unpack", 1, nc_verb_unpack},
	{"save", 2, nc_verb_save},
	{"restore", 1, nc_verb_restore},
};

int nc_tree_verb(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		struct nacre_err err = {0};
		int r;

		if (!nc_streq(verbs[i].name, argv[0]) ||
			(verbs[i].words >= 0 && verbs[i].words != argc - 1))
			continue;
		for (int k = 1; k < argc; k++)
			if (strlen(argv[k]) > NC_PATH_MAX)
				return ENAMETOOLONG;
		r = verbs[i].run(argv + 1, &err);
		if (r == 0 && fflush(stdout) != 0)
			r = -EIO;
		if (r < 0)
			fprintf(stderr, "%s\n", err.code < 0 ? err.message : nc_errno_text(r));
		return -r;
	}
	return -1;
}
