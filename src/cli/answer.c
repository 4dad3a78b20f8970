/* The outcome of nacre exec, as words and as an exit code. */
#include "cli/answer.h"

#include <string.h>

#include "base/say.h"
#include "base/text.h"
#include "box/status.h"
#include "cli/cli.h"
#include "engine/end_denials.h"

int nc_answer_failure(const struct nc_run *run, const char *command, struct nacre_err *ret_said)
{
	char quoted[NC_TEXT_QUOTED_MAX];
	const struct nacre_err *failure = &run->failure;
	bool is_command = run->end.fail == NC_FAIL_PROGRAM;

	if (is_command)
		(void)nc_err_set(ret_said, failure->code, "%s: %s", nc_text_quote(quoted, command),
			nc_errno_text(failure->code));
	else
		(void)nc_err_set(
			ret_said, failure->code, "The box could not be made: %s", failure->message);
	nc_say(stderr, "nacre exec: %s\n", ret_said->message);
	if (!is_command)
		return NC_EXIT_SELF;
	return failure->code == -ENOENT ? 127 : 126;
}

/* "Refused: unshare (3 times): ...; instead: ... [seccomp.unshare]" */
void nc_answer_denial(const char *verb, const struct nc_denial *denial)
{
	char quoted[NC_TEXT_QUOTED_MAX];
	/* what a program calls its things is not for a terminal */
	size_t size = strlen(nc_text_quote(quoted, denial->object));

	nc_say(stderr, "nacre %s: Refused: ", verb);
	if (denial->line > 0)
		nc_say(stderr, "line %u: ", denial->line);
	nc_say(stderr, "%.*s", (int)size - 2, quoted + 1);
	if (denial->count > 1)
		nc_say(stderr, " (%llu times)", (unsigned long long)denial->count);
	nc_say(stderr, ": %s; ", denial->message);
	if (denial->allow_with)
		nc_say(stderr, "allowed with: %s; ", denial->allow_with);
	nc_say(stderr, "instead: %s [%s]\n", denial->instead, denial->id);
}

int nc_answer_code(const struct nc_run *run, bool quiet)
{
	const struct nc_box_end *end = &run->end;
	struct nc_denial denials[NC_END_DENIALS_MAX];
	size_t n = quiet ? 0 : nc_denials_of_end(end, denials);

	for (size_t i = 0; i < n; i++)
		nc_answer_denial("exec", &denials[i]);
	if (end->cause == NC_CAUSE_WALL)
		return 124;
	if (end->cause != NC_CAUSE_EXIT && !quiet)
		nc_say(stderr, "nacre exec: Ended: %s\n", nc_outcome_status(end));
	return end->signal ? 128 + (int)end->signal : (int)end->code;
}
