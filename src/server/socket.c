/* One WebSocket of a client. */
#include "server/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/text.h"
#include "server/reply.h"
#include "server/server.h"
#include "tier/poll.h"

#define BLOCK 16384
/* A command is at most 32 KiB, with its environment; input comes in pieces. */
#define MESSAGE_MAX (128U * 1024)
#define UNSENT_MAX (1024U * 1024)
/* Who is silent is asked, who does not answer or take anything is gone. */
#define ASK_NS (30 * NC_NS_PER_S)
#define SILENT_NS (60 * NC_NS_PER_S)
#define STUCK_NS (30 * NC_NS_PER_S)
#define CLOSE_NS (2 * NC_NS_PER_S)
#define PROTOCOL "nacre.v1"

struct nc_socket {
	struct nc_server *server;
	struct nc_socket *next, **place;
	struct nc_exchange *exchange;
	struct nc_socket_listener listener;
	int fd; /* libmicrohttpd's; -EBADF: not ours yet, or not any more */
	struct nc_poll *poll;
	struct nc_ws_reader reader;
	struct nc_buf rest; /* that came and is not taken yet */
	struct nc_buf out;
	size_t out_at;
	bool held, taking;
	bool closing, cut; /* we said so; nothing is read or sent any more */
	uint64_t heard_ns, asked_ns, moved_ns, closing_ns;
};

/* The end. The listener hears of it later: it may be what brought us here. */
static void cut(struct nc_socket *socket)
{
	if (socket->cut)
		return;
	socket->cut = true;
	socket->poll = nc_poll_free(socket->poll);
	nc_exchange_hang_up(socket->exchange);
}

static void unplug(void *source)
{
	struct nc_socket *socket = source;

	(void)nc_poll_free(socket->poll);
	if (socket->listener.closed)
		socket->listener.closed(socket->listener.context);
	*socket->place = socket->next;
	if (socket->next)
		socket->next->place = socket->place;
	nc_ws_reader_done(&socket->reader);
	nc_buf_done(&socket->rest);
	nc_buf_done(&socket->out);
	free(socket);
}

static void watch(struct nc_socket *socket)
{
	bool reads = !socket->held && socket->rest.size == 0;
	bool writes = socket->out_at < socket->out.size;

	if (socket->poll)
		nc_poll_set(socket->poll,
			(reads ? UV_READABLE : UV_DISCONNECT) | (writes ? UV_WRITABLE : 0));
}

/* Sends what there is. false: it is over. */
static bool flush(struct nc_socket *socket)
{
	bool had = socket->out.size > 0;

	while (socket->out_at < socket->out.size) {
		ssize_t n = send(socket->fd, socket->out.data + socket->out_at,
			socket->out.size - socket->out_at, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n <= 0) {
			cut(socket);
			return false;
		}
		socket->out_at += (size_t)n;
		socket->moved_ns = nc_clock_ns();
	}
	if (socket->out_at == socket->out.size) {
		socket->out_at = socket->out.size = 0;
		if (had && !socket->closing && socket->listener.drained)
			socket->listener.drained(socket->listener.context);
	}
	watch(socket);
	return !socket->cut;
}

static void queue(struct nc_socket *socket)
{
	if (socket->out.error < 0)
		cut(socket); /* it takes nothing, and we cannot keep more */
	else if (socket->fd >= 0)
		(void)flush(socket);
}

void nc_socket_send(
	struct nc_socket *socket, enum nc_ws_kind kind, int first, const void *data, size_t size)
{
	unsigned char head = (unsigned char)first;

	if (socket->closing || socket->cut)
		return;
	if (socket->out_at == socket->out.size)
		socket->moved_ns = nc_clock_ns(); /* its time begins now */
	if (socket->out_at > UNSENT_MAX / 2) {	  /* what was sent makes room */
		socket->out.size -= socket->out_at;
		memmove(socket->out.data, socket->out.data + socket->out_at, socket->out.size);
		socket->out_at = 0;
	}
	nc_ws_put(&socket->out, kind, &head, first >= 0 ? 1 : 0, data, size, NULL);
	queue(socket);
}

size_t nc_socket_unsent(const struct nc_socket *socket)
{
	return socket->out.size - socket->out_at;
}

