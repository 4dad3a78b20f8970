/* The network of boxes: doors that nacre-egress holds. */
#include "engine/network.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "base/wire.h"
#include "tier/poll.h"

/* It only reads some files before it says so. */
#define WELCOME_MS 10000
/* How long it may take to shut a door, and to tell what went through it. */
#define SHUT_NS (5 * NC_NS_PER_S)
#define LOOK_MS 1000

struct nc_door {
	struct nc_network *network;
	struct nc_door *next;
	uint64_t box_id;
	struct nc_door_listener listener; /* zeroed: nobody listens */
	struct nc_network_totals counted; /* of it, in the network's */
	uint64_t shut_ns;		  /* since when it is to be shut; 0: it is not */
	char group[NC_EGRESS_GROUP_MAX + 1], name[NC_EGRESS_NAME_MAX + 1]; /* or "" */
};

struct nc_network {
	uv_loop_t *loop;
	struct nc_egress_client client;
	struct nc_poll *poll;
	struct nc_door *doors;
	struct nc_network_totals totals;
	struct nc_buf trusted;
	size_t host_trusts; /* bytes of it, before those of nacre-egress's own authority */
	bool has_authority;
	bool silent; /* it did not answer in time, and has said nothing since */
	uv_timer_t *look;
};

static struct nc_door **place_of(struct nc_network *network, uint64_t box_id)
{
	struct nc_door **place = &network->doors;

	while (*place && (*place)->box_id != box_id)
		place = &(*place)->next;
	return place;
}

/* The door is shut: its last word. */
static void end_door(struct nc_door **place, const struct nc_egress_meter *meter)
{
	struct nc_door *door = *place;
	struct nc_door_listener listener;

	assert(door);
	listener = door->listener;
	*place = door->next;
	free(door);
	if (listener.shut)
		listener.shut(listener.context, meter);
}

static void on_decision(void *user, const struct nc_egress_decision *decision)
{
	const struct nc_door *door = *place_of(user, decision->box);

	if (door && door->listener.decided)
		door->listener.decided(door->listener.context, decision);
}

static void on_over(void *user, uint64_t box, enum nc_reason reason)
{
	const struct nc_door *door = *place_of(user, box);

	if (door && door->listener.over)
		door->listener.over(door->listener.context, reason);
}

/* Adds what is new since the last time; a meter never goes back. */
static void count(struct nc_network_totals *totals, struct nc_network_totals *counted,
	const struct nc_egress_meter *meter)
{
	const struct nc_network_totals now = {meter->connections, meter->requests, meter->denied,
		meter->failed, meter->bytes_up, meter->bytes_down};

	totals->connections += now.connections - counted->connections;
	totals->requests += now.requests - counted->requests;
	totals->denied += now.denied - counted->denied;
	totals->failed += now.failed - counted->failed;
	totals->bytes_up += now.bytes_up - counted->bytes_up;
	totals->bytes_down += now.bytes_down - counted->bytes_down;
	*counted = now;
}

static void on_meter(void *user, const struct nc_egress_meter *meter)
{
	struct nc_network *network = user;
	struct nc_door **place = place_of(network, meter->box);

	if (*place)
		count(&network->totals, &(*place)->counted, meter);
	/* of a worker before us, and nobody's now */
	if (!*place && !meter->last)
		(void)nc_egress_shut(&network->client, meter->box);
	if (*place && meter->last)
		end_door(place, meter);
	else if (*place && (*place)->listener.metered)
		(*place)->listener.metered((*place)->listener.context, meter);
}

/* Terms are checked before they are sent; what fails all the same has no door to speak of. */
static void on_opened(void *user, uint64_t box, int error)
{
	struct nc_door **place = place_of(user, box);

	if (*place && error < 0)
		end_door(place, NULL);
}

static void lose_all(struct nc_network *network)
{
	network->poll = nc_poll_free(network->poll);
	(void)uv_timer_stop(network->look);
	network->silent = false;
	nc_egress_done(&network->client);
	while (network->doors)
		end_door(&network->doors, NULL);
}

static void on_readable(void *context, int events)
{
	struct nc_network *network = context;
	int r;

	(void)events;
	network->silent = false;
	do
		r = nc_egress_receive(&network->client);
	while (r > 0);
	if (r < 0)
		lose_all(network);
}

/* What boxes must trust comes with it, so nothing begins before. */
static int hear_welcome(struct nc_network *network, int timeout_ms, struct nacre_err *err)
{
	struct pollfd event = {.fd = network->client.fd, .events = POLLIN};
	int r = 1;

	while (r > 0 && !network->client.welcome)
		r = poll(&event, 1, timeout_ms) == 1 ? nc_egress_receive(&network->client)
						     : -ETIMEDOUT;
	return r < 0 || !network->client.welcome
		       ? nc_err_errno(err, r < 0 ? r : -EPROTO, "Hear from nacre-egress")
		       : 0;
}

