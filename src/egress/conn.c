/* One connection of a box: its stages but for dialling (dial.c) and HTTP (exchange.c). */
#include "egress/conn.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "egress/hello.h"
#include "egress/socks.h"

/* Our own answer is sent and the other side closes; if not, it is closed for it. */
#define LAST_MS 2000U
/* A fatal alert of TLS: unrecognized_name. */
#define ALERT "\x15\x03\x03\x00\x02\x02\x70"

/* ---- life ---- */

static void client_ready(struct nc_watch *watch, uint32_t events)
{
	struct nc_conn *conn = (struct nc_conn *)watch;

	if (conn->stage == NC_STAGE_ENDED)
		return;
	nc_side_ready(&conn->client, events);
	/* in a tunnel both sides may have ended while bytes are on their way */
	if ((events & EPOLLERR) || ((events & EPOLLHUP) && conn->stage != NC_STAGE_TUNNEL))
		nc_conn_end(conn);
	else
		nc_conn_run(conn);
}

static void server_ready(struct nc_watch *watch, uint32_t events)
{
	struct nc_conn *conn =
		(struct nc_conn *)(void *)((char *)watch - offsetof(struct nc_conn, server));

	if (conn->stage == NC_STAGE_ENDED || conn->server.fd < 0)
		return;
	nc_side_ready(&conn->server, events);
	nc_conn_run(conn);
}

int nc_conn_new(struct nc_door *door, int fd)
{
	struct nc_conn *conn = calloc(1, sizeof(*conn));
	const int on = 1;
	int r;

	if (!conn) {
		(void)nc_fd_close(fd);
		return -ENOMEM;
	}
	conn->door = door;
	nc_side_init(&conn->client, client_ready);
	nc_side_init(&conn->server, server_ready);
	for (int i = 0; i < NC_DIRECTION_MAX; i++)
		nc_flow_init(&conn->flows[i], NC_BODY_NONE, 0, false);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	r = nc_side_attach(&conn->client, &door->egress->loop, fd);
	if (r < 0) {
		free(conn);
		return r;
	}
	conn->next = door->conns;
	conn->link = &door->conns;
	if (conn->next)
		conn->next->link = &conn->next;
	door->conns = conn;
	door->meter.connections++;
	door->meter.open++;
	nc_conn_enter(conn, NC_STAGE_FIRST);
	return 0;
}

void nc_conn_end(struct nc_conn *conn)
{
	struct nc_egress *egress = conn->door->egress;

	if (conn->stage == NC_STAGE_ENDED)
		return;
	conn->stage = NC_STAGE_ENDED;
	nc_lookup_forget(conn->lookup);
	conn->lookup = NULL;
	nc_conn_hang_up(conn);
	nc_side_done(&conn->client);
	nc_side_done(&conn->server);
	*conn->link = conn->next;
	if (conn->next)
		conn->next->link = conn->link;
	conn->door->meter.open--;
	conn->next_dead = egress->dead;
	egress->dead = conn;
}

void nc_conns_bury(struct nc_egress *egress)
{
	struct nc_conn **link = &egress->dead;

	while (*link) {
		struct nc_conn *conn = *link;

		if (conn->is_eager) { /* still in the other list */
			link = &conn->next_dead;
			continue;
		}
		*link = conn->next_dead;
		free(conn);
	}
}

void nc_conn_deadline(struct nc_conn *conn, uint32_t ms)
{
	conn->deadline_ns = conn->door->egress->loop.now_ns + ms * NC_NS_PER_MS;
}

void nc_conn_enter(struct nc_conn *conn, enum nc_stage stage)
{
	const struct nc_egress_limits *limits = &conn->door->terms.limits;

	conn->stage = stage;
	switch (stage) {
	case NC_STAGE_FIRST:
	case NC_STAGE_GREETING:
	case NC_STAGE_ASKING:
	case NC_STAGE_HELLO:
	case NC_STAGE_SHAKE:
		nc_conn_deadline(conn, limits->head_ms);
		break;
	case NC_STAGE_LOOKUP:
	case NC_STAGE_DIAL:
		nc_conn_deadline(conn, limits->connect_ms);
		break;
	case NC_STAGE_LAST:
		nc_conn_deadline(conn, LAST_MS);
		break;
	case NC_STAGE_HEAD:
	case NC_STAGE_TUNNEL:
	case NC_STAGE_EXCHANGE:
	case NC_STAGE_ENDED:
	case NC_STAGE_MAX:
	default:
		nc_conn_deadline(conn, limits->idle_ms);
	}
}