void nc_socket_close(struct nc_socket *socket, unsigned int code, const char *reason)
{
	if (socket->closing || socket->cut)
		return;
	nc_ws_put_close(&socket->out, code, reason, NULL);
	socket->closing = true;
	socket->closing_ns = nc_clock_ns();
	queue(socket);
}

static void take_message(struct nc_socket *socket)
{
	const struct nc_ws_reader *reader = &socket->reader;

	switch (reader->kind) {
	case NC_WS_CLOSE:
		if (!socket->closing)
			nc_socket_close(socket, nc_ws_code_of(reader), "");
		cut(socket); /* both sides have said so; what is in the pipe is sent by the kernel
			      */
		break;
	case NC_WS_PING:
		/* who asks again and again without listening is not answered */
		if (nc_socket_unsent(socket) < NC_SOCKET_HIGH)
			nc_socket_send(socket, NC_WS_PONG, -1, reader->data, reader->size);
		break;
	case NC_WS_TEXT:
	case NC_WS_BINARY:
		if (!socket->closing && socket->listener.message)
			socket->listener.message(
				socket->listener.context, reader->kind, reader->data, reader->size);
		break;
	case NC_WS_PONG:
	case NC_WS_MORE:
		break;
	}
}

/* Takes bytes as long as messages are wanted; what is left is kept. */
static void take(struct nc_socket *socket, const char *data, size_t size)
{
	while (size > 0 && !socket->held && !socket->cut) {
		ssize_t n = nc_ws_take(&socket->reader, data, size);

		if (n < 0) { /* what follows is read and dropped, or our reason might not arrive */
			nc_socket_close(socket, socket->reader.fault, "");
			return;
		}
		data += n;
		size -= (size_t)n;
		if (socket->reader.whole)
			take_message(socket);
	}
	if (!socket->cut)
		nc_buf_add(&socket->rest, data, size);
}

/* What was kept, before anything else. */
static void take_rest(struct nc_socket *socket)
{
	nc_buf_cleanup struct nc_buf rest = socket->rest;

	socket->rest = (struct nc_buf)NC_BUF(rest.max);
	take(socket, nc_buf_text(&rest), rest.size);
}

void nc_socket_hold(struct nc_socket *socket, bool held)
{
	if (socket->held == held || socket->cut)
		return;
	socket->held = held;
	if (socket->taking) /* it was said from within: the loop there goes on, or stops */
		return;
	socket->taking = true;
	while (!socket->held && !socket->cut && socket->rest.size > 0)
		take_rest(socket);
	socket->taking = false;
	socket->heard_ns = nc_clock_ns(); /* it was not listened to */
	watch(socket);
}

static void on_ready(void *context, int events)
{
	struct nc_socket *socket = context;
	char data[BLOCK];
	ssize_t n;

	if (events & UV_WRITABLE && !flush(socket))
		return;
	if (!(events & ~UV_WRITABLE))
		return;
	if (socket->held || socket->rest.size > 0) { /* it was not asked for: the client has gone */
		cut(socket);
		return;
	}
	n = recv(socket->fd, data, sizeof(data), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		cut(socket);
		return;
	}
	socket->heard_ns = nc_clock_ns();
	socket->asked_ns = 0;
	socket->taking = true;
	take(socket, data, (size_t)n);
	while (!socket->held && !socket->cut && socket->rest.size > 0)
		take_rest(socket);
	socket->taking = false;
	watch(socket);
}

/* The connection is ours, with what came behind the request. */
static void on_upgraded(void *source, int fd, const char *data, size_t size)
{
	struct nc_socket *socket = source;

	socket->fd = fd;
	socket->heard_ns = socket->moved_ns = nc_clock_ns();
	if (nc_poll_new(socket->server->setup.loop, fd, UV_READABLE, on_ready, socket,
		    &socket->poll) < 0) {
		cut(socket);
		return;
	}
	socket->taking = true;
	take(socket, data, size);
	socket->taking = false;
	if (!socket->cut)
		(void)flush(socket);
}

static bool has_word(const char *list, const char *word)
{
	size_t size = strlen(word);

	while (list && *list) {
		list += strspn(list, ", \t");
		if (strncasecmp(list, word, size) == 0 && strchr(", \t", list[size]))
			return true;
		list += strcspn(list, ",");
	}
	return false;
}

