/* Where and why a program failed: what the languages' readers have in common. */
#include "runtime/diagnose.h"

#include <ctype.h>
#include <string.h>

/* "line:column" or "line" behind a file's name and its colon. */
static bool read_position(struct nc_span *span, struct nc_place_read *place)
{
	struct nc_span rest = *span;

	if (!nc_span_number(&rest, &place->line) || place->line == 0)
		return false;
	*span = rest;
	place->column = 0;
	if (nc_span_skip(&rest, ":") && nc_span_number(&rest, &place->column))
		*span = rest;
	return true;
}

bool nc_span_place(struct nc_span *span, struct nc_place_read *ret_place)
{
	for (size_t i = 0; i + 1 < span->size; i++) {
		struct nc_place_read place = {.file = {span->text, i}};
		struct nc_span rest = nc_span_behind(*span, span->text + i + 1);

		if (span->text[i] == ' ' || span->text[i] == '\t')
			return false;
		if (span->text[i] != ':' || !isdigit((unsigned char)rest.text[0]))
			continue;
		if (i == 0 || !read_position(&rest, &place))
			return false;
		*span = rest;
		*ret_place = place;
		return true;
	}
	return false;
}

static bool is_installed(struct nc_span file)
{
	return nc_span_find(file, "/node_modules/") || nc_span_find(file, "/site-packages/") ||
	       nc_span_find(file, "/dist-packages/");
}

/* Takes the source's directory off a file's name; false if it is somewhere else. */
static bool make_relative(struct nc_span *file, const char *source)
{
	const char *slash = strrchr(source, '/');
	size_t directory = slash ? (size_t)(slash - source) + 1 : 0;

	(void)nc_span_skip(file, "file://");
	if (directory > 0 && file->size > directory && memcmp(file->text, source, directory) == 0)
		*file = nc_span_behind(*file, file->text + directory);
	(void)nc_span_skip(file, "./");
	/* <string>, node:internal and [eval] are no files */
	return file->size > 0 && !nc_span_begins_any(*file, "/<[") &&
	       !nc_span_begins(*file, "node:") && !nc_span_begins(*file, "../");
}

bool nc_diagnostic_place(struct nc_diagnostic *diagnostic, const struct nc_failure *failure,
	const struct nc_place_read *place)
{
	struct nc_span file = place->file;

	if (place->line == 0 || is_installed(file) || !make_relative(&file, failure->source))
		return false;
	nc_span_copy(file, diagnostic->file, sizeof(diagnostic->file));
	diagnostic->line = place->line;
	diagnostic->column = place->column;
	return true;
}

bool nc_diagnose_first(const struct nc_failure *failure,
	bool (*read_message)(struct nc_span message, struct nc_diagnostic *diagnostic),
	struct nc_diagnostic *diagnostic)
{
	struct nc_span rest = {failure->text, failure->size}, line;

	while (nc_span_line(&rest, &line)) {
		struct nc_place_read place;

		if (nc_span_place(&line, &place) && nc_span_skip(&line, ": ") &&
			read_message(line, diagnostic) &&
			nc_diagnostic_place(diagnostic, failure, &place))
			return true;
	}
	*diagnostic = (struct nc_diagnostic){0};
	return false;
}

void nc_diagnostic_say(struct nc_diagnostic *diagnostic, const char *kind, struct nc_span message)
{
	nc_span_copy(
		(struct nc_span){kind, strlen(kind)}, diagnostic->kind, sizeof(diagnostic->kind));
	nc_span_copy(message, diagnostic->message, sizeof(diagnostic->message));
}

static bool is_kind_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '$' || c == '.' || (unsigned char)c >= 0x80;
}

void nc_diagnostic_title(struct nc_diagnostic *diagnostic, struct nc_span title)
{
	struct nc_span kind = title, rest;

	kind.size = 0;
	while (kind.size < title.size && is_kind_char(title.text[kind.size]))
		kind.size++;
	rest = nc_span_behind(title, title.text + kind.size);
	/* Node's "TypeError [ERR_INVALID_ARG_TYPE]: ..." */
	if (nc_span_begins(rest, " [") && nc_span_find(rest, "]: "))
		rest = nc_span_behind(rest, nc_span_find(rest, "]: ") + 1);
	if (kind.size == 0 || (rest.size > 0 && !nc_span_skip(&rest, ":")))
		kind.size = 0;
	else
		title = rest;
	(void)nc_span_skip_blanks(&title);
	nc_span_copy(kind, diagnostic->kind, sizeof(diagnostic->kind));
	nc_span_copy(title, diagnostic->message, sizeof(diagnostic->message));
}
