/* The files of a sandbox: written and listed inside it, by nacre-files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "server/reply.h"
#include "server/rest/desk.h"
#include "server/rest/rest.h"
#include "server/writing.h"

#define LISTING_SIZE_MAX (4U << 20)

char *nc_rest_path(struct nc_exchange *exchange, const char *name)
{
	const char *path = nc_exchange_query(exchange, name);
	char *copy;

	if (!path || path[0] != '/' || strlen(path) > NC_PATH_MAX) {
		nc_problem(exchange, 400, "bad_path", name, NULL,
			"Expected an absolute path of at most %u bytes", NC_PATH_MAX);
		return NULL;
	}
	copy = strdup(path);
	if (!copy)
		nc_problem(exchange, 503, "no_memory", NULL, NULL, "Out of memory");
	return copy;
}

void nc_rest_refuse_file(
	struct nc_exchange *exchange, int error, const char *said, size_t said_size)
{
	static const struct {
		int error;
		unsigned int status;
		const char *code;
	} known[] = {{-ENOENT, 404, "no_file"}, {-EACCES, 403, "forbidden"},
		{-EPERM, 403, "forbidden"}, {-EROFS, 403, "read_only"},
		{-EISDIR, 409, "is_directory"}, {-ENOTDIR, 409, "not_directory"},
		{-ENOTEMPTY, 409, "not_empty"}, {-EEXIST, 409, "exists"}, {-EBUSY, 409, "busy"},
		{-ENOSPC, 507, "no_space"}, {-EFBIG, 413, "too_large"}, {-E2BIG, 413, "too_many"},
		{-EINVAL, 400, "bad_file"}, {-ELOOP, 400, "bad_path"},
		{-ENAMETOOLONG, 400, "bad_path"}, {-EXDEV, 409, "other_device"},
		{-EBADMSG, 400, "bad_archive"}, {-ENODATA, 400, "bad_archive"},
		{-EOPNOTSUPP, 400, "bad_archive"}, {-ECONNRESET, 503, "unavailable"},
		/* devices and files of /proc that are no files to be read */
		{-EIO, 409, "unreadable"}, {-ENXIO, 409, "unreadable"},
		{-ENODEV, 409, "unreadable"}, {-ESRCH, 409, "unreadable"}, {-ETXTBSY, 409, "busy"},
		{-EMLINK, 409, "too_many"}, {-EDQUOT, 507, "no_space"},
		{-EOVERFLOW, 413, "too_large"}, {-ETIMEDOUT, 504, "timeout"}};
	const char *known_text = nc_errno_text(error);
	int size = said_size > 0 ? (int)said_size : (int)strlen(known_text);
	const char *text = said_size > 0 ? said : known_text;

	struct nacre_err err = {0};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].error == error) {
			nc_problem(exchange, known[i].status, known[i].code, "path", NULL, "%.*s",
				size, text);
			return;
		}
	}
	/* the box's fault, or ours: too many, no memory, gone */
	nc_err_set(&err, error, "%.*s", size, text);
	nc_problem_err(exchange, &err);
}

static void on_done(void *context, const char *sandbox, int error, const char *data, size_t size)
{
	struct nc_wait *wait = context;

	(void)sandbox;
	wait->files(wait, error, data, size);
}

static struct nc_exchange *settle(struct nc_wait *wait)
{
	struct nc_exchange *exchange = wait->exchange;

	nc_wait_free(wait);
	return exchange;
}

/* Asks nacre-files; answer follows. words end in NULL. */
static void ask(struct nc_server *server, struct nc_exchange *exchange, const char *const *words,
	size_t output_max, bool with_body,
	void (*answer)(struct nc_wait *wait, int error, const char *data, size_t size))
{
	struct nc_sandbox *sandbox = nc_rest_sandbox(server, exchange);
	struct nc_wait *wait = sandbox ? nc_wait_new(server, exchange) : NULL;
	const struct nc_file_work work = {.words = words,
		.input = with_body ? &exchange->body : NULL,
		.output_max = output_max,
		.context = wait,
		.done = on_done};
	struct nacre_err err = {0};

	if (!wait)
		return;
	wait->files = answer;
	if (nc_sandbox_files(sandbox, &work, &err) < 0)
		nc_problem_err(settle(wait), &err);
}

static void answer_empty(struct nc_wait *wait, int error, const char *data, size_t size)
{
	struct nc_exchange *exchange = settle(wait);

	if (error < 0)
		nc_rest_refuse_file(exchange, error, data, size);
	else
		nc_reply_empty(exchange, 204);
}

NC_REST(files_write)
{
	cleanup_free char *path = nc_rest_path(exchange, "path");
	const char *executable = path ? nc_exchange_query(exchange, "executable") : NULL;
	/* 0755 and 0644, as numbers */
	const char *mode = executable && nc_streq(executable, "true") ? "493" : "420";
	const char *const words[] = {"write", mode, path, NULL};

	if (path)
		ask(server, exchange, words, 4096, true, answer_empty);
}

