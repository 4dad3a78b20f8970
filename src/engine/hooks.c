/* The layer inside of interpreters, as executions have it. */
#include "engine/hooks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "engine/denials.h"

/* src/inside/python.c, as the build made it. */
extern const char nc_hook_object[], nc_hook_object_end[];

#define TEXT_MAX (1U << 20)

/* Unlike any file of the program's. */
static void file_name(const struct nc_execution *execution, const struct nc_step_state *step,
	char *out, size_t size)
{
	(void)snprintf(
		out, size, ".%s-%zu.nacre", execution->id, (size_t)(step - execution->step) + 1);
}

static int make_token(char ret_token[static NC_HOOK_TOKEN_SIZE + 1])
{
	unsigned char bytes[NC_HOOK_TOKEN_SIZE / 2];
	int r = nc_random(bytes, sizeof(bytes));

	for (size_t i = 0; r == 0 && i < sizeof(bytes); i++)
		(void)snprintf(ret_token + 2 * i, 3, "%02x", bytes[i]);
	return r;
}

int nc_hooks_plan(struct nc_execution *execution, size_t i)
{
	struct nc_step_state *step = &execution->step[i];
	char token[NC_HOOK_TOKEN_SIZE + 1];
	int r;

	if (step->hooks || step->language.language != NC_PYTHON ||
		nc_hooks_mode(execution->terms) == NC_HOOKS_OFF)
		return 0;
	r = make_token(token);
	if (r < 0)
		return r;
	step->hooks = calloc(1, sizeof(*step->hooks));
	if (!step->hooks)
		return -ENOMEM;
	nc_hook_reader_init(step->hooks, token);
	return 0;
}

void nc_hooks_put(const struct nc_execution *execution, const struct nc_step_state *step,
	const struct nc_hook_places *places, struct nc_buf *stream)
{
	/* what a box can write to */
	const char *const writable[] = {places->workspace, places->temporary, "/tmp", "/var/tmp",
		"/dev", "/proc", "/run", NULL};
	nc_buf_cleanup struct nc_buf file = NC_BUF(TEXT_MAX + (1U << 20));
	struct nc_hook_trailer trailer = {.magic = NC_HOOK_MAGIC_BYTES};
	size_t object = (size_t)(nc_hook_object_end - nc_hook_object);
	char name[NC_ID_SIZE + 32];

	nc_buf_add(&file, nc_hook_object, object);
	nc_hooks_python(execution->terms, step->hooks->token, writable, &file);
	trailer.size = (uint32_t)(file.size - object);
	nc_buf_add(&file, &trailer, sizeof(trailer));
	if (file.error < 0) {
		stream->error = file.error;
		return;
	}
	file_name(execution, step, name, sizeof(name));
	nc_pack_add(stream, name, file.data, file.size, false);
}

void nc_hooks_variable(const struct nc_execution *execution, const struct nc_step_state *step,
	const struct nc_hook_places *places, const char *besides, struct nc_buf *out)
{
	char name[NC_ID_SIZE + 32];

	file_name(execution, step, name, sizeof(name));
	nc_buf_addf(out, "LD_PRELOAD=%s/%s%s%s%c", places->workspace, name, besides ? ":" : "",
		besides ? besides : "", '\0');
}

int nc_hooks_denials(const struct nc_step_state *step, json_t *denials)
{
	int r = 0;

	for (size_t i = 0; step->hooks && r == 0 && i < step->hooks->n_records; i++) {
		struct nc_denial denial;

		if (!step->hooks->records[i].refused)
			continue;
		nc_denial_of_hook(&step->hooks->records[i], &denial);
		r = nc_denials_add(denials, &denial);
	}
	return r;
}

json_t *nc_hooks_noticed(const struct nc_step_state *step)
{
	cleanup_json json_t *list = json_array();

	for (size_t i = 0; list && step->hooks && i < step->hooks->n_records; i++) {
		const struct nc_hook_record *record = &step->hooks->records[i];
		json_t *line = record->line ? json_integer(record->line) : json_null();

		if (record->refused) {
			json_decref(line);
			continue;
		}
		if (json_array_append_new(
			    list, json_pack("{s:s, s:o, s:o, s:o, s:I}", "rule",
					  nc_policy_rule(record->rule - 1)->id, "object",
					  nc_json_text(record->object, strlen(record->object)),
					  "file", nc_json_text(record->file, strlen(record->file)),
					  "line", line, "count", (json_int_t)record->count)) < 0)
			return NULL;
	}
	return take_ptr(list);
}
