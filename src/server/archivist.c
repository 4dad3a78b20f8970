/* The past, for the daemon: the process that reads it and answers. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/fd.h"
#include "base/frame.h"
#include "base/limits.h"
#include "base/meeting.h"
#include "base/parse.h"
#include "base/pidfd.h"
#include "base/text.h"
#include "engine/owner.h"
#include "engine/past_denials.h"
#include "recorder/blob.h"
#include "recorder/segment.h"
#include "recorder/verify.h"
#include "server/archive.h"
#include "watch/history.h"
#include "watch/recorder.h"

#define CHUNK 65536
#define QUESTION_MAX 4096U
#define DAMAGES_MAX 100U
/* Of a list: who asks reads it on a loop that serves others. */
#define LIST_MAX (512U * 1024)
#define LOW_FD 3
#define HIGH_FD 64
#define HEAD_SIZE (24 + NC_SHA256_HEX_SIZE)

/* All that it holds when it is locked in. */
struct archivist {
	int socket_fd, history_fd;
	int place_fd; /* where the next worker meets us */
	struct nc_history *history;
	bool has_key;
	unsigned char key[NC_SHA256_SIZE]; /* that verifies the journal */
	/* the blob that was asked for last, while there is more of it; data NULL: none */
	char *blob;
	size_t blob_size;
	unsigned char blob_digest[NC_SHA256_SIZE];
};

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* ---- questions ---- */

/* Takes away what would be too much, but for the first; whether anything was. */
static bool cut_list(json_t *rows)
{
	size_t size = 0, n = 0;

	while (n < json_array_size(rows)) {
		size += json_dumpb(json_array_get(rows, n), NULL, 0, JSON_COMPACT);
		if (n > 0 && size > LIST_MAX)
			break;
		n++;
	}
	if (n == json_array_size(rows))
		return false;
	while (json_array_size(rows) > n)
		(void)json_array_remove(rows, json_array_size(rows) - 1);
	return true;
}

static json_t *answer_list(struct archivist *me, const json_t *question, struct nacre_err *err)
{
	struct nc_history_filter filter = {.since = text_of(question, "since"),
		.status = text_of(question, "status"),
		.language = text_of(question, "language"),
		.tenant = text_of(question, "tenant"),
		.before = (uint64_t)json_integer_value(json_object_get(question, "before")),
		.limit = (uint64_t)json_integer_value(json_object_get(question, "limit"))};
	json_t *rows = NULL;
	bool more;

	if (nc_history_list(me->history, &filter, &rows, err) < 0)
		return NULL;
	(void)nc_past_denials(rows); /* or they say less */
	more = cut_list(rows);
	return json_pack("{s:o, s:b}", "executions", rows, "more", more);
}

/* Those of the id that are the tenant's. */
static int find(
	struct archivist *me, const json_t *question, json_t **ret_rows, struct nacre_err *err)
{
	const char *id = text_of(question, "id"), *tenant = text_of(question, "tenant");
	cleanup_json json_t *rows = NULL;
	int r = nc_history_find(me->history, id ? id : "", &rows, err);

	for (size_t i = json_array_size(rows); r == 0 && tenant && i > 0; i--) {
		const char *owner = text_of(json_array_get(rows, i - 1), "tenant");

		if (!owner || !nc_owner_sees(NC_STORE_HISTORY, owner, tenant))
			(void)json_array_remove(rows, i - 1);
	}
	if (r == 0 && json_array_size(rows) == 0)
		return nc_err_set(err, -ENOENT, "There is no such execution");
	if (r == 0) {
		(void)nc_past_denials(rows); /* or they say less */
		*ret_rows = take_ptr(rows);
	}
	return r;
}

static const char *const blob_names[] = {"code", "stdout", "stderr"};

static void drop_blob(struct archivist *me)
{
	free(me->blob);
	me->blob = NULL;
}

/* Becomes the one at hand. 0, -ENOENT: there is none or it is gone, -EBADMSG: it is damaged. */
static int read_blob(struct archivist *me, const json_t *row, const char *name)
{
	unsigned char digest[NC_SHA256_SIZE];
	char key[32];
	const char *hex;

	(void)snprintf(key, sizeof(key), "%s_sha256", name);
	hex = text_of(row, key);
	if (!hex || strlen(hex) != 2 * NC_SHA256_SIZE || nc_sha256_parse(hex, digest) < 0)
		return -ENOENT;
	if (me->blob && nc_sha256_equal(me->blob_digest, digest))
		return 0;
	drop_blob(me);
	memcpy(me->blob_digest, digest, sizeof(digest));
	return nc_blob_read(me->history_fd, digest, &me->blob, &me->blob_size);
}

static json_t *answer_show(struct archivist *me, const json_t *question, struct nacre_err *err)
{
	cleanup_json json_t *rows = NULL;

	/* several runs may have used an id; the last is meant */
	if (find(me, question, &rows, err) < 0)
		return NULL;
	return json_pack("{s:[O]}", "executions", json_array_get(rows, json_array_size(rows) - 1));
}