NC_REST(files_remove)
{
	cleanup_free char *path = nc_rest_path(exchange, "path");
	const char *const words[] = {"remove", path, NULL};

	if (path)
		ask(server, exchange, words, 4096, false, answer_empty);
}

NC_REST(files_make)
{
	cleanup_free char *path = nc_rest_path(exchange, "path");
	const char *const words[] = {"make", path, NULL};

	if (path)
		ask(server, exchange, words, 4096, false, answer_empty);
}

NC_REST(files_move)
{
	cleanup_free char *from = nc_rest_path(exchange, "from");
	cleanup_free char *to = from ? nc_rest_path(exchange, "to") : NULL;
	const char *const words[] = {"move", from, to, NULL};

	if (to)
		ask(server, exchange, words, 4096, false, answer_empty);
}

/* One entry as nacre-files tells it; what is no such line is left out. */
static json_t *entry_json(const char *line)
{
	static const struct {
		char letter;
		const char *name;
	} kinds[] = {{'f', "file"}, {'d', "directory"}, {'l', "link"}, {'o', "other"}};
	long long size;
	unsigned int mode;
	double modified;
	char kind;
	int at = 0;

	if (sscanf(line, "%c %19lld %11o %31lf %n", &kind, &size, &mode, &modified, &at) != 4 ||
		at == 0)
		return NULL;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].letter == kind)
			return json_pack("{s:o, s:s, s:I, s:i, s:f}", "name",
				nc_json_text(line + at, strlen(line + at)), "type", kinds[i].name,
				"size", (json_int_t)size, "mode", (int)(mode & 07777), "modified",
				modified);
	return NULL;
}

static void write_list(const struct nc_buf *data, struct nc_buf *out)
{
	const char *const end = nc_buf_text(data) + data->size;
	cleanup_json json_t *list = json_array(), *reply = json_pack("{s:O}", "entries", list);

	for (const char *line = nc_buf_text(data); line < end; line += strlen(line) + 1) {
		json_t *entry = entry_json(line);

		if (entry)
			(void)json_array_append_new(list, entry);
	}
	nc_json_dump(reply, out);
}

static void answer_list(struct nc_wait *wait, int error, const char *data, size_t size)
{
	struct nc_buf lines = NC_BUF(LISTING_SIZE_MAX);
	struct nc_server *server = wait->server;
	struct nc_exchange *exchange = settle(wait);

	if (error < 0) {
		nc_rest_refuse_file(exchange, error, data, size);
		return;
	}
	nc_buf_add(&lines, data, size);
	nc_writing_begin(server, exchange, &lines, false, write_list);
}

NC_REST(files_list)
{
	cleanup_free char *path = nc_rest_path(exchange, "path");
	const char *const words[] = {"list", path, NULL};

	if (path)
		ask(server, exchange, words, LISTING_SIZE_MAX, false, answer_list);
}

NC_REST(files_stat)
{
	cleanup_free char *path = nc_rest_path(exchange, "path");
	const char *const words[] = {"stat", path, NULL};

	if (path)
		ask(server, exchange, words, LISTING_SIZE_MAX, false, answer_list);
}

/* That a command runs in it and sees its files. */
static void answer_health(struct nc_wait *wait, int error, const char *data, size_t size)
{
	struct nc_exchange *exchange = settle(wait);

	(void)data, (void)size;
	nc_reply_json(exchange, 200,
		json_pack("{s:b, s:o}", "healthy", error == 0, "reason",
			error == 0 ? json_null() : json_string(nc_errno_text(error))));
}

NC_REST(sandboxes_health)
{
	static const char *const words[] = {"stat", ".", NULL};

	ask(server, exchange, words, 4096, false, answer_health);
}

static void on_one_health(
	void *context, const char *sandbox, int error, const char *data, size_t size)
{
	struct nc_wait *wait = context;

	(void)data, (void)size;
	(void)json_array_append_new(wait->list,
		json_pack("{s:s, s:b, s:o}", "id", sandbox, "healthy", error == 0, "reason",
			error == 0 ? json_null() : json_string(nc_errno_text(error))));
	wait->open--;
	nc_wait_all_done(wait);
}

static bool ask_health(void *context, struct nc_sandbox *sandbox)
{
	static const char *const words[] = {"stat", ".", NULL};
	struct nc_wait *wait = context;
	const struct nc_file_work work = {
		.words = words, .output_max = 4096, .context = wait, .done = on_one_health};
	struct nacre_err err = {0};

	wait->open++;
	if (nc_sandbox_files(sandbox, &work, &err) < 0)
		on_one_health(wait, nc_sandbox_id(sandbox), err.code, "", 0);
	return true;
}

NC_REST(sandboxes_health_all)
{
	nc_wait_for_all(server, exchange, "health", ask_health);
}