/* ---- decisions and refusals ---- */

void nc_conn_record(struct nc_conn *conn, enum nc_reason reason, const struct nc_address *address)
{
	struct nc_egress_decision decision = {
		.reason = reason, .protocol = conn->protocol, .port = conn->port};

	memcpy(decision.host, conn->host.text, sizeof(decision.host));
	memcpy(decision.rule, conn->rule, sizeof(decision.rule));
	memcpy(decision.method, conn->method_text, sizeof(decision.method));
	if (address)
		nc_address_text(address, decision.address);
	nc_door_record(conn->door, &decision);
}

static const char *status_of(enum nc_reason reason, enum nc_stage stage)
{
	switch ((int)reason) {
	case NC_REASON_MALFORMED:
	case NC_REASON_SPELLING:
	case NC_REASON_NOT_FOR_PROXY:
		return "400 Bad Request";
	case NC_REASON_UNKNOWN_HOST:
	case NC_REASON_RESOLVE:
	case NC_REASON_CONNECT:
	case NC_REASON_UPSTREAM:
	case NC_REASON_UNTRUSTED:
		return "502 Bad Gateway";
	case NC_REASON_TIMEOUT:
		return stage == NC_STAGE_HEAD ? "408 Request Timeout" : "504 Gateway Timeout";
	default:
		return "403 Forbidden";
	}
}

static void write_refusal(struct nc_conn *conn, enum nc_reason reason)
{
	nc_buf_cleanup struct nc_buf body = NC_BUF(4096);

	nc_buf_addf(&body, "{\"error\":\"%s\",\"host\":\"%s\",\"port\":%u,\"rule\":\"",
		nc_reason_id(reason), conn->host.text, conn->port);
	nc_text_json(&body, conn->rule, strlen(conn->rule));
	nc_buf_addf(&body, "\",\"reason\":\"%s\",\"remedy\":\"%s\"}\n", nc_reason_text(reason),
		nc_reason_remedy(reason));
	nc_buf_addf(&conn->client.out,
		"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
		"Proxy-Status: nacre; error=%s; details=\"%s\"\r\nConnection: close\r\n\r\n",
		status_of(reason, conn->stage), body.size,
		reason >= NC_REASON_UNKNOWN_HOST ? "destination_unavailable"
						 : "http_request_denied",
		nc_reason_id(reason));
	if (conn->method != NC_METHOD_HEAD)
		nc_buf_adds(&conn->client.out, nc_buf_text(&body));
}

static void write_socks(struct nc_conn *conn, enum nc_socks_reply reply)
{
	unsigned char answer[NC_SOCKS_ANSWER_SIZE];

	nc_socks_answer(reply, answer);
	nc_buf_add(&conn->client.out, answer, sizeof(answer));
}

enum nc_step nc_conn_refuse(
	struct nc_conn *conn, enum nc_reason reason, const struct nc_address *address)
{
	nc_conn_record(conn, reason, address);
	nc_conn_hang_up(conn);
	if (conn->stage == NC_STAGE_HELLO || (conn->stage == NC_STAGE_SHAKE && !conn->client.tls))
		nc_buf_add(&conn->client.out, ALERT, sizeof(ALERT) - 1);
	else if (conn->protocol == NC_EGRESS_SOCKS && !conn->inside)
		write_socks(conn, reason == NC_REASON_UNKNOWN_HOST || reason == NC_REASON_CONNECT
					  ? NC_SOCKS_UNREACHABLE
				  : reason >= NC_REASON_UNKNOWN_HOST ? NC_SOCKS_FAILED
								     : NC_SOCKS_REFUSED);
	else if (conn->stage == NC_STAGE_EXCHANGE && conn->replied)
		return NC_STEP_END; /* in the middle of a reply nobody would read another */
	else
		write_refusal(conn, reason);
	nc_conn_enter(conn, NC_STAGE_LAST);
	return NC_STEP_MORE;
}

