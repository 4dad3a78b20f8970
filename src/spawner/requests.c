/* What the worker may ask for: a closed table of messages, each checked again here. */
#include "spawner/spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/pidfd.h"
#include "kernel/order.h"
#include "kernel/userns.h"
#include "spawner/events.h"
#include "spawner/groups.h"

/* A program that is short. */
#define SHORT_NS (20 * NC_NS_PER_MS)

/* What a box takes while it is made, and the order beside it. */
#define SPARE_FDS 40
/* What a handler returns where its own message is the answer, or none is wanted. */
#define ANSWERED 1
#define NO_ROOM "This spawner has as many boxes as it can hold, or no memory"

static bool is_adopted(const struct nc_box *box)
{
	return box->state != NC_BOX_FREE && box->kept && !box->failed;
}

void nc_client_end(struct nc_spawner *spawner, size_t client, const char *why)
{
	const bool is_worker = client == 0;

	if (why)
		fprintf(stderr, "nacre-spawner: ending %s: %s\n",
			is_worker ? "the worker" : "who was introduced", why);
	if (is_worker && why) {
		spawner->worker.broken = true;
		(void)nc_pidfd_kill(spawner->worker.pidfd, SIGKILL);
	}
	spawner->client[client].fd = nc_fd_close(spawner->client[client].fd);
	NC_EACH_BOX (&spawner->table, box)
		if (!is_worker && box->client == client && box->state != NC_BOX_FREE) {
			nc_table_touch(&spawner->table, box);
			nc_box_kill(box, NC_CAUSE_CANCEL);
			box->failed = true; /* there is nobody to tell of its end */
		}
}

static struct nc_box *find(struct nc_spawner *spawner, uint64_t id)
{
	return nc_table_find(&spawner->table, spawner->client_now, id);
}

static uint32_t count_adopted(struct nc_spawner *spawner)
{
	uint32_t n = 0;

	NC_EACH_BOX (&spawner->table, box)
		n += is_adopted(box);
	return n;
}

static void tell_adopted(struct nc_spawner *spawner)
{
	NC_EACH_BOX (&spawner->table, box) {
		struct nc_box_fds fds = {0};
		struct nc_wire_out out;

		if (!is_adopted(box))
			continue;
		for (size_t k = 0; k < 3; k++)
			nc_box_fds_add(&fds,
				box->kept_terminal ? NC_FD_TERMINAL : nc_box_own_streams[k],
				box->kept_fd[k]);
		nc_wire_begin(&out, NC_BOX_ADOPT);
		nc_wire_put_u64(&out, box->end.id);
		nc_wire_put_u64(&out, box->home_id);
		nc_boxwire_put_fds(&out, &fds);
		nc_tell(spawner, 0, &out, fds.fd, fds.n);
		if (box->state == NC_BOX_KEPT || box->state == NC_BOX_STAYS)
			nc_tell_end(spawner, box);
	}
}

/* Whether root may make user namespaces: by making one, unless a box has shown it already. */
static bool can_make_user_ns(struct nc_spawner *spawner)
{
	static bool tried;

	if (tried || spawner->nursery.pid_ns_fd < 0 || spawner->table.box[0].state != NC_BOX_FREE)
		return spawner->nursery.host.user_ns;
	tried = true;
	return nc_userns_can_make();
}