/* Doors that it does not shut are given up: whoever waits for that has waited long enough. */
static void on_look(uv_timer_t *timer)
{
	struct nc_network *network = timer->data;
	const uint64_t now = nc_clock_ns();
	struct nc_door **place = &network->doors;
	bool waits = false;

	while (*place) {
		const struct nc_door *door = *place;

		if (!door->shut_ns || now - door->shut_ns < SHUT_NS) {
			waits = waits || door->shut_ns;
			place = &(*place)->next;
			continue;
		}
		network->silent = true;
		end_door(place, NULL);
		place = &network->doors; /* whoever was told may have changed them */
	}
	if (!waits)
		(void)uv_timer_stop(timer);
}

static int meet(struct nc_network *network, int fd, bool waits, struct nacre_err *err)
{
	static const struct nc_egress_events events = {
		.done = on_opened, .decision = on_decision, .meter = on_meter, .over = on_over};
	int r = nc_egress_greet(&network->client, fd, &events, network, err);

	if (r == 0 && waits)
		r = hear_welcome(network, WELCOME_MS, err);
	if (r == 0) {
		r = nc_poll_new(network->loop, network->client.fd, UV_READABLE, on_readable,
			network, &network->poll);
		if (r < 0)
			nc_err_errno(err, r, "Watch nacre-egress");
	}
	return r;
}

int nc_network_meet(struct nc_network *network, int fd, struct nacre_err *err)
{
	int r;

	lose_all(network);
	/* the next one has an authority of its own */
	network->trusted.size = network->host_trusts;
	if (network->trusted.data)
		network->trusted.data[network->trusted.size] = '\0';
	network->has_authority = false;
	r = meet(network, fd, false, err);
	if (r < 0)
		lose_all(network);
	return r;
}

int nc_network_new(uv_loop_t *loop, int fd, struct nc_network **ret_network, struct nacre_err *err)
{
	struct nc_network *network = calloc(1, sizeof(*network));
	int r;

	if (!network) {
		(void)nc_fd_close(fd);
		return nc_err_errno(err, -ENOMEM, "Begin the network");
	}
	network->loop = loop;
	network->look = calloc(1, sizeof(*network->look));
	if (!network->look) {
		(void)nc_fd_close(fd);
		free(network);
		return nc_err_errno(err, -ENOMEM, "Begin the network");
	}
	(void)uv_timer_init(loop, network->look); /* cannot fail */
	network->look->data = network;
	network->trusted = (struct nc_buf)NC_BUF(NC_TRUSTED_MAX);
	r = meet(network, fd, true, err);
	if (r < 0) {
		nc_network_free(network);
		return r;
	}
	*ret_network = network;
	return 0;
}

static void close_timer(uv_handle_t *handle)
{
	free(handle);
}

void nc_network_free(struct nc_network *network)
{
	if (!network)
		return;
	for (struct nc_door *door = network->doors; door; door = door->next)
		door->listener = (struct nc_door_listener){0};
	lose_all(network);
	uv_close((uv_handle_t *)network->look, close_timer);
	nc_buf_done(&network->trusted);
	free(network);
}

int nc_network_trust(struct nc_network *network, const char *bundle)
{
	nc_buf_adds(&network->trusted, bundle);
	nc_buf_adds(&network->trusted, "\n");
	network->host_trusts = network->trusted.size;
	return network->trusted.error;
}

const struct nc_buf *nc_network_trusted(struct nc_network *network)
{
	if (!network->has_authority && network->client.welcome) {
		network->has_authority = true;
		nc_buf_adds(&network->trusted, network->client.authority);
	}
	return &network->trusted;
}

struct nc_network_totals nc_network_totals(struct nc_network *network)
{
	if (!network)
		return (struct nc_network_totals){0};
	for (struct nc_door *door = network->doors; door; door = door->next)
		nc_door_ask(door);
	return network->totals;
}

bool nc_network_is_up(const struct nc_network *network)
{
	return nc_network_is_met(network) && network->client.welcome && !network->silent;
}

bool nc_network_is_met(const struct nc_network *network)
{
	return network && network->client.fd >= 0;
}

bool nc_network_has_member(const struct nc_network *network, const char *group, const char *name)
{
	for (const struct nc_door *door = network->doors; door; door = door->next)
		if (nc_streq(door->group, group) && nc_streq(door->name, name))
			return true;
	return false;
}

