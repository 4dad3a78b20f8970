/* Python. */
#include "runtime/runtime.h"

#include <string.h>

/* What is known while the lines of a traceback go by. */
struct traceback {
	struct nc_diagnostic frame; /* the innermost place of the user's own so far */
	bool open;		    /* places were seen, the exception's own line was not */
	bool grouped;		    /* of an exception group, with "|" in front of each line */
	bool own;		    /* the newest place is the user's own */
};

/* `  File "/workspace/main.py", line 3, in f` */
static bool read_place(struct nc_span line, struct nc_place_read *ret_place)
{
	struct nc_place_read place = {0};
	const char *end;

	if (nc_span_skip_blanks(&line) == 0 || !nc_span_skip(&line, "File \""))
		return false;
	end = nc_span_find(line, "\", line ");
	if (!end)
		return false;
	place.file = nc_span_before(line, end);
	line = nc_span_behind(line, end + strlen("\", line "));
	if (!nc_span_number(&line, &place.line))
		return false;
	*ret_place = place;
	return true;
}

/* The number of blanks that a line of the source begins with. */
static uint32_t indentation(const struct nc_failure *failure, uint32_t line_number)
{
	struct nc_span rest = {failure->code, failure->code_size}, line = {0};

	for (uint32_t i = 0; i < line_number; i++)
		if (!nc_span_line(&rest, &line))
			return 0;
	return (uint32_t)nc_span_skip_blanks(&line);
}

/* `    ~~^~~`: its column in the line as it is shown, which is 4 to the right; 0: no such line. */
static uint32_t read_carets(struct nc_span line)
{
	const char *caret = nc_span_find(line, "^");
	struct nc_span rest = line;

	while (nc_span_begins_any(rest, " ~^"))
		rest = nc_span_behind(rest, rest.text + 1);
	if (!caret || rest.size > 0 || caret - line.text < 4)
		return 0;
	return (uint32_t)(caret - line.text) - 4 + 1;
}

/* Python shows lines without their indentation, which only the source itself tells. */
static void finish_column(const struct nc_failure *failure, struct nc_diagnostic *diagnostic)
{
	const char *slash = strrchr(failure->source, '/');
	const char *name = slash ? slash + 1 : failure->source;

	if (diagnostic->column == 0)
		return;
	if (failure->code && strcmp(diagnostic->file, name) == 0)
		diagnostic->column += indentation(failure, diagnostic->line);
	else
		diagnostic->column = 0;
}

/* Takes "  | " off the lines of an exception group. */
static void skip_group_mark(struct traceback *traceback, struct nc_span *line)
{
	struct nc_span rest = *line;

	(void)nc_span_skip_blanks(&rest);
	if (nc_span_begins(rest, "+ Exception Group Traceback (most"))
		traceback->grouped = true;
	if (traceback->grouped && (nc_span_skip(&rest, "| ") || nc_span_skip(&rest, "+ ")))
		*line = rest;
}

/* One line; returns whether it ends a traceback, which diagnostic then tells about. */
static bool read_line(struct traceback *traceback, const struct nc_failure *failure,
	struct nc_span line, struct nc_diagnostic *diagnostic)
{
	struct nc_place_read place;

	skip_group_mark(traceback, &line);
	if (nc_span_find(line, "Traceback (most recent call last):")) {
		*traceback = (struct traceback){.grouped = traceback->grouped};
	} else if (read_place(line, &place)) {
		traceback->open = true;
		traceback->own = nc_diagnostic_place(&traceback->frame, failure, &place);
	} else if (traceback->open && line.size > 0 && line.text[0] != ' ') {
		*diagnostic = traceback->frame;
		nc_diagnostic_title(diagnostic, line);
		*traceback = (struct traceback){0};
		return true;
	} else if (traceback->own && traceback->frame.column == 0) {
		traceback->frame.column = read_carets(line);
	}
	return false;
}

/* Of exceptions that followed from each other the last one counts: it ended the program. */
static bool diagnose(const struct nc_failure *failure, struct nc_diagnostic *diagnostic)
{
	struct nc_span rest = {failure->text, failure->size}, line;
	struct traceback traceback = {0};
	bool found = false;

	while (nc_span_line(&rest, &line))
		found |= read_line(&traceback, failure, line, diagnostic);
	finish_column(failure, diagnostic);
	return found;
}

const struct nc_runtime nc_runtime_python = {
	.language = NC_PYTHON,
	.name = "python",
	.aliases = NC_WORDS("py", "python3"),
	.extensions = NC_WORDS("py", "pyw"),
	.interpreters = NC_WORDS("python", "pypy"),
	.source_name = "main.py",
	.run =
		{
			.argv = NC_WORDS("python3", "{source}"),
			.env = NC_WORDS(
				/* no __pycache__ beside the user's files */
				"PYTHONDONTWRITEBYTECODE=1",
				/* sets have the same order in every run */
				"PYTHONHASHSEED=0",
				/* output shows when it is written, and what was written is not
				 * lost when the program is ended by a limit */
				"PYTHONUNBUFFERED=1", "PYTHONUTF8=1"),
		},
	.diagnose = diagnose,
	.version_argv = NC_WORDS("python3", "--version"),
	.fix = "apt-get install python3",
};
