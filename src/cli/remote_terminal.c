/*
 * A command in a sandbox of a daemon, over a WebSocket.
 *
 * Neither side may wait for the other to read: what we typed waits in a buffer while output comes.
 */
#include "cli/remote_terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/say.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "server/dial.h"
#include "server/websocket.h"
#include "tier/terminal.h"

#define BLOCK 16384
#define MESSAGE_MAX (2U * 1024 * 1024)
/* What is typed ahead. */
#define UNSENT_HIGH (256U * 1024)

struct session {
	struct nc_dial dial;
	struct nc_ws_reader reader;
	struct nc_terminal terminal;
	struct nc_buf out;
	size_t out_at;
	bool typed_all; /* our input has ended, or the command */
	bool ended;
	int code; /* how it ended, or -errno with err */
	struct nacre_err *err;
};

static void send_message(
	struct session *session, enum nc_ws_kind kind, int first, const void *data, size_t size)
{
	unsigned char mask[4] = {0}, head = (unsigned char)first;

	(void)nc_random(mask, sizeof(mask)); /* it hides nothing; RFC 6455, 10.3 */
	nc_ws_put(&session->out, kind, &head, first >= 0 ? 1 : 0, data, size, mask);
}

static void tell(struct session *session, json_t *value)
{
	cleanup_free char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;

	json_decref(value);
	if (text)
		send_message(session, NC_WS_TEXT, -1, text, strlen(text));
}

static void tell_size(struct session *session)
{
	uint32_t rows, columns;

	nc_terminal_resized(&session->terminal, &rows, &columns);
	tell(session, json_pack("{s:s, s:i, s:i}", "type", "resize", "rows", (int)rows, "columns",
			      (int)columns));
}

/* ---- what the daemon says ---- */

static int exit_code(const json_t *command)
{
	const json_t *code = json_object_get(command, "exit_code");
	const json_t *signal = json_object_get(command, "signal");
	const char *text = json_string_value(json_object_get(command, "error"));

	if (json_is_integer(code))
		return (int)(json_integer_value(code) & 0xff);
	if (text)
		nc_say(stderr, "nacre: %s\n", text);
	return json_is_integer(signal) ? 128 + (int)(json_integer_value(signal) & 0x7f)
				       : NC_EXIT_SELF;
}

static void take_text(struct session *session)
{
	cleanup_json json_t *value = NULL;
	struct nacre_err ignored = {0};
	const char *type, *detail;

	(void)nc_json_parse(session->reader.data, session->reader.size, &value, &ignored);
	type = json_string_value(json_object_get(value, "type"));
	detail = json_string_value(json_object_get(value, "detail"));
	if (type && nc_streq(type, "exit")) {
		session->code = exit_code(json_object_get(value, "command"));
		session->ended = true;
	} else if (type && nc_streq(type, "error")) {
		session->code = nc_err_set(session->err, -EREMOTEIO, "%s: %s", session->dial.host,
			detail ? detail : "no reason");
		session->ended = true;
	}
}

/* 0, or -errno: nobody reads our output. */
static int take_message(struct session *session)
{
	const struct nc_ws_reader *reader = &session->reader;

	switch (reader->kind) {
	case NC_WS_TEXT:
		take_text(session);
		return 0;
	case NC_WS_BINARY:
		if (reader->size == 0)
			return 0;
		return nc_fd_write_all(reader->data[0] == 2 ? STDERR_FILENO : STDOUT_FILENO,
			reader->data + 1, reader->size - 1);
	case NC_WS_PING:
		send_message(session, NC_WS_PONG, -1, reader->data, reader->size);
		return 0;
	case NC_WS_CLOSE:
		if (!session->ended)
			session->code = nc_err_set(session->err, -ECONNRESET,
				"%s has ended the connection", session->dial.host);
		session->ended = true;
		return 0;
	case NC_WS_PONG:
	case NC_WS_MORE:
		break;
	}
	return 0;
}

static int take(struct session *session, const char *data, size_t size)
{
	int r = 0;

	while (r == 0 && size > 0 && !session->ended) {
		ssize_t n = nc_ws_take(&session->reader, data, size);

		if (n < 0)
			return nc_err_set(session->err, -EPROTO, "%s does not speak WebSocket",
				session->dial.host);
		data += n;
		size -= (size_t)n;
		if (session->reader.whole)
			r = take_message(session);
	}
	return r;
}

static int read_some(struct session *session)
{
	char data[BLOCK];
	ssize_t n;

	while ((n = nc_dial_read(&session->dial, data, sizeof(data))) > 0) {
		int r = take(session, data, (size_t)n);

		if (r < 0 || session->ended)
			return r;
	}
	if (n == -EAGAIN)
		return 0;
	return nc_err_set(
		session->err, -ECONNRESET, "The connection to %s is lost", session->dial.host);
}

/* ---- what we say ---- */