/* A door that others come in by brings sockets for them (guests). */
static int send_door(struct nc_network *network, uint64_t box_id, int door_fd,
	const struct nc_egress_terms *terms, struct nacre_err *err)
{
	cleanup_wire_packet struct nc_wire_packet packet = {0};
	int r;

	if (!terms->group)
		return nc_egress_open(&network->client, box_id, terms, door_fd, NULL, 0, err);
	r = nc_wire_receive(door_fd, &packet, NC_WIRE_FDS_MAX);
	if (r <= 0 || packet.n_fds == 0)
		return nc_err_errno(err, r < 0 ? r : -EPROTO, "Take the door of a box");
	return nc_egress_open(&network->client, box_id, terms, packet.fds[0], packet.fds + 1,
		packet.n_fds - 1, err);
}

static int check_open(const struct nc_network *network, const struct nc_egress_terms *terms,
	struct nacre_err *err)
{
	if (!nc_network_is_up(network))
		return nc_err_set(err, -EPIPE,
			"nacre-egress has died or does not answer: there is no network");
	if (terms->group && nc_network_has_member(network, terms->group, terms->name))
		return nc_err_set(err, -EEXIST, "network.name: another box of the group is '%s'",
			terms->name);
	return 0;
}

int nc_network_keep(struct nc_network *network, const char *placeholder, const char *value,
	struct nacre_err *err)
{
	return nc_egress_keep(&network->client, placeholder, value, err);
}

void nc_network_drop(struct nc_network *network, const char *placeholder)
{
	/* one that has died has forgotten it */
	(void)nc_egress_drop(&network->client, placeholder);
}

static void enlist(struct nc_network *network, struct nc_door *door, uint64_t box_id,
	const struct nc_egress_terms *terms, const struct nc_door_listener *listener)
{
	*door = (struct nc_door){.network = network,
		.next = network->doors,
		.box_id = box_id,
		.listener = *listener};
	if (terms->group) {
		(void)snprintf(door->group, sizeof(door->group), "%s", terms->group);
		(void)snprintf(door->name, sizeof(door->name), "%s", terms->name);
	}
	network->doors = door;
}

int nc_door_open(struct nc_network *network, uint64_t box_id, int door_fd,
	const struct nc_egress_terms *terms, const struct nc_door_listener *listener,
	struct nc_door **ret_door, struct nacre_err *err)
{
	struct nc_door *door = calloc(1, sizeof(*door));
	int r = door ? check_open(network, terms, err)
		     : nc_err_errno(err, -ENOMEM, "Open the door");

	if (r == 0)
		r = send_door(network, box_id, door_fd, terms, err);
	(void)nc_fd_close(door_fd);
	if (r < 0 || !door) {
		free(door);
		return r;
	}
	enlist(network, door, box_id, terms, listener);
	*ret_door = door;
	return 0;
}

struct nc_door *nc_door_adopt(struct nc_network *network, uint64_t box_id,
	const struct nc_egress_terms *terms, const struct nc_door_listener *listener)
{
	struct nc_door *door = calloc(1, sizeof(*door));

	if (door)
		enlist(network, door, box_id, terms, listener);
	return door;
}

int nc_door_change(struct nc_door *door, const struct nc_egress_terms *terms, struct nacre_err *err)
{
	return nc_egress_change(&door->network->client, door->box_id, terms, err);
}

void nc_door_ask(struct nc_door *door)
{
	(void)nc_egress_ask(&door->network->client, door->box_id); /* else it is told later */
}

void nc_door_shut(struct nc_door *door)
{
	struct nc_network *network = door->network;

	if (nc_egress_shut(&network->client, door->box_id) < 0) {
		end_door(place_of(network, door->box_id), NULL);
		return;
	}
	door->shut_ns = nc_clock_ns();
	(void)uv_timer_start(network->look, on_look, LOOK_MS, LOOK_MS);
}

void nc_door_drop(struct nc_door *door)
{
	if (!door)
		return;
	door->listener = (struct nc_door_listener){0};
	door->group[0] = '\0'; /* nacre-egress hears of this before it hears of who is next */
	nc_door_shut(door);
}

json_t *nc_door_meter_json(const struct nc_egress_meter *meter)
{
	json_t *hosts = json_array();

	for (size_t i = 0; hosts && i < meter->n_top; i++) {
		const struct nc_egress_destination *host = &meter->top[i];

		(void)json_array_append_new(hosts,
			json_pack("{s:s, s:I, s:I, s:I}", "host", host->host, "requests",
				(json_int_t)host->requests, "bytes_up", (json_int_t)host->bytes_up,
				"bytes_down", (json_int_t)host->bytes_down));
	}
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "connections",
		(json_int_t)meter->connections, "requests", (json_int_t)meter->requests, "denied",
		(json_int_t)meter->denied, "failed", (json_int_t)meter->failed, "bytes_up",
		(json_int_t)meter->bytes_up, "bytes_down", (json_int_t)meter->bytes_down, "names",
		(json_int_t)meter->names, "hosts", hosts);
}
