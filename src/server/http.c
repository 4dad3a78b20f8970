/*
 * HTTP on an event loop.
 *
 * Theory of operation: libmicrohttpd has no thread and no listener; it is given connections, and
 * runs when its epoll descriptor is ready or its own time is up. Its time-out counts from the last
 * byte, so that a byte per second would hold a connection for ever: each connection has a deadline
 * of ours for the head, for the body and for the reply, looked at twice a second. Before the head
 * is whole libmicrohttpd tells us nothing and answers nothing for us, so that such a connection is
 * answered past it, with a fixed text, and shut down.
 *
 * A request that waits is suspended: libmicrohttpd then neither reads nor notices a hang-up, so we
 * watch the socket ourselves.
 */
#include "server/http.h"

#include <assert.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "engine/owner.h"
#include "server/linger.h"
#include "server/links.h"
#include "server/reply.h"
#include "server/spool.h"
#include "tier/poll.h"

#define SWEEP_MS 500
/* A longer body goes to a file. */
#define SPOOL_MIN (1024U * 1024)
/* A reply that is this slow to be taken holds its memory for nothing. */
#define SEND_LEAST_PER_S (16U * 1024)
#define SEND_MS 30000U
#define STOP_MS 1000U

struct nc_http {
	struct nc_http_setup setup;
	struct MHD_Daemon *daemon;
	struct nc_poll *poll;
	uv_timer_t *turn, *sweep;
	uv_idle_t *soon;
	struct nc_linger *linger;
	struct nc_links links;
	size_t n_open, bodies_size;
	uint64_t held; /* bytes of replies on their way */
	size_t nth;    /* of the connection that is added now */
	bool drains;
	bool ends;  /* nobody is there any more who could handle a request */
	bool again; /* a connection was resumed, which libmicrohttpd sees when it runs only */
};

/* ---- deadlines ---- */

static void give_time(struct nc_link *link, uint64_t ms)
{
	link->deadline_ns = nc_clock_ns() + ms * NC_NS_PER_MS;
}

/* Answers past libmicrohttpd, where it would not let us, and ends the connection. */
static void refuse(struct nc_link *link, unsigned int status)
{
	struct nc_http *http = link->http;
	nc_buf_cleanup struct nc_buf text = NC_BUF(1024);

	nc_reply_bare(status, &text);
	if (text.error == 0) /* a client whose buffers are full does not read it anyway */
		(void)send(link->fd, text.data, text.size, MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)shutdown(link->fd, SHUT_RDWR);
	link->deadline_ns = 0;
	if (link->exchange)
		link->exchange->refused = status;
	else
		http->setup.refused(http->setup.context, status);
}

static void expire(struct nc_link *link)
{
	const struct nc_exchange *exchange = link->exchange;

	/* the reply is not taken, or nobody waits for one */
	if (exchange ? exchange->seen_body : link->used) {
		(void)shutdown(link->fd, SHUT_RDWR);
		link->deadline_ns = 0;
	} else {
		refuse(link, 408);
	}
}

/* Whether it ended in the middle of a body: libmicrohttpd takes a short read for all there is, and
 * does not look for an end that came with it. */
