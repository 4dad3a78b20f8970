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

/* The boxes that are nobody's yet, with a child of one zygote or none. */
struct stock {
	size_t n, n_growing, n_warm;
	struct nc_box *best; /* for an order */
	struct nc_box *cold; /* that waits and could warm up */
};

/* Who waits comes before who grows, who has warmed up first, and who is doing it after the others.
 */
static int rank(const struct nc_box *box)
{
	if (box->state != NC_BOX_WAITING)
		return 0;
	return !box->held || box->warmth == NC_WARMS_UP ? 1 : 2 + (box->warmth == NC_WARM);
}

static struct stock look(struct nc_spawner *spawner, uint64_t zygote)
{
	struct stock stock = {0};

	NC_EACH_MOVING (&spawner->table, box) {
		if (box->ordered || box->lender_id != zygote ||
			(box->state != NC_BOX_WAITING && box->state != NC_BOX_GROWING &&
				box->state != NC_BOX_BORROWING))
			continue;
		stock.n++;
		stock.n_growing += box->state != NC_BOX_WAITING || !box->held;
		stock.n_warm += box->warmth != NC_COLD;
		if (!stock.best || rank(box) > rank(stock.best))
			stock.best = box;
		if (rank(box) == 2)
			stock.cold = box;
	}
	return stock;
}

struct nc_box *nc_ready_choose(struct nc_spawner *spawner, const struct nc_box_order *order,
	const struct nc_box **ret_lender)
{
	*ret_lender = NULL;
	if (!nc_box_is_neutral(order))
		return NULL;
	if (order->warm_class > 0) {
		const struct nc_box *lender = nc_table_find(&spawner->table, 0, order->warm_class);
		struct nc_box *box = look(spawner, order->warm_class).best;

		/* a child that is still to come is there before an interpreter that is to start */
		if (lender && lender->state == NC_BOX_RUNS && lender->ready > 0)
			*ret_lender = lender;
		if (*ret_lender || (box && box->state == NC_BOX_WAITING))
			return box;
	}
	return look(spawner, 0).best;
}

void nc_ready_busy(struct nc_spawner *spawner, uint64_t for_ns)
{
	uint64_t now = nc_clock_ns();

	if (now >= spawner->quiet_ns)
		spawner->busy_ns = now;
	spawner->quiet_ns = now + for_ns;
}

/*
 * Brings the stock nearer to what is wanted: one more box, or one of a zygote's children that warms
 * up. Both take longer than to serve somebody, and would slow him down: they wait until it is
 * quiet, which *next has. Unless there is no box; or it does not get quiet, then one after the
 * other is made. True if one was begun.
 */
static bool add_one(
	struct nc_spawner *spawner, size_t wanted, const struct nc_box *lender, uint64_t *next)
{
	struct stock stock = look(spawner, lender ? lender->end.id : 0);
	uint64_t now = nc_clock_ns();
	bool more = stock.n < wanted, quiet = now >= spawner->quiet_ns;
	bool warmer = lender && stock.cold && stock.n_warm < WARM_MAX;
	bool urgent = stock.n == 0 || (stock.n_growing == 0 && now - spawner->busy_ns > LONG_NS);
	struct nc_box *box = more && (quiet || urgent) ? nc_table_free(&spawner->table) : NULL;

	if (box) {
		nc_step_begin(spawner, box, NULL, lender);
	} else if (warmer && quiet) {
		/* of one that has died just now its end tells */
		(void)send(stock.cold->report_fd, NC_WARM_UP, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		stock.cold->warmth = NC_WARMS_UP;
	} else if ((more || warmer) && !quiet && spawner->quiet_ns < *next) {
		*next = spawner->quiet_ns;
	}
	return box;
}

bool nc_ready_prepare(struct nc_spawner *spawner, uint64_t *next)
{
	if (add_one(spawner, spawner->ready, NULL, next))
		return true;
	NC_EACH_MOVING (&spawner->table, box)
		if (box->state == NC_BOX_RUNS && box->zygote_fd >= 0 &&
			add_one(spawner, box->ready, box, next))
			return true;
	return false;
}

/* It waits with a child of a zygote that has ended: no order can name it any more. */
static bool is_orphan(struct nc_spawner *spawner, const struct nc_box *box)
{
	const struct nc_box *lender;

	if (box->ordered || box->lender_id == 0 || box->state != NC_BOX_WAITING)
		return false;
	lender = nc_table_find(&spawner->table, 0, box->lender_id);
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

	while ((box = look(spawner, zygote).best))
		nc_step_drop(spawner, box);
}
