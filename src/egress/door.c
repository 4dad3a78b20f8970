/* The door of one box. */
#include "egress/door.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "egress/conn.h"

/* Connections that are accepted before others have their turn. */
#define ACCEPTS_PER_TURN 64U
/* Records a second, and at once. */
#define RECORDS_RATE 100U
#define RECORDS_BURST 200U
/* What a bucket holds: as much as comes in this time, but enough for a piece. */
#define BURST_NS (100 * NC_NS_PER_MS)
#define BURST_MIN 65536U

/* ---- buckets ---- */

static void fill(struct nc_bucket *bucket, uint64_t rate, uint64_t burst, uint64_t now_ns)
{
	uint64_t passed = now_ns - bucket->filled_ns, more;

	if (passed > NC_NS_PER_S)
		passed = NC_NS_PER_S;
	/* rates are less than 2^33 here, so that this does not overflow */
	more = passed * rate / NC_NS_PER_S;
	if (more == 0)
		return; /* what is not a whole token yet is not lost */
	bucket->filled_ns = now_ns;
	bucket->tokens = bucket->tokens + more < burst ? bucket->tokens + more : burst;
}

/* ---- bytes ---- */

static uint64_t left_of(uint64_t limit, uint64_t used)
{
	return limit == 0 ? UINT64_MAX : used < limit ? limit - used : 0;
}

static uint64_t budget(const struct nc_door *door, enum nc_direction direction)
{
	const struct nc_egress_limits *limits = &door->terms.limits;
	const struct nc_egress_meter *meter = &door->meter;
	const uint64_t both = left_of(limits->bytes, meter->bytes_up + meter->bytes_down);
	const uint64_t one = direction == NC_UP ? left_of(limits->bytes_up, meter->bytes_up)
						: left_of(limits->bytes_down, meter->bytes_down);

	return both < one ? both : one;
}

bool nc_door_is_over(const struct nc_door *door)
{
	return budget(door, NC_UP) == 0 || budget(door, NC_DOWN) == 0;
}

static void over(struct nc_door *door, enum nc_reason reason)
{
	if (!(door->over & 1U << reason))
		nc_tell_over(door->egress, door->meter.box, reason);
	door->over |= 1U << reason;
}

size_t nc_door_may(struct nc_door *door, enum nc_direction direction, size_t wanted)
{
	struct nc_bucket *bucket = &door->buckets[direction];
	const uint64_t rate = door->terms.limits.rate, left = budget(door, direction);
	uint64_t burst = rate / (NC_NS_PER_S / BURST_NS);

	if (left < wanted)
		wanted = (size_t)left;
	if (rate == 0 || wanted == 0)
		return wanted;
	burst = burst < BURST_MIN ? BURST_MIN : burst;
	fill(bucket, rate, burst, door->egress->loop.now_ns);
	return wanted < bucket->tokens ? wanted : (size_t)bucket->tokens;
}

void nc_door_took(struct nc_door *door, struct nc_egress_destination *destination,
	enum nc_direction direction, size_t n)
{
	struct nc_bucket *bucket = &door->buckets[direction];

	bucket->tokens -= n < bucket->tokens ? n : bucket->tokens;
	*(direction == NC_UP ? &door->meter.bytes_up : &door->meter.bytes_down) += n;
	*(direction == NC_UP ? &destination->bytes_up : &destination->bytes_down) += n;
	if (nc_door_is_over(door))
		over(door, NC_REASON_BUDGET);
}

/* ---- requests and destinations ---- */

static struct nc_egress_destination *find_destination(struct nc_door *door, const char *host)
{
	for (size_t i = 0; i < door->meter.names; i++)
		if (nc_streq(door->destinations[i]->host, host))
			return door->destinations[i];
	return NULL;
}

static struct nc_egress_destination *add_destination(struct nc_door *door, const char *host)
{
	cleanup_free struct nc_egress_destination *destination = calloc(1, sizeof(*destination));
	/* NOLINTBEGIN(bugprone-sizeof-expression): they are pointers */
	struct nc_egress_destination **list = reallocarray(
		door->destinations, (size_t)door->meter.names + 1, sizeof(*door->destinations));
	/* NOLINTEND(bugprone-sizeof-expression) */

	if (list)
		door->destinations = list;
	if (!list || !destination)
		return NULL;
	(void)snprintf(destination->host, sizeof(destination->host), "%s", host);
	return list[door->meter.names++] = take_ptr(destination);
}

enum nc_reason nc_door_enter(
	struct nc_door *door, const char *host, struct nc_egress_destination **ret_destination)
{
	struct nc_egress_destination *destination = find_destination(door, host);