static int handle_hello(struct nc_spawner *spawner, struct nc_wire_in *in)
{
	struct nacre_err err = {0};
	struct nc_wire_out out;
	struct nc_box_host *host = &spawner->nursery.host;
	struct nc_box_welcome welcome;
	struct nc_client *client = &spawner->client[spawner->client_now];
	const bool is_worker = spawner->client_now == 0;
	uint32_t version = nc_wire_get_u32(in);

	in->lenient = client->newer = version > NC_BOXWIRE_VERSION;
	if (nc_wire_close(in) < 0 || version < NC_BOXWIRE_OLDEST)
		return -EBADMSG;
	if (nc_groups_open(&spawner->nursery, &err) < 0) {
		nc_client_end(spawner, spawner->client_now, err.message);
		return ANSWERED;
	}
	host->ranges = spawner->nursery.scratch.ranges;
	host->cgroups = spawner->nursery.cgroups.can;
	host->user_ns = can_make_user_ns(spawner);
	client->greeted = true;
	welcome = (struct nc_box_welcome){
		.ranges = host->ranges, .n_adopted = is_worker ? count_adopted(spawner) : 0};
	nc_scratch_path(&spawner->nursery.scratch, welcome.scratch);
	for (enum nc_tier i = 0; i < NC_TIER_MAX; i++)
		if (is_worker || i != NC_TIER_PROCESS)
			nc_terms_judge(host, i, &welcome.terms[i]);
	nc_wire_begin(&out, NC_BOX_WELCOME);
	nc_wire_put_u32(&out, NC_BOXWIRE_VERSION);
	nc_boxwire_put_welcome(&out, &welcome);
	nc_tell(spawner, spawner->client_now, &out, NULL, 0);
	if (is_worker)
		tell_adopted(spawner);
	nc_groups_sweep(&spawner->nursery); /* while the worker thinks, and the first box grows */
	return ANSWERED;
}

/*
 * A directory that the worker could open to read: a mere path descriptor is to be had of every
 * directory, Landlock or not. One to write is its own: what a box makes there belongs to the owner.
 */
static bool is_good_directory(struct nc_spawner *spawner, int fd, bool to_write)
{
	unsigned int worker = spawner->nursery.pid_ns_fd >= 0 ? NC_WORKER_ID : geteuid();
	struct stat status;
	int flags = fcntl(fd, F_GETFL);

	return fstat(fd, &status) == 0 && S_ISDIR(status.st_mode) && flags >= 0 &&
	       !(flags & O_PATH) && (!to_write || status.st_uid == worker);
}

static bool descriptors_are_sane(struct nc_spawner *spawner, struct nc_box_order *order)
{
	struct nc_box_fds *fds = &order->fds;

	if (nc_box_fds_meet(fds, &spawner->packet) < 0 || !nc_box_fds_fit(order))
		return false;
	for (size_t i = 0; i < fds->n; i++)
		/* words are read by the payload, in its box, and by nobody else */
		if (!nc_box_fd_is_tree(fds->kind[i])
				? !nc_fd_is_stream(fds->fd[i]) && !(fds->kind[i] == NC_FD_WORDS &&
									  nc_fd_is_file(fds->fd[i]))
				: order->tier != NC_TIER_CONTAINER ||
					  !is_good_directory(spawner, fds->fd[i],
						  fds->kind[i] == NC_FD_LAYER_WRITABLE ||
							  order->flags & NC_ORDER_WRITABLE))
			return false;
	return true;
}

/* The order that has just come, to be kept; its descriptors go along. NULL: out of memory. */
static struct nc_box_pending *keep_order(struct nc_spawner *spawner)
{
	struct nc_box_pending *pending = calloc(1, sizeof(*pending) + spawner->packet.size);

	if (!pending)
		return NULL;
	pending->size = spawner->packet.size;
	pending->client = spawner->client_now;
	memcpy(pending->data, spawner->packet.data, pending->size);
	/* again from the copy, and as before: words borrow from where they were read */
	(void)nc_boxwire_read_order(pending->data, pending->size, &pending->order);
	(void)nc_box_fds_meet(&pending->order.fds, &spawner->packet); /* as before */
	if (pending->client > 0) /* the journal would take it for what the worker calls so */
		pending->order.name[0] = '\0';
	for (size_t i = 0; i < spawner->packet.n_fds; i++)
		spawner->packet.fds[i] = -EBADF;
	return pending;
}

static bool order_is_sane(struct nc_spawner *spawner, struct nc_box_order *order)
{
	/* what outlives a client, or is lent between boxes, is the worker's; and process boxes,
	 * whose directories have its numbers */
	if (spawner->client_now > 0 &&
		(order->flags & (NC_ORDER_KEEP | NC_ORDER_ZYGOTE) || order->warm_class > 0 ||
			order->tier == NC_TIER_PROCESS))
		return false;
	return descriptors_are_sane(spawner, order) &&
	       nc_order_is_sane(order, spawner->nursery.n_binds);
}

