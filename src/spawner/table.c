#include "spawner/table.h"

struct nc_box *nc_table_find(struct nc_table *table, uint64_t id)
{
	NC_EACH_BOX (table, box)
		/* one whose end was told is nobody's any more, and its number may be another's */
		if (box->state != NC_BOX_FREE && box->ordered && !box->told && box->end.id == id)
			return box;
	return NULL;
}

struct nc_box *nc_table_free(struct nc_table *table)
{
	for (size_t i = 0; i < NC_BOXES_MAX; i++)
		if (table->box[i].state == NC_BOX_FREE) {
			table->n = i < table->n ? table->n : i + 1;
			return &table->box[i];
		}
	return NULL;
}
