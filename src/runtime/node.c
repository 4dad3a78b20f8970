/* What JavaScript and TypeScript have in common: modules, and how Node reports errors. */
#include "runtime/node.h"

#include <string.h>

/* What the place in the code that is looked at is inside of. */
enum inside {
	INSIDE_CODE,
	INSIDE_COMMENT,
	INSIDE_TEMPLATE,
};

/* Where the line leaves us. Strings end with their line; what looks like a regular expression may
 * mislead, which costs no more than a second look by Node. */
static enum inside pass_line(enum inside inside, struct nc_span line)
{
	char quote = '\0';

	for (size_t i = 0; i < line.size; i++) {
		struct nc_span rest = nc_span_behind(line, line.text + i);

		if (inside == INSIDE_COMMENT) {
			if (nc_span_begins(rest, "*/")) {
				inside = INSIDE_CODE;
				i++;
			}
		} else if (line.text[i] == '\\') {
			i++;
		} else if (quote) {
			if (line.text[i] == quote)
				quote = '\0';
		} else if (line.text[i] == '`') {
			inside = inside == INSIDE_TEMPLATE ? INSIDE_CODE : INSIDE_TEMPLATE;
		} else if (inside == INSIDE_TEMPLATE) {
			continue;
		} else if (nc_span_begins(rest, "//")) {
			break;
		} else if (nc_span_begins(rest, "/*")) {
			inside = INSIDE_COMMENT;
			i++;
		} else if (line.text[i] == '"' || line.text[i] == '\'') {
			quote = line.text[i];
		}
	}
	return inside;
}

/* import and export statements; import(...) and import.meta are expressions. */
static bool begins_module(struct nc_span line)
{
	(void)nc_span_skip_blanks(&line);
	if (nc_span_skip(&line, "import"))
		return nc_span_begins_any(line, " \t\"'{*");
	if (nc_span_skip(&line, "export"))
		return nc_span_begins_any(line, " \t{*");
	return false;
}

bool nc_node_is_module(const char *code, size_t size)
{
	struct nc_span rest = {code, size}, line;
	enum inside inside = INSIDE_CODE;

	while (nc_span_line(&rest, &line)) {
		if (inside == INSIDE_CODE && begins_module(line))
			return true;
		inside = pass_line(inside, line);
	}
	return false;
}

/*
 * Node reports an uncaught exception as
 *
 *	/workspace/main.js:2          the header
 *	  return o.a.b;
 *	             ^                the caret; lines of the source may stand around it
 *
 *	TypeError: Cannot read ...    the title
 *	    at f (/workspace/main.js:2:14)
 *
 * and a program that reports one itself writes the title and what follows.
 */
enum part {
	PART_NONE,
	PART_SOURCE, /* behind the header */
	PART_CARET,  /* behind the caret: the title comes next, or behind the next empty line */
	PART_TITLE,  /* a title was read; an empty line and a better one may follow */
	PART_STACK,
};

struct report {
	enum part part;
	struct nc_diagnostic found;
	bool placed;		 /* found has its place */
	bool is_value;		 /* what was thrown is no Error, and the title its text */
	struct nc_span title;	 /* kind and message */
	struct nc_span previous; /* the line before */
};

/* "/workspace/main.js:2" and nothing else. */
static bool read_header(struct nc_span line, struct nc_place_read *ret_place)
{
	return nc_span_begins_any(line, "/<[fn") && nc_span_place(&line, ret_place) &&
	       line.size == 0 && ret_place->column == 0;
}

/* The column of the first caret in a line that has nothing else; 0: it is none. */
static uint32_t read_caret(struct nc_span line)
{
	size_t blanks = nc_span_skip_blanks(&line);

	for (size_t i = 0; i < line.size; i++)
		if (line.text[i] != '^')
			return 0;
	return line.size > 0 ? (uint32_t)blanks + 1 : 0;
}

/* "    at f (/workspace/main.js:2:14)", "    at file:///workspace/main.mjs:3:1" */
static bool read_frame(struct nc_span line, struct nc_place_read *ret_place)
{
	const char *paren = nc_span_find_last(line, "(");

	(void)nc_span_skip_blanks(&line);
	if (!nc_span_skip(&line, "at "))
		return false;
	(void)nc_span_skip(&line, "async ");
	if (paren)
		line = nc_span_behind(line, paren + 1);
	if (!nc_span_place(&line, ret_place))
		*ret_place = (struct nc_place_read){0};
	return true;
}

static void open_report(
	struct report *report, const struct nc_failure *failure, const struct nc_place_read *place)
{
	*report = (struct report){.part = PART_SOURCE};
	report->placed = nc_diagnostic_place(&report->found, failure, place);
}

