/* The outcome of nacre exec, as an answer and as an exit code. */
#include "cli/answer.h"

#include "base/json.h"
#include "base/text.h"
#include "box/outcome.h"
#include "box/settle.h"
#include "cli/cli.h"

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
			nc_outcome_denials(end), "strength", nc_outcome_strength(host, end), "tier",
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

int nc_answer_code(const struct nc_run *run, bool quiet)
{
	const struct nc_box_end *end = &run->end;

	for (size_t i = 0; !quiet && i < end->n_denied; i++)
		fprintf(stderr, "nacre exec: Refused: system call %s (%u times)\n",
			nc_outcome_call(&end->denied[i]), end->denied[i].count);
	if (end->cause == NC_CAUSE_WALL)
		return 124;
	if (end->cause != NC_CAUSE_EXIT && !quiet)
		fprintf(stderr, "nacre exec: Ended: %s\n", nc_outcome_status(end));
	return end->signal ? 128 + (int)end->signal : (int)end->code;
}
