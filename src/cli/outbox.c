/* Captured files on their way to the caller's disk. */
#include "cli/outbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/path.h"
#include "base/say.h"
#include "base/text.h"
#include "box/unpack.h"
#include "kernel/fence.h"

/* As much as a reply brings, and the heads and names of its files. */
#define STREAM_MAX (NC_REQUEST_FILES_SIZE_MAX + NC_CAPTURE_FILES_MAX * (size_t)(NC_PATH_MAX + 64))
#define SAID_MAX 4096U
#define BLOCK 65536

struct outbox {
	int dir_fd;
	const char *dir; /* NULL: the current one */
	size_t written, failed;
	char first[NC_TEXT_QUOTED_MAX + 128]; /* what failed first */
};

static bool has_hidden_part(const char *path)
{
	return path[0] == '.' || strstr(path, "/.");
}

/* A new file, or none. */
static int write_new(int dir_fd, const struct nc_unpacked *file, mode_t mode)
{
	cleanup_close int fd = nc_path_open(dir_fd, file->path, O_WRONLY | O_CREAT | O_EXCL, mode);

	return fd < 0 ? fd : nc_fd_write_all(fd, file->data, (size_t)file->size);
}

static int write_file(const struct outbox *outbox, const struct nc_unpacked *file)
{
	mode_t mode = file->executable ? 0777 : 0666; /* less what the umask takes */
	cleanup_free char *above = strdup(file->path);
	char *slash = above ? strrchr(above, '/') : NULL;
	int r = above ? 0 : -ENOMEM;

	if (r == 0 && !outbox->dir && has_hidden_part(file->path))
		return -EPERM;
	if (slash) {
		*slash = '\0';
		r = nc_path_make_dirs(outbox->dir_fd, above, 0777);
	}
	if (r < 0)
		return r;
	return outbox->dir ? nc_path_write(outbox->dir_fd, file->path, file->data,
				     (size_t)file->size, mode)
			   : write_new(outbox->dir_fd, file, mode);
}

static void take_file(struct outbox *outbox, const struct nc_unpacked *file)
{
	char quoted[NC_TEXT_QUOTED_MAX];
	int r = write_file(outbox, file);

	if (r == 0) {
		outbox->written++;
		return;
	}
	if (outbox->failed++ == 0)
		(void)snprintf(outbox->first, sizeof(outbox->first), "%s: %s",
			nc_text_quote(quoted, file->path),
			r == -EPERM && !outbox->dir    ? "hidden files need --out DIR"
			: r == -EEXIST && !outbox->dir ? "it is there; --out DIR replaces files"
			: r == -ELOOP || r == -ENOTDIR ? "a link or file is in the way"
						       : nc_errno_text(r));
}

/* The process: takes the stream, writes, and answers with a sign and a sentence. */
static void serve(struct outbox *outbox, int fd)
{
	static struct nc_unpack unpack;
	char data[BLOCK], said[SAID_MAX], quoted[NC_TEXT_QUOTED_MAX];
	ssize_t n;
	int r = 0;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || nc_fence_stores(&outbox->dir_fd, 1) < 0)
		_exit(1);
	nc_unpack_init(&unpack, STREAM_MAX);
	while (r == 0 && !unpack.ended && (n = read(fd, data, sizeof(data))) > 0)
		r = nc_unpack_add(&unpack, data, (size_t)n);
	if (r < 0 || !unpack.ended)
		_exit(1);
	for (size_t i = 0; i < unpack.n_files; i++)
		take_file(outbox, &unpack.files[i]);
	(void)snprintf(said, sizeof(said), "%cCaptured files in %s: %zu%s%s",
		outbox->failed > 0 ? '1' : '0',
		nc_text_quote(quoted, outbox->dir ? outbox->dir : "."), outbox->written,
		outbox->failed > 0 ? "; not written: " : "", outbox->first);
	if (outbox->failed > 1)
		(void)snprintf(said + strlen(said), sizeof(said) - strlen(said), " (and %zu more)",
			outbox->failed - 1);
	(void)nc_fd_write_all(fd, said, strlen(said));
	_exit(0);
}

int nc_outbox_start(const char *dir, struct nacre_err *err)
{
	struct outbox outbox = {.dir = dir};
	cleanup_close int dir_fd = -EBADF;
	int ends[2];
	pid_t pid;

	if (dir && mkdir(dir, 0777) < 0 && errno != EEXIST)
		return nc_err_errno(err, -errno, "Option '--out': '%s'", dir);
	dir_fd = outbox.dir_fd = open(dir ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return nc_err_errno(err, -errno, "Option '--out': '%s'", dir ? dir : ".");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return nc_err_errno(err, -errno, "Make a socket");
	pid = fork();
	if (pid == 0) {
		(void)close(ends[0]);
		/* nobody's child: we become a spawner, which knows its own */
		if (fork() == 0)
			serve(&outbox, ends[1]);
		_exit(0);
	}
	(void)close(ends[1]);
	if (pid < 0) {
		(void)close(ends[0]);
		return nc_err_errno(err, -errno, "Make a process");
	}
	(void)waitpid(pid, NULL, 0);
	return ends[0];
}

/* One captured file of a reply, as the stream has it. */
static int add_file(struct nc_buf *stream, const char *path, const json_t *file)
{
	const json_t *text = json_object_get(file, "text");
	const char *encoded = json_string_value(json_object_get(file, "base64"));
	bool executable = json_is_true(json_object_get(file, "executable"));
	cleanup_free char *data = NULL;
	size_t size = 0, at;
	int r;

	/* what a daemon answers may be anything */
	if (!nc_path_is_plain(path) || (!text && !encoded))
		return -EBADMSG;
	if (text) {
		nc_pack_add(stream, path, json_string_value(text), json_string_length(text),
			executable);
		return 0;
	}
	r = nc_base64_decode(encoded, strlen(encoded), &data, &size, &at);
	if (r == 0)
		nc_pack_add(stream, path, data, size, executable);
	return r;
}

int nc_outbox_put(int fd, const json_t *reply, struct nacre_err *err)
{
	nc_buf_cleanup struct nc_buf stream = NC_BUF(STREAM_MAX);
	char said[SAID_MAX + 1] = "";
	const char *path;
	json_t *file;
	ssize_t n;
	int r = 0;

	json_object_foreach((json_t *)(uintptr_t)json_object_get(reply, "files"), path,
		file) if (r == 0) r = add_file(&stream, path, file);
	nc_pack_end(&stream);
	if (r == 0)
		r = stream.error < 0 ? stream.error : nc_fd_write_all(fd, stream.data, stream.size);
	if (r < 0)
		return nc_err_errno(err, r, "Write the captured files");
	n = nc_fd_read_upto(fd, said, SAID_MAX);
	if (n < 2)
		return nc_err_set(err, -EPIPE, "The captured files could not be written");
	said[n] = '\0';
	if (said[0] != '0')
		return nc_err_set(err, -EIO, "%s", said + 1);
	nc_say(stderr, "nacre run: %s\n", said + 1);
	return 0;
}