static bool fits_into(const struct nc_box_order *order, const struct nc_box *home)
{
	uint32_t had = home->first ? home->first->order.flags : 0;

	if (had & NC_ORDER_HOME)
		had |= NC_ORDER_TTY;
	return order->tier == home->end.tier &&
	       !(order->flags & ~had & (NC_ORDER_TTY | NC_ORDER_KEEP)) &&
	       (order->user[0] == '\0' || had & NC_ORDER_USERS);
}

/* The order cannot be carried out, and its worker is told why. */
static int refuse(struct nc_spawner *spawner, uint64_t id, int code, const char *why)
{
	struct nacre_err err = {0};

	nc_err_set(&err, code, "%s", why);
	nc_tell_failure(spawner, spawner->client_now, id, NC_FAIL_BOX, &err);
	return ANSWERED;
}

/*
 * Whether so few descriptors are left that the next order might come without its own, for which
 * its worker would be ended. The lowest are given first, so those that have come tell.
 */
static bool is_short_of_fds(const struct nc_spawner *spawner)
{
	for (size_t i = 0; spawner->nursery.lasting && i < spawner->packet.n_fds; i++)
		if (spawner->packet.fds[i] + SPARE_FDS >= sysconf(_SC_OPEN_MAX))
			return true;
	return false;
}

/* A command beside others, in a box of this worker's that stays. */
static int join_box(struct nc_spawner *spawner, const struct nc_box_order *order)
{
	struct nc_box *box, *home = find(spawner, order->home);
	struct nc_box_pending *pending;
	struct nacre_err err = {0};

	if (!nc_order_is_further(order) || order->flags & NC_ORDER_STAY)
		return -EBADMSG;
	/* its end was told, or will be */
	if (!home || !home->stays || (home->state != NC_BOX_STAYS && home->state != NC_BOX_RUNS))
		return refuse(spawner, order->id, -ESRCH, "There is no such box to run it in");
	if (home->frozen_ns > 0)
		return refuse(spawner, order->id, -EBUSY, "The box is frozen");
	if (!fits_into(order, home) || !(home->first->order.flags & NC_ORDER_HOME))
		return -EBADMSG;
	box = nc_table_free(&spawner->table);
	pending = box ? keep_order(spawner) : NULL;
	if (!pending)
		return refuse(spawner, order->id, -EAGAIN, NO_ROOM);
	nc_step_birth(spawner, box, nc_box_join(&spawner->nursery, home, box, pending, &err), &err);
	return ANSWERED;
}

/* Safe: what is built is fixed but for numbers in range, directories that the caller allowed by
 * index, and an image and layers that the worker itself could open; strings are used inside the box
 * only. */
static int handle_run(struct nc_spawner *spawner, struct nc_wire_in *in)
{
	static struct nc_box_order order;
	struct nacre_err err = {0};
	struct nc_box_pending *pending;
	const struct nc_box *lender;
	struct nc_box *box, *fresh;
	const char *why;

	nc_boxwire_get_order(in, &order);
	if (nc_wire_close(in) < 0 || !order_is_sane(spawner, &order) || find(spawner, order.id) ||
		(order.user[0] && order.home == 0 && !(order.flags & NC_ORDER_USERS)))
		return -EBADMSG;
	if (is_short_of_fds(spawner))
		return refuse(spawner, order.id, -EMFILE, "Make a box: Too many open files");
	why = nc_means_refuse(&spawner->nursery.host, &order);
	if (why)
		return refuse(spawner, order.id, -EOPNOTSUPP, why);
	if (order.home > 0)
		return join_box(spawner, &order);
	nc_ready_busy(spawner, SHORT_NS);
	box = nc_ready_choose(spawner, &order, &lender);
	fresh = box ? NULL : nc_table_free(&spawner->table);
	pending = box || fresh ? keep_order(spawner) : NULL;
	if (!pending)
		return refuse(spawner, order.id, -EAGAIN, NO_ROOM);
	if (box)
		nc_step_birth(
			spawner, box, nc_box_take(&spawner->nursery, box, pending, &err), &err);
	else
		nc_step_begin(spawner, fresh, pending, lender);
	return ANSWERED;
}

