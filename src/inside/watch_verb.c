/*
 * nacre-files tells what happens to files.
 *
 * Theory of operation: inotify tells of one directory each, by a number for which we keep its path.
 * A directory that appears is watched and then looked into: what was made there before the watch
 * began is told as created, perhaps twice. Both halves of a move come one behind the other; one
 * that stays alone is a removal, or a creation. Links are not followed below the first directory.
 */
#include "inside/watch_verb.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/text.h"

#define MASK                                                                                       \
	(IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF |        \
		IN_MOVE_SELF | IN_ONLYDIR)
/* For the other half of a move, which is there already. */
#define HALF_MS 20
/* Numbers only grow: each directory that is made and removed takes one. */
#define WATCHES_MAX 1000000
#define DEPTH_MAX 64

struct watch {
	int fd;
	bool deep;
	char **paths; /* by the numbers of inotify; NULL: not watched */
	int n_paths;
	int root;
	bool ended;
	/* the first half of a move; cookie 0: none */
	uint32_t cookie;
	bool is_dir;
	char from[PATH_MAX];
	/* the last that was told to be modified */
	char modified[PATH_MAX];
};

static void tell(char what, bool is_dir, const char *path)
{
	printf("%c %c %s%c", what, is_dir ? 'd' : 'f', path, '\0');
}

static int add_watch(struct watch *watch, const char *path, uint32_t more)
{
	int number = inotify_add_watch(watch->fd, path, MASK | more);
	char *copy;

	if (number < 0)
		return -errno;
	if (number >= WATCHES_MAX)
		return -ENOSPC;
	if (number >= watch->n_paths) {
		int n = number * 2 + 16;
		char **fresh = reallocarray(watch->paths, (size_t)n, sizeof(*fresh));

		if (!fresh)
			return -ENOMEM;
		memset(fresh + watch->n_paths, 0, (size_t)(n - watch->n_paths) * sizeof(*fresh));
		watch->paths = fresh;
		watch->n_paths = n;
	}
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	free(watch->paths[number]);
	watch->paths[number] = copy;
	return number;
}

static bool join(char out[static PATH_MAX], const char *dir, const char *name)
{
	return snprintf(out, PATH_MAX, "%s%s%s", dir, nc_streq(dir, "/") ? "" : "/", name) <
	       PATH_MAX;
}

/* Watches a directory below the first, and all in it; tells of them if they are new. */
static int add_below(struct watch *watch, const char *path, bool told, int depth)
{
	int r = add_watch(watch, path, IN_DONT_FOLLOW);
	int fd = r < 0 ? -EBADF : open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	cleanup_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	char below[PATH_MAX];
	struct dirent *entry;

	if (r < 0 || depth == DEPTH_MAX) /* what has gone meanwhile is no fault */
		return r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EACCES ? 0
		       : r < 0							    ? r
										    : -ELOOP;
	r = 0;
	while (r == 0 && dir && (entry = readdir(dir))) {
		bool is_dir = entry->d_type == DT_DIR;

		if (nc_streq(entry->d_name, ".") || nc_streq(entry->d_name, "..") ||
			!join(below, path, entry->d_name))
			continue;
		if (told)
			tell('c', is_dir, below);
		if (is_dir)
			r = add_below(watch, below, told, depth + 1);
	}
	return r;
}

/* What is below the first is watched if it is to be; it need not be whole. */
static void follow(struct watch *watch, const char *path, bool told)
{
	if (watch->deep && add_below(watch, path, told, 0) < 0)
		tell('o', true, path);
}

static bool is_below(const char *path, const char *dir)
{
	const char *rest = nc_text_after(path, dir);

	return rest && (*rest == '/' || *rest == '\0');
}

/* A directory has another path now; to NULL: one that we do not see. */
static void rename_below(struct watch *watch, const char *from, const char *to)
{
	for (int i = 0; i < watch->n_paths; i++) {
		char path[PATH_MAX], *copy;

		if (!watch->paths[i] || !is_below(watch->paths[i], from) || i == watch->root)
			continue;
		if (!to) {
			(void)inotify_rm_watch(watch->fd, i);
			watch->paths[i][0] = '\0'; /* what is on its way still means nothing */
			continue;
		}
		if (snprintf(path, sizeof(path), "%s%s", to, watch->paths[i] + strlen(from)) >=
				(int)sizeof(path) ||
			!(copy = strdup(path)))
			continue;
		free(watch->paths[i]);
		watch->paths[i] = copy;
	}
}

/* The other half does not come. */
static void end_move(struct watch *watch)
{
	if (watch->cookie == 0)
		return;
	watch->cookie = 0;
	tell('r', watch->is_dir, watch->from);
	if (watch->is_dir)
		rename_below(watch, watch->from, NULL);
}