static bool is_cut_off(const struct nc_link *link)
{
	const struct nc_exchange *exchange = link->exchange;
	char byte;

	return exchange && exchange->seen_head && !exchange->seen_body && !exchange->suspended &&
	       recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void on_sweep(uv_timer_t *timer)
{
	struct nc_http *http = timer->data;
	uint64_t now = nc_clock_ns();

	if (http->held > NC_HTTP_HELD_EACH)
		nc_links_shed(&http->links);
	for (struct nc_link *link = http->links.first; link; link = link->next)
		if (link->deadline_ns && link->deadline_ns <= now)
			expire(link);
		else if (is_cut_off(link))
			(void)shutdown(link->fd, SHUT_RDWR); /* which it sees */
	if (nc_linger_tick(http->linger) == 0 && !http->links.first)
		(void)uv_timer_stop(timer);
}

/* ---- libmicrohttpd's turn ---- */

static void on_turn(uv_timer_t *timer);
static void on_soon(uv_idle_t *idle);

/*
 * In the next turn of the loop. A timer without a delay would be due again in the same turn, for as
 * long as a client sends without a pause, and everybody else would wait.
 */
static void run_soon(struct nc_http *http)
{
	(void)uv_idle_start(http->soon, on_soon); /* fails for a NULL callback only */
}

static void run(struct nc_http *http)
{
	MHD_UNSIGNED_LONG_LONG wait;
	bool waits;

	http->again = false;
	(void)MHD_run(http->daemon);
	waits = MHD_get_timeout(http->daemon, &wait) == MHD_YES;
	(void)uv_timer_stop(http->turn);
	if (http->again || (waits && wait == 0))
		run_soon(http);
	else if (waits)
		(void)uv_timer_start(http->turn, on_turn, wait, 0);
}

static void on_soon(uv_idle_t *idle)
{
	(void)uv_idle_stop(idle);
	run(idle->data);
}

static void on_turn(uv_timer_t *timer)
{
	run(timer->data);
}

static void on_ready(void *context, int events)
{
	(void)events;
	run(context);
}

/* ---- connections ---- */

static void link_free(struct nc_link *link)
{
	*link->place = link->next;
	if (link->next)
		link->next->place = link->place;
	link->http->links.count--;
	free(link);
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **place,
	enum MHD_ConnectionNotificationCode what)
{
	struct nc_http *http = cls;
	const union MHD_ConnectionInfo *info;
	struct nc_link *link = *place;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (link && link->lingers)
			nc_linger_add(http->linger, link->fd);
		if (link)
			link_free(link);
		*place = NULL;
		return;
	}
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	link = calloc(1, sizeof(*link));
	if (!link) { /* no request of it is answered */
		(void)shutdown(info->connect_fd, SHUT_RDWR);
		return;
	}
	*link = (struct nc_link){.http = http,
		.fd = info->connect_fd,
		.next = http->links.first,
		.place = &http->links.first};
	if (link->next)
		link->next->place = &link->next;
	http->links.first = link;
	http->links.count++;
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	if (info && info->client_addr)
		memcpy(&link->peer, info->client_addr,
			info->client_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
								 : sizeof(struct sockaddr_in));
	link->nth = http->nth;
	give_time(link, http->setup.head_ms);
	(void)uv_timer_start(http->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
	*place = link;
}

int nc_http_add(struct nc_http *http, int fd, const struct sockaddr *peer, socklen_t peer_size)
{
	const int on = 1;

	if (!nc_links_make_place(&http->links, peer, &http->nth)) {
		nc_buf_cleanup struct nc_buf text = NC_BUF(1024);

		nc_reply_bare(503, &text);
		if (text.error == 0)
			(void)send(fd, text.data, text.size, MSG_DONTWAIT | MSG_NOSIGNAL);
		(void)close(fd);
		return -EAGAIN;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* not for a pair */
	/* closes it on failure */
	if (MHD_add_connection(http->daemon, fd, peer, peer_size) != MHD_YES)
		return -ENOMEM;
	run_soon(http);
	return 0;
}

/* ---- exchanges ---- */

static struct nc_link *link_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* The request line is there. */
static void *on_line(void *cls, const char *uri, struct MHD_Connection *connection)
{
	struct nc_http *http = cls;
	struct nc_link *link = link_of(connection);
	struct nc_exchange *exchange = link ? calloc(1, sizeof(*exchange)) : NULL;

	if (!exchange || nc_id_new("rq", exchange->id) < 0) {
		free(exchange);
		return NULL;
	}
	exchange->target = strdup(uri);
	if (!exchange->target) {
		free(exchange);
		return NULL;
	}
	exchange->http = http;
	exchange->link = link;
	exchange->connection = connection;
	exchange->began_ns = nc_clock_ns();
	exchange->body = (struct nc_buf)NC_BUF(0);
	link->exchange = exchange;
	if (link->used) /* it may have been idle until now */
		give_time(link, http->setup.head_ms);
	link->used = true;
	http->n_open++;
	return exchange;
}

static void unwatch(struct nc_exchange *exchange)
{
	exchange->watch = nc_poll_free(exchange->watch);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **place,
	enum MHD_RequestTerminationCode why)
{
	struct nc_http *http = cls;
	struct nc_exchange *exchange = *place;

	(void)connection;
	(void)why;
	if (!exchange)
		return;
	*place = NULL;
	unwatch(exchange);
	if (exchange->status == 0 && exchange->gone && (exchange->seen_body || exchange->early))
		exchange->gone(exchange);
	if (exchange->unplug)
		exchange->unplug(exchange->source);
	http->setup.done(http->setup.context, exchange);
	http->n_open--;
	http->bodies_size -= exchange->body_taken;
	http->held -= exchange->held;
	exchange->link->sent_ns = 0;
	exchange->link->exchange = NULL;
	give_time(exchange->link, http->setup.idle_ms);
	if (exchange->response)
		MHD_destroy_response(exchange->response);
	nc_buf_done(&exchange->body);
	nc_spool_free(exchange->spool);
	free(exchange->target);
	free(exchange);
}

static void resume(struct nc_exchange *exchange)
{
	if (!exchange->suspended)
		return;
	exchange->suspended = false;
	unwatch(exchange);
	if (!exchange->seen_body)
		give_time(exchange->link, exchange->http->setup.body_ms);
	MHD_resume_connection(exchange->connection);
	exchange->http->again = true;
	run_soon(exchange->http);
}

/* The other side has closed: its keeper hears of it, and then libmicrohttpd may find out. */
static void on_hang_up(void *context, int events)
{
	struct nc_exchange *exchange = context;

	(void)events;
	exchange->is_gone = true;
	if (exchange->status == 0) {
		if (exchange->gone)
			exchange->gone(exchange);
		exchange->gone = NULL;
		exchange->keeper = NULL;
		if (exchange->status == 0) { /* nobody reads it, but it has to be one */
			exchange->closes = true;
			nc_reply_empty(exchange, 499);
		}
		return;
	}
	resume(exchange);
}

static void suspend(struct nc_exchange *exchange)
{
	struct nc_http *http = exchange->http;

	exchange->suspended = true;
	exchange->link->deadline_ns = 0;
	MHD_suspend_connection(exchange->connection);
	/* without a watch a hang-up is noticed when the reply is sent */
	if (nc_poll_new(http->setup.loop, exchange->link->fd, UV_DISCONNECT, on_hang_up, exchange,
		    &exchange->watch) < 0)
		exchange->watch = NULL;
}

static enum MHD_Result queue(struct nc_exchange *exchange)
{
	struct MHD_Response *response = take_ptr(exchange->response);
	enum MHD_Result result;

	if ((exchange->closes || exchange->http->drains) && !exchange->upgraded)
		(void)MHD_add_response_header(response, "Connection", "close");
	result = MHD_queue_response(exchange->connection, exchange->status, response);
	MHD_destroy_response(response);
	exchange->seen_body = true; /* whatever comes of it is not for us */
	exchange->held = exchange->reply_size;
	exchange->http->held += exchange->held;
	exchange->link->sent_ns = nc_clock_ns();
	give_time(
		exchange->link, SEND_MS + (uint64_t)exchange->reply_size * 1000 / SEND_LEAST_PER_S);
	return result;
}

void nc_exchange_answered(struct nc_exchange *exchange)
{
	assert(exchange->status != 0 && exchange->response);
	exchange->gone = NULL;
	exchange->keeper = NULL;
	resume(exchange);
}

/* Of what libmicrohttpd lets through: what two readers could understand differently. */
struct head {
	unsigned int hosts, lengths, encodings, keys, headers;
	size_t size;
	const char *length, *encoding;
};

static enum MHD_Result count_header(
	void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct head *head = cls;

	(void)kind;
	head->headers++;
	head->size += strlen(name) + (value ? strlen(value) : 0) + 4; /* ": " and the end */
	head->hosts += strcasecmp(name, "Host") == 0;
	head->keys += strcasecmp(name, "Authorization") == 0 || strcasecmp(name, "X-API-Key") == 0;
	if (strcasecmp(name, "Content-Length") == 0) {
		head->lengths++;
		head->length = value ? value : "";
	} else if (strcasecmp(name, "Transfer-Encoding") == 0) {
		head->encodings++;
		head->encoding = value ? value : "";
	}
	return MHD_YES;
}

static bool is_plain_path(const char *path)
{
	static const char legal[] = "/._~-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789";

	return path[0] == '/' && path[strspn(path, legal)] == '\0' && !strstr(path, "//") &&
	       !strstr(path, "/.");
}

/* Refuses what is no fair request; the body is not read then. */
static bool check_head(struct nc_exchange *exchange, const char *version)
{
	struct head head = {0};
	bool has_body;

	(void)MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, count_header, &head);
	has_body = head.lengths || head.encodings;
	exchange->closes = has_body; /* until it is known to be read */
	if (head.headers > NC_HTTP_HEADERS_MAX || head.size > NC_HTTP_HEAD_MAX)
		nc_problem(exchange, 431, "head_too_large", NULL, "Send fewer and shorter headers",
			"There are %u headers of %zu bytes; %u of %u may be", head.headers,
			head.size, NC_HTTP_HEADERS_MAX, NC_HTTP_HEAD_MAX);
	else if (strlen(exchange->path) + strlen(exchange->query) > NC_HTTP_TARGET_MAX)
		nc_problem(exchange, 414, "target_too_long", NULL, "Send a shorter one",
			"The target has more than %u bytes", NC_HTTP_TARGET_MAX);
	else if (head.lengths > 1 || head.encodings > 1 || (head.lengths && head.encodings))
		nc_problem(exchange, 400, "ambiguous_length", NULL,
			"Send one of Content-Length and Transfer-Encoding, once",
			"The length of the body is said more than once");
	else if (head.encoding && strcasecmp(head.encoding, "chunked") != 0)
		nc_problem(exchange, 501, "unknown_encoding", "Transfer-Encoding",
			"Send the body plainly or chunked", "Only chunked is understood");
	else if (head.encoding && nc_streq(version, MHD_HTTP_VERSION_1_0))
		nc_problem(exchange, 400, "ambiguous_length", "Transfer-Encoding",
			"Send Content-Length", "HTTP/1.0 has no Transfer-Encoding");
	else if (head.hosts > 1 || (head.hosts == 0 && !nc_streq(version, MHD_HTTP_VERSION_1_0)))
		nc_problem(exchange, 400, "bad_host", "Host", "Send one Host header",
			"There is %s Host header", head.hosts ? "more than one" : "no");
	else if (head.keys > 1)
		nc_problem(exchange, 400, "ambiguous_key", "Authorization", "Send one key",
			"There is more than one key");
	else if (!is_plain_path(exchange->path))
		nc_problem(exchange, 400, "bad_path", NULL,
			"Paths have letters, digits, '.', '_', '~', '-' and '/'",
			"The path is none of ours");
	return exchange->status == 0;
}

static void take_length(struct nc_exchange *exchange)
{
	const char *text = nc_exchange_header(exchange, "Content-Length");
	unsigned long long length = text ? strtoull(text, NULL, 10) : 0;

	if (length > exchange->body_max)
		nc_problem(exchange, 413, "too_large", NULL, "Send less",
			"The body has %llu bytes; this takes %zu", length, exchange->body_max);
}

/* Whoever has shown a key is no stranger any more. */
static void take_caller(struct nc_exchange *exchange)
{
	if (nc_links_know(&exchange->http->links, exchange->link, exchange->caller.tenant) ||
		exchange->status)
		return;
	exchange->closes = true;
	nc_problem(exchange, 503, "busy", NULL, "Use fewer connections at once",
		"The tenant has its share of connections already");
	nc_reply_retry(exchange, 1);
}

static void on_spooled(void *context)
{
	resume(context);
}

/* A body that may be large, and one whose length nobody knows, goes to a file. */
static void begin_body(struct nc_exchange *exchange)
{
	const struct nc_http_setup *setup = &exchange->http->setup;
	const char *length = nc_exchange_header(exchange, "Content-Length");

	exchange->body.max = exchange->body_max;
	if (exchange->spools && setup->spool_fd >= 0 &&
		(!length || strtoull(length, NULL, 10) > SPOOL_MIN))
		exchange->spool = nc_spool_new(setup->loop, setup->spool_fd, on_spooled, exchange);
}

static enum MHD_Result on_head(
	struct nc_exchange *exchange, const char *method, const char *version)
{
	struct nc_http *http = exchange->http;
	char *query;

	exchange->seen_head = true;
	exchange->is_head = nc_streq(method, "HEAD");
	exchange->method = exchange->is_head ? "GET" : method;
	exchange->path = exchange->target;
	query = strchr(exchange->target, '?');
	exchange->query = query ? query + 1 : "";
	if (query)
		*query = '\0';
	exchange->in_handler = true;
	if (check_head(exchange, version)) {
		exchange->body_max = http->setup.head(http->setup.context, exchange);
		if (exchange->caller.role > NC_ROLE_NONE)
			take_caller(exchange);
		if (exchange->status == 0)
			take_length(exchange);
		if (exchange->status == 0 && exchange->early)
			http->setup.whole(http->setup.context, exchange);
	}
	exchange->in_handler = false;
	if (exchange->status) {
		exchange->link->lingers = exchange->closes;
		return queue(exchange);
	}
	exchange->closes = false;
	begin_body(exchange);
	give_time(exchange->link, http->setup.body_ms);
	return MHD_YES;
}

/* Whether one more byte for a body would be more than the tenant's share, or than all may be. */
static bool is_too_much(const struct nc_http *http, const char *tenant)
{
	return http->bodies_size > NC_HTTP_BODIES_MAX / 4 &&
	       !nc_share_allows(nc_links_bodies(&http->links, tenant), http->bodies_size,
		       NC_HTTP_BODIES_MAX);
}

static void count_piece(struct nc_exchange *exchange, const char *data, size_t size)
{
	if (exchange->hashes)
		nc_sha256_add(&exchange->hash, data, size);
	exchange->http->bodies_size += size;
	exchange->body_taken += size;
}

static void on_piece(struct nc_exchange *exchange, const char *data, size_t size)
{
	if (exchange->body.error < 0)
		return;
	nc_buf_add(&exchange->body, data, size);
	count_piece(exchange, data, size);
	if (exchange->body.error == -EFBIG)
		refuse(exchange->link, 413);
	else if (exchange->body.error < 0 || is_too_much(exchange->http, exchange->caller.tenant))
		refuse(exchange->link, 503);
}

/* A body has its time, and more for each piece of it, so that slow is well but trickling is not. */
static void give_more_time(struct nc_link *link, size_t size)
{
	uint64_t most = nc_clock_ns() + link->http->setup.body_ms * NC_NS_PER_MS;

	link->deadline_ns += (uint64_t)size * NC_NS_PER_S / SEND_LEAST_PER_S;
	if (link->deadline_ns > most)
		link->deadline_ns = most;
}

/* What was not taken comes again, once there is room: libmicrohttpd does not try by itself. */
static void pass_piece(struct nc_exchange *exchange, const char *data, size_t *size)
{
	size_t taken = 0, n = 1;

	while (exchange->status == 0 && taken < *size && n > 0)
		taken += n = exchange->sink(exchange, data + taken, *size - taken);
	if (exchange->status)
		taken = *size;
	exchange->body_passed += taken;
	*size -= taken;
	if (exchange->body_passed > exchange->body_max)
		refuse(exchange->link, 413);
	else if (*size > 0)
		suspend(exchange);
	else
		give_more_time(exchange->link, taken);
}

/* The same for a file; what it does not take now comes again when it does. */
static void spool_piece(struct nc_exchange *exchange, const char *data, size_t *size)
{
	size_t taken = 0, n = 1;

	while (taken < *size && n > 0)
		taken += n = nc_spool_put(exchange->spool, data + taken, *size - taken);
	count_piece(exchange, data, taken);
	*size -= taken;
	if (exchange->body_taken > exchange->body_max)
		refuse(exchange->link, 413);
	else if (is_too_much(exchange->http, exchange->caller.tenant))
		refuse(exchange->link, 503);
	else if (*size > 0)
		suspend(exchange);
	else
		give_more_time(exchange->link, taken);
}

/* Whether there is nothing more to be written, or it cannot be. */
static bool is_spooled(struct nc_exchange *exchange)
{
	int r = exchange->spool ? nc_spool_flush(exchange->spool) : 0;

	if (r == -EAGAIN)
		return false;
	if (r < 0)
		nc_problem(exchange, 507, "spool_full", NULL, "Make room on the disk of the cache",
			"The body cannot be written to a file: %s", nc_errno_text(r));
	return true;
}

static enum MHD_Result on_whole(struct nc_exchange *exchange)
{
	struct nc_http *http = exchange->http;

	if (!exchange->seen_body && !is_spooled(exchange)) {
		suspend(exchange);
		return MHD_YES;
	}
	if (!exchange->seen_body) {
		exchange->seen_body = true;
		exchange->link->deadline_ns = 0;
		exchange->in_handler = true;
		if (!exchange->early && exchange->status == 0)
			http->setup.whole(http->setup.context, exchange);
		else if (exchange->status == 0)
			exchange->finish(exchange);
		exchange->in_handler = false;
	}
	if (exchange->status)
		return queue(exchange);
	suspend(exchange);
	return MHD_YES;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *data, size_t *size, void **place)
{
	struct nc_exchange *exchange = *place;

	(void)cls;
	(void)connection;
	(void)url;
	if (!exchange || exchange->refused)
		return MHD_NO; /* no memory, or answered already: the connection ends */
	if (exchange->http->ends && exchange->status == 0)
		return MHD_NO; /* libmicrohttpd reads what has arrived until the last moment */
	if (!exchange->seen_head)
		return on_head(exchange, method, version);
	if (*size > 0 && exchange->early) {
		pass_piece(exchange, data, size);
		return MHD_YES;
	}
	if (*size > 0) {
		const size_t had = *size;

		if (exchange->spool)
			spool_piece(exchange, data, size);
		else
			on_piece(exchange, data, had);
		if (!exchange->spool)
			*size = 0;
		/* it may be a secret, and stays where libmicrohttpd has it */
		explicit_bzero((char *)(uintptr_t)data, had - *size);
		/* of the rest it leaves copies behind, which go with the connection */
		exchange->closes = exchange->closes || *size > 0;
		return MHD_YES;
	}
	return on_whole(exchange);
}

/* ---- replies that are read piece by piece ---- */

ssize_t nc_exchange_pull(void *cls, uint64_t at, char *data, size_t size)
{
	struct nc_exchange *exchange = cls;
	ssize_t n = exchange->is_gone ? -1 : exchange->pull(exchange->source, data, size);

	(void)at;
	if (n < 0)
		return n == -1 ? MHD_CONTENT_READER_END_OF_STREAM
			       : MHD_CONTENT_READER_END_WITH_ERROR;
	if (n == 0)
		suspend(exchange);
	else
		give_time(exchange->link, SEND_MS);
	return n;
}

void nc_exchange_wake(struct nc_exchange *exchange)
{
	resume(exchange);
}

/* ---- connections that become others ---- */

void nc_exchange_upgrade(void *cls, struct MHD_Connection *connection, void *con_cls,
	const char *data, size_t size, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
	struct nc_exchange *exchange = cls;

	(void)connection;
	(void)con_cls;
	exchange->link->deadline_ns = 0; /* its keeper has deadlines of its own */
	exchange->handle = handle;
	exchange->upgraded(exchange->source, fd, data, size);
}

void nc_exchange_hang_up(struct nc_exchange *exchange)
{
	struct MHD_UpgradeResponseHandle *handle = take_ptr(exchange->handle);

	if (!handle)
		return;
	(void)MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
	exchange->http->again = true;
	run_soon(exchange->http);
}

/* ---- what is asked of an exchange ---- */

const char *nc_exchange_header(const struct nc_exchange *exchange, const char *name)
{
	return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

static int digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* In place; false: it is no text. */
static bool decode(char *text)
{
	char *out = text;

	for (; *text; text++, out++) {
		*out = *text;
		if (*text == '+')
			*out = ' ';
		if (*text != '%')
			continue;
		if (digit(text[1]) < 0 || digit(text[2]) < 0)
			return false;
		*out = (char)(unsigned char)(digit(text[1]) << 4 | digit(text[2]));
		if (*out == '\0')
			return false;
		text += 2;
	}
	*out = '\0';
	return true;
}

const char *nc_exchange_query(struct nc_exchange *exchange, const char *name)
{
	static char value[NC_HTTP_TARGET_MAX];
	const char *at = exchange->query;
	size_t size = strlen(name);

	for (const char *next; at; at = next ? next + 1 : NULL) {
		next = strchr(at, '&');
		if (strncmp(at, name, size) != 0 || at[size] != '=')
			continue;
		at += size + 1;
		(void)snprintf(value, sizeof(value), "%.*s",
			next ? (int)(next - at) : (int)strlen(at), at);
		return decode(value) ? value : NULL;
	}
	return NULL;
}

bool nc_exchange_is_local(const struct nc_exchange *exchange)
{
	const struct sockaddr_storage *peer = &exchange->link->peer;

	if (peer->ss_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)peer)->sin_addr.s_addr) >> 24 == 127;
	return peer->ss_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)peer)->sin6_addr);
}

