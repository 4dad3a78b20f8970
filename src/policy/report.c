/* The result of an analysis: findings, imports, needs. */
#include "policy/report.h"

#include <stdlib.h>
#include <string.h>

#include "policy/bounds.h"
#include "policy/risk.h"

/* Makes room for one more entry of a list that may have at most max of them. */
static bool make_room(struct nc_report *report, void **list, size_t *capacity, size_t count,
	size_t max, size_t each)
{
	size_t wanted = *capacity ? *capacity * 2 : 16;
	void *larger;

	if (report->error < 0)
		return false;
	if (count < *capacity)
		return true;
	if (count >= max) {
		report->cut = true;
		return false;
	}
	if (wanted > max)
		wanted = max;
	/* one more, zeroed, for lists that end in NULL */
	larger = calloc(wanted + 1, each);
	if (!larger) {
		report->error = -ENOMEM;
		return false;
	}
	if (count > 0)
		memcpy(larger, *list, count * each);
	free(*list);
	*list = larger;
	*capacity = wanted;
	return true;
}

static int find_lines(struct nc_report *report)
{
	const char *const end = report->source + report->source_size;
	const char *at = report->source;
	uint32_t count = 1;

	while ((at = memchr(at, '\n', (size_t)(end - at)))) {
		count++;
		at++;
	}
	report->lines = calloc(count, sizeof(*report->lines));
	if (!report->lines)
		return -ENOMEM;
	report->n_lines = 1;
	for (at = report->source; report->n_lines < count; at++) {
		at = memchr(at, '\n', (size_t)(end - at));
		report->lines[report->n_lines++] = (uint32_t)(at - report->source) + 1;
	}
	return 0;
}

int nc_report_open(
	struct nc_report *report, const struct nc_scale *scale, const char *source, size_t size)
{
	*report = (struct nc_report){.scale = scale, .arena.max = NC_REPORT_MEMORY_MAX};
	report->source = source;
	report->source_size = size > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)size;
	return find_lines(report);
}

/* The line, from 1, that holds a byte, and the column in characters, from 1. */
static void locate(
	const struct nc_report *report, uint32_t offset, uint32_t *ret_line, uint32_t *ret_column)
{
	uint32_t low = 0, high = report->n_lines;

	if (offset > report->source_size)
		offset = report->source_size;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (report->lines[middle] <= offset)
			low = middle;
		else
			high = middle;
	}
	*ret_line = low + 1;
	*ret_column = 1;
	for (uint32_t i = report->lines[low]; i < offset; i++)
		*ret_column += ((unsigned char)report->source[i] & 0xc0) != 0x80;
}

/* The source text in one line: runs of white space become a blank, what is too long is cut. */
static const char *quote(struct nc_report *report, const char *text, size_t size)
{
	char out[NC_SNIPPET_MAX + sizeof("...")];
	size_t used = 0;
	bool blank = false;

	for (size_t i = 0; i < size && used < NC_SNIPPET_MAX; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c <= ' ' || c == 0x7f) {
			blank = used > 0;
			continue;
		}
		if (blank)
			out[used++] = ' ';
		blank = false;
		if (used < NC_SNIPPET_MAX)
			out[used++] = text[i];
	}
	if (used == NC_SNIPPET_MAX) {
		/* not in the middle of a character */
		while (used > 0 && ((unsigned char)out[used - 1] & 0xc0) == 0x80)
			used--;
		if (used > 0 && (unsigned char)out[used - 1] >= 0xc0)
			used--;
		for (int i = 0; i < 3; i++)
			out[used++] = '.';
	}
	return nc_arena_text(&report->arena, out, used);
}

/* A place is reached by its own node, by those around it and by a second reading: soon after. */
static bool is_known(const struct nc_report *report, const struct nc_finding *fresh)
{
	size_t look = report->n_findings < 64 ? report->n_findings : 64;

	for (size_t i = report->n_findings - look; i < report->n_findings; i++) {
		const struct nc_finding *old = &report->findings[i];
		bool overlap = old->offset <= fresh->offset + fresh->size &&
			       fresh->offset <= old->offset + old->size;

		if (old->rule == fresh->rule && overlap && strcmp(old->object, fresh->object) == 0)
			return true;
	}
	return false;
}

void nc_report_find(struct nc_report *report, enum nc_rule_id rule, const struct nc_place *place,
	const char *object, size_t object_size)
{
	const struct nc_rule_text *text = &nc_rules[rule];
	struct nc_finding finding = {
		.rule = text->id,
		.severity = report->scale->severities[rule],
		.why = text->why,
		.remedy = text->remedy,
		.offset = place->offset,
		.size = place->size,
	};

	finding.object = quote(report, object, object_size);
	finding.snippet = quote(report, place->snippet, place->snippet_size);
	finding.within = nc_arena_text(&report->arena, place->within, strlen(place->within));
	if (!finding.object || !finding.snippet || !finding.within) {
		report->cut = true;
		return;
	}
	if (is_known(report, &finding))
		return;
	report->hits[rule]++;
	if (!make_room(report, (void **)&report->findings, &report->findings_capacity,
		    report->n_findings, NC_FINDINGS_MAX, sizeof(finding)))
		return;
	locate(report, finding.offset, &finding.line, &finding.column);
	locate(report, finding.offset + finding.size, &finding.end_line, &finding.end_column);
	report->findings[report->n_findings++] = finding;
}