/* What the greeting is answered with; false: it was answered, it is none. */
static bool check_greeting(struct nc_exchange *exchange, char accept[static NC_WS_ACCEPT_SIZE])
{
	const char *upgrade = nc_exchange_header(exchange, "Upgrade");
	const char *version = nc_exchange_header(exchange, "Sec-WebSocket-Version");
	const char *key = nc_exchange_header(exchange, "Sec-WebSocket-Key");

	if (!has_word(upgrade, "websocket") ||
		!has_word(nc_exchange_header(exchange, "Connection"), "Upgrade")) {
		nc_problem(exchange, 426, "not_websocket", "Upgrade", "Connect with a WebSocket",
			"This is a WebSocket");
		nc_reply_header(exchange, "Upgrade", "websocket");
		return false;
	}
	if (!version || !nc_streq(version, "13")) {
		nc_problem(exchange, 426, "bad_version", "Sec-WebSocket-Version", NULL,
			"Only version 13 is spoken");
		nc_reply_header(exchange, "Sec-WebSocket-Version", "13");
		return false;
	}
	if (!key || nc_ws_accept(key, accept) < 0) {
		nc_problem(exchange, 400, "bad_request", "Sec-WebSocket-Key", NULL,
			"Expected 16 bytes in base64");
		return false;
	}
	return true;
}

struct nc_socket *nc_socket_accept(struct nc_server *server, struct nc_exchange *exchange,
	const struct nc_socket_listener *listener)
{
	char accept[NC_WS_ACCEPT_SIZE];
	struct nc_socket *socket;

	if (!check_greeting(exchange, accept))
		return NULL;
	socket = calloc(1, sizeof(*socket));
	if (!socket) {
		nc_problem(exchange, 503, "no_memory", NULL, "Try again later", "Out of memory");
		return NULL;
	}
	*socket = (struct nc_socket){.server = server,
		.exchange = exchange,
		.listener = *listener,
		.fd = -EBADF,
		.rest = NC_BUF(2 * BLOCK),
		.out = NC_BUF(UNSENT_MAX),
		.next = server->sockets,
		.place = &server->sockets,
		.heard_ns = nc_clock_ns()};
	nc_ws_reader_init(&socket->reader, true, MESSAGE_MAX);
	if (socket->next)
		socket->next->place = &socket->next;
	server->sockets = socket;
	nc_reply_upgrade(exchange, "websocket", socket, on_upgraded, unplug);
	nc_reply_header(exchange, "Sec-WebSocket-Accept", accept);
	if (has_word(nc_exchange_header(exchange, "Sec-WebSocket-Protocol"), PROTOCOL))
		nc_reply_header(exchange, "Sec-WebSocket-Protocol", PROTOCOL);
	return socket;
}

static void tick(struct nc_socket *socket, uint64_t now)
{
	bool stuck = nc_socket_unsent(socket) > 0 && now - socket->moved_ns >= STUCK_NS;
	bool late = socket->closing && now - socket->closing_ns >= CLOSE_NS;

	if (stuck || late || (!socket->held && now - socket->heard_ns >= SILENT_NS)) {
		cut(socket);
		return;
	}
	/* also one that we do not listen to: the kernel of a client that has gone refuses it */
	if (now - socket->heard_ns >= ASK_NS && now - socket->asked_ns >= ASK_NS) {
		socket->asked_ns = now;
		nc_socket_send(socket, NC_WS_PING, -1, "", 0);
	}
	if (socket->listener.tick && !socket->closing)
		socket->listener.tick(socket->listener.context);
}

/* Those that are cut stay in the list until libmicrohttpd has let them go: nothing moves here. */
void nc_sockets_tick(struct nc_server *server)
{
	uint64_t now = nc_clock_ns();

	for (struct nc_socket *socket = server->sockets; socket; socket = socket->next)
		if (!socket->cut && socket->fd >= 0)
			tick(socket, now);
}

void nc_sockets_close(struct nc_server *server)
{
	for (struct nc_socket *socket = server->sockets; socket; socket = socket->next)
		nc_socket_close(socket, NC_WS_GOING, "We are stopping");
}
