/* What is known about expressions: constants and names. */
#include "policy/datum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/bounds.h"
#include "policy/pages.h"

int nc_data_init(struct nc_data *data, struct nc_arena *arena)
{
	*data = (struct nc_data){.arena = arena};
	nc_datum_add(data, (struct nc_datum){0});
	return data->error;
}

void nc_data_done(struct nc_data *data)
{
	for (size_t i = 0; i < sizeof(data->blocks) / sizeof(data->blocks[0]) && data->blocks[i];
		i++)
		free(data->blocks[i]);
	*data = (struct nc_data){0};
}

static struct nc_datum *place(struct nc_data *data, uint32_t number)
{
	return &data->blocks[number >> NC_DATA_BLOCK_BITS][number & (NC_DATA_BLOCK - 1)];
}

uint32_t nc_datum_add(struct nc_data *data, struct nc_datum datum)
{
	struct nc_datum **block;

	if (data->error < 0)
		return 0;
	if (data->count == NC_DATA_MAX) {
		data->error = -EFBIG;
		return 0;
	}
	block = &data->blocks[data->count >> NC_DATA_BLOCK_BITS];
	if (!*block)
		*block = nc_pages_alloc(NC_DATA_BLOCK * sizeof(**block));
	if (!*block) {
		data->error = -ENOMEM;
		return 0;
	}
	*place(data, data->count) = datum;
	return data->count++;
}

uint32_t nc_datum_text(struct nc_data *data, const char *text, size_t size)
{
	struct nc_datum datum = {.kind = NC_DATUM_TEXT, .text = text, .size = (uint32_t)size};

	if (!text)
		return 0;
	if (size > NC_FOLDED_MAX) {
		datum.size = NC_FOLDED_MAX;
		datum.partial = datum.too_long = true;
	}
	return nc_datum_add(data, datum);
}

uint32_t nc_datum_name(struct nc_data *data, const char *text, size_t size)
{
	if (!text || size > NC_NAME_TEXT_MAX)
		return 0;
	return nc_datum_add(data,
		(struct nc_datum){.kind = NC_DATUM_NAME, .text = text, .size = (uint32_t)size});
}

uint32_t nc_datum_number(struct nc_data *data, int64_t number)
{
	return nc_datum_add(data, (struct nc_datum){.kind = NC_DATUM_NUMBER, .number = number});
}

uint32_t nc_datum_own(struct nc_data *data)
{
	return nc_datum_add(data, (struct nc_datum){.kind = NC_DATUM_OWN});
}

uint32_t nc_datum_list(
	struct nc_data *data, enum nc_datum_kind kind, const uint32_t *items, uint32_t count)
{
	struct nc_datum list = {.kind = (uint8_t)kind, .size = count};
	uint32_t *copy;

	if (count > NC_LIST_ITEMS_MAX)
		return 0;
	copy = nc_arena_alloc(data->arena, ((size_t)count + 1) * sizeof(*copy));
	if (!copy)
		return 0;
	memcpy(copy, items, count * sizeof(*copy));
	list.items = copy;
	for (uint32_t i = 0; i < count; i++) {
		list.built |= nc_datum(data, items[i])->built;
		list.decoded |= nc_datum(data, items[i])->decoded;
	}
	return nc_datum_add(data, list);
}

/* A longer name: what is there, a separator, and more. */
static uint32_t extend_name(struct nc_data *data, const struct nc_datum *from, const char *more,
	size_t separator_size, size_t size)
{
	struct nc_datum name = *from;
	char buffer[NC_NAME_TEXT_MAX];
	size_t all = from->size + separator_size + size;

	if (all > sizeof(buffer))
		return 0;
	memcpy(buffer, from->text, from->size);
	if (separator_size > 0)
		buffer[from->size] = '.';
	memcpy(buffer + from->size + separator_size, more, size);
	name.text = nc_arena_text(data->arena, buffer, all);
	name.size = (uint32_t)all;
	name.other = 0;
	return name.text ? nc_datum_add(data, name) : 0;
}

uint32_t nc_datum_member(
	struct nc_data *data, const struct nc_datum *object, const char *name, size_t size)
{
	if (object->kind != NC_DATUM_NAME)
		return 0;
	return extend_name(data, object, name, 1, size);
}

uint32_t nc_datum_result(struct nc_data *data, const struct nc_datum *function)
{
	if (function->kind != NC_DATUM_NAME)
		return 0;
	return extend_name(data, function, "()", 0, 2);
}

uint32_t nc_datum_concat(struct nc_data *data, uint32_t left, uint32_t right)
{
	static const struct nc_datum hole = {
		.kind = NC_DATUM_TEXT, .partial = true, .text = NC_HOLE, .size = NC_HOLE_SIZE};
	struct nc_datum a = *nc_datum(data, left), b = *nc_datum(data, right);
	struct nc_datum both = {.kind = NC_DATUM_TEXT, .built = true};

	if (a.kind != NC_DATUM_TEXT && b.kind != NC_DATUM_TEXT)
		return 0;
	if (a.kind != NC_DATUM_TEXT)
		a = hole;
	if (b.kind != NC_DATUM_TEXT)
		b = hole;
	if ((size_t)a.size + b.size > NC_FOLDED_MAX) {
		a.partial = a.too_long = true;
		a.other = 0;
		return nc_datum_add(data, a);
	}
	both.text = nc_arena_join(data->arena, a.text, a.size, b.text, b.size);
	both.size = a.size + b.size;
	both.partial = a.partial || b.partial;
	both.too_long = a.too_long || b.too_long;
	both.decoded = a.decoded || b.decoded;
	return both.text ? nc_datum_add(data, both) : 0;
}

uint32_t nc_datum_derive(struct nc_data *data, const char *text, size_t size,
	const struct nc_datum *from, bool decoded)
{
	uint32_t number = nc_datum_text(data, text, size);

	if (number) {
		place(data, number)->partial |= from->partial;
		place(data, number)->too_long |= from->too_long;
		place(data, number)->built = from->built;
		place(data, number)->decoded = from->decoded || decoded;
	}
	return number;
}

uint32_t nc_datum_any(struct nc_data *data, const uint32_t *numbers, uint32_t count)
{
	uint32_t next = 0;

	while (count-- > 0) {
		struct nc_datum copy = *nc_datum(data, numbers[count]);

		copy.other = next;
		next = nc_datum_add(data, copy);
	}
	return next;
}
