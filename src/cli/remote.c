/* A daemon somewhere. */
#include "cli/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/text.h"
#include "kernel/privilege.h"
#include "server/dial.h"

#define TRIES 5

int nc_remote_begin(struct nc_dial *remote, const char *method, const char *path,
	const char *version, const char *headers, struct nacre_err *err)
{
	nc_buf_cleanup struct nc_buf head = NC_BUF(NC_HTTP_HEAD_MAX);
	const char *key = getenv("NACRE_KEY");
	int r = nc_dial_call(remote, err);

	nc_buf_addf(&head, "%s %s HTTP/%s\r\n%sHost: ", method, path, version, headers);
	nc_dial_host(remote, &head);
	nc_buf_adds(&head, "\r\n");
	if (key && key[strcspn(key, "\r\n")] == '\0')
		nc_buf_addf(&head, "Authorization: Bearer %s\r\n", key);
	nc_buf_adds(&head, "\r\n");
	if (r == 0 && head.error < 0)
		r = nc_err_errno(err, head.error, "Make the request");
	return r < 0 ? r : nc_dial_send(remote, head.data, head.size, err);
}

/* Sends a request and reads the head of its reply: HTTP/1.0, so that its body ends with it. */
static int ask(struct nc_dial *remote, const char *method, const char *path, uint64_t last,
	const char *body, struct nc_buf *line, struct nacre_err *err)
{
	char headers[160] = "Accept: text/event-stream\r\n";
	size_t at = strlen(headers);
	int r;

	if (last > 0)
		at += (size_t)snprintf(
			headers + at, sizeof(headers) - at, "Last-Event-ID: %" PRIu64 "\r\n", last);
	if (body)
		(void)snprintf(headers + at, sizeof(headers) - at,
			"Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(body));
	r = nc_remote_begin(remote, method, path, "1.0", headers, err);
	if (r == 0 && body)
		r = nc_dial_send(remote, body, strlen(body), err);
	return r < 0 ? r : nc_dial_head(remote, line, err);
}

/* What a daemon says when it refuses, in text. */
static int explain(struct nc_dial *remote, unsigned int status, const struct nc_buf *text,
	struct nacre_err *err)
{
	cleanup_json json_t *problem = NULL;
	struct nacre_err ignored = {0};
	const char *code, *detail, *remedy;

	if (text->size == 0)
		return nc_err_set(err, -EREMOTEIO, "%s answered %u", remote->host, status);
	(void)nc_json_parse(text->data, text->size, &problem, &ignored);
	code = json_string_value(json_object_get(problem, "code"));
	detail = json_string_value(json_object_get(problem, "detail"));
	remedy = json_string_value(json_object_get(problem, "remedy"));
	return nc_err_set(err, code && nc_streq(code, "no_file") ? -ENOENT : -EREMOTEIO,
		"%s answered %u: %s%s%s", remote->host, status, detail ? detail : "no reason",
		remedy ? ". " : "", remedy ? remedy : "");
}

static int tell_problem(
	struct nc_dial *remote, unsigned int status, struct nc_buf *line, struct nacre_err *err)
{
	(void)nc_dial_line(remote, line); /* it is one, and ends with the connection */
	return explain(remote, status, line, err);
}

int nc_remote_refused(struct nc_dial *remote, const char *first, struct nacre_err *err)
{
	nc_buf_cleanup struct nc_buf line = NC_BUF(NC_HTTP_HEAD_MAX);
	unsigned long length = NC_HTTP_HEAD_MAX; /* or until the end of the connection */
	unsigned int status = 0;
	char piece[512];
	ssize_t n = 1;

	if (sscanf(first, "HTTP/1.%*u %3u", &status) != 1)
		return nc_err_set(err, -EPROTO, "%s does not speak HTTP", remote->host);
	while (nc_dial_line(remote, &line) == 1 && line.size > 0)
		if (strncasecmp(line.data, "Content-Length:", 15) == 0)
			length = strtoul(line.data + 15, NULL, 10);
	line.size = 0;
	while (n > 0 && line.size < length && line.error == 0) {
		size_t left = length - line.size;

		n = nc_dial_read(remote, piece, left < sizeof(piece) ? left : sizeof(piece));
		if (n > 0)
			nc_buf_add(&line, piece, (size_t)n);
	}
	return explain(remote, status, &line, err);
}

static int read_reply(
	struct nc_dial *remote, json_t **ret_reply, struct nc_buf *line, struct nacre_err *err)
{
	if (nc_dial_line(remote, line) < 0)
		return nc_err_set(err, -EFBIG, "%s answers too much", remote->host);
	return ret_reply && line->size > 0 ? nc_json_parse(line->data, line->size, ret_reply, err)
					   : 0;
}

int nc_remote_ask(const char *url, const char *method, const char *path, const json_t *body,
	json_t **ret_reply, struct nacre_err *err)
{
	nc_cleanup(nc_dial_done) struct nc_dial remote = {.fd = -EBADF};
	nc_buf_cleanup struct nc_buf line = NC_BUF(NC_FRAME_REPLY_MAX);
	cleanup_free char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	int r = nc_dial_parse(url, &remote, err);

	if (r < 0)
		return nc_err_wrap(err, "Option '--server'");
	(void)signal(SIGPIPE, SIG_IGN);
	if (ret_reply)
		*ret_reply = NULL;
	r = ask(&remote, method, path, 0, text, &line, err);
	if (r < 0)
		return r;
	if (r >= 200 && r < 300)
		return read_reply(&remote, ret_reply, &line, err);
	return tell_problem(&remote, (unsigned int)r, &line, err);
}

bool nc_remote_is_sandbox(const char *text)
{
	return nc_text_after(text, "sb_") && strlen(text) < 64 &&
	       text[strspn(text, "sb_0123456789abcdef")] == '\0';
}

void nc_remote_escape(struct nc_buf *out, const char *text)
{
	for (; *text; text++) {
		bool plain = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
			     (*text >= '0' && *text <= '9') || strchr("/._-~", *text);

		nc_buf_addf(out, plain ? "%c" : "%%%02X", (unsigned char)*text);
	}
}

/* One execution, as far as it was told. */
struct watch {
	const struct nc_remote_listener *listener;
	char id[64];
	uint64_t last; /* event */
	json_t *reply;
};

static void take_output(const struct watch *watch, const json_t *data)
{
	const json_t *text = json_object_get(data, "text");
	const char *encoded = json_string_value(json_object_get(data, "base64"));
	const char *name = json_string_value(json_object_get(data, "stream"));
	enum nc_stream stream =
		name && nc_streq(name, "stderr") ? NC_STREAM_ERROR : NC_STREAM_OUTPUT;
	cleanup_free char *decoded = NULL;
	size_t size, at;

	if (!watch->listener->printed)
		return;
	if (json_is_string(text))
		watch->listener->printed(
			NULL, stream, json_string_value(text), json_string_length(text));
	else if (encoded && nc_base64_decode(encoded, strlen(encoded), &decoded, &size, &at) == 0)
		watch->listener->printed(NULL, stream, decoded, size);
}

static void take_event(struct watch *watch, const char *name, json_t *data)
{
	const char *id = json_string_value(json_object_get(data, "id"));
	const char *text = json_string_value(json_object_get(data, "text"));

	if (nc_streq(name, "job") && id)
		(void)snprintf(watch->id, sizeof(watch->id), "%s", id);
	else if (nc_streq(name, "output"))
		take_output(watch, data);
	else if (nc_streq(name, "progress") && text && watch->listener->progress)
		watch->listener->progress(NULL, text);
	else if (nc_streq(name, "gap") && watch->listener->progress)
		watch->listener->progress(NULL, "Some of the output is missing here");
	else if (nc_streq(name, "done") || nc_streq(name, "end"))
		watch->reply = json_incref(data);
}

/* Events until the last one, or until the connection is lost. */
static int take_events(struct nc_dial *remote, struct watch *watch, struct nc_buf *line)
{
	char name[32] = "";
	uint64_t number = 0;
	int r;

	while (!watch->reply && (r = nc_dial_line(remote, line)) != 0) {
		cleanup_json json_t *data = NULL;
		struct nacre_err ignored = {0};
		const char *rest;

		if (r < 0)
			return r;
		if ((rest = nc_text_after(line->data, "id: ")))
			(void)nc_parse_u64(rest, 1, INT64_MAX, &number);
		else if ((rest = nc_text_after(line->data, "event: ")))
			(void)snprintf(name, sizeof(name), "%s", rest);
		else if ((rest = nc_text_after(line->data, "data: ")) &&
			 nc_json_parse(rest, strlen(rest), &data, &ignored) == 0) {
			take_event(watch, name, data);
			watch->last = number;
		}
	}
	return 0;
}

/* With a body it is executed there, else these events are read. */
static int follow(struct nc_dial *remote, struct watch *watch, const char *events, const char *body,
	struct nc_buf *line, struct nacre_err *err)
{
	char path[256];
	int r = 0;

	(void)snprintf(path, sizeof(path), "%s", body ? "/v1/execute" : events);
	for (unsigned int i = 0; i < TRIES && !watch->reply; i++) {
		if (i > 0) { /* it was lost: go on behind the last event */
			nc_dial_hang_up(remote);
			(void)sleep(1);
		}
		if (i > 0 && body)
			(void)snprintf(path, sizeof(path), "/v1/jobs/%s/events", watch->id);
		r = ask(remote, i || !body ? "GET" : "POST", path, watch->last, i ? NULL : body,
			line, err);
		if (r > 0 && r != 200)
			return tell_problem(remote, (unsigned int)r, line, err);
		if (r > 0)
			r = take_events(remote, watch, line);
		if ((body && !watch->id[0]) || r == -EFBIG || r == -ENOMEM)
			break; /* nothing was begun that could be gone on with */
	}
	if (watch->reply)
		return 0;
	return r < 0 && err->message[0]
		       ? r
		       : nc_err_set(err, -ECONNRESET, "The connection to %s is lost", remote->host);
}

int nc_remote_execute(const char *url, const json_t *request,
	const struct nc_remote_listener *listener, json_t **ret_reply, struct nacre_err *err)
{
	nc_cleanup(nc_dial_done) struct nc_dial remote = {.fd = -EBADF};
	cleanup_free char *body = json_dumps(request, JSON_COMPACT);
	nc_buf_cleanup struct nc_buf line = NC_BUF(NC_FRAME_REPLY_MAX);
	struct watch watch = {.listener = listener};
	int r = nc_dial_parse(url, &remote, err);

	if (r < 0)
		return nc_err_wrap(err, "Option '--server'");
	(void)signal(SIGPIPE, SIG_IGN);
	r = body ? follow(&remote, &watch, NULL, body, &line, err)
		 : nc_err_set(err, -ENOMEM, "Out of memory");
	if (r == 0)
		*ret_reply = watch.reply;
	return r;
}

int nc_remote_follow(const char *url, const char *path, const struct nc_remote_listener *listener,
	json_t **ret_end, struct nacre_err *err)
{
	nc_cleanup(nc_dial_done) struct nc_dial remote = {.fd = -EBADF};
	nc_buf_cleanup struct nc_buf line = NC_BUF(NC_FRAME_REPLY_MAX);
	struct watch watch = {.listener = listener};
	int r = nc_dial_parse(url, &remote, err);

	if (r < 0)
		return nc_err_wrap(err, "Option '--server'");
	(void)signal(SIGPIPE, SIG_IGN);
	r = follow(&remote, &watch, path, NULL, &line, err);
	if (r == 0)
		*ret_end = watch.reply;
	return r;
}

bool nc_remote_is_id(const char *text)
{
	size_t size = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");

	return size > 0 && size < 64 && text[size] == '\0';
}

int nc_remote_drop(struct nacre_err *err)
{
	bool ranges = false;
	int r = nc_privilege_ranges(&ranges, err);

	if (r < 0)
		return r;
	return nc_privilege_drop(ranges) < 0 ? nc_err_set(err, -EPERM, "Drop privileges") : 0;
}
