/* The table of boxes. */
#ifndef NC_SPAWNER_TABLE_H
#define NC_SPAWNER_TABLE_H

#include "spawner/box.h"

struct nc_table {
	size_t n; /* those from there on were not used of late */
	struct nc_box box[NC_BOXES_MAX];
};

#define NC_EACH_BOX(table, name)                                                                   \
	for (struct nc_box *name = (table)->box; name < (table)->box + (table)->n; name++)

/* The box of this order; NULL also once its end was told. */
struct nc_box *nc_table_find(struct nc_table *table, uint64_t id);

/* A place for one more; NULL: there is none. */
struct nc_box *nc_table_free(struct nc_table *table);

#endif
