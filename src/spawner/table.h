/* The table of boxes. */
#ifndef NC_SPAWNER_TABLE_H
#define NC_SPAWNER_TABLE_H

#include "spawner/box.h"

/*
 * Most boxes of many are at rest: they wait for one event and have no deadline. Only those that
 * move are looked at in every turn, so that a turn costs the same whatever the table holds.
 */
enum nc_table_mark {
	NC_MARK_FREE,
	NC_MARK_MOVES, /* from when anybody has got hold of it: nc_table_settle */
	NC_MARK_RESTS,
};

struct nc_table {
	size_t n;			   /* those from there on were never used */
	unsigned char mark[NC_BOXES_MAX];  /* enum nc_table_mark; bytes, to be searched as such */
	uint64_t resting_id[NC_BOXES_MAX]; /* of those at rest */
	struct nc_box box[NC_BOXES_MAX];
};

/* NOLINTBEGIN(bugprone-macro-parentheses): name is declared */
/* All, to look at them; who changes one marks it. */
#define NC_EACH_BOX(table, name)                                                                   \
	for (struct nc_box *name = (table)->box; name < (table)->box + (table)->n; name++)

#define NC_EACH_MOVING(table, name)                                                                \
	for (struct nc_box *name = nc_table_next(table, 0); name;                                  \
		name = nc_table_next(table, (size_t)(name - (table)->box) + 1))
/* NOLINTEND(bugprone-macro-parentheses) */

/* The next one that moves, from this place on; NULL: there is none. */
struct nc_box *nc_table_next(struct nc_table *table, size_t from);

/* It may change now. */
void nc_table_touch(struct nc_table *table, const struct nc_box *box);

/* One that waits as it should is done with for this turn, and at rest if its state lasts. */
void nc_table_settle(struct nc_table *table, const struct nc_box *box);

/* The box of this order of a client's; NULL also once its end was told. It may change now. */
struct nc_box *nc_table_find(struct nc_table *table, size_t client, uint64_t id);

/* A place for one more, which it takes until nc_table_settle; NULL: there is none. */
struct nc_box *nc_table_free(struct nc_table *table);

#endif