	if (nc_door_is_over(door))
		return NC_REASON_BUDGET;
	if (left_of(door->terms.limits.requests, door->meter.requests) == 0) {
		over(door, NC_REASON_REQUESTS);
		return NC_REASON_REQUESTS;
	}
	if (!destination && door->meter.names < door->terms.limits.names)
		destination = add_destination(door, host);
	if (!destination) {
		over(door, NC_REASON_NAMES);
		return NC_REASON_NAMES;
	}
	door->meter.requests++;
	destination->requests++;
	*ret_destination = destination;
	return NC_REASON_ALLOWED;
}

bool nc_door_has_secret(const struct nc_door *door, const struct nc_host *host, uint16_t port)
{
	for (size_t i = 0; i < door->terms.secrets.n; i++) {
		const struct nc_secret *secret = &door->terms.secrets.entries[i];

		if (secret->tls && secret->port == port && secret->host.kind == host->kind &&
			nc_streq(secret->host.text, host->text))
			return true;
	}
	return false;
}

static uint64_t weight(const struct nc_egress_destination *destination)
{
	return destination->bytes_up + destination->bytes_down;
}

/* Keeps the heaviest, in order. */
static void rank(struct nc_egress_meter *meter, const struct nc_egress_destination *destination)
{
	size_t at = meter->n_top;

	while (at > 0 && weight(&meter->top[at - 1]) < weight(destination))
		at--;
	if (at == NC_EGRESS_TOP_MAX)
		return;
	if (meter->n_top < NC_EGRESS_TOP_MAX)
		meter->n_top++;
	memmove(&meter->top[at + 1], &meter->top[at],
		(meter->n_top - at - 1) * sizeof(meter->top[0]));
	meter->top[at] = *destination;
}

void nc_door_meter(const struct nc_door *door, bool last, struct nc_egress_meter *ret_meter)
{
	*ret_meter = door->meter;
	ret_meter->last = last;
	for (size_t i = 0; i < door->meter.names; i++)
		rank(ret_meter, door->destinations[i]);
}

void nc_door_record(struct nc_door *door, struct nc_egress_decision *decision)
{
	if (decision->reason >= NC_REASON_UNKNOWN_HOST)
		door->meter.failed++;
	else if (decision->reason != NC_REASON_ALLOWED)
		door->meter.denied++;
	fill(&door->records, RECORDS_RATE, RECORDS_BURST, door->egress->loop.now_ns);
	decision->box = door->meter.box;
	decision->dropped = door->records_dropped;
	if (door->records.tokens > 0 && nc_tell_decision(door->egress, decision)) {
		door->records.tokens--;
		door->records_dropped = 0;
	} else {
		door->records_dropped++;
	}
}

/* ---- the listener ---- */

static void refuse_connection(struct nc_door *door, enum nc_reason reason)
{
	struct nc_egress_decision decision = {.reason = reason, .protocol = NC_EGRESS_ACCEPT};

	nc_door_record(door, &decision);
}

static void accept_all(struct nc_door *door)
{
	door->knocking = true;
	for (unsigned int i = 0; i < ACCEPTS_PER_TURN; i++) {
		int fd = accept4(door->listener_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0) {
			/* out of descriptors or memory, or somebody who has gone again */
			door->knocking = errno != EAGAIN;
			break;
		}
		if (door->meter.open >= door->terms.limits.connections) {
			refuse_connection(door, NC_REASON_CONNECTIONS);
			(void)nc_fd_close(fd);
			continue;
		}
		(void)nc_conn_new(door, fd);
	}
	door->egress->held = door->egress->held || door->knocking;
}

static void knocked(struct nc_watch *watch, uint32_t events)
{
	struct nc_door *door = (struct nc_door *)watch;

	(void)events;
	if (door->listener_fd >= 0)
		accept_all(door);
}

void nc_door_tick(struct nc_door *door)
{
	struct nc_conn *next;

	if (door->knocking)
		accept_all(door);
	for (struct nc_conn *conn = door->conns; conn; conn = next) {
		next = conn->next;
		if (conn->is_held)
			nc_conn_run(conn);
	}
}

/* ---- opening and shutting ---- */

static bool is_tcp(int fd, bool listens)
{
	int domain, protocol, accepts;
	socklen_t size = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &size) == 0 &&
	       (domain == AF_INET || domain == AF_INET6) && protocol == IPPROTO_TCP &&
	       (accepts != 0) == listens && fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) == 0;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_storage own = {0};
	socklen_t size = sizeof(own);
	struct sockaddr_in v4;

	/* the port stands in the same place in both families */
	if (getsockname(fd, (struct sockaddr *)&own, &size) < 0)
		return 0;
	memcpy(&v4, &own, sizeof(v4));
	return ntohs(v4.sin_port);
}

