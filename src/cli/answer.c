/* The outcome of nacre exec, as an answer and as an exit code. */
#include "cli/answer.h"

#include "base/json.h"
#include "base/text.h"
#include "box/outcome.h"
#include "box/settle.h"
#include "cli/cli.h"
#include "engine/denials.h"

static json_t *denials_json(const struct nc_box_end *end)
{
	cleanup_json json_t *list = json_array();

	return list && nc_denials_add_end(list, end) == 0 ? take_ptr(list) : NULL;
}

int nc_answer_print(const struct nc_box_host *host, const struct nc_run *run)
{
	const struct nc_box_end *end = &run->end;

	return nc_json_print(stdout,
		json_pack("{s:s, s:o, s:o, s:o, s:o, s:b, s:{s:o}, s:o, s:o, s:o, s:s}", "status",
			nc_outcome_status(end), "exit_code", nc_outcome_code(end), "signal",
			nc_outcome_signal(end), "stdout",
			nc_json_text(nc_buf_text(&run->output), run->output.size), "stderr",
			nc_json_text(nc_buf_text(&run->error), run->error.size), "truncated",
			run->output_bytes > run->output_max, "limits", "hit", nc_outcome_hit(end),
			"usage", nc_outcome_usage(end, run->output_bytes, run->birth_ns), "denials",
			denials_json(end), "strength", nc_outcome_strength(host, end), "tier",
			nc_tier_word(end->tier)),
		true);
}

int nc_answer_failure(const struct nacre_err *failure, const char *command)
{
	char quoted[NC_TEXT_QUOTED_MAX];
	bool is_command = nc_text_after(failure->message, "start the program") != NULL;

	if (is_command)
		fprintf(stderr, "nacre exec: %s: %s\n", nc_text_quote(quoted, command),
			nc_errno_text(failure->code));
	else
		fprintf(stderr, "nacre exec: The box could not be made: %s\n", failure->message);
	if (!is_command)
		return NC_EXIT_SELF;
	return failure->code == -ENOENT ? 127 : 126;
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

/* "Refused: unshare (3 times): ...; instead: ... [seccomp.unshare]" */
static void print_denial(const char *verb, const json_t *denial)
{
	json_int_t line = json_integer_value(json_object_get(denial, "line"));
	json_int_t count = json_integer_value(json_object_get(denial, "count"));
	const char *allow_with = text_of(denial, "allow_with");
	char quoted[NC_TEXT_QUOTED_MAX];
	/* what a program calls its things is not for a terminal */
	size_t size = strlen(nc_text_quote(quoted, text_of(denial, "object")));

	fprintf(stderr, "nacre %s: Refused: ", verb);
	if (line > 0)
		fprintf(stderr, "line %lld: ", (long long)line);
	fprintf(stderr, "%.*s", (int)size - 2, quoted + 1);
	if (count > 1)
		fprintf(stderr, " (%lld times)", (long long)count);
	fprintf(stderr, ": %s; ", text_of(denial, "message"));
	if (*allow_with)
		fprintf(stderr, "allowed with: %s; ", allow_with);
	fprintf(stderr, "instead: %s [%s]\n", text_of(denial, "instead"), text_of(denial, "id"));
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

int nc_answer_code(const struct nc_run *run, bool quiet)
{
	const struct nc_box_end *end = &run->end;
	cleanup_json json_t *denials = quiet ? NULL : denials_json(end);

	if (!quiet)
		nc_answer_denials("exec", denials, "");
	if (end->cause == NC_CAUSE_WALL)
		return 124;
	if (end->cause != NC_CAUSE_EXIT && !quiet)
		fprintf(stderr, "nacre exec: Ended: %s\n", nc_outcome_status(end));
	return end->signal ? 128 + (int)end->signal : (int)end->code;
}
