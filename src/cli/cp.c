/*
 * nacre cp: files into a sandbox of a daemon and out of it, as archives. What comes out was written
 * by whoever has the sandbox: it is unpacked as nacre-files does, through no link and never outside
 * the place that was named.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/path.h"
#include "base/say.h"
#include "base/tarball.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "kernel/tree.h"
#include "server/dial.h"

#define BLOCK 65536
#define REMOVE_NS (60 * NC_NS_PER_S)

/* SANDBOX:PATH, taken apart; sandbox "": a path here. */
struct place {
	char sandbox[64];
	const char *path;
};

static void read_place(const char *word, struct place *place)
{
	const char *colon = strchr(word, ':');
	size_t size = colon ? (size_t)(colon - word) : 0;

	*place = (struct place){.path = word};
	if (!colon || size >= sizeof(place->sandbox))
		return;
	memcpy(place->sandbox, word, size);
	place->sandbox[size] = '\0';
	if (nc_remote_is_sandbox(place->sandbox))
		place->path = colon + 1;
	else
		place->sandbox[0] = '\0';
}

/* The target of a request about a path in a sandbox. */
static void put_target(struct nc_buf *out, const struct place *place, const char *what,
	const char *name, const char *path)
{
	nc_buf_addf(out, "/v1/sandboxes/%s%s%c%s=", place->sandbox, what,
		strchr(what, '?') ? '&' : '?', name);
	nc_remote_escape(out, path);
}

/* What stands there: "directory", "file" and others; "": nothing. */
static int kind_there(
	const char *url, const struct place *place, char out[static 16], struct nacre_err *err)
{
	nc_buf_cleanup struct nc_buf target = NC_BUF(NC_HTTP_TARGET_MAX);
	cleanup_json json_t *reply = NULL;
	const char *kind;
	int r;

	put_target(&target, place, "/files/stat", "path", place->path);
	r = nc_remote_ask(url, "GET", nc_buf_text(&target), NULL, &reply, err);
	out[0] = '\0';
	if (r == -ENOENT)
		return 0;
	kind = json_string_value(
		json_object_get(json_array_get(json_object_get(reply, "entries"), 0), "type"));
	(void)snprintf(out, 16, "%s", kind ? kind : "");
	return r;
}

/* The last name of a path, which the caller frees. */
static char *last_name(const char *path)
{
	cleanup_free char *copy = strdup(path);

	return copy ? strdup(basename(copy)) : NULL;
}

static char *join(const char *dir, const char *name)
{
	char *out;

	return asprintf(&out, "%s%s%s", dir, dir[strlen(dir) - 1] == '/' ? "" : "/", name) < 0
		       ? NULL
		       : out;
}

/* ---- out of it ---- */

/* A process that reads the archive from the connection, into a pipe: its other end, or -errno. */
static int pump(struct nc_dial *dial, pid_t *ret_pid)
{
	int ends[2];
	pid_t pid = 0;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid < 0) {
		(void)close(ends[0]);
		(void)close(ends[1]);
		return -errno;
	}
	if (pid == 0) {
		char data[BLOCK];
		ssize_t n;

		(void)close(ends[0]);
		while ((n = nc_dial_read(dial, data, sizeof(data))) > 0)
			if (nc_fd_write_all(ends[1], data, (size_t)n) < 0)
				break;
		_exit(0);
	}
	(void)close(ends[1]);
	*ret_pid = pid;
	return ends[0];
}

/* Unpacks what is at a place of the sandbox into a directory here, without links that lead out. */
static int unpack_into(const char *url, const struct place *from, int dir_fd,
	struct nc_tarball_left *ret_left, struct nacre_err *err)
{
	nc_cleanup(nc_dial_done) struct nc_dial dial = {.fd = -EBADF};
	nc_buf_cleanup struct nc_buf target = NC_BUF(NC_HTTP_TARGET_MAX);
	nc_buf_cleanup struct nc_buf line = NC_BUF(NC_FRAME_REPLY_MAX);
	cleanup_close int pipe_fd = -EBADF;
	pid_t pid = 0;
	int r = nc_dial_parse(url, &dial, err);

	put_target(&target, from, "/archive", "path", from->path);
	if (r == 0)
		r = nc_remote_begin(&dial, "GET", nc_buf_text(&target), "1.0", "", err);
	if (r == 0 && nc_dial_line(&dial, &line) != 1)
		r = nc_err_set(err, -EPROTO, "%s does not answer", dial.host);
	if (r == 0 && !strstr(line.data, " 200 "))
		r = nc_remote_refused(&dial, line.data, err);
	while (r == 0 && nc_dial_line(&dial, &line) == 1 && line.size > 0)
		; /* the rest of the head */
	if (r < 0)
		return r;
	pipe_fd = pump(&dial, &pid);
	if (pipe_fd < 0)
		return nc_err_errno(err, pipe_fd, "Read the archive");
	r = nc_tarball_unpack(dir_fd, pipe_fd, ret_left, err);
	pipe_fd = nc_fd_close(pipe_fd);
	(void)waitpid(pid, NULL, 0);
	return r;
}