/* Safe: a box of this worker's that runs no command of its own; see fits_into. */
static int handle_next(struct nc_spawner *spawner, struct nc_wire_in *in)
{
	static struct nc_box_order order;
	struct nacre_err err = {0};
	struct nc_box_pending *pending;
	const char *why;
	struct nc_box *box;
	int r;

	nc_boxwire_get_order(in, &order);
	if (nc_wire_close(in) < 0 || !order_is_sane(spawner, &order) ||
		!nc_order_is_further(&order) || order.home > 0)
		return -EBADMSG;
	box = find(spawner, order.id);
	/* it has died meanwhile: its end was told */
	if (!box || (box->state != NC_BOX_STAYS && (box->state != NC_BOX_WAITING || !box->ahead)))
		return refuse(
			spawner, order.id, -ESRCH, "There is no such box, or a command runs in it");
	if (!fits_into(&order, box) || !(order.flags & NC_ORDER_KEEP) != !box->kept)
		return -EBADMSG;
	why = nc_means_refuse(&spawner->nursery.host, &order);
	if (why)
		return refuse(spawner, order.id, -EOPNOTSUPP, why);
	pending = keep_order(spawner);
	r = pending ? nc_box_next(&spawner->nursery, box, pending, &err)
		    : nc_err_errno(&err, -ENOMEM, "Take the order");
	nc_step_birth(spawner, box, r, &err);
	return ANSWERED;
}

/* Safe: only boxes of this worker can be named; they are stopped with all that runs in them, or go
 * on. */
static int handle_freeze(struct nc_spawner *spawner, struct nc_wire_in *in)
{
	uint64_t id = nc_wire_get_u64(in);
	bool frozen = nc_wire_get_u8(in) != 0;

	int r = 0;

	if (nc_wire_close(in) < 0)
		return -EBADMSG;
	NC_EACH_BOX (&spawner->table, box) {
		int one;

		if ((box->state != NC_BOX_RUNS && box->state != NC_BOX_STAYS) ||
			box->client != spawner->client_now ||
			(box->end.id != id && box->home_id != id) ||
			(!frozen && box->frozen_ns == 0))
			continue;
		one = nc_box_freeze(box, frozen);
		if ((box->frozen_ns > 0) != frozen)
			r = one;
	}
	return find(spawner, id) ? r : -ESRCH;
}

/* Safe: figures of a box of this worker's. */
static int handle_ask(struct nc_spawner *spawner, struct nc_wire_in *in)
{
	const struct nc_box *box = find(spawner, nc_wire_get_u64(in));
	struct nc_wire_out out;
	struct nc_box_now now;

	if (nc_wire_close(in) < 0)
		return -EBADMSG;
	if (!box)
		return -ESRCH;
	nc_box_look(box, &now);
	nc_means_tell(&spawner->nursery.host, &box->means, &now.so_far);
	nc_wire_begin(&out, NC_BOX_TOLD);
	nc_boxwire_put_now(&out, &now);
	nc_tell(spawner, spawner->client_now, &out, NULL, 0);
	return ANSWERED;
}

/* Safe: it goes to the program of a box of this worker's, by its descriptor. */
static int handle_signal(struct nc_spawner *spawner, struct nc_wire_in *in)
{
	uint64_t id = nc_wire_get_u64(in);
	uint32_t signal = nc_wire_get_u32(in);
	struct nc_box *box;

	if (nc_wire_close(in) < 0 || signal > 64)
		return -EBADMSG;
	box = find(spawner, id);
	if (box && signal == 0) {
		box->kept_fd[0] = nc_fd_close(box->kept_fd[0]);
		return 0;
	}
	return box && box->state == NC_BOX_RUNS ? nc_pidfd_kill(box->payload_fd, (int)signal)
						: -ESRCH;
}

