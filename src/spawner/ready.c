/* Boxes that are prepared ahead of need, and which of them an order gets. */
#include "spawner/spawner.h"

#include "base/clock.h"

/* Children of a zygote that have warmed up: the next ones. It takes memory, and the others may wait
 * long. */
#define WARM_MAX 2

/*
 * A box that is nobody's yet, with a child of this zygote or none, one that waits rather than one
 * that grows; and how many there are.
 */
static int rank(const struct nc_box *box)
{
	return box->state != NC_BOX_WAITING ? 0 : box->held ? 2 + box->warm : 1;
}

static struct nc_box *prepared_box(
	struct nc_spawner *spawner, uint64_t zygote, size_t *ret_n, size_t *ret_warm)
{
	struct nc_box *found = NULL;

	*ret_n = *ret_warm = 0;
	NC_EACH_MOVING (&spawner->table, box) {
		if (box->ordered || box->lender_id != zygote ||
			(box->state != NC_BOX_WAITING && box->state != NC_BOX_GROWING &&
				box->state != NC_BOX_BORROWING))
			continue;
		++*ret_n;
		*ret_warm += box->warm;
		if (!found || rank(box) > rank(found))
			found = box;
	}
	return found;
}

struct nc_box *nc_ready_choose(struct nc_spawner *spawner, const struct nc_box_order *order,
	const struct nc_box **ret_lender)
{
	struct nc_box *box = NULL;
	size_t n, warm;

	*ret_lender = NULL;
	if (!nc_box_is_neutral(order))
		return NULL;
	if (order->zygote > 0) {
		const struct nc_box *lender = nc_table_find(&spawner->table, order->zygote);

		box = prepared_box(spawner, order->zygote, &n, &warm);
		/* a child that is still to come is there before an interpreter that is to start */
		if (lender && lender->state == NC_BOX_RUNS && lender->ready > 0)
			*ret_lender = lender;
		if (*ret_lender || (box && box->state == NC_BOX_WAITING))
			return box;
	}
	return prepared_box(spawner, 0, &n, &warm);
}

/*
 * One more box that is nobody's, if there are fewer than wanted. While there are enough that
 * somebody is being served is the better use of the processors; *next is when to look again.
 */
static bool prepare_one(
	struct nc_spawner *spawner, size_t wanted, const struct nc_box *lender, uint64_t *next)
{
	bool quiet = nc_clock_ns() >= spawner->quiet_ns;
	struct nc_box *box;
	size_t n, warm;

	(void)prepared_box(spawner, lender ? lender->end.id : 0, &n, &warm);
	if (n < wanted && 2 * n >= wanted && !quiet) {
		if (spawner->quiet_ns < *next)
			*next = spawner->quiet_ns;
		return false;
	}
	box = n < wanted ? nc_table_free(&spawner->table) : NULL;
	if (!box)
		return false;
	nc_step_begin(spawner, box, NULL, lender);
	box->warm = lender && quiet && warm < WARM_MAX;
	return true;
}

bool nc_ready_prepare(struct nc_spawner *spawner, uint64_t *next)
{
	if (prepare_one(spawner, spawner->ready, NULL, next))
		return true;
	NC_EACH_MOVING (&spawner->table, box)
		if (box->state == NC_BOX_RUNS && box->zygote_fd >= 0 &&
			prepare_one(spawner, box->ready, box, next))
			return true;
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
	size_t n, warm;

	while ((box = prepared_box(spawner, zygote, &n, &warm)))
		nc_step_drop(spawner, box);
}
