/* Judging a host, looking it up, and dialling exactly what was checked. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "egress/conn.h"

/* ---- judging ---- */

/* The name of a box of the same group, which nothing else can be. */
static enum nc_reason judge_member(struct nc_conn *conn)
{
	(void)snprintf(conn->rule, sizeof(conn->rule), "%s", conn->door->terms.group);
	/* at its own door one would be the other */
	return conn->port == conn->member->port ? NC_REASON_NOT_LISTED : NC_REASON_ALLOWED;
}

static enum nc_reason judge(struct nc_conn *conn, const struct nc_wish *wish)
{
	struct nc_verdict verdict;

	conn->member = wish->host->kind == NC_HOST_NAME
			       ? nc_door_member(conn->door, wish->host->text)
			       : NULL;
	if (conn->member)
		return judge_member(conn);
	verdict = nc_rules_judge(&conn->door->terms.rules, wish);
	(void)snprintf(conn->rule, sizeof(conn->rule), "%s", verdict.rule);
	conn->reach = verdict.reach;
	return verdict.reason;
}

enum nc_step nc_conn_go(struct nc_conn *conn, const struct nc_wish *wish)
{
	enum nc_reason reason;

	nc_conn_hang_up(conn);
	reason = judge(conn, wish);
	if (reason == NC_REASON_ALLOWED)
		reason = nc_door_enter(conn->door, wish->host->text, &conn->destination);
	if (reason != NC_REASON_ALLOWED) {
		conn->member = NULL;
		return nc_conn_refuse(conn, reason, NULL);
	}
	conn->n_addresses = conn->dialled = 0;
	conn->is_found = false;
	if (wish->host->kind == NC_HOST_NAME && !conn->member) {
		nc_conn_enter(conn, NC_STAGE_LOOKUP);
		return NC_STEP_MORE;
	}
	conn->addresses[0] = conn->member ? (struct nc_address){AF_INET, {127, 0, 0, 1}}
					  : nc_address_of_host(wish->host);
	conn->n_addresses = 1;
	nc_conn_record(conn, NC_REASON_ALLOWED, &conn->addresses[0]);
	nc_conn_enter(conn, NC_STAGE_DIAL);
	return NC_STEP_MORE;
}

/* ---- looking up ---- */

/* Whether it may be dialled; if not, all of the answer is refused. */
static bool is_allowed(const struct nc_conn *conn, const struct nc_address *address, bool *ret_way)
{
	int own;

	*ret_way = true;
	if (nc_address_reach(address) > conn->reach)
		return false;
	if (conn->reach != NC_REACH_PUBLIC)
		return true;
	own = nc_address_is_own(address);
	*ret_way = own >= 0;
	return own <= 0;
}

/*
 * Every address is checked, also those that would never be dialled: an answer of which a part leads
 * inside is an attack, or a network that the list's author did not think of.
 */
static enum nc_reason check(struct nc_conn *conn, const struct nc_address *addresses, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool way;

		if (!is_allowed(conn, &addresses[i], &way)) {
			conn->culprit = addresses[i];
			return NC_REASON_PRIVATE;
		}
		if (way && conn->n_addresses < NC_DIAL_MAX)
			conn->addresses[conn->n_addresses++] = addresses[i];
	}
	return conn->n_addresses > 0 ? NC_REASON_ALLOWED : NC_REASON_CONNECT;
}

static void found(void *user, const struct nc_address *addresses, size_t n, bool answered)
{
	struct nc_conn *conn = user;

	conn->lookup = NULL;
	conn->is_found = true;
	conn->culprit = (struct nc_address){0};
	if (n > 0)
		conn->found = check(conn, addresses, n);
	else
		conn->found = answered ? NC_REASON_UNKNOWN_HOST : NC_REASON_RESOLVE;
	nc_conn_run(conn);
}

enum nc_step nc_conn_lookup(struct nc_conn *conn)
{
	const struct nc_address *address;