/* ---- the whole ---- */

static size_t keep_escapes(void *cls, struct MHD_Connection *connection, char *text)
{
	(void)cls;
	(void)connection;
	return strlen(text);
}

static void close_timer(uv_handle_t *handle)
{
	free(handle);
}

static uv_timer_t *timer_new(struct nc_http *http)
{
	uv_timer_t *timer = calloc(1, sizeof(*timer));

	if (timer) {
		(void)uv_timer_init(http->setup.loop, timer); /* cannot fail */
		timer->data = http;
	}
	return timer;
}

static struct MHD_Daemon *start(struct nc_http *http)
{
	return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE |
					MHD_USE_NO_LISTEN_SOCKET,
		0, NULL, NULL, on_request, http, MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, http, MHD_OPTION_URI_LOG_CALLBACK,
		on_line, http, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_CONNECTION_LIMIT,
		NC_HTTP_CONNECTIONS_MAX + NC_HTTP_STRANGERS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)2 * NC_HTTP_HEAD_MAX + 4096 /* mapped, and unmapped */,
		MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t)4096, MHD_OPTION_CONNECTION_TIMEOUT,
		http->setup.idle_ms / 1000 + 1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
		MHD_OPTION_END);
}

static uv_idle_t *idle_new(struct nc_http *http)
{
	uv_idle_t *idle = calloc(1, sizeof(*idle));

	if (idle) {
		(void)uv_idle_init(http->setup.loop, idle); /* cannot fail */
		idle->data = http;
	}
	return idle;
}