/* ---- steps ---- */

static enum nc_step step_first(struct nc_conn *conn)
{
	ssize_t n = nc_side_fill(&conn->client);

	if (n <= 0)
		return n < 0 || conn->client.ended ? NC_STEP_END : NC_STEP_WAIT;
	if (nc_side_bytes(&conn->client)[0] == NC_SOCKS_VERSION) {
		conn->protocol = NC_EGRESS_SOCKS;
		nc_conn_enter(conn, NC_STAGE_GREETING);
	} else {
		nc_conn_enter(conn, NC_STAGE_HEAD);
	}
	return NC_STEP_MORE;
}

/* More bytes for a parser that wants them; none will come: the end. */
static enum nc_step more(struct nc_conn *conn)
{
	ssize_t n = nc_side_fill(&conn->client);

	if (n > 0)
		return NC_STEP_MORE;
	return n < 0 || conn->client.ended || nc_side_is_full(&conn->client) ? NC_STEP_END
									     : NC_STEP_WAIT;
}

static enum nc_step step_greeting(struct nc_conn *conn)
{
	const unsigned char *bytes = (const unsigned char *)nc_side_bytes(&conn->client);
	int n = nc_socks_greeting(bytes, nc_side_has(&conn->client));

	if (n == 0)
		return more(conn);
	nc_buf_add(&conn->client.out, n < 0 ? "\x05\xff" : "\x05\x00", 2);
	if (n < 0) {
		nc_conn_record(conn, NC_REASON_MALFORMED, NULL);
		nc_conn_enter(conn, NC_STAGE_LAST);
		return NC_STEP_MORE;
	}
	nc_side_use(&conn->client, (size_t)n);
	nc_conn_enter(conn, NC_STAGE_ASKING);
	return NC_STEP_MORE;
}

static enum nc_step refuse_socks(struct nc_conn *conn, int error)
{
	if (error == -EINVAL)
		return nc_conn_refuse(conn, NC_REASON_SPELLING, NULL);
	nc_conn_record(conn, NC_REASON_MALFORMED, NULL);
	write_socks(conn, error == -EOPNOTSUPP	   ? NC_SOCKS_NO_COMMAND
			  : error == -EAFNOSUPPORT ? NC_SOCKS_NO_ADDRESS
						   : NC_SOCKS_FAILED);
	nc_conn_enter(conn, NC_STAGE_LAST);
	return NC_STEP_MORE;
}

static enum nc_step step_asking(struct nc_conn *conn)
{
	const unsigned char *bytes = (const unsigned char *)nc_side_bytes(&conn->client);
	const size_t has = nc_side_has(&conn->client);
	int n;

	if (nc_side_flush(&conn->client) < 0)
		return NC_STEP_END;
	n = nc_socks_request(bytes, has, &conn->host, &conn->port);
	if (n == 0)
		return more(conn);
	if (n < 0)
		return refuse_socks(conn, n);
	if ((size_t)n < has) /* it speaks before it was answered: to whom? */
		return nc_conn_refuse(conn, NC_REASON_MALFORMED, NULL);
	nc_side_use(&conn->client, (size_t)n);
	return nc_conn_go(
		conn, &(struct nc_wish){.host = &conn->host, .port = conn->port, .tunnel = true});
}

static enum nc_step begin_tunnel(struct nc_conn *conn)
{
	for (int i = 0; i < NC_DIRECTION_MAX; i++) {
		nc_flow_init(&conn->flows[i], NC_BODY_REST, 0, false);
		conn->flow_done[i] = false;
	}
	nc_conn_enter(conn, NC_STAGE_TUNNEL);
	return NC_STEP_MORE;
}

/* ---- TLS that the door takes part in ---- */

static enum nc_step begin_inside(struct nc_conn *conn)
{
	conn->inside = true;
	nc_conn_enter(conn, NC_STAGE_SHAKE);
	if (nc_side_secure(&conn->server, nc_tls_far(&conn->door->egress->tls, &conn->host)) < 0)
		return NC_STEP_END;
	return NC_STEP_MORE;
}

