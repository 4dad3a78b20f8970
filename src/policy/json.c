/* Reports as JSON and as SARIF 2.1.0. */
#include "policy/json.h"

#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "policy/suggest.h"

static json_t *text_json(const char *text)
{
	return nc_json_text(text, strlen(text));
}

/* Appends a value, NULL for memory that ran out, to a list; false if it did. */
static bool append(json_t *list, json_t *value)
{
	return json_array_append_new(list, value) == 0;
}

json_t *nc_report_findings_json(const struct nc_report *report)
{
	cleanup_json json_t *list = json_array();
	size_t count;
	const struct nc_finding *finding = nc_report_findings(report, &count);

	for (size_t i = 0; list && i < count; i++, finding++)
		if (!append(list,
			    json_pack("{s:s, s:s, s:b, s:i, s:i, s:i, s:i, s:o, s:o, s:s, s:s, "
				      "s:o}",
				    "rule", finding->rule, "severity",
				    nc_severity_names[finding->severity], "refuses",
				    finding->refuses, "line", (int)finding->line, "column",
				    (int)finding->column, "end_line", (int)finding->end_line,
				    "end_column", (int)finding->end_column, "object",
				    text_json(finding->object), "snippet",
				    text_json(finding->snippet), "why", finding->why, "remedy",
				    finding->remedy, "within", text_json(finding->within))))
			return NULL;
	return take_ptr(list);
}

static json_t *imports_json(const struct nc_report *report)
{
	cleanup_json json_t *list = json_array();
	size_t count;
	const struct nc_import *import = nc_report_imports(report, &count);

	for (size_t i = 0; list && i < count; i++, import++)
		if (!append(list, json_pack("{s:o, s:i, s:b}", "name", text_json(import->name),
					  "line", (int)import->line, "hidden", import->hidden)))
			return NULL;
	return take_ptr(list);
}

static json_t *points_json(const struct nc_report *report)
{
	cleanup_json json_t *list = json_array();
	size_t count;
	const struct nc_points *points = nc_report_points(report, &count);

	for (size_t i = 0; list && i < count; i++, points++)
		if (!append(list, json_pack("{s:s, s:s, s:i, s:i}", "rule", points->rule,
					  "severity", nc_severity_names[points->severity], "hits",
					  (int)points->hits, "points", (int)points->points)))
			return NULL;
	return take_ptr(list);
}

static json_t *texts_json(const char *const *texts)
{
	cleanup_json json_t *list = json_array();

	for (; list && *texts; texts++)
		if (!append(list, text_json(*texts)))
			return NULL;
	return take_ptr(list);
}

static json_t *needs_json(const struct nc_needs *needs)
{
	/* o takes a reference even if another member is NULL, which fails the whole */
	return json_pack("{s:o, s:o, s:o, s:b, s:b, s:b, s:b}", "paths", texts_json(needs->paths),
		"hosts", texts_json(needs->hosts), "commands", texts_json(needs->commands),
		"threads", needs->threads, "subprocess", needs->subprocess, "network",
		needs->network, "unknown", needs->unknown);
}

json_t *nc_report_json(const struct nc_report *report, const char *file, enum nc_language language)
{
	return json_pack("{s:o, s:s, s:s, s:i, s:o, s:s, s:o, s:o, s:o, s:o}", "file",
		text_json(file), "language", nc_policy_language_names[language], "risk",
		nc_severity_names[nc_report_risk(report)], "sum", (int)nc_report_sum(report),
		"points", points_json(report), "recommendation",
		nc_verdict_names[nc_report_verdict(report)], "findings",
		nc_report_findings_json(report), "imports", imports_json(report), "needs",
		needs_json(nc_report_needs(report)), "suggested",
		nc_suggest_json(report, language));
}

/* SARIF knows three levels; the number is GitHub's scale from 0 to 10. */
static const struct {
	const char *level;
	const char *number;
} levels[NC_SEVERITY_MAX] = {
	[NC_SEVERITY_LOW] = {"note", "2.0"},
	[NC_SEVERITY_MEDIUM] = {"warning", "5.0"},
	[NC_SEVERITY_HIGH] = {"error", "8.0"},
	[NC_SEVERITY_CRITICAL] = {"error", "9.5"},
};

static json_t *rules_json(void)
{
	cleanup_json json_t *list = json_array();
	const struct nc_rule_text *rule;

	for (size_t i = 0; list && (rule = nc_policy_rule(i)); i++)
		if (!append(list,
			    json_pack("{s:s, s:{s:s}, s:{s:s}, s:{s:s}, s:{s:s, s:[s]}}", "id",
				    rule->id, "shortDescription", "text", rule->why, "help", "text",
				    rule->remedy, "defaultConfiguration", "level",
				    levels[rule->severity].level, "properties", "security-severity",
				    levels[rule->severity].number, "tags", "security")))
			return NULL;
	return take_ptr(list);
}

json_t *nc_sarif_new(const char *version)
{
	return json_pack("{s:s, s:s, s:[{s:{s:{s:s, s:s, s:o}}, s:s, s:[]}]}", "$schema",
		"https://json.schemastore.org/sarif-2.1.0.json", "version", "2.1.0", "runs", "tool",
		"driver", "name", "nacre", "version", version, "rules", rules_json(), "columnKind",
		"unicodeCodePoints", "results");
}

/* "Runs text as code: eval (shell in python). Instead: ..." */
static json_t *message_json(const struct nc_finding *finding)
{
	nc_buf_cleanup struct nc_buf text = NC_BUF(4096);

	nc_buf_adds(&text, finding->why);
	if (*finding->object)
		nc_buf_addf(&text, ": %s", finding->object);
	if (*finding->within)
		nc_buf_addf(&text, " (%s)", finding->within);
	nc_buf_addf(&text, ". Instead: %s", finding->remedy);
	return text.error < 0 ? NULL : nc_json_text(text.data, text.size);
}

/* A path as a URI reference: what is not plain is percent-encoded. */
static json_t *uri_json(const char *file)
{
	nc_buf_cleanup struct nc_buf text = NC_BUF(16384);

	for (; *file; file++) {
		unsigned char c = (unsigned char)*file;

		if ((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
			strchr("-._~/", c))
			nc_buf_add(&text, file, 1);
		else
			nc_buf_addf(&text, "%%%02X", c);
	}
	return text.error < 0 ? NULL : json_string(nc_buf_text(&text));
}

static json_t *result_json(const struct nc_finding *finding, const char *file)
{
	return json_pack("{s:s, s:s, s:{s:o}, s:[{s:{s:{s:o}, s:{s:i, s:i, s:i, s:i, s:{s:o}}}}]}",
		"ruleId", finding->rule, "level", levels[finding->severity].level, "message",
		"text", message_json(finding), "locations", "physicalLocation", "artifactLocation",
		"uri", uri_json(file), "region", "startLine", (int)finding->line, "startColumn",
		(int)finding->column, "endLine", (int)finding->end_line, "endColumn",
		(int)finding->end_column, "snippet", "text", text_json(finding->snippet));
}

int nc_sarif_add(json_t *log, const struct nc_report *report, const char *file)
{
	json_t *run = json_array_get(json_object_get(log, "runs"), 0);
	json_t *results = json_object_get(run, "results");
	size_t count;
	const struct nc_finding *finding = nc_report_findings(report, &count);

	for (size_t i = 0; i < count; i++, finding++)
		if (!append(results, result_json(finding, file)))
			return -ENOMEM;
	return 0;
}
