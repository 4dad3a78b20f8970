/* Denials of those that are lost. */
#include "engine/past_denials.h"

#include <errno.h>

#include "base/json.h"
#include "base/text.h"
#include "engine/denials.h"

/* Whether that is one that we know: a call, or a limit. */
static bool find(
	const char *id, enum nc_denial_box box, uint64_t count, struct nc_denial *ret_denial)
{
	const char *call = nc_text_after(id, "seccomp.");
	bool found = call != NULL;

	if (call)
		nc_denial_of_call(call, box, count, ret_denial);
	for (enum nc_denial_limit i = 0; !found && i < NC_DENIAL_LIMIT_MAX; i++) {
		nc_denial_of_limit(i, count, ret_denial);
		found = nc_streq(ret_denial->id, id);
	}
	return found;
}

/* What an older or a newer one has written stays as it is. */
static int add(json_t *list, json_t *told, enum nc_denial_box box)
{
	const char *id = json_string_value(json_object_get(told, "id"));
	uint64_t count = (uint64_t)json_integer_value(json_object_get(told, "count"));
	struct nc_denial denial;

	if (id && find(id, box, count, &denial))
		return nc_denials_add(list, &denial);
	return json_array_append(list, told) < 0 ? -ENOMEM : 0;
}

static int complete(json_t *row, const json_t *told)
{
	const char *tier = json_string_value(json_object_get(row, "tier"));
	const enum nc_denial_box box =
		tier && nc_streq(tier, "process") ? NC_DENIAL_IN_PROCESS : NC_DENIAL_IN_CONTAINER;
	cleanup_json json_t *list = json_array();
	int r = list ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < json_array_size(told); i++)
		r = add(list, json_array_get(told, i), box);
	if (r == 0 && json_object_set(row, "denials", list) < 0)
		r = -ENOMEM;
	return r;
}

int nc_past_denials(const json_t *rows)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < json_array_size(rows); i++) {
		json_t *row = json_array_get(rows, i);
		const json_t *told = json_object_get(row, "denials");

		if (told)
			r = complete(row, told);
	}
	return r;
}