static void take_move(struct watch *watch, const char *path, bool is_dir, uint32_t cookie)
{
	if (watch->cookie != cookie) { /* it comes from where we do not look */
		end_move(watch);
		tell('c', is_dir, path);
		if (is_dir)
			follow(watch, path, true);
		return;
	}
	watch->cookie = 0;
	tell('v', is_dir, watch->from);
	printf("%s%c", path, '\0');
	if (is_dir)
		rename_below(watch, watch->from, path);
}

static void take_entry(struct watch *watch, const struct inotify_event *event, const char *path)
{
	bool is_dir = event->mask & IN_ISDIR;

	if (event->mask & IN_MOVED_TO) {
		take_move(watch, path, is_dir, event->cookie);
		return;
	}
	end_move(watch);
	if (event->mask & IN_MODIFY) {
		if (!nc_streq(watch->modified, path))
			tell('m', false, path);
		(void)snprintf(watch->modified, sizeof(watch->modified), "%s", path);
		return;
	}
	if (event->mask & IN_MOVED_FROM) {
		watch->cookie = event->cookie;
		watch->is_dir = is_dir;
		(void)snprintf(watch->from, sizeof(watch->from), "%s", path);
	} else if (event->mask & IN_DELETE) {
		tell('r', is_dir, path);
	} else if (event->mask & IN_CREATE) {
		tell('c', is_dir, path);
		if (is_dir)
			follow(watch, path, true);
	}
}

static void take_event(struct watch *watch, const struct inotify_event *event)
{
	char *dir = event->wd >= 0 && event->wd < watch->n_paths ? watch->paths[event->wd] : NULL;
	char path[PATH_MAX];

	if (!(event->mask & IN_MODIFY))
		watch->modified[0] = '\0';
	if (event->mask & IN_Q_OVERFLOW) {
		end_move(watch);
		tell('o', true, watch->paths[watch->root]);
	} else if (event->wd == watch->root &&
		   event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED)) {
		end_move(watch);
		tell('r', true, dir);
		watch->ended = true;
	} else if (event->mask & IN_IGNORED) {
		if (dir) {
			free(dir);
			watch->paths[event->wd] = NULL;
		}
	} else if (dir && *dir && event->len > 0 && join(path, dir, event->name)) {
		take_entry(watch, event, path);
	}
}

static int run(struct watch *watch)
{
	static char events[65536] __attribute__((aligned(__alignof__(struct inotify_event))));
	struct pollfd ready = {.fd = watch->fd, .events = POLLIN};

	while (!watch->ended) {
		ssize_t n;

		watch->modified[0] = '\0'; /* who is told later is told again */
		if (poll(&ready, 1, watch->cookie ? HALF_MS : -1) == 0) {
			end_move(watch);
		} else {
			n = read(watch->fd, events, sizeof(events));
			if (n < 0 && errno != EINTR)
				return -errno;
			for (ssize_t at = 0; at < n && !watch->ended;) {
				const struct inotify_event *event = (const void *)(events + at);

				take_event(watch, event);
				at += (ssize_t)(sizeof(*event) + event->len);
			}
		}
		if (fflush(stdout) != 0)
			return -EIO;
	}
	return 0;
}

static int add_all(struct watch *watch, const char *path)
{
	cleanup_closedir DIR *dir = NULL;
	struct dirent *entry;
	char below[PATH_MAX];
	int r = watch->root = add_watch(watch, path, 0);

	if (r < 0 || !watch->deep)
		return r;
	dir = opendir(path);
	r = dir ? 0 : -errno;
	while (r == 0 && (entry = readdir(dir)))
		if (entry->d_type == DT_DIR && !nc_streq(entry->d_name, ".") &&
			!nc_streq(entry->d_name, "..") && join(below, path, entry->d_name))
			r = add_below(watch, below, false, 1);
	return r;
}

int nc_verb_watch(char **argv, struct nacre_err *err)
{
	static struct watch watch;
	size_t size = strlen(argv[1]);
	int r;

	while (size > 1 && argv[1][size - 1] == '/')
		argv[1][--size] = '\0';
	watch = (struct watch){.fd = inotify_init1(IN_CLOEXEC), .deep = nc_streq(argv[0], "1")};
	r = watch.fd < 0 ? -errno : add_all(&watch, argv[1]);
	if (r == -ENOSPC)
		return nc_err_set(err, r, "More directories than can be watched here");
	if (r < 0)
		return r;
	tell('s', true, argv[1]);
	return fflush(stdout) != 0 ? -EIO : run(&watch);
}
