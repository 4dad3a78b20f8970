/* What becomes of a box when something has happened to it, and who is told. */
#include "spawner/spawner.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/fd.h"
#include "kernel/witness.h"
#include "spawner/birth.h"
#include "spawner/groups.h"

/* Boxes that may die while they wait before no more are prepared. */
#define LOST_MAX 16U
/* What the worker has to do when a program has ended. */
#define REPLY_NS (2 * NC_NS_PER_MS)
/* Boxes whose end was told and that are not yet taken apart: more are not put off. */
#define SETTLED_MAX 16U

/* What the recorder cannot take at once is not waited for: boxes go first. It is said once. */
static void testify(struct nc_spawner *spawner, const struct nc_box *box, bool is_death)
{
	int r;

	if (spawner->witness_fd < 0)
		return;
	r = is_death ? nc_witness_death(spawner->witness_fd, box->name, &box->end)
		     : nc_witness_birth(spawner->witness_fd, box->end.id, box->name,
			       box->started_ns - box->ordered_ns);
	if (r == 0)
		return;
	fprintf(stderr, "nacre-spawner: the recorder is not told any more: %s\n", nc_errno_text(r));
	spawner->witness_fd = nc_fd_close(spawner->witness_fd);
}

void nc_tell(struct nc_spawner *spawner, size_t client, struct nc_wire_out *out, const int *fds,
	size_t n_fds)
{
	const char *why = nc_client_send(&spawner->client[client], out, fds, n_fds);

	if (why)
		nc_client_end(spawner, client, why);
}

void nc_tell_failure(struct nc_spawner *spawner, size_t client, uint64_t id, enum nc_fail fail,
	const struct nacre_err *err)
{
	struct nc_wire_out out;

	nc_wire_begin(&out, NC_BOX_FAILED);
	nc_wire_put_u64(&out, id);
	nc_wire_put_u8(&out, fail == NC_FAIL_NONE ? NC_FAIL_BOX : (uint8_t)fail);
	nc_wire_put_u32(&out, (uint32_t)-err->code);
	nc_wire_put_text(&out, err->message);
	nc_tell(spawner, client, &out, NULL, 0);
}

static void tell_start(struct nc_spawner *spawner, struct nc_box *box)
{
	const bool waits = box->state == NC_BOX_WAITING;
	struct nc_box_fds fds = {0};
	struct nc_wire_out out;

	nc_box_fds_add(&fds, NC_FD_TERMINAL, box->terminal_fd);
	nc_box_fds_add(&fds, NC_FD_DOOR, box->door_fd);
	nc_wire_begin(&out, NC_BOX_STARTED);
	nc_wire_put_u64(&out, box->end.id);
	nc_wire_put_u64(&out, waits ? 0 : box->started_ns - box->ordered_ns);
	nc_boxwire_put_fds(&out, &fds);
	nc_tell(spawner, box->client, &out, fds.fd, fds.n);
	if (box->terminal_fd >= 0 && box->kept) {
		box->kept_fd[0] = take_fd(box->terminal_fd);
		box->kept_terminal = true;
	}
	box->door_fd = nc_fd_close(box->door_fd);
	if (!waits)
		testify(spawner, box, false);
}

void nc_tell_end(struct nc_spawner *spawner, struct nc_box *box)
{
	struct nc_wire_out out;

	nc_means_tell(&spawner->nursery.host, &box->means, &box->end);
	nc_wire_begin(&out, NC_BOX_ENDED);
	nc_boxwire_put_end(&out, &box->end);
	nc_tell(spawner, box->client, &out, NULL, 0);
	nc_ready_busy(spawner, REPLY_NS);
}

/* A command or its box has ended; was_told: of the end of its last command. */
static void conclude(struct nc_spawner *spawner, struct nc_box *box, bool was_told)
{
	/* who was stopped before we heard that it had begun may have run as well */
	if ((box->started_ns > 0 || (box->handed_ns > 0 && !box->failed)) && !was_told &&
		!box->told)
		testify(spawner, box, true);
	if (box->ordered && !box->failed && !box->told)
		nc_tell_end(spawner, box);
	if (box->state == NC_BOX_KEPT && (!box->kept || box->failed))
		nc_box_forget(box);
}

void nc_step_clear(struct nc_spawner *spawner, struct nc_box *box)
{
	if (nc_box_clear(&spawner->nursery, box, nc_clock_ns()))
		conclude(spawner, box, false);
}

/* The bills of those in a home, before that and all groups go. */
static void clear_guests(struct nc_spawner *spawner, const struct nc_box *home)
{
	NC_EACH_MOVING (&spawner->table, box)
		if (box->state == NC_BOX_CLEARING && box->home_id == home->end.id &&
			box->client == home->client)
			nc_step_clear(spawner, box);
}

