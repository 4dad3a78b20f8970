/* What the worker may ask for: a closed table of messages, each checked again here. */
#include "spawner/spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/pidfd.h"
#include "kernel/userns.h"
#include "spawner/groups.h"

/* A program that is short. */
#define SHORT_NS (20 * NC_NS_PER_MS)

/* What a box takes while it is made, and the order beside it. */
#define SPARE_FDS 40
#define NO_ROOM "This spawner has as many boxes as it can hold, or no memory"

static bool is_adopted(const struct nc_box *box)
{
	return box->state != NC_BOX_FREE && box->kept && !box->failed;
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
		nc_worker_send(&spawner->worker, &out, fds.fd, fds.n);
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
	uint32_t version = nc_wire_get_u32(in);

	in->lenient = spawner->worker.newer = version > NC_BOXWIRE_VERSION;
	if (nc_wire_close(in) < 0 || version < NC_BOXWIRE_OLDEST)
		return -EBADMSG;
	if (nc_groups_open(&spawner->nursery, &err) < 0) {
		nc_worker_end(&spawner->worker, err.message);
		return 0;
	}
	host->ranges = spawner->nursery.scratch.ranges;
	host->cgroups = spawner->nursery.cgroups.can;
	host->user_ns = can_make_user_ns(spawner);
	spawner->worker.greeted = true;
	welcome = (struct nc_box_welcome){
		.ranges = host->ranges, .n_adopted = count_adopted(spawner)};
	nc_scratch_path(&spawner->nursery.scratch, welcome.scratch);
	for (enum nc_tier i = 0; i < NC_TIER_MAX; i++)
		nc_terms_judge(host, i, &welcome.terms[i]);
	nc_wire_begin(&out, NC_BOX_WELCOME);
	nc_wire_put_u32(&out, NC_BOXWIRE_VERSION);
	nc_boxwire_put_welcome(&out, &welcome);
	nc_worker_send(&spawner->worker, &out, NULL, 0);
	tell_adopted(spawner);
	nc_groups_sweep(&spawner->nursery); /* while the worker thinks, and the first box grows */
	return 0;
}

static bool within(uint64_t value, uint64_t least, uint64_t most)
{
	return value >= least && value <= most;
}

/* The spawner's own maxima, whatever the other side thinks of them. */
static bool limits_are_sane(const struct nc_box_limits *limits)
{
	return within(limits->memory_bytes, 1U << 20, 1ULL << 40) &&
	       within(limits->cpu_milli, 10, 1024000) && limits->cpu_time_ms <= 7 * 86400000ULL &&
	       within(limits->wall_ms, 1, 7 * 86400000ULL) && within(limits->pids, 1, 32768) &&
	       within(limits->disk_bytes, 4096, 1ULL << 40) &&
	       within(limits->inodes, 16, 1ULL << 32) && within(limits->open_files, 8, 1U << 20);
}

static bool binds_are_sane(struct nc_spawner *spawner, const struct nc_box_order *order)
{
	if (order->n_binds > 0 && order->tier != NC_TIER_CONTAINER)
		return false;
	for (size_t i = 0; i < order->n_binds; i++)
		if (order->binds[i].index >= spawner->nursery.n_binds ||
			!nc_box_target_ok(order->binds[i].target))
			return false;
	return true;
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
	struct nc_wire_in in;

	if (!pending)
		return NULL;
	pending->size = spawner->packet.size;
	memcpy(pending->data, spawner->packet.data, pending->size);
	/* again from the copy: words borrow from where they were read */
	if (nc_wire_open(&in, pending->data, pending->size) == 0)
		nc_boxwire_get_order(&in, &pending->order);
	(void)nc_box_fds_meet(&pending->order.fds, &spawner->packet); /* as before */
	for (size_t i = 0; i < spawner->packet.n_fds; i++)
		spawner->packet.fds[i] = -EBADF;
	return pending;
}

