/* A daemon somewhere. */
#include "cli/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/text.h"

#define TRIES 5
#define BLOCK 16384
#define PORT "7070"

struct remote {
	char host[256], port[8];
	bool tls;
	int fd;
	SSL_CTX *context;
	SSL *ssl;
	char block[BLOCK]; /* what was read and not taken yet */
	size_t size, at;
};

static void hang_up(struct remote *remote)
{
	SSL_free(remote->ssl);
	remote->ssl = NULL;
	remote->fd = nc_fd_close(remote->fd);
	remote->size = remote->at = 0;
}

static void remote_done(struct remote *remote)
{
	hang_up(remote);
	SSL_CTX_free(remote->context);
}

static int parse_url(const char *url, struct remote *remote, struct nacre_err *err)
{
	const char *rest = nc_text_after(url, "http://");
	char quoted[NC_TEXT_QUOTED_MAX];
	size_t host, skip = 0;
	uint64_t port;

	if (!rest) {
		rest = nc_text_after(url, "https://");
		remote->tls = rest != NULL;
	}
	if (rest) {
		skip = rest[0] == '[';
		host = strcspn(rest + skip, skip ? "]" : ":/");
		if (host > 0 && host < sizeof(remote->host)) {
			const char *behind = rest + 2 * skip + host;

			memcpy(remote->host, rest + skip, host);
			(void)snprintf(remote->port, sizeof(remote->port), "%.*s",
				behind[0] == ':' ? (int)strcspn(behind + 1, "/") : 0, behind + 1);
			if (!remote->port[0])
				(void)snprintf(remote->port, sizeof(remote->port), PORT);
			behind += strcspn(behind, "/");
			if (nc_parse_u64(remote->port, 1, 65535, &port) == 0 &&
				(!*behind || nc_streq(behind, "/")))
				return 0;
		}
	}
	return nc_err_set(err, -EINVAL,
		"Option '--server': found %s, expected one such as http://127.0.0.1:7070",
		nc_text_quote(quoted, url));
}

static int begin_tls(struct remote *remote, struct nacre_err *err)
{
	char reason[160];

	if (!remote->context) {
		remote->context = SSL_CTX_new(TLS_client_method());
		if (!remote->context || SSL_CTX_set_default_verify_paths(remote->context) != 1)
			return nc_err_set(err, -ENOMEM, "Out of memory");
		SSL_CTX_set_verify(remote->context, SSL_VERIFY_PEER, NULL);
	}
	remote->ssl = SSL_new(remote->context);
	if (remote->ssl && SSL_set1_host(remote->ssl, remote->host) == 1 &&
		SSL_set_tlsext_host_name(remote->ssl, remote->host) == 1 &&
		SSL_set_fd(remote->ssl, remote->fd) == 1 && SSL_connect(remote->ssl) == 1)
		return 0;
	ERR_error_string_n(ERR_get_error(), reason, sizeof(reason));
	return nc_err_set(err, -EPROTO, "TLS with %s: %s", remote->host, reason);
}

static int call(struct remote *remote, struct nacre_err *err)
{
	const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	int r = getaddrinfo(remote->host, remote->port, &wanted, &found), error = ENOENT;

	if (r != 0)
		return nc_err_set(err, -EHOSTUNREACH, "Find %s: %s", remote->host, gai_strerror(r));
	for (const struct addrinfo *at = found; at && remote->fd < 0; at = at->ai_next) {
		remote->fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (remote->fd >= 0 && connect(remote->fd, at->ai_addr, at->ai_addrlen) < 0) {
			error = errno;
			remote->fd = nc_fd_close(remote->fd);
		}
	}
	freeaddrinfo(found);
	if (remote->fd < 0)
		return nc_err_errno(
			err, -error, "Connect to %s port %s", remote->host, remote->port);
	return remote->tls ? begin_tls(remote, err) : 0;
}

static int send_all(struct remote *remote, const char *data, size_t size, struct nacre_err *err)
{
	int r;

	if (!remote->ssl) {
		r = nc_fd_write_all(remote->fd, data, size);
		return r < 0 ? nc_err_errno(err, r, "Send the request") : 0;
	}
	while (size > 0) {
		r = SSL_write(remote->ssl, data, size < BLOCK ? (int)size : BLOCK);
		if (r <= 0)
			return nc_err_set(err, -EPIPE, "Send the request");
		data += r;
		size -= (size_t)r;
	}
	return 0;
}

/* One line without its end; 0: there is none any more, and what came is lost. */
static int read_line(struct remote *remote, struct nc_buf *line)
{
	line->size = 0;
	nc_buf_add(line, "", 0);
	for (;;) {
		const char *from = remote->block + remote->at;
		const char *end = memchr(from, '\n', remote->size - remote->at);
		ssize_t n = end ? end - from : (ssize_t)(remote->size - remote->at);

		nc_buf_add(line, from, (size_t)n);
		if (line->error < 0)
			return line->error;
		remote->at += (size_t)n + (end ? 1 : 0);
		if (end) {
			if (line->size > 0 && line->data[line->size - 1] == '\r')
				line->data[--line->size] = '\0';
			return 1;
		}
		n = remote->ssl ? SSL_read(remote->ssl, remote->block, BLOCK)
				: read(remote->fd, remote->block, BLOCK);
		remote->at = 0;
		remote->size = n > 0 ? (size_t)n : 0;
		if (n <= 0)
			return 0;
	}
}