/*
 * To take a box apart takes longer than to reply: that goes first where somebody waits for more
 * than one.
 */
static bool put_off(struct nc_spawner *spawner, struct nc_box *box)
{
	size_t n = 0;

	NC_EACH_MOVING (&spawner->table, other)
		n += other->state == NC_BOX_SETTLED;
	if (spawner->patience_ns == 0 || n >= SETTLED_MAX)
		return false;
	box->state = NC_BOX_SETTLED;
	box->deadline_ns = nc_clock_ns() + REPLY_NS;
	return true;
}

/* It was the only one, and most likely is the last; its group is gone before itself. */
static bool is_last(const struct nc_spawner *spawner, const struct nc_box *box)
{
	return !spawner->nursery.lasting && spawner->table.n == 1 && !nc_box_group(box);
}

void nc_step_end(struct nc_spawner *spawner, struct nc_box *box)
{
	bool was_told = box->end.stays;

	if (!box->told && nc_box_settle(box, spawner->patience_ns == 0)) {
		conclude(spawner, box, false);
		box->told = true;
		if (put_off(spawner, box))
			return;
	}
	if (box->shared.parent)
		clear_guests(spawner, box);
	if (nc_box_ended(&spawner->nursery, box))
		conclude(spawner, box, was_told);
	else if (box->state == NC_BOX_CLEARING)
		nc_step_clear(spawner, box);
	else if (box->told && is_last(spawner, box))
		nc_groups_close_early(&spawner->nursery);
}

void nc_step_drop(struct nc_spawner *spawner, struct nc_box *box)
{
	nc_box_fail(box);
	if (box->payload_fd < 0 && box->init_fd < 0)
		nc_step_end(spawner, box);
}

void nc_step_birth(
	struct nc_spawner *spawner, struct nc_box *box, int r, const struct nacre_err *err)
{
	struct nc_box *lender;
	unsigned int *lost;

	if (r >= 0)
		return;
	if (box->ordered)
		nc_tell_failure(spawner, box->client, box->end.id, box->end.fail, err);
	else
		fprintf(stderr, "nacre-spawner: prepare a box: %s\n", err->message);
	/* what cannot be prepared would be tried for ever; who dies while he waits is replaced */
	lender = nc_table_find(&spawner->table, 0, box->lender_id);
	lost = lender ? &lender->lost : &spawner->lost;
	/* that a zygote has ended says nothing of boxes without one */
	if ((!box->ordered || box->state == NC_BOX_BORROWING) && (lender || box->lender_id == 0) &&
		(box->state == NC_BOX_GROWING || ++*lost >= LOST_MAX))
		*(lender ? &lender->ready : &spawner->ready) = 0;
	nc_step_drop(spawner, box);
}

void nc_step_begin(struct nc_spawner *spawner, struct nc_box *box, struct nc_box_pending *order,
	const struct nc_box *lender)
{
	struct nacre_err err = {0};

	nc_step_birth(
		spawner, box, nc_box_begin(&spawner->nursery, box, order, lender, &err), &err);
}

/* Its program runs. It may have been on its way when the others were stopped. */
static void begin_life(struct nc_spawner *spawner, struct nc_box *box)
{
	const struct nc_box *home =
		box->home_id > 0 ? nc_table_find(&spawner->table, box->client, box->home_id) : NULL;

	if (home && home->frozen_ns > 0)
		(void)nc_box_freeze(box, true);
	tell_start(spawner, box);
}

void nc_step_event(struct nc_spawner *spawner, struct nc_box *box)
{
	struct nacre_err err = {0};

	if (box->state == NC_BOX_GROWING) {
		nc_step_birth(spawner, box, nc_box_grown(&spawner->nursery, box, &err), &err);
	} else if (box->state == NC_BOX_BORROWING) {
		nc_step_birth(spawner, box, nc_box_lent(&spawner->nursery, box, &err), &err);
	} else if (box->state == NC_BOX_WAITING || box->state == NC_BOX_STARTING) {
		nc_step_birth(spawner, box, nc_box_heard(box, &err), &err);
		if (box->state == NC_BOX_RUNS || (box->ahead && box->state == NC_BOX_WAITING))
			begin_life(spawner, box);
	} else {
		nc_step_end(spawner, box);
	}
}

void nc_step_late(struct nc_spawner *spawner, struct nc_box *box)
{
	struct nacre_err err = {0};

	if (box->state == NC_BOX_RUNS)
		nc_box_kill(box, NC_CAUSE_WALL);
	else if (box->state == NC_BOX_SETTLED)
		nc_step_end(spawner, box);
	else
		nc_step_birth(spawner, box,
			nc_err_set(&err, -ETIMEDOUT, "The box did not come up in time"), &err);
}