/* Safe: numbers in range, for the terminal of a box of this worker's. */
static int handle_resize(struct nc_spawner *spawner, struct nc_wire_in *in)
{
	const struct nc_box *box = find(spawner, nc_wire_get_u64(in));
	const uint32_t rows = nc_wire_get_u32(in), columns = nc_wire_get_u32(in);
	const struct winsize size = {.ws_row = (uint16_t)rows, .ws_col = (uint16_t)columns};

	if (nc_wire_close(in) < 0 || rows > UINT16_MAX || columns > UINT16_MAX)
		return -EBADMSG;
	if (!box)
		return -ESRCH;
	return ioctl(box->kept_terminal ? box->kept_fd[0] : box->terminal_fd, TIOCSWINSZ, &size) < 0
		       ? -ENOTTY
		       : 0;
}

/* What the worker before had not read is in the pipes still. */
static int handle_had(struct nc_spawner *spawner, struct nc_wire_in *in)
{
	const struct nc_box *box = find(spawner, nc_wire_get_u64(in));

	(void)nc_wire_get_u64(in);
	(void)nc_wire_get_u64(in);
	return nc_wire_close(in) < 0 ? -EBADMSG : box ? 0 : -ESRCH;
}

/* Whether somebody who was there before under this number has left some that are still to die. */
static bool has_boxes(struct nc_spawner *spawner, size_t client)
{
	NC_EACH_BOX (&spawner->table, box)
		if (box->state != NC_BOX_FREE && box->client == client)
			return true;
	return false;
}

/* Safe: who comes can ask for less than the worker, and name nothing that is another's. */
static int handle_introduce(struct nc_spawner *spawner, struct nc_wire_in *in)
{
	size_t i = 1;
	int r;

	if (nc_wire_close(in) < 0 || spawner->packet.n_fds != 1 || spawner->client_now > 0)
		return -EBADMSG;
	while (i <= NC_BOX_CLIENTS_MAX && (spawner->client[i].fd >= 0 || has_boxes(spawner, i)))
		i++;
	if (i > NC_BOX_CLIENTS_MAX)
		return -EBUSY;
	r = nc_client_take(&spawner->client[i], take_fd(spawner->packet.fds[0]));
	if (r == 0)
		r = nc_events_watch(spawner->events_fd, spawner->client[i].fd, NC_EVENT_CLIENT, i);
	if (r < 0)
		nc_client_end(spawner, i, NULL);
	return r;
}

/* Safe: only boxes of this worker can be named, and ending one twice does nothing. */
static int handle_kill(struct nc_spawner *spawner, struct nc_wire_in *in)
{
	uint64_t id = nc_wire_get_u64(in);
	uint8_t cause = nc_wire_get_u8(in);
	struct nc_box *box;

	if (nc_wire_close(in) < 0 || (cause != NC_CAUSE_OUTPUT && cause != NC_CAUSE_CANCEL))
		return -EBADMSG;
	box = find(spawner, id);
	if (!box)
		return -ESRCH;
	NC_EACH_BOX (&spawner->table, guest)
		if (guest->frozen_ns > 0 && guest->home_id == id && guest->client == box->client)
			nc_box_kill(guest, cause); /* or it would not notice */
	nc_box_kill(box, cause);
	/* nothing is left whose end could be waited for */
	if (box->state == NC_BOX_DYING && box->payload_fd < 0 && box->init_fd < 0 &&
		box->cleaner_fd < 0)
		nc_step_end(spawner, box);
	return 0;
}

/* Safe: a number with a maximum of our own. 0 also ends those that nobody has ordered. */
static int handle_ready(struct nc_spawner *spawner, struct nc_wire_in *in)
{
	uint64_t zygote = nc_wire_get_u64(in);
	uint32_t n = nc_wire_get_u32(in);
	struct nc_box *box;

	if (nc_wire_close(in) < 0 || n > NC_BOX_READY_MAX)
		return -EBADMSG;
	if (spawner->client_now > 0)
		return -EOPNOTSUPP;
	if (n == 0)
		nc_ready_drop_all(spawner, zygote);
	nc_ready_busy(spawner, SHORT_NS); /* by the order that more are wanted for */
	box = find(spawner, zygote);
	if (zygote == 0) {
		spawner->ready = n;
		spawner->lost = 0;
	} else if (box) {
		box->ready = n;
		box->lost = 0;
	}
	return zygote == 0 || box ? 0 : -ESRCH;
}