/* Towards the client, once it was told in plain words that the tunnel stands. */
static int shake_client(struct nc_conn *conn)
{
	int r;

	if (!conn->client.tls) {
		r = nc_side_flush(&conn->client);
		if (r <= 0)
			return r;
		r = nc_side_secure(
			&conn->client, nc_tls_near(&conn->door->egress->tls, &conn->host));
		if (r < 0)
			return r;
	}
	return SSL_is_init_finished(conn->client.tls) ? 1 : nc_side_shake(&conn->client);
}

static enum nc_step step_shake(struct nc_conn *conn)
{
	int r = nc_side_shake(&conn->server);

	if (r < 0)
		return nc_conn_refuse(conn, NC_REASON_UNTRUSTED, NULL);
	if (r > 0)
		r = shake_client(conn);
	if (r <= 0)
		return r < 0 ? NC_STEP_END : NC_STEP_WAIT;
	if (!nc_tls_greets(conn->client.tls, &conn->host))
		return nc_conn_refuse(conn, NC_REASON_SNI, NULL);
	nc_conn_enter(conn, conn->asked ? NC_STAGE_EXCHANGE : NC_STAGE_HEAD);
	return NC_STEP_MORE;
}

enum nc_step nc_conn_connected(struct nc_conn *conn)
{
	if (conn->protocol == NC_EGRESS_INSIDE)
		return begin_inside(conn);
	if (conn->protocol == NC_EGRESS_HTTP) {
		nc_conn_enter(conn, NC_STAGE_EXCHANGE);
		return NC_STEP_MORE;
	}
	if (conn->protocol == NC_EGRESS_SOCKS)
		write_socks(conn, NC_SOCKS_DONE);
	else
		nc_buf_adds(&conn->client.out, "HTTP/1.1 200 Connection established\r\n\r\n");
	if (!conn->member && nc_door_has_secret(conn->door, &conn->host, conn->port))
		return begin_inside(conn);
	/* between boxes of one group there is nothing to compare with */
	if (!conn->door->terms.strict || conn->member)
		return begin_tunnel(conn);
	nc_conn_enter(conn, NC_STAGE_HELLO);
	return NC_STEP_MORE;
}

/* Whether the greeting is for the host that was asked for. */
static bool greets(const struct nc_conn *conn, const struct nc_hello *hello)
{
	if (hello->hidden)
		return false;
	if (conn->host.kind != NC_HOST_NAME)
		return !hello->named;
	return hello->named && nc_streq(hello->host.text, conn->host.text);
}

static enum nc_step step_hello(struct nc_conn *conn)
{
	const unsigned char *bytes = (const unsigned char *)nc_side_bytes(&conn->client);
	struct nc_hello hello;
	int r;

	if (nc_side_flush(&conn->client) < 0)
		return NC_STEP_END;
	r = nc_hello_parse(bytes, nc_side_has(&conn->client), &hello);
	if (r == 0)
		return more(conn);
	if (r < 0)
		return nc_conn_refuse(conn, NC_REASON_NOT_TLS, NULL);
	return greets(conn, &hello) ? begin_tunnel(conn)
				    : nc_conn_refuse(conn, NC_REASON_SNI, NULL);
}

/* ---- bytes on their way ---- */

struct mover {
	struct nc_conn *conn;
	enum nc_direction direction;
};

static size_t may(void *user, size_t wanted)
{
	const struct mover *mover = user;

	return nc_door_may(mover->conn->door, mover->direction, wanted);
}

static void took(void *user, size_t n)
{
	const struct mover *mover = user;
	struct nc_conn *conn = mover->conn;

	nc_door_took(conn->door, conn->destination, mover->direction, n);
	nc_conn_deadline(conn, conn->door->terms.limits.idle_ms);
}

static void let_others(struct nc_conn *conn)
{
	struct nc_egress *egress = conn->door->egress;

	if (conn->is_eager)
		return;
	conn->is_eager = true;
	conn->next_eager = egress->eager;
	egress->eager = conn;
}

