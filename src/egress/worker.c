/* nacre-egress and its worker: the closed table of messages. */
#include "egress/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/meeting.h"

/* Messages that are read before boxes have their turn. */
#define MESSAGES_PER_TURN 64U
/* More than a socket holds. */
#define LAST_WORDS_MAX 4096U

/* A message that the worker's socket did not take yet. */
struct nc_unsent {
	struct nc_unsent *next;
	struct nc_wire_out out;
};

bool nc_worker_may_come(const struct nc_egress *egress)
{
	return egress->worker_fd >= 0 || egress->place_fd >= 0;
}

static bool is_there(const struct nc_egress *egress)
{
	return egress->worker_fd >= 0;
}

/* What it was to be told is nobody's any more. */
static void drop_unsent(struct nc_egress *egress)
{
	while (egress->unsent) {
		struct nc_unsent *first = egress->unsent;

		egress->unsent = first->next;
		nc_wire_out_done(&first->out);
		free(first);
	}
	egress->unsent_end = &egress->unsent;
	egress->n_unsent = 0;
}

static void forget_worker(struct nc_egress *egress)
{
	egress->worker_fd = nc_fd_close(egress->worker_fd);
	egress->greeted = egress->waits_for_room = false;
	drop_unsent(egress);
}

/* It breaks the rules: that is the end. */
static void give_up(struct nc_egress *egress)
{
	egress->worker_fd = nc_fd_close(egress->worker_fd);
	egress->place_fd = nc_fd_close(egress->place_fd);
}

/* ---- sending ---- */

/* Waits for room as long as anything waits for it. */
static void watch_room(struct nc_egress *egress)
{
	const bool wanted = egress->unsent && is_there(egress);

	if (wanted == egress->waits_for_room || !is_there(egress))
		return;
	egress->waits_for_room = wanted;
	if (nc_loop_change(&egress->loop, egress->worker_fd,
		    EPOLLIN | (wanted ? (uint32_t)EPOLLOUT : 0), &egress->worker) < 0)
		give_up(egress);
}

static void send_unsent(struct nc_egress *egress)
{
	while (egress->unsent && is_there(egress)) {
		struct nc_unsent *first = egress->unsent;
		int r = nc_wire_send(egress->worker_fd, &first->out, NULL, 0);

		if (r == -EAGAIN)
			break;
		if (r < 0) { /* it has gone; what it said before is still to be heard */
			drop_unsent(egress);
			break;
		}
		egress->unsent = first->next;
		if (!egress->unsent)
			egress->unsent_end = &egress->unsent;
		egress->n_unsent--;
		nc_wire_out_done(&first->out);
		free(first);
	}
	watch_room(egress);
}

/* Sends it now or later; takes it. */
static void send_surely(struct nc_egress *egress, struct nc_wire_out *out)
{
	struct nc_unsent *unsent = is_there(egress) ? calloc(1, sizeof(*unsent)) : NULL;

	if (!is_there(egress)) {
		nc_wire_out_done(out);
		return;
	}
	if (!unsent || egress->n_unsent == NC_EGRESS_UNSENT_MAX) {
		free(unsent);
		nc_wire_out_done(out);
		give_up(egress);
		return;
	}
	unsent->out = *out;
	*out = (struct nc_wire_out){0};
	*egress->unsent_end = unsent;
	egress->unsent_end = &unsent->next;
	egress->n_unsent++;
	send_unsent(egress);
}

bool nc_tell_decision(struct nc_egress *egress, const struct nc_egress_decision *decision)
{
	cleanup_wire_out struct nc_wire_out out = {0};

	if (egress->unsent || !is_there(egress))
		return false;
	nc_wire_begin(&out, NC_EGRESS_DECISION);
	nc_egresswire_put_decision(&out, decision);
	return nc_wire_send(egress->worker_fd, &out, NULL, 0) == 0;
}

void nc_tell_over(struct nc_egress *egress, uint64_t box, enum nc_reason reason)
{
	struct nc_wire_out out = {0};

	nc_wire_begin(&out, NC_EGRESS_OVER);
	nc_wire_put_u64(&out, box);
	nc_wire_put_u8(&out, (uint8_t)reason);
	send_surely(egress, &out);
}

static void tell_done(struct nc_egress *egress, uint64_t box, int error)
{
	struct nc_wire_out out = {0};

	nc_wire_begin(&out, NC_EGRESS_DONE);
	nc_wire_put_u64(&out, box);
	nc_wire_put_u32(&out, (uint32_t)-error);
	send_surely(egress, &out);
}

/* A box that is not there has moved nothing. */
static void tell_meter(struct nc_egress *egress, uint64_t box, bool last)
{
	const struct nc_door *door = nc_door_find(egress, box);
	struct nc_egress_meter meter = {.box = box, .last = last};
	struct nc_wire_out out = {0};

	if (door)
		nc_door_meter(door, last, &meter);
	nc_wire_begin(&out, NC_EGRESS_METER);
	nc_egresswire_put_meter(&out, &meter);
	send_surely(egress, &out);
}

/* ---- the table ---- */

/* Who comes after another is told of all doors: whose he does not know he shuts. */
static int handle_hello(struct nc_egress *egress, struct nc_wire_in *in)
{
	const uint32_t version = nc_wire_get_u32(in);
	struct nc_wire_out out = {0};

	if (nc_wire_close(in) < 0 || version != NC_EGRESSWIRE_VERSION)
		return -EBADMSG;
	egress->greeted = true;
	nc_wire_begin(&out, NC_EGRESS_WELCOME);
	nc_wire_put_u32(&out, NC_EGRESSWIRE_VERSION);
	nc_wire_put_text(&out, egress->tls.authority_pem);
	send_surely(egress, &out);
	for (const struct nc_door *door = egress->doors; door; door = door->next)
		tell_meter(egress, door->meter.box, false);
	return 0;
}