/* Safe: only a box that is dead is let go; naming none does nothing. */
static int handle_forget(struct nc_spawner *spawner, struct nc_wire_in *in)
{
	uint64_t id = nc_wire_get_u64(in);
	struct nc_box *box;

	if (nc_wire_close(in) < 0)
		return -EBADMSG;
	box = find(spawner, id);
	if (box && box->state != NC_BOX_KEPT)
		return -EBADMSG;
	if (box)
		nc_box_forget(box);
	return ANSWERED;
}

/* Everything that may be asked, when, and with how many descriptors at most. */
static const struct {
	enum nc_box_message type;
	bool greeted; /* the state that it belongs to */
	size_t max_fds;
	int (*handle)(struct nc_spawner *spawner, struct nc_wire_in *in);
} requests[] = {
	{NC_BOX_HELLO, false, 0, handle_hello},
	{NC_BOX_RUN, true, NC_BOX_FDS_MAX, handle_run},
	{NC_BOX_KILL, true, 0, handle_kill},
	{NC_BOX_READY, true, 0, handle_ready},
	{NC_BOX_FORGET, true, 0, handle_forget},
	{NC_BOX_NEXT, true, 7, handle_next},
	{NC_BOX_SIGNAL, true, 0, handle_signal},
	{NC_BOX_FREEZE, true, 0, handle_freeze},
	{NC_BOX_ASK, true, 0, handle_ask},
	{NC_BOX_RESIZE, true, 0, handle_resize},
	{NC_BOX_HAD, true, 0, handle_had},
	{NC_BOX_INTRODUCE, true, 1, handle_introduce},
};

/* Carries out one request: 0, ANSWERED or -errno; -EBADMSG: it breaks the rules. */
static int handle(struct nc_spawner *spawner, struct nc_wire_in *in)
{
	const struct nc_client *client = &spawner->client[spawner->client_now];

	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		if (requests[i].type == in->type)
			return requests[i].greeted != client->greeted ||
					       requests[i].max_fds < spawner->packet.n_fds
				       ? -EBADMSG
				       : requests[i].handle(spawner, in);
	return client->newer ? -EOPNOTSUPP : -EBADMSG;
}

static void handle_packet(struct nc_spawner *spawner)
{
	const struct nc_client *client = &spawner->client[spawner->client_now];
	struct nc_wire_out out;
	struct nc_wire_in in;
	int r = nc_wire_open(&in, spawner->packet.data, spawner->packet.size);
	uint32_t number;

	in.lenient = client->newer;
	number = r == 0 && client->greeted ? nc_wire_get_u32(&in) : 0;
	if (r == 0)
		r = handle(spawner, &in);
	if (r == -EBADMSG)
		nc_client_end(spawner, spawner->client_now, "a message that breaks the rules");
	if (r == -EBADMSG || r == ANSWERED)
		return;
	nc_wire_begin(&out, NC_BOX_ANSWER);
	nc_wire_put_u32(&out, number);
	nc_wire_put_u32(&out, (uint32_t)-r);
	nc_tell(spawner, spawner->client_now, &out, NULL, 0);
}

void nc_requests_receive(struct nc_spawner *spawner, size_t client)
{
	int r = nc_wire_receive(spawner->client[client].fd, &spawner->packet, NC_BOX_FDS_MAX);

	spawner->client_now = client;
	if (r > 0)
		handle_packet(spawner);
	else if (r == 0 || (r == -ECONNRESET && client > 0))
		nc_client_end(spawner, client, NULL);
	else if (r != -EAGAIN && r != -ECONNRESET) /* it has gone with mail unread: said once */
		nc_client_end(
			spawner, client, r == -EBADMSG ? "a broken message" : nc_errno_text(r));
	/* what the handler did not take is not kept open until the next message */
	for (size_t i = 0; i < spawner->packet.n_fds; i++)
		spawner->packet.fds[i] = nc_fd_close(spawner->packet.fds[i]);
}