int nc_http_new(const struct nc_http_setup *setup, struct nc_http **ret_http)
{
	struct nc_http *http = calloc(1, sizeof(*http));
	const union MHD_DaemonInfo *info;
	int r = -ENOMEM;

	if (!http)
		return -ENOMEM;
	http->setup = *setup;
	http->turn = timer_new(http);
	http->sweep = timer_new(http);
	http->soon = idle_new(http);
	http->linger = nc_linger_new(setup->loop);
	http->daemon = http->turn && http->sweep && http->soon && http->linger ? start(http) : NULL;
	if (http->daemon) {
		info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
		r = info ? nc_poll_new(setup->loop, info->epoll_fd, UV_READABLE, on_ready, http,
				   &http->poll)
			 : -ENOTSUP;
	}
	if (r < 0)
		nc_http_free(http);
	else
		*ret_http = http;
	return r;
}

/* libmicrohttpd aborts the process if it is stopped while connections are suspended. */
static void let_go(struct nc_http *http)
{
	uint64_t until = nc_clock_ns() + STOP_MS * NC_NS_PER_MS;

	for (struct nc_link *link = http->links.first; link; link = link->next) {
		struct nc_exchange *exchange = link->exchange;

		if (exchange)
			nc_exchange_hang_up(exchange);
		if (!exchange || !exchange->suspended)
			continue;
		exchange->is_gone = true;
		exchange->gone = NULL;
		if (exchange->status == 0)
			nc_problem(exchange, 503, "stopping", NULL, "Try again", "We are stopping");
		else
			resume(exchange);
	}
	do
		(void)MHD_run(http->daemon);
	while (http->n_open > 0 && nc_clock_ns() < until && usleep(1000) == 0);
}

