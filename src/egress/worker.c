/* nacre-egress and its worker: the closed table of messages. */
#include "egress/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/meeting.h"
#include "base/text.h"

/* Messages that are read before boxes have their turn. */
#define MESSAGES_PER_TURN 64U
/* More than a socket holds. */
#define LAST_WORDS_MAX 4096U

/* A message that the worker's socket did not take yet. */
struct nc_unsent {
	struct nc_unsent *next;
	struct nc_wire_out out;
};

/* The value of a secret, until the door that it is for is open and gone. */
struct nc_kept {
	struct nc_kept *next;
	char placeholder[NC_EGRESS_PATH_MAX + 1];
	char value[]; /* NUL-terminated */
};

static void kept_free(struct nc_kept *kept)
{
	explicit_bzero(kept->value, strlen(kept->value));
	free(kept);
}

static void drop_kept(struct nc_egress *egress)
{
	while (egress->kept) {
		struct nc_kept *first = egress->kept;

		egress->kept = first->next;
		kept_free(first);
	}
	egress->n_kept = 0;
}

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
	drop_kept(egress);
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

static int handle_keep(struct nc_egress *egress, struct nc_wire_in *in)
{
	char placeholder[NC_EGRESS_PATH_MAX + 1], value[NC_EGRESS_SECRET_MAX + 1];
	struct nc_kept *kept = NULL;
	size_t size;
	int r;

	nc_wire_get_text(in, placeholder, NC_EGRESS_PATH_MAX);
	nc_wire_get_text(in, value, NC_EGRESS_SECRET_MAX);
	r = nc_wire_close(in);
	size = strlen(value) + 1;
	/* one that has no room is missed when its door is opened */
	if (r == 0 && egress->n_kept < NC_EGRESS_KEPT_MAX)
		kept = malloc(sizeof(*kept) + size);
	if (kept) {
		memcpy(kept->placeholder, placeholder, sizeof(placeholder));
		memcpy(kept->value, value, size);
		kept->next = egress->kept;
		egress->kept = kept;
		egress->n_kept++;
	}
	explicit_bzero(value, sizeof(value));
	return r;
}

static int handle_drop(struct nc_egress *egress, struct nc_wire_in *in)
{
	char placeholder[NC_EGRESS_PATH_MAX + 1];
	struct nc_kept **place = &egress->kept;

	nc_wire_get_text(in, placeholder, NC_EGRESS_PATH_MAX);
	if (nc_wire_close(in) < 0)
		return -EBADMSG;
	while (*place && !nc_streq((*place)->placeholder, placeholder))
		place = &(*place)->next;
	if (*place) {
		struct nc_kept *found = *place;

		*place = found->next;
		egress->n_kept--;
		kept_free(found);
	}
	return 0;
}

/* Gives secrets the values that were handed over before, or that the door has already. */
static int fill_secrets(
	struct nc_egress *egress, const struct nc_door *door, struct nc_secrets *secrets)
{
	int r = 0;

	for (size_t i = 0; r == 0 && door && i < door->terms.secrets.n; i++)
		r = nc_secrets_fill(secrets, door->terms.secrets.entries[i].placeholder,
			door->terms.secrets.entries[i].value);
	for (struct nc_kept *kept = egress->kept; r == 0 && kept && !nc_secrets_are_whole(secrets);
		kept = kept->next)
		r = nc_secrets_fill(secrets, kept->placeholder, kept->value);
	return r == 0 && !nc_secrets_are_whole(secrets) ? -ENOKEY : r;
}

static int handle_open(struct nc_egress *egress, struct nc_wire_in *in)
{
	const uint64_t box = nc_wire_get_u64(in);
	struct nc_door_terms terms = {0};
	int wrong = nc_egresswire_get_terms(in, &terms);
	int r = nc_wire_close(in);

	if (r == 0 && wrong == 0)
		wrong = fill_secrets(egress, NULL, &terms.secrets);
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

	if (r == 0 && wrong == 0)
		wrong = fill_secrets(egress, door, &terms.secrets);
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
	{NC_EGRESS_KEEP, false, 0, 0, handle_keep},
	{NC_EGRESS_DROP, false, 0, 0, handle_drop},
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
