#include "spawner/table.h"

#include <string.h>

struct nc_box *nc_table_next(struct nc_table *table, size_t from)
{
	const unsigned char *mark = memchr(table->mark + from, NC_MARK_MOVES, table->n - from);

	return mark ? &table->box[mark - table->mark] : NULL;
}

void nc_table_touch(struct nc_table *table, const struct nc_box *box)
{
	table->mark[box - table->box] = NC_MARK_MOVES;
}

void nc_table_settle(struct nc_table *table, const struct nc_box *box)
{
	size_t i = (size_t)(box - table->box);

	if (box->state == NC_BOX_FREE)
		table->mark[i] = NC_MARK_FREE;
	if (box->state != NC_BOX_STAYS && box->state != NC_BOX_KEPT)
		return;
	table->mark[i] = NC_MARK_RESTS;
	table->resting_id[i] = box->end.id;
}

struct nc_box *nc_table_find(struct nc_table *table, size_t client, uint64_t id)
{
	NC_EACH_MOVING (table, box)
		/* one whose end was told is nobody's any more, and its number may be another's */
		if (box->state != NC_BOX_FREE && box->ordered && !box->told && box->end.id == id &&
			box->client == client)
			return box;
	for (size_t i = 0; i < table->n; i++)
		if (table->resting_id[i] == id && table->mark[i] == NC_MARK_RESTS &&
			table->box[i].client == client) {
			nc_table_touch(table, &table->box[i]);
			return &table->box[i];
		}
	return NULL;
}

struct nc_box *nc_table_free(struct nc_table *table)
{
	const unsigned char *mark = memchr(table->mark, NC_MARK_FREE, NC_BOXES_MAX);
	size_t i = mark ? (size_t)(mark - table->mark) : 0;

	if (!mark)
		return NULL;
	table->n = i < table->n ? table->n : i + 1;
	nc_table_touch(table, &table->box[i]);
	return &table->box[i];
}