static int handle_open(struct nc_egress *egress, struct nc_wire_in *in)
{
	const uint64_t box = nc_wire_get_u64(in);
	struct nc_door_terms terms = {0};
	int wrong = nc_egresswire_get_terms(in, &terms);
	int r = nc_wire_close(in);

	if (r == 0 && wrong == 0)
		wrong = nc_door_open(egress, box, &terms, egress->packet.fds, egress->packet.n_fds);
	nc_door_terms_done(&terms);
	if (r < 0 || wrong == -EBADMSG)
		return -EBADMSG;
	tell_done(egress, box, wrong);
	return 0;
}

static int handle_change(struct nc_egress *egress, struct nc_wire_in *in)
{
	const uint64_t box = nc_wire_get_u64(in);
	struct nc_door *door = nc_door_find(egress, box);
	struct nc_door_terms terms = {0};
	int wrong = nc_egresswire_get_terms(in, &terms);
	int r = nc_wire_close(in);

	if (r == 0 && wrong == 0 && door)
		nc_door_change(door, &terms);
	nc_door_terms_done(&terms);
	if (r == 0)
		tell_done(egress, box, wrong == 0 && !door ? -ENOENT : wrong);
	return r;
}

static int handle_ask(struct nc_egress *egress, struct nc_wire_in *in)
{
	const uint64_t box = nc_wire_get_u64(in);
	int r = nc_wire_close(in);

	if (r == 0)
		tell_meter(egress, box, false);
	return r;
}

static int handle_shut(struct nc_egress *egress, struct nc_wire_in *in)
{
	const uint64_t box = nc_wire_get_u64(in);
	struct nc_door *door = nc_door_find(egress, box);

	if (nc_wire_close(in) < 0)
		return -EBADMSG;
	tell_meter(egress, box, true);
	if (door)
		nc_door_shut(door);
	return 0;
}

static const struct {
	uint16_t type;
	bool before_hello;
	size_t least_fds, most_fds;
	int (*handle)(struct nc_egress *egress, struct nc_wire_in *in);
} table[] = {
	{NC_EGRESS_HELLO, true, 0, 0, handle_hello},
	{NC_EGRESS_OPEN, false, 1, NC_WIRE_FDS_MAX, handle_open},
	{NC_EGRESS_CHANGE, false, 0, 0, handle_change},
	{NC_EGRESS_ASK, false, 0, 0, handle_ask},
	{NC_EGRESS_SHUT, false, 0, 0, handle_shut},
};

static int handle(struct nc_egress *egress)
{
	struct nc_wire_in in;
	int r = nc_wire_open(&in, egress->packet.data, egress->packet.size);

	for (size_t i = 0; r == 0 && i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].type == in.type && table[i].before_hello != egress->greeted &&
			egress->packet.n_fds >= table[i].least_fds &&
			egress->packet.n_fds <= table[i].most_fds)
			return table[i].handle(egress, &in);
	return -EBADMSG;
}

/* Hears one message; false: there is none now, or nobody to say one. */
static bool hear(struct nc_egress *egress)
{
	int r = is_there(egress)
			? nc_wire_receive(egress->worker_fd, &egress->packet, NC_WIRE_FDS_MAX)
			: -EAGAIN;

	if (r == -EAGAIN)
		return false;
	if (r == -ECONNRESET) /* it has gone with mail unread: said once */
		return true;
	if (r == 0)
		forget_worker(egress);
	else if (r < 0 || handle(egress) < 0)
		give_up(egress);
	if (egress->packet.data) /* secrets may have been among it */
		explicit_bzero(egress->packet.data, egress->packet.size);
	return is_there(egress);
}

static void worker_ready(struct nc_watch *watch, uint32_t events)
{
	struct nc_egress *egress =
		(struct nc_egress *)(void *)((char *)watch - offsetof(struct nc_egress, worker));

	(void)events;
	send_unsent(egress);
	for (unsigned int i = 0; i < MESSAGES_PER_TURN && hear(egress); i++)
		;
}

/* Who calls is the worker now. All that the one before has said holds: it is heard first. */
static void place_ready(struct nc_watch *watch, uint32_t events)
{
	struct nc_egress *egress =
		(struct nc_egress *)(void *)((char *)watch - offsetof(struct nc_egress, place));
	int fd = nc_meeting_take(egress->place_fd);

	(void)events;
	if (fd == -ECONNRESET)
		egress->place_fd = nc_fd_close(egress->place_fd);
	if (fd < 0)
		return;
	for (unsigned int i = 0; i < LAST_WORDS_MAX && hear(egress); i++)
		;
	forget_worker(egress);
	egress->worker_fd = fd;
	if (egress->place_fd < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ||
		nc_loop_add(&egress->loop, fd, EPOLLIN, &egress->worker) < 0)
		forget_worker(egress);
}

int nc_worker_init(struct nc_egress *egress, int worker_fd, int place_fd)
{
	int r;

	egress->worker.ready = worker_ready;
	egress->worker_fd = worker_fd;
	egress->place.ready = place_ready;
	egress->place_fd = place_fd;
	egress->unsent_end = &egress->unsent;
	r = nc_loop_add(&egress->loop, worker_fd, EPOLLIN, &egress->worker);
	return r < 0 || place_fd < 0
		       ? r
		       : nc_loop_add(&egress->loop, place_fd, EPOLLIN, &egress->place);
}

void nc_worker_done(struct nc_egress *egress)
{
	forget_worker(egress);
	give_up(egress);
	nc_wire_packet_done(&egress->packet);
}