static int write_some(struct session *session)
{
	while (session->out_at < session->out.size) {
		ssize_t n = nc_dial_try_write(&session->dial, session->out.data + session->out_at,
			session->out.size - session->out_at);

		if (n == -EAGAIN)
			return 0;
		if (n < 0)
			return nc_err_set(session->err, -ECONNRESET, "The connection to %s is lost",
				session->dial.host);
		session->out_at += (size_t)n;
	}
	session->out_at = session->out.size = 0;
	return session->out.error;
}

static void read_input(struct session *session)
{
	char data[BLOCK];
	ssize_t n = read(STDIN_FILENO, data, sizeof(data));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0) {
		send_message(session, NC_WS_BINARY, 0, data, (size_t)n);
		return;
	}
	session->typed_all = true;
	tell(session, json_pack("{s:s}", "type", "end"));
}

static int turn(struct session *session)
{
	bool unsent = session->out_at < session->out.size;
	bool types = !session->typed_all && session->out.size - session->out_at < UNSENT_HIGH;
	struct pollfd fds[] = {
		{.fd = session->dial.fd, .events = (short)(POLLIN | (unsent ? POLLOUT : 0))},
		{.fd = types ? STDIN_FILENO : -1, .events = POLLIN},
		{.fd = session->terminal.resized_fd, .events = POLLIN},
	};
	int r;

	if (poll(fds, sizeof(fds) / sizeof(fds[0]), -1) < 0)
		return errno == EINTR ? 0 : -errno;
	r = read_some(session);
	if (r < 0 || session->ended)
		return r;
	if (fds[1].revents)
		read_input(session);
	if (fds[2].revents)
		tell_size(session);
	return write_some(session);
}

/* ---- the greeting ---- */

static int greet(struct session *session, const char *path, struct nacre_err *err)
{
	unsigned char nonce[16];
	cleanup_free char *key = NULL;
	char headers[160], accept[NC_WS_ACCEPT_SIZE] = "";
	nc_buf_cleanup struct nc_buf line = NC_BUF(NC_HTTP_HEAD_MAX);
	bool accepted = false;
	int r = nc_random(nonce, sizeof(nonce));

	if (r == 0)
		r = nc_base64_encode(nonce, sizeof(nonce), &key);
	if (r < 0 || nc_ws_accept(key, accept) < 0)
		return nc_err_set(err, -ENOMEM, "Out of memory");
	(void)snprintf(headers, sizeof(headers),
		"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
		"Sec-WebSocket-Key: %s\r\n",
		key);
	r = nc_remote_begin(&session->dial, "GET", path, "1.1", headers, err);
	if (r == 0 && nc_dial_line(&session->dial, &line) != 1)
		r = nc_err_set(err, -EPROTO, "%s does not answer", session->dial.host);
	if (r == 0 && !strstr(line.data, " 101 "))
		return nc_remote_refused(&session->dial, line.data, err);
	while (r == 0 && nc_dial_line(&session->dial, &line) == 1 && line.size > 0)
		if (strncasecmp(line.data, "Sec-WebSocket-Accept:", 21) == 0)
			accepted = nc_streq(line.data + 21 + strspn(line.data + 21, " "), accept);
	if (r == 0 && !accepted)
		r = nc_err_set(err, -EPROTO, "%s does not speak WebSocket", session->dial.host);
	return r;
}

static int begin(struct session *session, json_t *start, bool terminal, struct nacre_err *err)
{
	uint32_t rows, columns;
	int r = 0;

	if (terminal)
		r = nc_terminal_take(&session->terminal, STDIN_FILENO);
	if (r < 0)
		return nc_err_errno(err, r, "Take over the terminal");
	if (start) {
		if (terminal) {
			nc_terminal_size(&session->terminal, &rows, &columns);
			(void)json_object_set_new(start, "rows", json_integer(rows));
			(void)json_object_set_new(start, "columns", json_integer(columns));
		}
		tell(session, json_incref(start));
	} else if (terminal) {
		tell_size(session);
	}
	return write_some(session);
}

int nc_remote_terminal(
	const char *url, const char *path, json_t *start, bool terminal, struct nacre_err *err)
{
	struct session session = {.dial = {.fd = -EBADF},
		.terminal = {.fd = -EBADF, .resized_fd = -EBADF},
		.out = NC_BUF(1U << 20),
		.err = err};
	int r = nc_dial_parse(url, &session.dial, err);

	if (r < 0)
		return nc_err_wrap(err, "Option '--server'");
	(void)signal(SIGPIPE, SIG_IGN);
	nc_ws_reader_init(&session.reader, false, MESSAGE_MAX);
	r = greet(&session, path, err);
	if (r == 0)
		r = nc_dial_unblock(&session.dial);
	if (r == 0)
		r = begin(&session, start, terminal, err);
	while (r == 0 && !session.ended)
		r = turn(&session);
	nc_terminal_give_back(&session.terminal);
	nc_ws_reader_done(&session.reader);
	nc_buf_done(&session.out);
	nc_dial_done(&session.dial);
	if (r == -EPIPE) /* whoever read us has gone */
		return 128 + SIGPIPE;
	if (r < 0 && err->code == 0)
		return nc_err_errno(err, r, "Pass on input and output");
	return r < 0 ? r : session.code;
}