static json_t *answer_blob(struct archivist *me, const json_t *question, struct nacre_err *err)
{
	cleanup_json json_t *rows = NULL;
	cleanup_free char *encoded = NULL;
	const char *which = text_of(question, "which");
	const size_t at = (size_t)json_integer_value(json_object_get(question, "at"));
	size_t whole = 0, size = 0;
	int r = find(me, question, &rows, err);

	if (r < 0)
		return NULL;
	r = -ENOENT;
	for (size_t i = 0; which && i < sizeof(blob_names) / sizeof(blob_names[0]); i++)
		if (nc_streq(which, blob_names[i]))
			r = read_blob(me, json_array_get(rows, json_array_size(rows) - 1), which);
	if (r == 0 && at <= me->blob_size) {
		whole = me->blob_size;
		size = whole - at < NC_ARCHIVE_PIECE ? whole - at : NC_ARCHIVE_PIECE;
		r = nc_base64_encode(me->blob + at, size, &encoded);
		if (at + size == whole)
			drop_blob(me);
	}
	if (r < 0) {
		nc_err_set(err, r == -ENOENT ? r : -EIO,
			r == -ENOENT ? "It is not kept, or not any more" : "It is damaged");
		return NULL;
	}
	return json_pack("{s:s, s:I}", "base64", encoded ? encoded : "", "size", (json_int_t)whole);
}

static void write_head(char out[static HEAD_SIZE], const struct nc_receipt *head)
{
	char hex[NC_SHA256_HEX_SIZE];

	nc_sha256_hex(head->hash, hex);
	(void)snprintf(out, HEAD_SIZE, "%" PRIu64 ":%s", head->seq, hex);
}

static json_t *answer_head(struct archivist *me, const json_t *question, struct nacre_err *err)
{
	char text[HEAD_SIZE];
	struct nc_receipt head;
	struct nc_place place;
	struct nc_link link;
	int r = nc_journal_read_key(me->history_fd, &link, &place);

	(void)question;
	if (r < 0) {
		nc_err_errno(err, r, "Read the key of the journal");
		return NULL;
	}
	head.seq = link.seq - 1;
	memcpy(head.hash, link.last, sizeof(head.hash));
	explicit_bzero(&link, sizeof(link));
	write_head(text, &head);
	return json_pack("{s:s}", "head", text);
}

static void report(void *context, const struct nc_damage *damage)
{
	json_t *list = context;

	if (json_array_size(list) < DAMAGES_MAX)
		(void)json_array_append_new(
			list, json_pack("{s:s, s:I, s:s}", "kind", nc_damage_names[damage->kind],
				      "seq", (json_int_t)damage->seq, "text", damage->text));
}

static int parse_head(const char *text, struct nc_receipt *ret_head)
{
	const char *colon = strchr(text, ':');
	char number[24] = "";

	if (!colon || (size_t)(colon - text) >= sizeof(number) ||
		strlen(colon + 1) != 2 * NC_SHA256_SIZE)
		return -EINVAL;
	memcpy(number, text, (size_t)(colon - text));
	if (nc_parse_u64(number, 0, INT64_MAX, &ret_head->seq) < 0)
		return -EINVAL;
	return nc_sha256_parse(colon + 1, ret_head->hash);
}

static json_t *answer_verify(struct archivist *me, const json_t *question, struct nacre_err *err)
{
	cleanup_json json_t *damages = json_array();
	const char *text = text_of(question, "head");
	struct nc_verdict verdict;
	struct nc_receipt head = {0};
	char last[HEAD_SIZE];
	int r;

	if (!me->has_key) {
		nc_err_set(err, -EOPNOTSUPP,
			"The key of the journal is not in the state directory: verify where it is, "
			"with nacre audit verify --key");
		return NULL;
	}
	if (text && parse_head(text, &head) < 0) {
		nc_err_set(err, -EINVAL, "Not a head as /v1/audit/head answers it");
		return NULL;
	}
	r = nc_verify(me->history_fd, me->key, text ? &head : NULL, report, damages, &verdict);
	if (r < 0) {
		nc_err_errno(err, r, "Read the journal");
		return NULL;
	}
	write_head(last, &verdict.last);
	return json_pack("{s:b, s:I, s:I, s:I, s:s, s:I, s:O}", "ok", verdict.damages == 0, "lines",
		(json_int_t)verdict.lines, "first_seq", (json_int_t)verdict.first_seq, "retired",
		(json_int_t)verdict.retired, "head", last, "n_damages", (json_int_t)verdict.damages,
		"damages", damages);
}

static const struct {
	const char *op;
	bool reads; /* the index has to be up to date */
	json_t *(*answer)(struct archivist *me, const json_t *question, struct nacre_err *err);
} ops[] = {
	{"list", true, answer_list},
	{"show", true, answer_show},
	{"blob", true, answer_blob},
	{"head", false, answer_head},
	{"verify", false, answer_verify},
};

