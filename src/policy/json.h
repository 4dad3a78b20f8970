/* Reports as JSON, for programs, and as SARIF 2.1.0, for editors and CI. */
#ifndef NC_POLICY_JSON_H
#define NC_POLICY_JSON_H

#include <jansson.h>

#include "policy/policy.h"

/* The findings alone. The caller owns it; NULL: out of memory. */
json_t *nc_report_findings_json(const struct nc_report *report);

/* One report, with the file's name in it. The caller owns it; NULL: out of memory. */
json_t *nc_report_json(const struct nc_report *report, const char *file, enum nc_language language);

/*
 * A SARIF log with one run. Results are added to it; version is that of the tool. The caller owns
 * it; NULL: out of memory.
 */
json_t *nc_sarif_new(const char *version);

/* Adds a report's findings to a log. 0 or -ENOMEM. */
int nc_sarif_add(json_t *log, const struct nc_report *report, const char *file);

#endif