void nc_http_free(struct nc_http *http)
{
	if (!http)
		return;
	http->drains = http->ends = true;
	(void)nc_poll_free(http->poll);
	if (http->daemon) {
		let_go(http);
		MHD_stop_daemon(http->daemon);
	}
	nc_linger_free(http->linger);
	if (http->soon)
		uv_close((uv_handle_t *)http->soon, close_timer);
	if (http->turn)
		uv_close((uv_handle_t *)http->turn, close_timer);
	if (http->sweep)
		uv_close((uv_handle_t *)http->sweep, close_timer);
	free(http);
}

void nc_http_drain(struct nc_http *http)
{
	http->drains = true;
	for (struct nc_link *link = http->links.first; link; link = link->next)
		if (!link->exchange)
			(void)shutdown(link->fd, SHUT_RDWR);
}

size_t nc_http_busy(const struct nc_http *http)
{
	size_t n = 0;

	for (const struct nc_link *link = http->links.first; link; link = link->next)
		n += link->exchange != NULL;
	return n;
}

void nc_http_close_behind(struct nc_http *http, bool closes)
{
	http->drains = closes;
}

size_t nc_http_connections(const struct nc_http *http)
{
	return http->links.count;
}

size_t nc_http_open(const struct nc_http *http)
{
	return http->n_open;
}