/* Sends a request and reads the head of its reply: HTTP/1.0, so that its body ends with it. */
static int ask(struct remote *remote, const char *method, const char *path, uint64_t last,
	const char *body, struct nc_buf *line, struct nacre_err *err)
{
	nc_buf_cleanup struct nc_buf head = NC_BUF(NC_HTTP_HEAD_MAX);
	const char *key = getenv("NACRE_KEY");
	unsigned int status = 0;
	int r = call(remote, err);

	nc_buf_addf(&head, "%s %s HTTP/1.0\r\nHost: %s%s%s:%s\r\nAccept: text/event-stream\r\n",
		method, path, strchr(remote->host, ':') ? "[" : "", remote->host,
		strchr(remote->host, ':') ? "]" : "", remote->port);
	if (key && key[strcspn(key, "\r\n")] == '\0')
		nc_buf_addf(&head, "Authorization: Bearer %s\r\n", key);
	if (last > 0)
		nc_buf_addf(&head, "Last-Event-ID: %" PRIu64 "\r\n", last);
	if (body)
		nc_buf_addf(&head, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
			strlen(body));
	nc_buf_adds(&head, "\r\n");
	if (r == 0 && head.error < 0)
		r = nc_err_errno(err, head.error, "Make the request");
	if (r == 0)
		r = send_all(remote, head.data, head.size, err);
	if (r == 0 && body)
		r = send_all(remote, body, strlen(body), err);
	if (r < 0)
		return r;
	if (read_line(remote, line) != 1 || sscanf(line->data, "HTTP/1.%*u %3u", &status) != 1)
		return nc_err_set(err, -EPROTO, "%s does not speak HTTP", remote->host);
	do
		r = read_line(remote, line);
	while (r == 1 && line->size > 0);
	return (int)status;
}

/* What a daemon says when it refuses. */
static int tell_problem(
	struct remote *remote, unsigned int status, struct nc_buf *line, struct nacre_err *err)
{
	cleanup_json json_t *problem = NULL;
	struct nacre_err ignored = {0};
	const char *detail, *remedy;

	if (read_line(remote, line) == 0 && line->size == 0)
		return nc_err_set(err, -EREMOTEIO, "%s answered %u", remote->host, status);
	(void)nc_json_parse(line->data, line->size, &problem, &ignored);
	detail = json_string_value(json_object_get(problem, "detail"));
	remedy = json_string_value(json_object_get(problem, "remedy"));
	return nc_err_set(err, -EREMOTEIO, "%s answered %u: %s%s%s", remote->host, status,
		detail ? detail : "no reason", remedy ? ". " : "", remedy ? remedy : "");
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
	else if (nc_streq(name, "done"))
		watch->reply = json_incref(data);
}

/* Events until the last one, or until the connection is lost. */
static int take_events(struct remote *remote, struct watch *watch, struct nc_buf *line)
{
	char name[32] = "";
	uint64_t number = 0;
	int r;

	while (!watch->reply && (r = read_line(remote, line)) != 0) {
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

static int follow(struct remote *remote, struct watch *watch, const char *body, struct nc_buf *line,
	struct nacre_err *err)
{
	char path[128] = "/v1/execute";
	int r = 0;

	for (unsigned int i = 0; i < TRIES && !watch->reply; i++) {
		if (i > 0) { /* it was lost: go on behind the last event */
			hang_up(remote);
			(void)sleep(1);
			(void)snprintf(path, sizeof(path), "/v1/jobs/%s/events", watch->id);
		}
		r = ask(remote, i ? "GET" : "POST", path, watch->last, i ? NULL : body, line, err);
		if (r > 0 && r != 200)
			return tell_problem(remote, (unsigned int)r, line, err);
		if (r > 0)
			r = take_events(remote, watch, line);
		if (!watch->id[0] || r == -EFBIG || r == -ENOMEM)
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
	nc_cleanup(remote_done) struct remote remote = {.fd = -EBADF};
	cleanup_free char *body = json_dumps(request, JSON_COMPACT);
	nc_buf_cleanup struct nc_buf line = NC_BUF(NC_FRAME_REPLY_MAX);
	struct watch watch = {.listener = listener};
	int r = parse_url(url, &remote, err);

	if (r < 0)
		return r;
	(void)signal(SIGPIPE, SIG_IGN);
	r = body ? follow(&remote, &watch, body, &line, err)
		 : nc_err_set(err, -ENOMEM, "Out of memory");
	if (r == 0)
		*ret_reply = watch.reply;
	return r;
}
