/* What the worker may ask for: a closed table of messages, each checked again here. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "plain.h"

/* What a handler returns whose own message is the answer. */
#define ANSWERED 1

/* ADOPT of each that was kept, and the end of those that have one. */
static void tell_adopted(bool homes)
{
	for (size_t i = 0; i < PLAIN_BOXES_MAX; i++) {
		const struct plain_box *box = &plain.box[i];
		struct nc_box_fds fds = {0};
		struct nc_wire_out out;

		if (box->state == PLAIN_FREE || !box->kept || box->orphaned ||
			(box->home == 0) != homes)
			continue;
		for (size_t k = 0; k < 3; k++)
			nc_box_fds_add(&fds,
				box->flags & NC_ORDER_TTY ? NC_FD_TERMINAL : nc_box_own_streams[k],
				box->own_fd[k]);
		nc_wire_begin(&out, NC_BOX_ADOPT);
		nc_wire_put_u64(&out, box->id);
		nc_wire_put_u64(&out, box->home);
		nc_boxwire_put_fds(&out, &fds);
		plain_send(&out, fds.fd, fds.n);
		if (box->state == PLAIN_DEAD || box->state == PLAIN_STAYS)
			plain_tell_end(box);
	}
}

static int handle_hello(struct nc_wire_in *in)
{
	struct nc_box_welcome welcome = {.terms = {[NC_TIER_REMOTE] = plain.terms}};
	const uint32_t version = nc_wire_get_u32(in);
	struct nc_wire_out out;

	in->lenient = plain.newer = version > NC_BOXWIRE_VERSION;
	if (nc_wire_close(in) < 0 || version < NC_BOXWIRE_OLDEST)
		return -EBADMSG;
	plain.greeted = true;
	memcpy(welcome.scratch, plain.scratch, sizeof(plain.scratch));
	for (size_t i = 0; i < PLAIN_BOXES_MAX; i++)
		welcome.n_adopted += plain.box[i].state != PLAIN_FREE && plain.box[i].kept &&
				     !plain.box[i].orphaned;
	nc_wire_begin(&out, NC_BOX_WELCOME);
	nc_wire_put_u32(&out, NC_BOXWIRE_VERSION);
	nc_boxwire_put_welcome(&out, &welcome);
	plain_send(&out, NULL, 0);
	tell_adopted(true);
	tell_adopted(false);
	return ANSWERED;
}

/* Streams are streams, and there is nothing that a box without mounts could be shown. */
static bool descriptors_are_sane(struct nc_box_order *order)
{
	struct nc_box_fds *fds = &order->fds;

	if (nc_box_fds_meet(fds, &plain.packet) < 0 || !nc_box_fds_fit(order))
		return false;
	for (size_t i = 0; i < fds->n; i++)
		if (fds->kind[i] == NC_FD_WORDS
				? !nc_fd_is_file(fds->fd[i]) && !nc_fd_is_stream(fds->fd[i])
				: nc_box_fd_is_tree(fds->kind[i]) || !nc_fd_is_stream(fds->fd[i]))
			return false;
	return true;
}

/* What our terms do not have, nobody orders. */
static bool is_sane(struct nc_box_order *order)
{
	const uint32_t never = NC_ORDER_DOOR | NC_ORDER_GUESTS | NC_ORDER_ZYGOTE | NC_ORDER_AHEAD |
			       NC_ORDER_USERS | NC_ORDER_WRITABLE;
	const uint32_t flags = order->flags;

	return order->tier == NC_TIER_REMOTE && nc_box_limits_ok(&order->limits) &&
	       order->dir[0] == '/' && order->n_binds == 0 && !(flags & never) && !order->user[0] &&
	       descriptors_are_sane(order) &&
	       !(flags & NC_ORDER_FILES &&
		       (nc_box_fds_has(&order->fds, NC_FD_PACK) || flags & NC_ORDER_TTY)) &&
	       !(flags & NC_ORDER_HOME && !(flags & NC_ORDER_STAY));
}

static bool is_held(const struct nc_box_order *order)
{
	for (size_t i = 0; i < NC_STRENGTH_MAX; i++)
		if (order->required[i] > plain.terms.grades[i])
			return false;
	return !(order->flags & NC_ORDER_ALONE);
}

/* It cannot be carried out, and its worker is told why. */
static int refuse(uint64_t id, int error, const char *why)
{
	plain_tell_failure(id, NC_FAIL_BOX, error, why);
	return ANSWERED;
}

