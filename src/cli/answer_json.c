/* The outcome of an execution as an object, and from one. */
#include "cli/answer_json.h"

#include <string.h>

#include "base/json.h"
#include "box/outcome.h"
#include "cli/answer.h"
#include "engine/denials.h"
#include "tier/settle.h"

static json_t *denials_json(const struct nc_box_end *end, const json_t *more)
{
	cleanup_json json_t *list = json_array();

	if (!list || nc_denials_add_end(list, end) < 0 ||
		(more && json_array_extend(list, (json_t *)(uintptr_t)more) < 0))
		return NULL;
	return take_ptr(list);
}

int nc_answer_print(const struct nc_run *run, const json_t *denials)
{
	const struct nc_box_end *end = &run->end;
	cleanup_json json_t *answer = json_pack("{s:s, s:o, s:o}", "status", nc_outcome_status(end),
		"exit_code", nc_outcome_code(end), "signal", nc_outcome_signal(end));
	cleanup_json json_t *rest = json_pack("{s:b, s:{s:o}, s:o, s:o, s:o, s:s}", "truncated",
		run->output_bytes > run->output_max, "limits", "hit", nc_outcome_hit(end), "usage",
		nc_outcome_usage(end, run->output_bytes, run->birth_ns), "denials",
		denials_json(end, denials), "strength", nc_outcome_strength(end), "tier",
		nc_tier_names[end->tier]);
	bool is_whole = nc_json_set_bytes(answer, "stdout", nc_buf_text(&run->output),
				run->output.size) == 0 &&
			nc_json_set_bytes(
				answer, "stderr", nc_buf_text(&run->error), run->error.size) == 0 &&
			json_object_update(answer, rest) == 0;

	return nc_json_print(stdout, is_whole ? take_ptr(answer) : NULL, true);
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static void print_denial(const char *verb, const json_t *object)
{
	struct nc_denial denial = {.object = text_of(object, "object"),
		.line = (uint32_t)json_integer_value(json_object_get(object, "line")),
		.count = (uint64_t)json_integer_value(json_object_get(object, "count")),
		.message = text_of(object, "message"),
		.allow_with = json_string_value(json_object_get(object, "allow_with")),
		.instead = text_of(object, "instead")};

	(void)snprintf(denial.id, sizeof(denial.id), "%s", text_of(object, "id"));
	nc_answer_denial(verb, &denial);
}

void nc_answer_denials(const char *verb, const json_t *denials, const char *said)
{
	for (size_t i = 0; i < json_array_size(denials); i++) {
		const json_t *denial = json_array_get(denials, i);

		if (!strstr(said, text_of(denial, "message")) ||
			!strstr(said, text_of(denial, "instead")) ||
			!strstr(said, text_of(denial, "object")))
			print_denial(verb, denial);
	}
}

void nc_answer_error(const char *message, int exit_status, const char *help)
{
	(void)nc_json_print(stdout,
		json_pack("{s:s, s:o, s:i, s:s?}", "status", "error", "error",
			nc_json_text(message, strlen(message)), "exit_status", exit_status, "help",
			help),
		true); /* it was said on standard error too */
}