/*
 * What it accepts never leaves the loopback of the box, so that there is no network to be fair to;
 * but where the host's default paces (BBR), each segment waits for a timer there, which halves what
 * goes through. Every kernel has reno and lets everybody use it; without it things are slower.
 */
static void be_brisk(int listener_fd)
{
	static const char algorithm[] = "reno";

	(void)setsockopt(
		listener_fd, IPPROTO_TCP, TCP_CONGESTION, algorithm, sizeof(algorithm) - 1);
}

struct nc_door *nc_door_find(struct nc_egress *egress, uint64_t box)
{
	for (struct nc_door *door = egress->doors; door; door = door->next)
		if (door->meter.box == box)
			return door;
	return NULL;
}

static struct nc_door *find_member(struct nc_egress *egress, const char *group, const char *name)
{
	if (!group[0])
		return NULL;
	for (struct nc_door *door = egress->doors; door; door = door->next)
		if (nc_streq(door->terms.group, group) && nc_streq(door->terms.name, name))
			return door;
	return NULL;
}

struct nc_door *nc_door_member(const struct nc_door *door, const char *name)
{
	return find_member(door->egress, door->terms.group, name);
}

int nc_door_open(
	struct nc_egress *egress, uint64_t box, struct nc_door_terms *terms, int *fds, size_t n_fds)
{
	cleanup_free struct nc_door *door = NULL;
	int r;

	/* a name is one box, also where the worker does not see to it */
	if (nc_door_find(egress, box) || find_member(egress, terms->group, terms->name))
		return -EEXIST;
	if (egress->n_doors == NC_EGRESS_DOORS_MAX)
		return -ENOSPC;
	for (size_t i = 0; i < n_fds; i++)
		if (!is_tcp(fds[i], i == 0))
			return -EBADMSG;
	door = calloc(1, sizeof(*door));
	if (!door)
		return -ENOMEM;
	*door = (struct nc_door){.watch.ready = knocked,
		.egress = egress,
		.next = egress->doors,
		.listener_fd = fds[0],
		.port = port_of(fds[0]),
		.meter.box = box,
		.records = {RECORDS_BURST, egress->loop.now_ns}};
	be_brisk(fds[0]);
	r = nc_loop_add(&egress->loop, fds[0], EPOLLIN | EPOLLET, &door->watch);
	if (r < 0)
		return r;
	fds[0] = -EBADF;
	for (size_t i = 1; i < n_fds; i++)
		door->spares[door->n_spares++] = take_fd(fds[i]);
	door->terms = *terms;
	*terms = (struct nc_door_terms){0};
	egress->n_doors++;
	egress->doors = take_ptr(door);
	return 0;
}

void nc_door_change(struct nc_door *door, struct nc_door_terms *terms)
{
	nc_door_terms_done(&door->terms);
	door->terms = *terms;
	*terms = (struct nc_door_terms){0};
	door->over = 0; /* limits may be others now */
}

/* Those of other boxes that have come in to this one. */
static void end_visitors(struct nc_door *door)
{
	for (struct nc_door *other = door->egress->doors; other; other = other->next)
		for (struct nc_conn *conn = other->conns, *next; conn; conn = next) {
			next = conn->next;
			if (conn->member == door)
				nc_conn_end(conn);
		}
}

void nc_door_shut(struct nc_door *door)
{
	struct nc_egress *egress = door->egress;
	struct nc_door **link = &egress->doors;

	while (door->conns)
		nc_conn_end(door->conns);
	end_visitors(door);
	while (*link != door) {
		assert(*link);
		link = &(*link)->next;
	}
	*link = door->next;
	egress->n_doors--;
	/* the worker may hold the same socket */
	nc_loop_remove(&egress->loop, door->listener_fd);
	door->listener_fd = nc_fd_close(door->listener_fd);
	while (door->n_spares > 0)
		(void)nc_fd_close(door->spares[--door->n_spares]);
	door->next = egress->dead_doors;
	egress->dead_doors = door;
}

void nc_doors_bury(struct nc_egress *egress)
{
	while (egress->dead_doors) {
		struct nc_door *door = egress->dead_doors;

		egress->dead_doors = door->next;
		for (size_t i = 0; i < door->meter.names; i++)
			free(door->destinations[i]);
		free(door->destinations);
		nc_door_terms_done(&door->terms);
		free(door);
	}
}
