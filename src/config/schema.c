/* The shape of a configuration file as a table: built-in values, listing, freeing. */
#include "config/schema.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "config/scalar.h"

/* A dotted path of our own keys: three levels of short names. */
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
		if (!fields->preset)
			continue;
		r = nc_scalar_read(fields, fields->preset, &value->number);
		assert(r == 0); /* a table of ours with a wrong built-in value */
		value->given = true;
	}
}

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
		else
			r = visit(context, path, fields, at);
		if (r < 0)
			return r;
	}
	return 0;
}

int nc_schema_visit(const struct nc_field *fields, const void *values,
	int (*visit)(void *context, const char *path, const struct nc_field *field,
		const struct nc_value *value),
	void *context)
{
	return visit_group(fields, values, "", visit, context);
}

void nc_schema_done(const struct nc_field *fields, void *values)
{
	for (; fields->type != NC_FIELD_END; fields++) {
		struct nc_value *value = member(fields, values);

		if (fields->type == NC_FIELD_GROUP) {
			nc_schema_done(fields->fields, value);
			continue;
		}
		for (size_t i = 0; i < value->n_list; i++)
			free(value->list[i]);
		free(value->list);
		*value = (struct nc_value){0};
	}
}