void nc_report_import(
	struct nc_report *report, const char *name, size_t size, uint32_t offset, bool hidden)
{
	struct nc_import import = {.hidden = hidden};
	uint32_t column;

	for (size_t i = 0; i < report->n_imports; i++)
		if (strlen(report->imports[i].name) == size &&
			memcmp(report->imports[i].name, name, size) == 0)
			return;
	import.name = quote(report, name, size);
	if (!import.name) {
		report->cut = true;
		return;
	}
	locate(report, offset, &import.line, &column);
	if (make_room(report, (void **)&report->imports, &report->imports_capacity,
		    report->n_imports, NC_IMPORTS_MAX, sizeof(import)))
		report->imports[report->n_imports++] = import;
}

static void set_add(
	struct nc_report *report, struct nc_text_set *set, const char *text, size_t size)
{
	const char *copy;

	for (size_t i = 0; i < set->count; i++)
		if (strlen(set->texts[i]) == size && memcmp(set->texts[i], text, size) == 0)
			return;
	copy = quote(report, text, size);
	if (!copy) {
		report->cut = true;
		return;
	}
	if (set->count == NC_NEEDS_MAX)
		report->needs.unknown = true; /* a need that is not listed is no danger */
	else if (make_room(report, (void **)&set->texts, &set->capacity, set->count, NC_NEEDS_MAX,
			 sizeof(copy)))
		set->texts[set->count++] = copy;
}

void nc_report_path(struct nc_report *report, const char *text, size_t size)
{
	set_add(report, &report->paths, text, size);
}

void nc_report_host(struct nc_report *report, const char *text, size_t size)
{
	report->needs.network = true;
	set_add(report, &report->hosts, text, size);
}

void nc_report_command(struct nc_report *report, const char *text, size_t size)
{
	report->needs.subprocess = true;
	set_add(report, &report->commands, text, size);
}

static int by_place(const void *left, const void *right)
{
	const struct nc_finding *a = left, *b = right;

	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	if (a->severity != b->severity)
		return a->severity > b->severity ? -1 : 1;
	if (a->rule != b->rule)
		return strcmp(a->rule, b->rule);
	return strcmp(a->object, b->object);
}

int nc_report_close(struct nc_report *report)
{
	static const char *const nothing[] = {NULL};
	const struct nc_place whole = {.snippet = "", .within = ""};

	if (report->arena.error == -ENOMEM)
		report->error = -ENOMEM;
	if (report->cut) {
		/* there must be room for this one */
		if (report->n_findings == NC_FINDINGS_MAX)
			report->n_findings--;
		report->arena.error = 0;
		report->arena.max += 1024;
		nc_report_find(report, NC_RULE_CUT_SHORT, &whole, "", 0);
	}
	if (report->error < 0)
		return report->error;
	nc_risk_judge(report);
	if (report->n_findings > 0)
		qsort(report->findings, report->n_findings, sizeof(report->findings[0]), by_place);
	report->needs.paths = report->paths.count ? report->paths.texts : nothing;
	report->needs.hosts = report->hosts.count ? report->hosts.texts : nothing;
	report->needs.commands = report->commands.count ? report->commands.texts : nothing;
	free(report->lines);
	report->lines = NULL;
	report->source = NULL;
	report->scale = NULL;
	return 0;
}

void nc_report_free(struct nc_report *report)
{
	if (!report)
		return;
	free(report->lines);
	free(report->findings);
	free(report->imports);
	free(report->paths.texts);
	free(report->hosts.texts);
	free(report->commands.texts);
	nc_arena_done(&report->arena);
	free(report);
}

const struct nc_finding *nc_report_findings(const struct nc_report *report, size_t *ret_count)
{
	*ret_count = report->n_findings;
	return report->findings;
}

const struct nc_import *nc_report_imports(const struct nc_report *report, size_t *ret_count)
{
	*ret_count = report->n_imports;
	return report->imports;
}

const struct nc_points *nc_report_points(const struct nc_report *report, size_t *ret_count)
{
	*ret_count = report->n_points;
	return report->points;
}

const struct nc_needs *nc_report_needs(const struct nc_report *report)
{
	return &report->needs;
}

enum nc_severity nc_report_risk(const struct nc_report *report)
{
	return report->risk;
}

uint32_t nc_report_sum(const struct nc_report *report)
{
	return report->sum;
}

enum nc_verdict nc_report_verdict(const struct nc_report *report)
{
	return report->verdict;
}