int nc_conn_move(struct nc_conn *conn, enum nc_direction direction)
{
	struct mover mover = {conn, direction};
	const struct nc_flow_host host = {&conn->door->egress->pipes, may, took, &mover};
	struct nc_side *from = direction == NC_UP ? &conn->client : &conn->server;
	struct nc_side *to = direction == NC_UP ? &conn->server : &conn->client;
	int state = nc_flow_move(&conn->flows[direction], from, to, &host);

	if (state == NC_FLOW_HELD && nc_door_is_over(conn->door))
		return -EDQUOT;
	if (state == NC_FLOW_HELD)
		conn->is_held = conn->door->egress->held = true;
	if (state == NC_FLOW_TURN)
		let_others(conn);
	return state;
}

static enum nc_step step_tunnel(struct nc_conn *conn)
{
	for (int i = 0; i < NC_DIRECTION_MAX; i++) {
		int state;

		if (conn->flow_done[i])
			continue;
		state = nc_conn_move(conn, (enum nc_direction)i);
		if (state < 0)
			return NC_STEP_END;
		if (state != NC_FLOW_DONE)
			continue;
		conn->flow_done[i] = true;
		nc_side_shut(i == NC_UP ? &conn->server : &conn->client);
	}
	return conn->flow_done[NC_UP] && conn->flow_done[NC_DOWN] ? NC_STEP_END : NC_STEP_WAIT;
}

/* Sends the rest, then reads until the other side has closed: closing first, with bytes unread,
 * would take the answer back. */
static enum nc_step step_last(struct nc_conn *conn)
{
	int r = nc_side_flush(&conn->client);

	if (r <= 0)
		return r < 0 ? NC_STEP_END : NC_STEP_WAIT;
	nc_side_shut(&conn->client);
	nc_side_use(&conn->client, nc_side_has(&conn->client));
	if (nc_side_fill(&conn->client) > 0) {
		let_others(conn); /* it may never stop */
		return NC_STEP_WAIT;
	}
	return conn->client.ended || conn->client.readable ? NC_STEP_END : NC_STEP_WAIT;
}

static enum nc_step step(struct nc_conn *conn)
{
	static enum nc_step (*const steps[])(struct nc_conn *) = {
		[NC_STAGE_FIRST] = step_first,
		[NC_STAGE_GREETING] = step_greeting,
		[NC_STAGE_ASKING] = step_asking,
		[NC_STAGE_HEAD] = nc_conn_head,
		[NC_STAGE_LOOKUP] = nc_conn_lookup,
		[NC_STAGE_DIAL] = nc_conn_dial,
		[NC_STAGE_HELLO] = step_hello,
		[NC_STAGE_SHAKE] = step_shake,
		[NC_STAGE_TUNNEL] = step_tunnel,
		[NC_STAGE_EXCHANGE] = nc_conn_exchange,
		[NC_STAGE_LAST] = step_last,
	};

	assert(conn->stage < NC_STAGE_ENDED);
	return steps[conn->stage](conn);
}

void nc_conn_run(struct nc_conn *conn)
{
	enum nc_step next = NC_STEP_MORE;

	if (conn->is_asking || conn->stage == NC_STAGE_ENDED)
		return;
	conn->is_held = false;
	while (next == NC_STEP_MORE)
		next = step(conn);
	if (next == NC_STEP_END)
		nc_conn_end(conn);
}

/* ---- time ---- */

void nc_conn_tick(struct nc_conn *conn)
{
	if (conn->door->egress->loop.now_ns < conn->deadline_ns)
		return;
	if (conn->stage == NC_STAGE_DIAL) {
		if (conn->is_held) /* nobody left the member in time */
			conn->dialled = conn->n_addresses;
		/* the next address, or the answer that there is none */
		nc_conn_hang_up(conn);
		nc_conn_enter(conn, NC_STAGE_DIAL);
		nc_conn_run(conn);
	} else if (conn->stage == NC_STAGE_LOOKUP ||
		   (conn->stage == NC_STAGE_HEAD && conn->began) ||
		   (conn->stage == NC_STAGE_EXCHANGE && !conn->replied)) {
		nc_lookup_forget(conn->lookup);
		conn->lookup = NULL;
		(void)nc_conn_refuse(conn, NC_REASON_TIMEOUT, NULL);
		nc_conn_run(conn);
	} else {
		nc_conn_end(conn);
	}
}
