/* Shell: bash. */
#include "runtime/runtime.h"

#include <string.h>

/* "/workspace/main.sh: line 3: message" */
static bool read_place(struct nc_span *line, struct nc_place_read *ret_place)
{
	static const char mark[] = ": line ";
	struct nc_place_read place = {0};
	const char *at = nc_span_find(*line, mark);

	if (!at)
		return false;
	place.file = nc_span_before(*line, at);
	*line = nc_span_behind(*line, at + strlen(mark));
	if (!nc_span_number(line, &place.line) || !nc_span_skip(line, ": "))
		return false;
	(void)nc_span_skip_blanks(line);
	*ret_place = place;
	return true;
}

/* "syntax error near ..." is followed by a line that quotes the source. */
static bool is_quotation(const struct nc_diagnostic *before, const struct nc_place_read *place,
	struct nc_span message)
{
	return nc_span_begins(message, "`") && before->line == place->line &&
	       strcmp(before->kind, "syntax error") == 0;
}

/* A script goes on after most errors: the last one is nearest to how it ended. */
static bool diagnose(const struct nc_failure *failure, struct nc_diagnostic *diagnostic)
{
	struct nc_span rest = {failure->text, failure->size}, line;
	bool found = false;

	while (nc_span_line(&rest, &line)) {
		struct nc_diagnostic next = {0};
		struct nc_place_read place;
		bool syntax;

		if (!read_place(&line, &place) || nc_span_begins(line, "warning: ") ||
			is_quotation(diagnostic, &place, line) ||
			!nc_diagnostic_place(&next, failure, &place))
			continue;
		syntax = nc_span_begins(line, "syntax error") ||
			 nc_span_begins(line, "unexpected EOF");
		(void)nc_span_skip(&line, "syntax error: ");
		nc_diagnostic_say(&next, syntax ? "syntax error" : "error", line);
		*diagnostic = next;
		found = true;
	}
	return found;
}

const struct nc_runtime nc_runtime_shell = {
	.language = NC_SHELL,
	.name = "shell",
	.aliases = NC_WORDS("bash", "sh"),
	.extensions = NC_WORDS("sh", "bash"),
	.interpreters = NC_WORDS("bash", "sh", "dash"),
	.source_name = "main.sh",
	.run =
		{
			.argv = NC_WORDS("bash", "{source}"),
			/* each part of a pipeline is one, and scripts have long ones */
			.needs = {.processes = 32},
		},
	.diagnose = diagnose,
	.version_argv = NC_WORDS("bash", "--version"),
	.fix = "apt-get install bash",
};
