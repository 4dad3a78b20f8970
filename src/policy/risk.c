/*
 * From findings to a risk level and a recommendation. Each rule that hit counts once: thirty calls
 * of the same function are no worse than one. The points are chosen so that one finding decides
 * the level, and five different ones of a severity make the next.
 */
#include "policy/risk.h"

#include <stdlib.h>
#include <string.h>

static const uint32_t points[NC_SEVERITY_MAX] = {
	[NC_SEVERITY_LOW] = 1,
	[NC_SEVERITY_MEDIUM] = 5,
	[NC_SEVERITY_HIGH] = 25,
	[NC_SEVERITY_CRITICAL] = 125,
};

const char *const nc_severity_names[NC_SEVERITY_MAX] = {"low", "medium", "high", "critical"};
const char *const nc_profile_names[NC_PROFILE_MAX] = {"standard", "strict", "audit"};
const char *const nc_verdict_names[NC_VERDICT_MAX] = {"allow", "container", "microvm", "refuse"};

enum nc_profile nc_profile_parse(const char *name)
{
	for (enum nc_profile i = 0; i < NC_PROFILE_MAX; i++)
		if (strcmp(nc_profile_names[i], name) == 0)
			return i;
	return NC_PROFILE_INVALID;
}

/* What two rules mean together. */
static const struct {
	enum nc_rule_id first, second, together;
} sums[] = {
	{NC_RULE_CREDENTIALS, NC_RULE_NETWORK, NC_RULE_EXFILTRATE},
	{NC_RULE_METADATA, NC_RULE_CREDENTIALS, NC_RULE_EXFILTRATE},
};

/* The first finding of a rule; NULL: none that fitted into the report. */
static const struct nc_finding *find(const struct nc_report *report, enum nc_rule_id rule)
{
	for (size_t i = 0; i < report->n_findings; i++)
		if (report->findings[i].rule == nc_rules[rule].id)
			return &report->findings[i];
	return NULL;
}

static void add_sums(struct nc_report *report)
{
	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
		const struct nc_finding *first = find(report, sums[i].first);
		struct nc_place place;

		if (!first || !report->hits[sums[i].second])
			continue;
		place = (struct nc_place){.offset = first->offset,
			.size = first->size,
			.snippet = first->snippet,
			.snippet_size = (uint32_t)strlen(first->snippet),
			.within = first->within};
		nc_report_find(
			report, sums[i].together, &place, first->object, strlen(first->object));
	}
}

const enum nc_verdict nc_verdicts_built_in[NC_SEVERITY_MAX] = {
	[NC_SEVERITY_LOW] = NC_VERDICT_ALLOW,
	[NC_SEVERITY_MEDIUM] = NC_VERDICT_CONTAINER,
	[NC_SEVERITY_HIGH] = NC_VERDICT_MICROVM,
	[NC_SEVERITY_CRITICAL] = NC_VERDICT_REFUSE,
};

void nc_scale_init(struct nc_scale *scale, const struct nc_policy_options *options)
{
	scale->profile = options->profile;
	for (enum nc_rule_id rule = 1; rule < NC_RULE_MAX; rule++)
		scale->severities[rule] =
			options->severities ? options->severities[rule] : nc_rules[rule].severity;
	for (enum nc_severity level = 0; level < NC_SEVERITY_MAX; level++)
		scale->verdicts[level] =
			options->verdicts ? options->verdicts[level] : nc_verdicts_built_in[level];
}

static bool refuses(const struct nc_scale *scale, const char *rule, enum nc_severity severity)
{
	static const char lists[] = "policy.";

	if (scale->profile == NC_PROFILE_AUDIT)
		return false;
	if (scale->verdicts[severity] == NC_VERDICT_REFUSE)
		return true;
	return scale->profile == NC_PROFILE_STRICT &&
	       (strncmp(rule, lists, sizeof(lists) - 1) == 0 ||
		       rule == nc_rules[NC_RULE_PARSE].id ||
		       rule == nc_rules[NC_RULE_INTROSPECT].id); /* it leads around the lists */
}

bool nc_scale_refuses(const struct nc_scale *scale, enum nc_rule_id rule)
{
	return refuses(scale, nc_rules[rule].id, scale->severities[rule]);
}

static int by_points(const void *left, const void *right)
{
	const struct nc_points *a = left, *b = right;

	if (a->points != b->points)
		return a->points > b->points ? -1 : 1;
	return strcmp(a->rule, b->rule);
}

static enum nc_severity level(uint32_t sum)
{
	enum nc_severity risk = NC_SEVERITY_CRITICAL;

	while (risk > NC_SEVERITY_LOW && sum < points[risk])
		risk--;
	return risk;
}

void nc_risk_judge(struct nc_report *report)
{
	const struct nc_scale *scale = report->scale;

	add_sums(report);
	for (enum nc_rule_id rule = 1; rule < NC_RULE_MAX; rule++) {
		if (report->hits[rule] == 0)
			continue;
		report->points[report->n_points++] = (struct nc_points){
			.rule = nc_rules[rule].id,
			.severity = scale->severities[rule],
			.hits = report->hits[rule],
			.points = points[scale->severities[rule]],
		};
		report->sum += points[scale->severities[rule]];
	}
	qsort(report->points, report->n_points, sizeof(report->points[0]), by_points);
	report->risk = level(report->sum);
	report->verdict = scale->verdicts[report->risk];
	if (scale->profile == NC_PROFILE_AUDIT && report->verdict == NC_VERDICT_REFUSE)
		report->verdict = NC_VERDICT_MICROVM;
	for (size_t i = 0; i < report->n_findings; i++) {
		struct nc_finding *finding = &report->findings[i];

		finding->refuses = refuses(scale, finding->rule, finding->severity);
		if (finding->refuses)
			report->verdict = NC_VERDICT_REFUSE;
	}
}