static json_t *answer(struct archivist *me, const json_t *question)
{
	const char *op = text_of(question, "op");
	struct nacre_err err = {0};
	json_t *reply = NULL;

	nc_err_set(&err, -EOPNOTSUPP, "Unknown op");
	for (size_t i = 0; op && i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (!nc_streq(op, ops[i].op))
			continue;
		nc_err_set(&err, -ENOMEM, "Out of memory");
		if (!ops[i].reads || nc_history_update(me->history, &err) == 0)
			reply = ops[i].answer(me, question, &err);
	}
	if (!reply)
		reply = json_pack("{s:i, s:o}", "code", err.code, "error",
			nc_json_text(err.message, strlen(err.message)));
	if (reply)
		(void)json_object_set(reply, "n", json_object_get(question, "n"));
	return reply;
}

/* ---- the process ---- */

static int send_answer(int fd, json_t *reply)
{
	struct nc_frame_out out = {.buf = NC_BUF(NC_FRAME_REPLY_MAX + NC_FRAME_HEAD_SIZE)};
	int r = nc_frame_put(&out, reply, NC_FRAME_REPLY_MAX);

	while (r >= 0 && nc_frame_unsent(&out) > 0)
		r = nc_frame_send(&out, fd);
	nc_frame_out_done(&out);
	return r;
}

/* Answers what was asked in these bytes. -errno: it is no question, or nobody takes the answer. */
static int take(struct archivist *me, struct nc_frame_in *in, const char *data, size_t size)
{
	struct nacre_err err = {0};
	int r = 0;

	while (r >= 0 && size > 0) {
		cleanup_json json_t *question = NULL;
		size_t used;

		r = nc_frame_take(in, data, size, &used, &question, &err);
		if (r <= 0)
			break;
		r = send_answer(me->socket_fd, answer(me, question));
		data += used;
		size -= used;
	}
	return r;
}

/* One worker after the other; what one has asked and not heard is nothing to the next. */
static int serve(struct archivist *me)
{
	const struct nc_frame_in fresh = {.max = QUESTION_MAX, .max_values = 64};
	struct nc_frame_in in = fresh;
	static char chunk[CHUNK];
	int r;

	while ((r = nc_meeting_wait(&me->place_fd, &me->socket_fd)) > 0) {
		ssize_t n = r == 1 ? read(me->socket_fd, chunk, sizeof(chunk)) : 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n > 0 && take(me, &in, chunk, (size_t)n) >= 0)
			continue;
		if (r == 1)
			me->socket_fd = nc_fd_close(me->socket_fd);
		nc_frame_in_done(&in);
		in = fresh;
	}
	nc_frame_in_done(&in);
	return r;
}

/* Leaves nothing open but what it needs: sockets of others would stay alive with it. */
static int keep_only(int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, HIGH_FD)) < 0)
			return -errno;
	for (size_t i = 0; i < n; i++)
		if (dup2(fds[i], LOW_FD + (int)i) < 0)
			return -errno;
	for (size_t i = 0; i < n; i++)
		fds[i] = LOW_FD + (int)i;
	return close_range(LOW_FD + (unsigned int)n, ~0U, 0) < 0 ? -errno : 0;
}

_Noreturn static void be_archivist(struct archivist *me, int state_fd, int index_fd)
{
	struct nacre_err err = {0};
	int r;

	(void)prctl(PR_SET_NAME, "nacre-archive");
	(void)signal(SIGINT, SIG_IGN); /* it ends when the daemon does */
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	me->has_key = nc_history_key(state_fd, NULL, me->key, &err) == 0;
	r = nc_history_open(index_fd, me->history_fd, &me->history, &err);
	if (r == 0)
		r = nc_history_lock_in(me->history_fd, &err);
	(void)close(state_fd);
	if (r < 0)
		fprintf(stderr, "nacre serve: the history cannot be read: %s\n", err.message);
	else
		r = serve(me);
	nc_child_exit(r < 0 ? 125 : 0);
}

int nc_archive_start(int index_fd, int place_fd, int *ret_pidfd, struct nacre_err *err)
{
	struct archivist me = {0};
	int fd, r, state_fd = -EBADF;

	me.history_fd = nc_history_dir(NULL, &state_fd, err);
	if (me.history_fd < 0)
		return me.history_fd;
	r = nc_meeting_fork(SOCK_STREAM, &fd, ret_pidfd, err);
	if (r > 0) {
		int fds[] = {fd, place_fd, me.history_fd, state_fd, index_fd};

		if (keep_only(fds, sizeof(fds) / sizeof(fds[0])) < 0)
			_exit(125);
		me.socket_fd = fds[0];
		me.place_fd = fds[1];
		me.history_fd = fds[2];
		be_archivist(&me, fds[3], fds[4]);
	}
	(void)close(me.history_fd);
	(void)close(state_fd);
	return r < 0 ? r : fd;
}
