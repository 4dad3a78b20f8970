/* Sockets that listen. */
#include "server/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parse.h"
#include "base/text.h"
#include "server/tls.h"
#include "tier/poll.h"

#define BACKLOG 512
/* Clients that are taken before others have their turn. */
#define BATCH 64
/* Seconds after which a client that went without a word is noticed. */
#define KEEP_IDLE 60

struct socket {
	struct nc_listeners *all;
	struct nc_poll *poll;
	int fd;
};

struct nc_listeners {
	struct nc_http *http;
	struct nc_tls *tls;
	struct socket *sockets;
	size_t n_sockets;
};

/* ---- addresses ---- */

static int parse_address(
	const char *text, struct sockaddr_storage *ret_address, struct nacre_err *err)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret_address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret_address;
	char host[64], quoted[NC_TEXT_QUOTED_MAX];
	const char *colon = strrchr(text, ':');
	size_t size = colon ? (size_t)(colon - text) : 0;
	uint64_t port;

	*ret_address = (struct sockaddr_storage){0};
	if (size >= 2 && size < sizeof(host) && nc_parse_u64(colon + 1, 0, 65535, &port) == 0) {
		memcpy(host, text, size);
		host[size] = '\0';
		if (nc_streq(host, "localhost"))
			(void)snprintf(host, sizeof(host), "127.0.0.1");
		if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
			v4->sin_family = AF_INET;
			v4->sin_port = htons((uint16_t)port);
			return 0;
		}
		if (host[0] == '[' && host[strlen(host) - 1] == ']') {
			host[strlen(host) - 1] = '\0';
			if (inet_pton(AF_INET6, host + 1, &v6->sin6_addr) == 1) {
				v6->sin6_family = AF_INET6;
				v6->sin6_port = htons((uint16_t)port);
				return 0;
			}
		}
	}
	return nc_err_set(err, -EINVAL,
		"Address %s: expected one such as 127.0.0.1:7070 or [::1]:7070",
		nc_text_quote(quoted, text));
}

static bool is_local(const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_UNIX)
		return true;
	if (address->ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
	/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): all of it was set */
	return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
}

int nc_listen_open(const char *address, bool *ret_local, struct nacre_err *err)
{
	struct sockaddr_storage where;
	cleanup_close int fd = -EBADF;
	const int on = 1;
	int r = parse_address(address, &where, err);

	if (r < 0)
		return r;
	fd = socket(where.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
		(where.ss_family == AF_INET6 &&
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0) ||
		bind(fd, (struct sockaddr *)&where,
			where.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						    : sizeof(struct sockaddr_in)) < 0 ||
		listen(fd, BACKLOG) < 0)
		return nc_err_errno(err, -errno, "Listen on %s", address);
	*ret_local = is_local(&where);
	return take_fd(fd);
}

bool nc_listen_is_local(int fd)
{
	struct sockaddr_storage where = {0};
	socklen_t size = sizeof(where);

	return getsockname(fd, (struct sockaddr *)&where, &size) == 0 && is_local(&where);
}

void nc_listen_name(int fd, char out[static NC_LISTEN_NAME_SIZE])
{
	struct sockaddr_storage where = {0};
	socklen_t size = sizeof(where);
	char host[INET6_ADDRSTRLEN] = "?";

	(void)getsockname(fd, (struct sockaddr *)&where, &size);
	if (where.ss_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&where;

		(void)inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
		(void)snprintf(out, NC_LISTEN_NAME_SIZE, "[%s]:%u", host, ntohs(v6->sin6_port));
	} else {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)&where;

		(void)inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
		/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): as above */
		(void)snprintf(out, NC_LISTEN_NAME_SIZE, "%s:%u", host, ntohs(v4->sin_port));
	}
}

/* ---- clients ---- */

static void on_client(void *context, int events)
{
	struct socket *at = context;

	(void)events;
	for (int i = 0; i < BATCH; i++) {
		struct sockaddr_storage peer = {0};
		socklen_t size = sizeof(peer);
		const int on = 1, idle = KEEP_IDLE;
		int fd = accept4(
			at->fd, (struct sockaddr *)&peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			/* no descriptors or memory: not again before the next tick */
			if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
				nc_poll_set(at->poll, 0);
			return;
		}
		(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
		(void)setsockopt(fd, IPPROTO_TCP, 4 /* TCP_KEEPIDLE */, &idle, sizeof(idle));
		if (at->all->tls)
			nc_tls_add(at->all->tls, fd, (struct sockaddr *)&peer, size);
		else
			(void)nc_http_add(at->all->http, fd, (struct sockaddr *)&peer, size);
	}
}

void nc_listeners_tick(struct nc_listeners *listeners)
{
	for (size_t i = 0; i < listeners->n_sockets; i++)
		nc_poll_set(listeners->sockets[i].poll, UV_READABLE);
}

int nc_listeners_new(uv_loop_t *loop, const int *fds, size_t n_fds, struct nc_http *http,
	struct nc_tls *tls, struct nc_listeners **ret_listeners)
{
	struct nc_listeners *listeners = calloc(1, sizeof(*listeners));
	int r = 0;

	if (listeners)
		listeners->sockets = calloc(n_fds + 1, sizeof(*listeners->sockets));
	if (!listeners || !listeners->sockets) {
		free(listeners);
		return -ENOMEM;
	}
	listeners->http = http;
	listeners->tls = tls;
	for (size_t i = 0; r == 0 && i < n_fds; i++) {
		struct socket *at = &listeners->sockets[i];

		*at = (struct socket){.all = listeners, .fd = fds[i]};
		r = nc_poll_new(loop, fds[i], UV_READABLE, on_client, at, &at->poll);
		if (r == 0)
			listeners->n_sockets++;
	}
	if (r < 0)
		nc_listeners_free(listeners);
	else
		*ret_listeners = listeners;
	return r;
}

void nc_listeners_free(struct nc_listeners *listeners)
{
	if (!listeners)
		return;
	for (size_t i = 0; i < listeners->n_sockets; i++)
		(void)nc_poll_free(listeners->sockets[i].poll);
	free(listeners->sockets);
	free(listeners);
}