/* The first frame of the user's own, unless the header named a place already. */
static void note_frame(
	struct report *report, const struct nc_failure *failure, const struct nc_place_read *place)
{
	if (report->part == PART_NONE || report->part == PART_SOURCE)
		*report = (struct report){.title = report->previous};
	report->part = PART_STACK;
	if (!report->placed && place->file.size > 0)
		report->placed = nc_diagnostic_place(&report->found, failure, place);
}

static void note_title(struct report *report, struct nc_span line)
{
	bool better = report->part == PART_TITLE && report->previous.size == 0;

	if (line.size == 0 || nc_span_begins(line, "Node.js v"))
		return;
	if (nc_span_begins(line, "(Use `node")) {
		report->is_value = true;
		report->part = PART_STACK;
	} else if (report->part == PART_CARET || better) {
		report->title = line;
		report->part = PART_TITLE;
	}
}

static void read_line(struct report *report, const struct nc_failure *failure, struct nc_span line)
{
	struct nc_place_read place;
	uint32_t column;

	if (read_header(line, &place)) {
		open_report(report, failure, &place);
	} else if (read_frame(line, &place)) {
		note_frame(report, failure, &place);
	} else if (report->part == PART_SOURCE) {
		column = read_caret(line);
		if (column > 0) {
			report->part = PART_CARET;
			report->found.column = report->placed ? column : 0;
		}
	} else if (report->part == PART_CARET || report->part == PART_TITLE) {
		note_title(report, line);
	} else if (line.size > 0 && line.text[0] != ' ') {
		/* this one is over; it stands until the next one's first frame */
		report->part = PART_NONE;
	}
	report->previous = line;
}

/* V8 gives up: no place, but a reason. */
static bool read_fatal(const struct nc_failure *failure, struct nc_diagnostic *diagnostic)
{
	static const char mark[] = "FATAL ERROR: ";
	struct nc_span all = {failure->text, failure->size}, line = {0};
	const char *at = nc_span_find_last(all, mark);

	if (!at || (at > all.text && at[-1] != '\n'))
		return false;
	all = nc_span_behind(all, at + strlen(mark));
	(void)nc_span_line(&all, &line);
	nc_diagnostic_say(diagnostic, "FATAL ERROR", line);
	return true;
}

bool nc_node_diagnose(const struct nc_failure *failure, struct nc_diagnostic *diagnostic)
{
	struct nc_span rest = {failure->text, failure->size}, line;
	struct report report = {0};

	while (nc_span_line(&rest, &line))
		read_line(&report, failure, line);
	if (report.title.size == 0)
		return read_fatal(failure, diagnostic);
	*diagnostic = report.found;
	(void)nc_span_skip_blanks(&report.title);
	if (report.is_value)
		nc_diagnostic_say(diagnostic, "", report.title);
	else
		nc_diagnostic_title(diagnostic, report.title);
	return true;
}

static bool is_from(uint32_t major, uint32_t minor, uint32_t from_major, uint32_t from_minor)
{
	return major > from_major || (major == from_major && minor >= from_minor);
}

void nc_node_flags(const char *answer, const struct nc_node_bans *bans,
	const char *ret_flags[static NC_NODE_FLAGS_MAX + 1])
{
	struct nc_span span = {answer, strlen(answer)};
	uint32_t major = 0, minor = 0;
	bool known = nc_span_number(&span, &major) && nc_span_skip(&span, ".") &&
		     nc_span_number(&span, &minor);
	size_t n = 0;

	/* 20.11 and 21.3 can keep quiet about it; 22.13 and 23.5 call it ready */
	if (known && (bans->programs || bans->workers || bans->writing) &&
		is_from(major, minor, 20, 11) && !(major == 21 && minor < 3)) {
		bool ready = is_from(major, minor, 23, 5) || (major == 22 && minor >= 13);

		ret_flags[n++] = ready ? "--permission" : "--experimental-permission";
		if (!ready)
			ret_flags[n++] = "--disable-warning=ExperimentalWarning";
		/* about what is allowed all the same, which a program's user did not ask for */
		ret_flags[n++] = "--disable-warning=SecurityWarning";
		ret_flags[n++] = "--allow-fs-read=*";
		if (!bans->writing)
			ret_flags[n++] = "--allow-fs-write=*";
		if (!bans->programs)
			ret_flags[n++] = "--allow-child-process";
		if (!bans->workers)
			ret_flags[n++] = "--allow-worker";
		if (major >= 25)
			ret_flags[n++] = "--allow-net"; /* the box has its own say about that */
	}
	if (known && bans->eval)
		ret_flags[n++] = "--disallow-code-generation-from-strings";
	ret_flags[n] = NULL;
}