/* What a box is stays as it was: a further command can name nothing of that. */
static bool fits_into(const struct nc_box_order *order, const struct plain_box *box)
{
	const uint32_t had = box->made & NC_ORDER_HOME ? box->made | NC_ORDER_TTY : box->made;

	return !(order->flags & NC_ORDER_HOME) &&
	       !(order->flags & ~had & (NC_ORDER_TTY | NC_ORDER_KEEP));
}

static int join(const struct nc_box_order *order)
{
	const struct plain_box *home = plain_find(order->home);

	if (order->flags & (NC_ORDER_STAY | NC_ORDER_HOME))
		return -EBADMSG;
	if (!home || home->home || (home->state != PLAIN_RUNS && home->state != PLAIN_STAYS))
		return refuse(order->id, ESRCH, "There is no such box to run it in");
	if (home->frozen)
		return refuse(order->id, EBUSY, "The box is frozen");
	if (!(home->made & NC_ORDER_HOME) || !fits_into(order, home))
		return -EBADMSG;
	plain_begin(order, false);
	return ANSWERED;
}

static int handle_run(struct nc_wire_in *in)
{
	static struct nc_box_order order;

	nc_boxwire_get_order(in, &order);
	if (nc_wire_close(in) < 0 || !is_sane(&order) || plain_find(order.id))
		return -EBADMSG;
	if (!is_held(&order))
		return refuse(order.id, EOPNOTSUPP, "No box here is held as is required");
	if (order.home > 0)
		return join(&order);
	plain_begin(&order, false);
	return ANSWERED;
}

static int handle_next(struct nc_wire_in *in)
{
	static struct nc_box_order order;
	const struct plain_box *box;

	nc_boxwire_get_order(in, &order);
	if (nc_wire_close(in) < 0 || !is_sane(&order) || order.home > 0)
		return -EBADMSG;
	box = plain_find(order.id);
	if (!box || box->state != PLAIN_STAYS)
		return refuse(order.id, ESRCH, "There is no such box, or a command runs in it");
	if (!fits_into(&order, box) || !(order.flags & NC_ORDER_KEEP) != !box->kept)
		return -EBADMSG;
	if (!is_held(&order))
		return refuse(order.id, EOPNOTSUPP, "No box here is held as is required");
	plain_begin(&order, true);
	return ANSWERED;
}

static int handle_freeze(struct nc_wire_in *in)
{
	const uint64_t id = nc_wire_get_u64(in);
	const bool frozen = nc_wire_get_u8(in) != 0;

	if (nc_wire_close(in) < 0)
		return -EBADMSG;
	for (size_t i = 0; i < PLAIN_BOXES_MAX; i++)
		if (plain.box[i].state != PLAIN_FREE &&
			(plain.box[i].id == id || plain.box[i].home == id))
			plain_freeze(&plain.box[i], frozen);
	return plain_find(id) ? 0 : -ESRCH;
}

static int handle_ask(struct nc_wire_in *in)
{
	const struct plain_box *box = plain_find(nc_wire_get_u64(in));
	struct nc_box_now now;
	struct nc_wire_out out;

	if (nc_wire_close(in) < 0)
		return -EBADMSG;
	if (!box)
		return -ESRCH;
	plain_look(box, &now);
	nc_wire_begin(&out, NC_BOX_TOLD);
	nc_boxwire_put_now(&out, &now);
	plain_send(&out, NULL, 0);
	return ANSWERED;
}

static int handle_signal(struct nc_wire_in *in)
{
	const uint64_t id = nc_wire_get_u64(in);
	const uint32_t number = nc_wire_get_u32(in);
	struct plain_box *box;

	if (nc_wire_close(in) < 0 || number > 64)
		return -EBADMSG;
	box = plain_find(id);
	if (!box || (number > 0 && box->state != PLAIN_RUNS))
		return -ESRCH;
	if (number == 0)
		box->own_fd[0] = nc_fd_close(box->own_fd[0]);
	else
		plain_signal(box, (int)number);
	return 0;
}

static int handle_resize(struct nc_wire_in *in)
{
	const struct plain_box *box = plain_find(nc_wire_get_u64(in));
	const uint32_t rows = nc_wire_get_u32(in), columns = nc_wire_get_u32(in);
	const struct winsize size = {.ws_row = (uint16_t)rows, .ws_col = (uint16_t)columns};

	if (nc_wire_close(in) < 0 || rows > UINT16_MAX || columns > UINT16_MAX)
		return -EBADMSG;
	if (!box)
		return -ESRCH;
	return ioctl(box->own_fd[0], TIOCSWINSZ, &size) < 0 ? -ENOTTY : 0;
}