/* Where something goes: a name in a directory that is held open, or "." for the directory itself.
 * The user named the directory, through links or not; below it no link is followed. */
struct spot {
	int dir_fd;
	char name[NC_NAME_MAX + 1];
	char shown[NC_TEXT_QUOTED_MAX]; /* all of the path, quoted */
};

static void spot_done(struct spot *spot)
{
	(void)nc_fd_close(spot->dir_fd);
}

/* The last name of a path; "." if that is no name of its own. -ENAMETOOLONG. */
static int last_name_of(const char *path, char out[static NC_NAME_MAX + 1])
{
	cleanup_free char *name = last_name(path);

	if (!name)
		return -ENOMEM;
	if (strlen(name) > NC_NAME_MAX)
		return -ENAMETOOLONG;
	(void)snprintf(out, NC_NAME_MAX + 1, "%s", nc_path_is_plain(name) ? name : ".");
	return 0;
}

/* Into a directory that is there, under the name that it has in the sandbox; else as what is named.
 */
static int find_spot(const char *from, const char *to, struct spot *spot, struct nacre_err *err)
{
	cleanup_free char *copy = strdup(to), *shown = NULL;
	const char *dir = to;
	int r = 0;

	if (!copy)
		return nc_err_set(err, -ENOMEM, "Out of memory");
	spot->dir_fd = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (spot->dir_fd >= 0) {
		r = last_name_of(from, spot->name);
	} else {
		r = last_name_of(to, spot->name);
		dir = dirname(copy);
		spot->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (spot->dir_fd < 0)
		r = -errno;
	if (r < 0)
		return nc_err_errno(err, r, "Open '%s'", dir);
	shown = join(dir, spot->name);
	(void)nc_text_quote(spot->shown, shown ? shown : spot->name);
	return 0;
}

/* Makes and opens the directory of that name: a link of that name is none. */
static int open_spot(const struct spot *spot, struct nacre_err *err)
{
	int fd;

	if (mkdirat(spot->dir_fd, spot->name, 0777) < 0 && errno != EEXIST)
		return nc_err_errno(err, -errno, "Make %s", spot->shown);
	fd = openat(spot->dir_fd, spot->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
		return nc_err_set(err, -ENOTDIR,
			"%s is there and is no directory; a link is not followed", spot->shown);
	return fd < 0 ? nc_err_errno(err, -errno, "Open %s", spot->shown) : fd;
}

/* By itself every link leads out of what is copied. */
static int refuse_link(const char *path, struct nacre_err *err)
{
	char quoted[NC_TEXT_QUOTED_MAX];

	return nc_err_set(err, -ELOOP,
		"%s is a symbolic link or a named pipe, which is not copied by itself: name what a "
		"link leads to",
		nc_text_quote(quoted, path));
}

/* What was unpacked under a name, to where it goes. */
static int move_out(int fresh_fd, const char *name, const struct spot *spot, struct nacre_err *err)
{
	struct stat status;

	if (fstatat(fresh_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return nc_err_errno(err, -errno, "Copy to %s", spot->shown);
	if (S_ISLNK(status.st_mode))
		return refuse_link(name, err);
	if (S_ISDIR(status.st_mode))
		return nc_err_set(
			err, -ESTALE, "What goes to %s has changed meanwhile", spot->shown);
	if (renameat(fresh_fd, name, spot->dir_fd, spot->name) < 0)
		return nc_err_errno(err, -errno, "Write %s", spot->shown);
	return 0;
}

/* One file: unpacked into a fresh directory beside where it goes, and renamed. */
static int fetch_file(
	const char *url, const struct place *from, const struct spot *spot, struct nacre_err *err)
{
	struct spot fresh = *spot;
	char id[NC_ID_SIZE], name[NC_NAME_MAX + 1];
	struct nc_tarball_left left = {0};
	cleanup_close int fresh_fd = -EBADF;
	int r = nc_id_new(".n", id);

	if (r == 0)
		r = last_name_of(from->path, name);
	if (r < 0)
		return nc_err_errno(err, r, "Make a directory");
	(void)snprintf(fresh.name, sizeof(fresh.name), "%s", id);
	r = fresh_fd = open_spot(&fresh, err);
	if (r >= 0)
		r = unpack_into(url, from, fresh_fd, &left, err);
	if (r == 0)
		r = left.count > 0 ? refuse_link(name, err) : move_out(fresh_fd, name, spot, err);
	(void)nc_tree_remove(spot->dir_fd, id, nc_clock_ns() + REMOVE_NS);
	return r;
}

static int fetch_dir(
	const char *url, const struct place *from, const struct spot *spot, struct nacre_err *err)
{
	struct nc_tarball_left left = {0};
	cleanup_close int dir_fd = open_spot(spot, err);
	int r = dir_fd < 0 ? dir_fd : unpack_into(url, from, dir_fd, &left, err);

	if (r == 0 && left.count > 0)
		r = nc_err_set(err, -ELOOP,
			"Copied, but without named pipes and links that lead out of the directory "
			"(%zu, the first is %s)",
			left.count, left.first);
	return r;
}

static int fetch(
	const char *url, const struct place *from, const struct place *to, struct nacre_err *err)
{
	nc_cleanup(spot_done) struct spot spot = {.dir_fd = -EBADF};
	char kind[16];
	int r = kind_there(url, from, kind, err);

	if (r == 0 && !kind[0])
		r = nc_err_set(err, -ENOENT, "There is no '%s' in the sandbox", from->path);
	if (r == 0 && nc_streq(kind, "link"))
		r = refuse_link(from->path, err);
	if (r == 0)
		r = find_spot(from->path, to->path, &spot, err);
	if (r < 0)
		return r;
	return nc_streq(kind, "directory") ? fetch_dir(url, from, &spot, err)
					   : fetch_file(url, from, &spot, err);
}

/* ---- into it ---- */

/* What is sent: a name in a directory that is held open; "." is all that is in it. */
struct source {
	int dir_fd;
	const char *name;
};

/* A process that packs into a pipe: its other end, or -errno. It says itself what fails. */
static int pack(const struct source *source, pid_t *ret_pid)
{
	const char *const names[] = {source->name, NULL};
	const struct nc_tarball_pack order = {
		.base_fd = source->dir_fd, .names = names, .max = NC_ARCHIVE_MAX};
	int ends[2];
	pid_t pid = 0;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		struct nacre_err err = {0};
		int r = nc_tarball_pack(&order, ends[1], &err);

		if (r < 0 && r != -EPIPE)
			nc_say(stderr, "nacre cp: %s\n", err.message);
		_exit(r < 0 ? 1 : 0);
	}
	(void)close(ends[1]);
	if (pid < 0) {
		(void)close(ends[0]);
		return -errno;
	}
	*ret_pid = pid;
	return ends[0];
}

/* Chunks as they come; without the last one, if what packs has failed, it is no request. */
static int send_archive(struct nc_dial *dial, int pipe_fd, pid_t pid, struct nacre_err *err)
{
	char data[BLOCK], size[24];
	ssize_t n;
	int r = 0, status = 1;

	while (r == 0 && (n = nc_fd_read_upto(pipe_fd, data, sizeof(data))) > 0) {
		(void)snprintf(size, sizeof(size), "%zx\r\n", (size_t)n);
		r = nc_dial_send(dial, size, strlen(size), err);
		if (r == 0)
			r = nc_dial_send(dial, data, (size_t)n, err);
		if (r == 0)
			r = nc_dial_send(dial, "\r\n", 2, err);
	}
	(void)nc_fd_close(pipe_fd);
	(void)waitpid(pid, &status, 0);
	if (r == 0 && status != 0)
		return -ECANCELED; /* which was said */
	return r < 0 ? r : nc_dial_send(dial, "0\r\n\r\n", 5, err);
}

static int pack_into(const char *url, const struct place *to, const char *path,
	const struct source *source, struct nacre_err *err)
{
	nc_cleanup(nc_dial_done) struct nc_dial dial = {.fd = -EBADF};
	nc_buf_cleanup struct nc_buf target = NC_BUF(NC_HTTP_TARGET_MAX);
	nc_buf_cleanup struct nc_buf line = NC_BUF(NC_FRAME_REPLY_MAX);
	pid_t pid = 0;
	int pipe_fd, r = nc_dial_parse(url, &dial, err);

	put_target(&target, to, "/archive", "path", path);
	if (r < 0)
		return r;
	pipe_fd = pack(source, &pid); /* before the connection, which is not for it */
	if (pipe_fd < 0)
		return nc_err_errno(err, pipe_fd, "Pack '%s'", source->name);
	r = nc_remote_begin(&dial, "PUT", nc_buf_text(&target), "1.1",
		"Connection: close\r\nContent-Type: application/x-tar\r\n"
		"Transfer-Encoding: chunked\r\n",
		err);
	if (r < 0) {
		(void)close(pipe_fd);
		(void)waitpid(pid, NULL, 0);
		return r;
	}
	r = send_archive(&dial, pipe_fd, pid, err);
	if (r == -ECANCELED)
		return r;
	/* whoever has refused it has said why, also if not all of it could be sent */
	if (nc_dial_line(&dial, &line) == 1 && strncmp(line.data, "HTTP/1.", 7) == 0) {
		*err = (struct nacre_err){0};
		return strstr(line.data, " 204 ") ? 0 : nc_remote_refused(&dial, line.data, err);
	}
	return r < 0 ? r : nc_err_set(err, -EPROTO, "%s does not answer", dial.host);
}

/* A file under another name: packed into a fresh directory beside it, and moved. */
static int send_renamed(
	const char *url, const struct place *to, const struct source *source, struct nacre_err *err)
{
	nc_buf_cleanup struct nc_buf target = NC_BUF(NC_HTTP_TARGET_MAX);
	nc_buf_cleanup struct nc_buf removal = NC_BUF(NC_HTTP_TARGET_MAX);
	cleanup_free char *copy = strdup(to->path), *fresh = NULL, *inside = NULL;
	struct nacre_err ignored = {0};
	char id[NC_ID_SIZE];
	int r = nc_id_new("cp", id);

	if (r == 0 && copy)
		fresh = join(dirname(copy), id);
	if (fresh)
		inside = join(fresh, source->name);
	if (!inside)
		return nc_err_set(err, -ENOMEM, "Out of memory");
	r = pack_into(url, to, fresh, source, err);
	put_target(&target, to, "/files/move", "from", inside);
	nc_buf_adds(&target, "&to=");
	nc_remote_escape(&target, to->path);
	if (r == 0)
		r = nc_remote_ask(url, "POST", nc_buf_text(&target), NULL, NULL, err);
	put_target(&removal, to, "/files", "path", fresh);
	(void)nc_remote_ask(url, "DELETE", nc_buf_text(&removal), NULL, NULL, &ignored);
	return r;
}

/*
 * What the path names is not reached through a link of that name, which is sent as a link: it may
 * be one that came out of a sandbox. A path that ends in a slash is the directory it leads to.
 */
static int open_source(const char *path, char *copy, char *name, struct source *source)
{
	struct stat status;

	source->name = ".";
	source->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (source->dir_fd >= 0 || (errno != ENOTDIR && errno != ELOOP))
		return source->dir_fd < 0 ? -errno : 0;
	source->name = name;
	source->dir_fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return source->dir_fd < 0 || fstatat(source->dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0
		       ? -errno
		       : 0;
}

static int send_it(
	const char *url, const struct place *from, const struct place *to, struct nacre_err *err)
{
	cleanup_free char *name = last_name(from->path), *copy = strdup(from->path), *below = NULL;
	struct source source = {.dir_fd = -EBADF};
	cleanup_close int dir_fd = -EBADF;
	char kind[16];
	int r = kind_there(url, to, kind, err);
	bool into = nc_streq(kind, "directory");

	if (r < 0)
		return r;
	if (into && name)
		below = join(to->path, name);
	if (!name || !copy || (into && !below))
		return nc_err_set(err, -ENOMEM, "Out of memory");
	r = open_source(from->path, copy, name, &source);
	dir_fd = source.dir_fd;
	if (r < 0)
		return nc_err_errno(err, r, "Find '%s'", from->path);
	if (source.name != name)
		return pack_into(
			url, to, into && nc_path_is_plain(name) ? below : to->path, &source, err);
	return into ? pack_into(url, to, to->path, &source, err)
		    : send_renamed(url, to, &source, err);
}

static int run(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	struct place from, to;
	int r;

	if (!cli->server)
		return nc_err_set(err, -EINVAL, "Name a daemon: nacre --server URL cp FROM TO");
	if (n_words != 2)
		return nc_err_set(err, -EINVAL, "Name what to copy, and where to");
	read_place(words[0], &from);
	read_place(words[1], &to);
	if (!from.sandbox[0] == !to.sandbox[0])
		return nc_err_set(err, -EINVAL,
			"One of both is in a sandbox: SANDBOX:/workspace/file, the other is here");
	(void)signal(SIGPIPE, SIG_IGN);
	r = from.sandbox[0] ? fetch(cli->server, &from, &to, err)
			    : send_it(cli->server, &from, &to, err);
	return r < 0 ? r : NC_EXIT_OK;
}

const struct nc_verb nc_verb_cp = {
	.name = "cp",
	.summary = "Copy files into a sandbox of a daemon, or out of it",
	.arguments = "FROM TO",
	.details =
		"Needs --server. One of both is SANDBOX:PATH, the other a path here. Directories\n"
		"are copied with all that is in them, into a directory that is there, else as it.",
	.example = "nacre --server http://127.0.0.1:7070 cp src sb_0123:/workspace",
	.max_words = 2,
	.takes_server = true,
	.without_config = true,
	.run = run,
};
