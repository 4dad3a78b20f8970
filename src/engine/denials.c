/* What was refused to an execution, by all layers. */
#include "engine/denials.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

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

int nc_denials_add_end(json_t *list, const struct nc_box_end *end)
{
	struct nc_denial denials[NC_END_DENIALS_MAX];
	size_t n = nc_denials_of_end(end, denials);
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = nc_denials_add(list, &denials[i]);
	return r;
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

void nc_denials_explain(const struct nc_box_end *end, char *out, size_t size)
{
	enum nc_denial_limit limit = nc_denials_limit(end);
	struct nc_denial denial;

	out[0] = '\0';
	if (limit != NC_DENIAL_LIMIT_MAX) {
		nc_denial_of_limit(limit, 1, &denial);
		(void)snprintf(out, size, "%s", denial.message);
	} else if (end->cause == NC_CAUSE_CANCEL) {
		(void)snprintf(out, size, "It was cancelled");
	} else if (end->signal) {
		(void)snprintf(out, size, "It was ended by signal %u (%s)", end->signal,
			sigabbrev_np((int)end->signal) ? sigabbrev_np((int)end->signal)
						       : "unknown");
	} else if (end->code) {
		(void)snprintf(out, size, "It exited with status %u", end->code);
	}
}
