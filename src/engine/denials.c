/* What was refused to an execution, by all layers. */
#include "engine/denials.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "box/outcome.h"

int nc_denials_add(json_t *list, const struct nc_denial *denial)
{
	json_t *line = denial->line ? json_integer(denial->line) : json_null();

	/* what a program calls its things may be any bytes */
	return json_array_append_new(list,
		       json_pack("{s:s, s:s, s:s, s:o, s:o, s:I, s:s, s:s?, s:s}", "id", denial->id,
			       "layer", denial->layer, "rule", denial->rule, "object",
			       nc_json_text(denial->object, strlen(denial->object)), "line", line,
			       "count", (json_int_t)denial->count, "message", denial->message,
			       "allow_with", denial->allow_with, "instead", denial->instead)) < 0
		       ? -ENOMEM
		       : 0;
}

enum nc_denial_limit nc_denials_limit(const struct nc_box_end *end)
{
	switch (end->cause) {
	case NC_CAUSE_WALL:
		return NC_DENIAL_WALL;
	case NC_CAUSE_CPU:
		return NC_DENIAL_CPU;
	case NC_CAUSE_MEMORY:
		return NC_DENIAL_MEMORY;
	case NC_CAUSE_OUTPUT:
		return NC_DENIAL_OUTPUT;
	case NC_CAUSE_EXIT:
	case NC_CAUSE_CANCEL:
	case NC_CAUSE_MAX:
		break;
	}
	return nc_streq(nc_outcome_status(end), "disk_limit") ? NC_DENIAL_DISK
							      : NC_DENIAL_LIMIT_MAX;
}

/* How often a limit was met, where that is counted. */
static uint64_t met(const struct nc_box_end *end, enum nc_denial_limit limit)
{
	uint64_t count = limit == NC_DENIAL_MEMORY ? end->usage.oom_kills
			 : limit == NC_DENIAL_PIDS ? end->usage.pids_refused
						   : 1;

	return count > 0 ? count : 1;
}

static int add_limits(json_t *list, const struct nc_box_end *end)
{
	static const uint32_t bits[NC_DENIAL_LIMIT_MAX] = {
		[NC_DENIAL_MEMORY] = NC_HIT_MEMORY,
		[NC_DENIAL_PIDS] = NC_HIT_PIDS,
		[NC_DENIAL_DISK] = NC_HIT_DISK,
		[NC_DENIAL_INODES] = NC_HIT_INODES,
		[NC_DENIAL_FILES] = NC_HIT_FILES,
	};
	enum nc_denial_limit last = nc_denials_limit(end);
	int r = 0;

	for (enum nc_denial_limit i = 0; r == 0 && i < NC_DENIAL_LIMIT_MAX; i++) {
		struct nc_denial denial;

		if (i != last && !(end->hit & bits[i]))
			continue;
		nc_denial_of_limit(i, met(end, i), &denial);
		r = nc_denials_add(list, &denial);
	}
	return r;
}

enum nc_denial_box nc_denials_box(const struct nc_box_end *end)
{
	if (end->tier == NC_BOX_CONTAINER)
		return NC_DENIAL_IN_CONTAINER;
	return end->alone ? NC_DENIAL_ALONE : NC_DENIAL_IN_PROCESS;
}

int nc_denials_add_end(json_t *list, const struct nc_box_end *end)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < end->n_denied; i++) {
		struct nc_denial denial;

		nc_denial_of_call(nc_outcome_call(&end->denied[i]), nc_denials_box(end),
			end->denied[i].count, &denial);
		r = nc_denials_add(list, &denial);
	}
	return r < 0 ? r : add_limits(list, end);
}

static bool is_same(const struct nc_finding *a, const struct nc_finding *b)
{
	return a->refuses && b->refuses && nc_streq(a->rule, b->rule) &&
	       nc_streq(a->object, b->object);
}

/* The same thing many times is one denial, with the line of the first. */
int nc_denials_add_report(json_t *list, const struct nc_report *report)
{
	struct nc_denial denial;
	size_t count, added = 0;
	const struct nc_finding *findings = nc_report_findings(report, &count);
	int r = 0;

	for (size_t i = 0; r == 0 && i < count && added < NC_DENIALS_STATIC_MAX; i++) {
		size_t before = 0;

		while (before < i && !is_same(&findings[before], &findings[i]))
			before++;
		if (!findings[i].refuses || before < i)
			continue;
		nc_denial_of_finding(&findings[i], &denial);
		for (size_t j = i + 1; j < count; j++)
			denial.count += is_same(&findings[i], &findings[j]);
		r = nc_denials_add(list, &denial);
		added++;
	}
	if (r == 0 && added == 0 && nc_report_verdict(report) == NC_VERDICT_REFUSE) {
		nc_denial_of_risk(nc_report_risk(report), &denial);
		r = nc_denials_add(list, &denial);
	}
	return r;
}