static bool order_is_sane(struct nc_spawner *spawner, struct nc_box_order *order)
{
	const bool packed = nc_box_fds_has(&order->fds, NC_FD_PACK);

	return order->tier <= NC_TIER_PROCESS && limits_are_sane(&order->limits) &&
	       order->dir[0] == '/' && binds_are_sane(spawner, order) &&
	       descriptors_are_sane(spawner, order) &&
	       !(order->flags & NC_ORDER_FILES && (packed || order->flags & NC_ORDER_TTY)) &&
	       !((order->flags & NC_ORDER_DOOR) && order->tier != NC_TIER_CONTAINER) &&
	       !((order->flags & NC_ORDER_ZYGOTE) &&
		       (order->tier != NC_TIER_CONTAINER || packed ||
			       order->flags & (NC_ORDER_FILES | NC_ORDER_TTY | NC_ORDER_KEEP |
						      NC_ORDER_HOME | NC_ORDER_USERS |
						      NC_ORDER_WRITABLE))) &&
	       !((order->flags & NC_ORDER_GUESTS) && !(order->flags & NC_ORDER_DOOR)) &&
	       !((order->flags & NC_ORDER_HOME) && !(order->flags & NC_ORDER_STAY));
}

/* What a box is made of and held by stays as it was: a further command can name nothing of that. */
static bool is_further(const struct nc_box_order *order)
{
	return order->n_binds == 0 && nc_box_layers(order) == 0 &&
	       !nc_box_fds_has(&order->fds, NC_FD_IMAGE) &&
	       !(order->flags &
		       (NC_ORDER_DOOR | NC_ORDER_HOME | NC_ORDER_USERS | NC_ORDER_WRITABLE));
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
	nc_tell_failure(spawner, id, NC_FAIL_BOX, &err);
	return 0;
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
	struct nc_box *box, *home = nc_table_find(&spawner->table, order->home);
	struct nc_box_pending *pending;
	struct nacre_err err = {0};

	if (!is_further(order) || order->flags & NC_ORDER_STAY)
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
	return 0;
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
	if (nc_wire_close(in) < 0 || !order_is_sane(spawner, &order) ||
		nc_table_find(&spawner->table, order.id) ||
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
	return 0;
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
	if (nc_wire_close(in) < 0 || !order_is_sane(spawner, &order) || !is_further(&order) ||
		order.home > 0)
		return -EBADMSG;
	box = nc_table_find(&spawner->table, order.id);
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
	return 0;
}

/* Safe: only boxes of this worker can be named; they are stopped with all that runs in them, or go
 * on. */
static int handle_freeze(struct nc_spawner *spawner, struct nc_wire_in *in)
{
	uint64_t id = nc_wire_get_u64(in);
	bool frozen = nc_wire_get_u8(in) != 0;

	if (nc_wire_close(in) < 0)
		return -EBADMSG;
	NC_EACH_BOX (&spawner->table, box)
		if ((box->state == NC_BOX_RUNS || box->state == NC_BOX_STAYS) &&
			(box->end.id == id || box->home_id == id) && (frozen || box->frozen_ns > 0))
			(void)nc_box_freeze(box, frozen); /* it stops when it can */
	return 0;
}

/* Safe: figures of a box of this worker's. */
static int handle_ask(struct nc_spawner *spawner, struct nc_wire_in *in)
{
	const struct nc_box *box = nc_table_find(&spawner->table, nc_wire_get_u64(in));
	struct nc_wire_out out;
	struct nc_box_now now;

	if (nc_wire_close(in) < 0)
		return -EBADMSG;
	if (!box)
		return 0;
	nc_box_look(box, &now);
	nc_means_tell(&spawner->nursery.host, &box->means, &now.so_far);
	nc_wire_begin(&out, NC_BOX_TOLD);
	nc_boxwire_put_now(&out, &now);
	nc_worker_send(&spawner->worker, &out, NULL, 0);
	return 0;
}

/* Safe: it goes to the program of a box of this worker's, by its descriptor. */
static int handle_signal(struct nc_spawner *spawner, struct nc_wire_in *in)
{
	uint64_t id = nc_wire_get_u64(in);
	uint32_t signal = nc_wire_get_u32(in);
	struct nc_box *box;

	if (nc_wire_close(in) < 0 || signal > 64)
		return -EBADMSG;
	box = nc_table_find(&spawner->table, id);
	if (box && signal == 0)
		box->kept_fd[0] = nc_fd_close(box->kept_fd[0]);
	else if (box && box->state == NC_BOX_RUNS)
		(void)nc_pidfd_kill(box->payload_fd, (int)signal); /* it may just have ended */
	return 0;
}

/* Safe: only boxes of this worker can be named, and ending one twice does nothing. */
static int handle_kill(struct nc_spawner *spawner, struct nc_wire_in *in)
{
	uint64_t id = nc_wire_get_u64(in);
	uint8_t cause = nc_wire_get_u8(in);
	struct nc_box *box;

	if (nc_wire_close(in) < 0 || (cause != NC_CAUSE_OUTPUT && cause != NC_CAUSE_CANCEL))
		return -EBADMSG;
	box = nc_table_find(&spawner->table, id);
	if (!box)
		return 0;
	NC_EACH_BOX (&spawner->table, guest)
		if (guest->frozen_ns > 0 && guest->home_id == id)
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
	if (n == 0)
		nc_ready_drop_all(spawner, zygote);
	nc_ready_busy(spawner, SHORT_NS); /* by the order that more are wanted for */
	box = nc_table_find(&spawner->table, zygote);
	if (zygote == 0) {
		spawner->ready = n;
		spawner->lost = 0;
	} else if (box) { /* it may just have died */
		box->ready = n;
		box->lost = 0;
	}
	return 0;
}

/* Safe: only a box that is dead is let go; naming none does nothing. */
static int handle_forget(struct nc_spawner *spawner, struct nc_wire_in *in)
{
	uint64_t id = nc_wire_get_u64(in);
	struct nc_box *box;

	if (nc_wire_close(in) < 0)
		return -EBADMSG;
	box = nc_table_find(&spawner->table, id);
	if (box && box->state != NC_BOX_KEPT)
		return -EBADMSG;
	if (box)
		nc_box_forget(box);
	return 0;
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
};

static void handle_packet(struct nc_spawner *spawner)
{
	struct nc_wire_out out;
	struct nc_wire_in in;

	if (nc_wire_open(&in, spawner->packet.data, spawner->packet.size) < 0) {
		nc_worker_end(&spawner->worker, "not a message");
		return;
	}
	in.lenient = spawner->worker.newer;
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		if (requests[i].type != in.type)
			continue;
		if (requests[i].greeted != spawner->worker.greeted ||
			requests[i].max_fds < spawner->packet.n_fds ||
			requests[i].handle(spawner, &in) < 0)
			nc_worker_end(&spawner->worker, "a message that breaks the rules");
		return;
	}
	if (!spawner->worker.newer) {
		nc_worker_end(&spawner->worker, "an unknown message");
		return;
	}
	nc_wire_begin(&out, NC_BOX_UNSUPPORTED);
	nc_wire_put_u16(&out, in.type);
	nc_wire_put_u64(&out, nc_wire_get_u64(&in));
	nc_worker_send(&spawner->worker, &out, NULL, 0);
}

void nc_requests_receive(struct nc_spawner *spawner)
{
	int r = nc_wire_receive(spawner->worker.fd, &spawner->packet, NC_BOX_FDS_MAX);

	if (r > 0)
		handle_packet(spawner);
	else if (r == -EAGAIN || r == -ECONNRESET) /* it has gone with mail unread: said once */
		return;
	else if (r == 0)
		spawner->worker.fd = nc_fd_close(spawner->worker.fd);
	else
		nc_worker_end(
			&spawner->worker, r == -EBADMSG ? "a broken message" : nc_errno_text(r));
	/* what the handler did not take is not kept open until the next message */
	for (size_t i = 0; i < spawner->packet.n_fds; i++)
		spawner->packet.fds[i] = nc_fd_close(spawner->packet.fds[i]);
}