/* What the worker before had not read is in the pipes still. */
static int handle_had(struct nc_wire_in *in)
{
	const struct plain_box *box = plain_find(nc_wire_get_u64(in));

	(void)nc_wire_get_u64(in);
	(void)nc_wire_get_u64(in);
	if (nc_wire_close(in) < 0)
		return -EBADMSG;
	return box ? 0 : -ESRCH;
}

/* It serves one at a time. */
static int handle_introduce(struct nc_wire_in *in)
{
	return nc_wire_close(in) < 0 ? -EBADMSG : -EOPNOTSUPP;
}

static int handle_kill(struct nc_wire_in *in)
{
	const uint64_t id = nc_wire_get_u64(in);
	const uint8_t cause = nc_wire_get_u8(in);
	struct plain_box *box;

	if (nc_wire_close(in) < 0 || (cause != NC_CAUSE_OUTPUT && cause != NC_CAUSE_CANCEL))
		return -EBADMSG;
	box = plain_find(id);
	if (!box)
		return -ESRCH;
	plain_kill(box, cause);
	return 0;
}

/* No interpreters wait here, as the terms say; whoever wants some gets none. */
static int handle_ready(struct nc_wire_in *in)
{
	const uint64_t warm_class = nc_wire_get_u64(in);

	if (nc_wire_get_u32(in) > NC_BOX_READY_MAX || nc_wire_close(in) < 0)
		return -EBADMSG;
	return warm_class == 0 || plain_find(warm_class) ? 0 : -ESRCH;
}

static int handle_forget(struct nc_wire_in *in)
{
	const uint64_t id = nc_wire_get_u64(in);
	struct plain_box *box;

	if (nc_wire_close(in) < 0)
		return -EBADMSG;
	box = plain_find(id);
	if (box && box->state != PLAIN_DEAD)
		return -EBADMSG;
	if (box)
		plain_forget(box);
	return ANSWERED;
}

/* Everything that may be asked, when, and with how many descriptors at most. */
static const struct {
	enum nc_box_message type;
	bool greeted;
	size_t max_fds;
	int (*handle)(struct nc_wire_in *in);
} requests[] = {
	{NC_BOX_HELLO, false, 0, handle_hello},
	{NC_BOX_RUN, true, NC_BOX_FDS_MAX, handle_run},
	{NC_BOX_KILL, true, 0, handle_kill},
	{NC_BOX_READY, true, 0, handle_ready},
	{NC_BOX_FORGET, true, 0, handle_forget},
	{NC_BOX_NEXT, true, NC_BOX_FDS_MAX, handle_next},
	{NC_BOX_SIGNAL, true, 0, handle_signal},
	{NC_BOX_FREEZE, true, 0, handle_freeze},
	{NC_BOX_ASK, true, 0, handle_ask},
	{NC_BOX_RESIZE, true, 0, handle_resize},
	{NC_BOX_HAD, true, 0, handle_had},
	{NC_BOX_INTRODUCE, true, 1, handle_introduce},
};

/* Carries out one request: 0, ANSWERED or -errno; -EBADMSG: it breaks the rules. */
static int carry_out(struct nc_wire_in *in)
{
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		if (requests[i].type == in->type)
			return requests[i].greeted != plain.greeted ||
					       requests[i].max_fds < plain.packet.n_fds
				       ? -EBADMSG
				       : requests[i].handle(in);
	return plain.newer ? -EOPNOTSUPP : -EBADMSG;
}

static void handle(void)
{
	struct nc_wire_out out;
	struct nc_wire_in in;
	int r = nc_wire_open(&in, plain.packet.data, plain.packet.size);
	uint32_t number;

	in.lenient = plain.newer;
	number = r == 0 && plain.greeted ? nc_wire_get_u32(&in) : 0;
	if (r == 0)
		r = carry_out(&in);
	if (r == -EBADMSG)
		plain_hang_up("a message that breaks the rules");
	if (r == -EBADMSG || r == ANSWERED)
		return;
	nc_wire_begin(&out, NC_BOX_ANSWER);
	nc_wire_put_u32(&out, number);
	nc_wire_put_u32(&out, (uint32_t)-r);
	plain_send(&out, NULL, 0);
}

void plain_receive(void)
{
	int r = nc_wire_receive(plain.client_fd, &plain.packet, NC_BOX_FDS_MAX);

	if (r > 0)
		handle();
	else if (r == 0 || r == -ECONNRESET)
		plain_hang_up(NULL);
	else if (r != -EAGAIN)
		plain_hang_up(r == -EBADMSG ? "a broken message" : nc_errno_text(r));
	for (size_t i = 0; i < plain.packet.n_fds; i++)
		plain.packet.fds[i] = nc_fd_close(plain.packet.fds[i]);
}
