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

#include "base/fd.h"
#include "base/id.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/tarball.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "server/dial.h"

#define BLOCK 65536

/* SANDBOX:PATH, taken apart; sandbox "": a path here. */
struct place {
	char sandbox[64];
	const char *path;
	bool is_dir;
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

static int unpack_into(
	const char *url, const struct place *from, const char *dir, struct nacre_err *err)
{
	nc_cleanup(nc_dial_done) struct nc_dial dial = {.fd = -EBADF};
	nc_buf_cleanup struct nc_buf target = NC_BUF(NC_HTTP_TARGET_MAX);
	nc_buf_cleanup struct nc_buf line = NC_BUF(NC_FRAME_REPLY_MAX);
	cleanup_close int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_close int pipe_fd = -EBADF;
	pid_t pid = 0;
	int r = nc_dial_parse(url, &dial, err);

	if (dir_fd < 0)
		return nc_err_errno(err, -errno, "Open '%s'", dir);
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
	r = nc_tarball_unpack(dir_fd, pipe_fd, err);
	pipe_fd = nc_fd_close(pipe_fd);
	(void)waitpid(pid, NULL, 0);
	return r;
}

/* One file: unpacked beside where it goes, and renamed. */
static int fetch_file(
	const char *url, const struct place *from, const char *to, struct nacre_err *err)
{
	cleanup_free char *name = last_name(from->path), *copy = strdup(to), *fresh = NULL;
	cleanup_free char *inside = NULL;
	int r;

	if (!name || !copy || asprintf(&fresh, "%s/.nacre-cp-XXXXXX", dirname(copy)) < 0)
		return nc_err_set(err, -ENOMEM, "Out of memory");
	if (!mkdtemp(fresh))
		return nc_err_errno(err, -errno, "Make a directory beside '%s'", to);
	inside = join(fresh, name);
	r = inside ? unpack_into(url, from, fresh, err) : nc_err_set(err, -ENOMEM, "Out of memory");
	if (r == 0 && rename(inside, to) < 0)
		r = nc_err_errno(err, -errno, "Write '%s'", to);
	if (inside)
		(void)unlink(inside);
	(void)rmdir(fresh);
	return r;
}

static int fetch(
	const char *url, const struct place *from, const struct place *to, struct nacre_err *err)
{
	cleanup_free char *name = last_name(from->path), *below = NULL;
	struct stat status;
	bool into = stat(to->path, &status) == 0 && S_ISDIR(status.st_mode);
	const char *target = to->path;
	char kind[16];
	int r = kind_there(url, from, kind, err);

	if (r == 0 && !kind[0])
		r = nc_err_set(err, -ENOENT, "There is no '%s' in the sandbox", from->path);
	if (r < 0)
		return r;
	if (into && name && !nc_streq(name, "/") && !nc_streq(name, "."))
		target = below = join(to->path, name);
	if (!name || !target)
		return nc_err_set(err, -ENOMEM, "Out of memory");
	if (!nc_streq(kind, "directory"))
		return fetch_file(url, from, target, err);
	if (mkdir(target, 0777) < 0 && errno != EEXIST)
		return nc_err_errno(err, -errno, "Make '%s'", target);
	return unpack_into(url, from, target, err);
}

/* ---- into it ---- */

/* A process that packs into a pipe: its other end, or -errno. It says itself what fails. */
static int pack(const char *dir, const char *name, pid_t *ret_pid)
{
	const char *const names[] = {name, NULL};
	int ends[2];
	pid_t pid = 0;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		cleanup_close int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		const struct nc_tarball_pack order = {
			.base_fd = dir_fd, .names = names, .max = NC_ARCHIVE_MAX};
		struct nacre_err err = {0};
		int r = dir_fd < 0 ? nc_err_errno(&err, -errno, "Open '%s'", dir)
				   : nc_tarball_pack(&order, ends[1], &err);

		if (r < 0 && r != -EPIPE)
			fprintf(stderr, "nacre cp: %s\n", err.message);
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

static int pack_into(const char *url, const struct place *to, const char *path, const char *dir,
	const char *name, struct nacre_err *err)
{
	nc_cleanup(nc_dial_done) struct nc_dial dial = {.fd = -EBADF};
	nc_buf_cleanup struct nc_buf target = NC_BUF(NC_HTTP_TARGET_MAX);
	nc_buf_cleanup struct nc_buf line = NC_BUF(NC_FRAME_REPLY_MAX);
	pid_t pid = 0;
	int pipe_fd, r = nc_dial_parse(url, &dial, err);

	put_target(&target, to, "/archive", "path", path);
	if (r < 0)
		return r;
	pipe_fd = pack(dir, name, &pid); /* before the connection, which is not for it */
	if (pipe_fd < 0)
		return nc_err_errno(err, pipe_fd, "Pack '%s'", dir);
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
static int send_renamed(const char *url, const struct place *to, const char *dir, const char *name,
	struct nacre_err *err)
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
		inside = join(fresh, name);
	if (!inside)
		return nc_err_set(err, -ENOMEM, "Out of memory");
	r = pack_into(url, to, fresh, dir, name, err);
	put_target(&target, to, "/files/move", "from", inside);
	nc_buf_adds(&target, "&to=");
	nc_remote_escape(&target, to->path);
	if (r == 0)
		r = nc_remote_ask(url, "POST", nc_buf_text(&target), NULL, NULL, err);
	put_target(&removal, to, "/files", "path", fresh);
	(void)nc_remote_ask(url, "DELETE", nc_buf_text(&removal), NULL, NULL, &ignored);
	return r;
}

static int send_it(
	const char *url, const struct place *from, const struct place *to, struct nacre_err *err)
{
	cleanup_free char *name = last_name(from->path), *copy = strdup(from->path), *below = NULL;
	struct stat status;
	char kind[16];
	int r = kind_there(url, to, kind, err);
	bool into = nc_streq(kind, "directory");

	if (r < 0)
		return r;
	if (stat(from->path, &status) < 0)
		return nc_err_errno(err, -errno, "Find '%s'", from->path);
	if (into && name)
		below = join(to->path, name);
	if (!name || !copy || (into && !below))
		return nc_err_set(err, -ENOMEM, "Out of memory");
	if (S_ISDIR(status.st_mode))
		return pack_into(url, to,
			into && !nc_streq(name, ".") && !nc_streq(name, "/") ? below : to->path,
			from->path, ".", err);
	if (into)
		return pack_into(url, to, to->path, dirname(copy), name, err);
	return send_renamed(url, to, dirname(copy), name, err);
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
