/* The shape of a configuration file as a table: built-in values, listing, freeing. */
#include "config/schema.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "config/scalar.h"

/* A dotted path: short names of our own, and a name of a map that is no longer than a tenant's. */
#define PATH_ROOM 160

static void *member(const struct nc_field *field, void *values)
{
	return (char *)values + field->offset;
}

void nc_schema_preset(const struct nc_field *fields, void *values)
{
	for (; fields->type != NC_FIELD_END; fields++) {
		struct nc_value *value = member(fields, values);
		int r;

		if (fields->type == NC_FIELD_GROUP) {
			nc_schema_preset(fields->fields, value);
			continue;
		}
		if (!fields->preset) /* as every list and map */
			continue;
		r = nc_scalar_read(fields, fields->preset, &value->number);
		assert(r == 0); /* a table of ours with a wrong built-in value */
		value->given = true;
	}
}

static int visit_map(const struct nc_field *field, const struct nc_map *map, const char *prefix,
	int (*visit)(void *context, const char *path, const struct nc_field *field,
		const struct nc_value *value),
	void *context);

static int visit_group(const struct nc_field *fields, const void *values, const char *prefix,
	int (*visit)(void *context, const char *path, const struct nc_field *field,
		const struct nc_value *value),
	void *context)
{
	for (; fields->type != NC_FIELD_END; fields++) {
		const void *at = (const char *)values + fields->offset;
		char path[PATH_ROOM];
		int r = snprintf(
			path, sizeof(path), "%s%s%s", prefix, *prefix ? "." : "", fields->name);

		assert(r > 0 && r < PATH_ROOM);
		if (fields->type == NC_FIELD_GROUP)
			r = visit_group(fields->fields, at, path, visit, context);
		else if (fields->type == NC_FIELD_MAP)
			r = visit_map(fields, at, path, visit, context);
		else
			r = visit(context, path, fields, at);
		if (r < 0)
			return r;
	}
	return 0;
}

static int visit_map(const struct nc_field *field, const struct nc_map *map, const char *prefix,
	int (*visit)(void *context, const char *path, const struct nc_field *field,
		const struct nc_value *value),
	void *context)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < map->count; i++) {
		char path[PATH_ROOM];
		int length = snprintf(path, sizeof(path), "%s.%s", prefix, map->entries[i].name);

		assert(length > 0 && length < PATH_ROOM); /* names are checked as they are read */
		r = visit_group(field->fields, map->entries[i].values, path, visit, context);
	}
	return r;
}

int nc_schema_visit(const struct nc_field *fields, const void *values,
	int (*visit)(void *context, const char *path, const struct nc_field *field,
		const struct nc_value *value),
	void *context)
{
	return visit_group(fields, values, "", visit, context);
}

void nc_schema_merge(
	const struct nc_field *fields, void *values, const void *upper, const char *file)
{
	for (; fields->type != NC_FIELD_END; fields++) {
		struct nc_value *value = member(fields, values);
		const struct nc_value *over = (const void *)((const char *)upper + fields->offset);

		if (fields->type == NC_FIELD_GROUP) {
			nc_schema_merge(fields->fields, value, over, file);
		} else if (fields->type != NC_FIELD_MAP && over->given) {
			*value = *over;
			value->file = file;
		}
	}
}

const void *nc_map_find(const struct nc_map *map, const char *name)
{
	for (size_t i = 0; i < map->count; i++)
		if (nc_streq(map->entries[i].name, name))
			return map->entries[i].values;
	return NULL;
}

static void map_done(const struct nc_field *field, struct nc_map *map)
{
	for (size_t i = 0; i < map->count; i++) {
		if (map->entries[i].values)
			nc_schema_done(field->fields, map->entries[i].values);
		free(map->entries[i].values);
		free(map->entries[i].name);
	}
	free(map->entries);
	*map = (struct nc_map){0};
}

void nc_schema_done(const struct nc_field *fields, void *values)
{
	for (; fields->type != NC_FIELD_END; fields++) {
		struct nc_value *value = member(fields, values);

		if (fields->type == NC_FIELD_GROUP) {
			nc_schema_done(fields->fields, value);
			continue;
		}
		if (fields->type == NC_FIELD_MAP) {
			map_done(fields, member(fields, values));
			continue;
		}
		for (size_t i = 0; i < value->n_list; i++)
			free(value->list[i]);
		free(value->list);
		*value = (struct nc_value){0};
	}
}
