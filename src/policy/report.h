/* The result of an analysis while it is being made. */
#ifndef NC_REPORT_H
#define NC_REPORT_H

#include "policy/arena.h"
#include "policy/policy.h"
#include "policy/rules.h"

/* A list of texts without repetitions. */
struct nc_text_set {
	const char **texts; /* ends in NULL */
	size_t count, capacity;
};

/* What findings are weighed with. */
struct nc_scale {
	enum nc_profile profile;
	enum nc_severity severities[NC_RULE_MAX];
	enum nc_verdict verdicts[NC_SEVERITY_MAX];
};

struct nc_report {
	const struct nc_scale *scale; /* while the analysis runs; NULL afterwards */
	struct nc_arena arena;	      /* holds all texts */
	const char *source;	      /* while the analysis runs; NULL afterwards */
	uint32_t source_size;
	uint32_t *lines; /* where each line begins, while the analysis runs */
	uint32_t n_lines;
	struct nc_finding *findings;
	size_t n_findings, findings_capacity;
	struct nc_import *imports;
	size_t n_imports, imports_capacity;
	struct nc_text_set paths, hosts, commands;
	struct nc_needs needs;
	struct nc_points points[NC_RULE_MAX];
	size_t n_points;
	uint32_t hits[NC_RULE_MAX];
	uint32_t sum;
	enum nc_severity risk;
	enum nc_verdict verdict;
	bool cut; /* something did not fit; becomes NC_RULE_CUT_SHORT */
	int error;
};

/* Where something was found: bytes of the outermost source, and what to quote. */
struct nc_place {
	uint32_t offset, size;
	const char *snippet;
	uint32_t snippet_size;
	const char *within; /* see struct nc_finding; borrowed until the report is closed */
};

/* 0 or -ENOMEM. Borrows scale and source until nc_report_close. */
int nc_report_open(
	struct nc_report *report, const struct nc_scale *scale, const char *source, size_t size);

/* Copies object and snippet. A rule finds the same object in the same place once. */
void nc_report_find(struct nc_report *report, enum nc_rule_id rule, const struct nc_place *place,
	const char *object, size_t object_size);

void nc_report_import(
	struct nc_report *report, const char *name, size_t size, uint32_t offset, bool hidden);

/* Copy the text; one that is there already is not listed twice. */
void nc_report_path(struct nc_report *report, const char *text, size_t size);
void nc_report_host(struct nc_report *report, const char *text, size_t size);
void nc_report_command(struct nc_report *report, const char *text, size_t size);

/* Sums up and judges. 0 or -ENOMEM. */
int nc_report_close(struct nc_report *report);

#endif
