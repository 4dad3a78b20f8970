/* Boxes that are prepared ahead of need, and which of them an order gets. */
#include "spawner/spawner.h"

#include <sys/socket.h>

#include "base/clock.h"
#include "inside/lend.h"

/* Children of a zygote that have warmed up: the next ones. It takes memory, and the others may wait
 * long. */
#define WARM_MAX 2
/* When it has not been quiet for so long it may not get so soon. */
#define LONG_NS (20 * NC_NS_PER_MS)

/* Who waits comes before who grows, who has warmed up first, and who is doing it after the others.
 */
static int rank(const struct nc_box *box)
{
	if (box->state != NC_BOX_WAITING)
		return 0;
	return !box->held || box->warmth == NC_WARMS_UP ? 1 : 2 + (box->warmth == NC_WARM);
}

/*
 * A box that is nobody's yet, with a child of this zygote or none; how many there are, and how many
 * of those are still to come.
 */
static struct nc_box *prepared_box(
	struct nc_spawner *spawner, uint64_t zygote, size_t *ret_n, size_t *ret_growing)
{
	struct nc_box *found = NULL;

	*ret_n = *ret_growing = 0;
	NC_EACH_MOVING (&spawner->table, box) {
		if (box->ordered || box->lender_id != zygote ||
			(box->state != NC_BOX_WAITING && box->state != NC_BOX_GROWING &&
				box->state != NC_BOX_BORROWING))
			continue;
		++*ret_n;
		*ret_growing += box->state != NC_BOX_WAITING || !box->held;
		if (!found || rank(box) > rank(found))
			found = box;
	}
	return found;
}

struct nc_box *nc_ready_choose(struct nc_spawner *spawner, const struct nc_box_order *order,
	const struct nc_box **ret_lender)
{
	struct nc_box *box = NULL;
	size_t n, n_growing;

	*ret_lender = NULL;
	if (!nc_box_is_neutral(order))
		return NULL;
	if (order->zygote > 0) {
		const struct nc_box *lender = nc_table_find(&spawner->table, order->zygote);

		box = prepared_box(spawner, order->zygote, &n, &n_growing);
		/* a child that is still to come is there before an interpreter that is to start */
		if (lender && lender->state == NC_BOX_RUNS && lender->ready > 0)
			*ret_lender = lender;
		if (*ret_lender || (box && box->state == NC_BOX_WAITING))
			return box;
	}
	return prepared_box(spawner, 0, &n, &n_growing);
}

void nc_ready_busy(struct nc_spawner *spawner, uint64_t for_ns)
{
	uint64_t now = nc_clock_ns();

	if (now >= spawner->quiet_ns)
		spawner->busy_ns = now;
	spawner->quiet_ns = now + for_ns;
}

/*
 * Whether one more is to be made now, beside so many. To make one takes longer than to serve
 * somebody, and would slow him down: it waits until it is quiet, unless there is none; or it does
 * not get quiet, then they are made one after the other.
 */
static bool is_time(const struct nc_spawner *spawner, size_t n, size_t n_growing)
{
	uint64_t now = nc_clock_ns();

	return now >= spawner->quiet_ns || n == 0 ||
	       (n_growing == 0 && now - spawner->busy_ns > LONG_NS);
}

static bool prepare_one(
	struct nc_spawner *spawner, size_t wanted, const struct nc_box *lender, uint64_t *next)
{
	struct nc_box *box;
	size_t n, n_growing;

	(void)prepared_box(spawner, lender ? lender->end.id : 0, &n, &n_growing);
	if (n >= wanted)
		return false;
	if (!is_time(spawner, n, n_growing)) {
		*next = spawner->quiet_ns < *next ? spawner->quiet_ns : *next;
		return false;
	}
	box = nc_table_free(&spawner->table);
	if (box)
		nc_step_begin(spawner, box, NULL, lender);
	return box;
}

/* Lets one more child of this zygote warm up, once it is quiet. */
static void warm_one(struct nc_spawner *spawner, uint64_t zygote, uint64_t *next)
{
	struct nc_box *found = NULL;
	size_t n = 0;

	NC_EACH_MOVING (&spawner->table, box) {
		if (box->ordered || box->lender_id != zygote || rank(box) == 0)
			continue;
		n += box->warmth != NC_COLD;
		if (rank(box) == 2)
			found = box;
	}
	if (!found || n >= WARM_MAX)
		return;
	if (nc_clock_ns() < spawner->quiet_ns) {
		*next = spawner->quiet_ns < *next ? spawner->quiet_ns : *next;
		return;
	}
	/* of one that has died just now its end tells */
	(void)send(found->report_fd, NC_WARM_UP, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	found->warmth = NC_WARMS_UP;
}

bool nc_ready_prepare(struct nc_spawner *spawner, uint64_t *next)
{
	if (prepare_one(spawner, spawner->ready, NULL, next))
		return true;
	NC_EACH_MOVING (&spawner->table, box) {
		if (box->state != NC_BOX_RUNS || box->zygote_fd < 0)
			continue;
		if (prepare_one(spawner, box->ready, box, next))
			return true;
		warm_one(spawner, box->end.id, next);
	}
	return false;
}

/* It waits with a child of a zygote that has ended: no order can name it any more. */
static bool is_orphan(struct nc_spawner *spawner, const struct nc_box *box)
{
	const struct nc_box *lender;

	if (box->ordered || box->lender_id == 0 || box->state != NC_BOX_WAITING)
		return false;
	lender = nc_table_find(&spawner->table, box->lender_id);
	return !lender || lender->state != NC_BOX_RUNS;
}

bool nc_ready_drop_orphan(struct nc_spawner *spawner)
{
	NC_EACH_MOVING (&spawner->table, box)
		if (is_orphan(spawner, box)) {
			nc_step_drop(spawner, box);
			return true;
		}
	return false;
}

void nc_ready_drop_all(struct nc_spawner *spawner, uint64_t zygote)
{
	struct nc_box *box;
	size_t n, n_growing;

	while ((box = prepared_box(spawner, zygote, &n, &n_growing)))
		nc_step_drop(spawner, box);
}