	if (!conn->is_found && !conn->lookup) {
		int r;

		conn->is_asking = true;
		r = nc_resolver_ask(
			&conn->door->egress->resolver, conn->host.text, found, conn, &conn->lookup);
		conn->is_asking = false;
		if (r < 0)
			return nc_conn_refuse(conn, NC_REASON_RESOLVE, NULL);
	}
	if (!conn->is_found)
		return NC_STEP_WAIT;
	address = conn->culprit.family ? &conn->culprit : NULL;
	if (conn->found != NC_REASON_ALLOWED)
		return nc_conn_refuse(conn, conn->found, address);
	nc_conn_record(conn, NC_REASON_ALLOWED, &conn->addresses[0]);
	nc_conn_enter(conn, NC_STAGE_DIAL);
	return NC_STEP_MORE;
}

/* ---- dialling ---- */

static int new_socket(struct nc_conn *conn, int family)
{
	const int on = 1;
	int fd;

	if (!conn->member)
		fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	else if (conn->member->n_spares > 0)
		fd = conn->member->spares[--conn->member->n_spares];
	else
		return -EAGAIN;
	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

/* A socket that was made in a box's network is used again: nobody out here could make another. */
static void give_back(struct nc_door *member, int fd)
{
	const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};

	if (member->listener_fd >= 0 && member->n_spares < NC_SPARES_MAX &&
		connect(fd, &nowhere, sizeof(nowhere)) == 0)
		member->spares[member->n_spares++] = take_fd(fd);
	(void)nc_fd_close(fd);
}

void nc_conn_hang_up(struct nc_conn *conn)
{
	struct nc_egress *egress = conn->door->egress;
	int fd = nc_side_detach(&conn->server, &egress->loop);

	for (int i = 0; i < NC_DIRECTION_MAX; i++)
		nc_flow_done(&conn->flows[i], &egress->pipes);
	if (fd >= 0 && conn->member)
		give_back(conn->member, fd);
	else
		(void)nc_fd_close(fd);
}

static int dial_next(struct nc_conn *conn)
{
	const struct nc_address *address = &conn->addresses[conn->dialled];
	struct sockaddr_storage there;
	socklen_t size = nc_address_fill(address, conn->port, &there);
	cleanup_close int fd = new_socket(conn, address->family);

	conn->dialled++;
	if (fd < 0)
		return fd;
	if (connect(fd, (const struct sockaddr *)&there, size) < 0 && errno != EINPROGRESS) {
		int r = -errno;

		if (conn->member)
			give_back(conn->member, take_fd(fd));
		return r;
	}
	return nc_side_attach(&conn->server, &conn->door->egress->loop, take_fd(fd));
}

/* Whether the connection stands: 1; 0: it does not yet; -errno. */
static int is_up(const struct nc_side *server)
{
	int error = 0;
	socklen_t size = sizeof(error);

	if (!server->writable && !server->readable)
		return 0;
	if (getsockopt(server->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		return -errno;
	return error ? -error : server->writable;
}

enum nc_step nc_conn_dial(struct nc_conn *conn)
{
	if (conn->server.fd >= 0) {
		int r = is_up(&conn->server);

		if (r > 0)
			return nc_conn_connected(conn);
		if (r == 0)
			return NC_STEP_WAIT;
		nc_conn_hang_up(conn);
	}
	/* whoever leaves lets the next one in, within the time for connecting */
	if (conn->member && conn->dialled == 0 && conn->member->n_spares == 0) {
		conn->is_held = conn->door->egress->held = true;
		return NC_STEP_WAIT;
	}
	while (conn->dialled < conn->n_addresses)
		if (dial_next(conn) == 0)
			return NC_STEP_WAIT;
	return nc_conn_refuse(conn, NC_REASON_CONNECT,
		conn->n_addresses > 0 ? &conn->addresses[conn->n_addresses - 1] : NULL);
}
