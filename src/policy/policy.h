/*
 * The security manager's static analysis: what a program would do, told from its syntax tree. It
 * routes, explains and refuses early; it is never the boundary, which is the box.
 *
 *	struct nc_policy_options options = {.profile = NC_PROFILE_STANDARD};
 *	r = nc_policy_new(&options, &policy);
 *	r = nc_policy_analyse(policy, NC_PYTHON, text, size, &report);
 *	if (nc_report_verdict(report) == NC_VERDICT_REFUSE) ...
 */
#ifndef NC_POLICY_H
#define NC_POLICY_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/language.h"
#include "base/rule_ids.h"

struct nc_policy;
struct nc_report;

enum nc_severity {
	NC_SEVERITY_LOW,      /* worth knowing */
	NC_SEVERITY_MEDIUM,   /* honest code does it, with care */
	NC_SEVERITY_HIGH,     /* honest code seldom does it */
	NC_SEVERITY_CRITICAL, /* attacks do it */
	NC_SEVERITY_MAX,
};

/* The level of a finding is its severity, the level of a program its risk; the words are the same.
 */
extern const char *const nc_severity_names[NC_SEVERITY_MAX];

enum nc_profile {
	NC_PROFILE_STANDARD, /* score and route; refuses what is critical */
	NC_PROFILE_STRICT,   /* the lists refuse too, and so does code that does not parse */
	NC_PROFILE_AUDIT,    /* reports everything, refuses nothing */
	NC_PROFILE_MAX,
	NC_PROFILE_INVALID = -EINVAL,
};

extern const char *const nc_profile_names[NC_PROFILE_MAX];

/* NC_PROFILE_INVALID if there is no such profile. */
enum nc_profile nc_profile_parse(const char *name);

enum nc_verdict {
	NC_VERDICT_ALLOW,     /* in any tier */
	NC_VERDICT_CONTAINER, /* in the container tier or a stronger one */
	NC_VERDICT_MICROVM,   /* in a microvm, or where there is none a container, and says so */
	NC_VERDICT_REFUSE,
	NC_VERDICT_MAX,
};

extern const char *const nc_verdict_names[NC_VERDICT_MAX];

/*
 * The lists of one language in security_policies.yaml. Each is NULL or ends in NULL. They match
 * what the program means, not how it is spelt: "require('fs')" is found in `import 'node:fs'`.
 */
struct nc_policy_lists {
	const char *const *forbidden_imports;
	const char *const *forbidden_functions;
	const char *const *forbidden_commands;
	const char *const *forbidden_patterns;
	/* one that is there makes everything else of its kind a finding, also if it is empty */
	const char *const *allowed_imports;
	const char *const *allowed_functions;
	const char *const *allowed_commands;
};

struct nc_policy_options {
	enum nc_profile profile;
	/* Where a language has no list at all, NC_PROFILE_STRICT takes the built-in ones. */
	struct nc_policy_lists lists[NC_LANGUAGE_MAX];
	const enum nc_severity *severities; /* one for each rule; NULL: as built in */
	const enum nc_verdict *verdicts;    /* one for each level of risk; NULL: the same */
};

/* One thing that the analysis has to say. All texts belong to the report. */
struct nc_finding {
	const char *rule; /* "process.shell" */
	enum nc_severity severity;
	bool refuses; /* the profile refuses the program because of this finding alone */
	/* Where: lines and columns count from 1, columns in characters; the end is exclusive. */
	uint32_t line, column, end_line, end_column;
	uint32_t offset, size; /* the same in bytes */
	const char *object;    /* what it is about: "os.system", "/etc/shadow" */
	const char *snippet;   /* the source text, in one line, cut if it is long */
	const char *why;
	const char *remedy;
	/* "" or where the code stood that was found inside the code: "shell in python". The place
	 * is then that of the outermost text. */
	const char *within;
};

struct nc_import {
	const char *name;
	uint32_t line;
	bool hidden; /* made from pieces, decoded or imported by a function */
};

/* What the program needs to do its work. The lists end in NULL. */
struct nc_needs {
	const char *const *paths;
	const char *const *hosts;
	const char *const *commands;
	bool threads;
	bool subprocess;
	bool network;
	bool unknown; /* some of it could not be told: paths, hosts and commands are not all */
};

/* A part of the sum that led to the risk level: each rule counts once, however often it hit. */
struct nc_points {
	const char *rule;
	enum nc_severity severity;
	uint32_t hits;
	uint32_t points;
};

/*
 * Makes an analyser. Borrows the lists until it is freed. One analysis at a time: it keeps tables
 * that the first analysis of a language fills. 0, -EINVAL for an unknown profile, -ENOMEM.
 */
int nc_policy_new(const struct nc_policy_options *options, struct nc_policy **ret_policy);

void nc_policy_free(struct nc_policy *policy);

/*
 * Analyses one program; any bytes are welcome. The caller frees *ret_report, which does not need
 * policy or text any more. 0, -EINVAL for an unknown language, -ENOMEM.
 */
int nc_policy_analyse(struct nc_policy *policy, enum nc_language language, const char *text,
	size_t size, struct nc_report **ret_report);

/* Whether it refuses a program for one finding by this rule alone. */
bool nc_policy_refuses(const struct nc_policy *policy, enum nc_rule_id rule);

/* The lists that hold for a language; they are the policy's. */
const struct nc_policy_lists *nc_policy_lists(
	const struct nc_policy *policy, enum nc_language language);

void nc_report_free(struct nc_report *report);

static inline void nc_policy_freep(struct nc_policy **place)
{
	nc_policy_free(*place);
}

static inline void nc_report_freep(struct nc_report **place)
{
	nc_report_free(*place);
}

#define cleanup_policy nc_cleanup(nc_policy_freep)
#define cleanup_report nc_cleanup(nc_report_freep)

/* All of what follows borrows from the report. Findings stand in the order of the source. */
const struct nc_finding *nc_report_findings(const struct nc_report *report, size_t *ret_count);
const struct nc_import *nc_report_imports(const struct nc_report *report, size_t *ret_count);
const struct nc_points *nc_report_points(const struct nc_report *report, size_t *ret_count);
const struct nc_needs *nc_report_needs(const struct nc_report *report);
enum nc_severity nc_report_risk(const struct nc_report *report);
uint32_t nc_report_sum(const struct nc_report *report);
enum nc_verdict nc_report_verdict(const struct nc_report *report);

/* Every rule that there is, for lists of them; NULL behind the last. */
struct nc_rule_text {
	const char *id;
	enum nc_severity severity;
	const char *why;
	const char *remedy;
};
const struct nc_rule_text *nc_policy_rule(size_t index);

/* The language of a file by its name or its first line; NC_LANGUAGE_INVALID if neither tells. */
enum nc_language nc_policy_guess_language(const char *name, const char *text, size_t size);

/*
 * How badly text fits a language's grammar: the bytes that stand in no construct of it, and one for
 * each token that is missing; 0: it parses. TypeScript is read with JavaScript's grammar, which
 * stumbles over types. 0, -EINVAL for an unknown language, -EOPNOTSUPP for C, which has no grammar
 * here; -EFBIG: it is larger than an analysis may be; -ETIME: deadline_ns has passed; -ENOMEM.
 */
int nc_policy_faults(enum nc_language language, const char *text, size_t size, uint64_t deadline_ns,
	size_t *ret_faults);

/* "python" and the like, as in the configuration; "sh" and "bash" are shell, "js" and so on. */
enum nc_language nc_policy_parse_language(const char *name);
extern const char *const nc_policy_language_names[NC_LANGUAGE_MAX];

#endif
