/*
 * The lists of security_policies.yaml as rules over the tree: what is listed is found by what it
 * means, however it is spelt, and not in comments or documentation.
 */
#ifndef NC_LISTS_H
#define NC_LISTS_H

#include "policy/scan.h"

/* The lists that NC_PROFILE_STRICT takes where the configuration has none. */
extern const struct nc_policy_lists nc_lists_built_in[NC_LANGUAGE_MAX];

/* What a forbidden pattern asks for, by its shape. */
enum nc_pattern_kind {
	NC_PATTERN_NAME,     /* process.exit, curl: a name, or a command */
	NC_PATTERN_CALL,     /* eval(, globals(): a call */
	NC_PATTERN_ARGUMENT, /* require('fs'): a call with this text */
	NC_PATTERN_WRITE,    /* >/dev/: output to a file whose name begins so */
	NC_PATTERN_TEXT,     /* anything else: this text, outside of comments */
};

/* A pattern, taken apart. All texts are borrowed. */
struct nc_pattern {
	enum nc_pattern_kind kind;
	const char *whole;
	const char *name; /* or the beginning of the file's name, or the text */
	size_t size;
	const char *argument;
	size_t argument_size;
};

void nc_pattern_parse(const char *text, struct nc_pattern *ret_pattern);

/* Each finds what the lists of the job's language say about it. */
void nc_lists_import(struct nc_scan *scan, uint32_t node, const char *name, size_t size);
void nc_lists_function(struct nc_scan *scan, uint32_t node, const struct nc_call *call,
	const struct nc_datum *function);
void nc_lists_member(struct nc_scan *scan, uint32_t node, const struct nc_datum *member);
void nc_lists_command(struct nc_scan *scan, uint32_t node, const char *name, size_t size);
void nc_lists_write(struct nc_scan *scan, uint32_t node, const struct nc_datum *file);

/* What could not be told is not among what is allowed: to be called with every finding. */
void nc_lists_unknown(
	struct nc_scan *scan, enum nc_rule_id rule, uint32_t node, const char *object, size_t size);

/* Patterns that have no shape of ours are looked for in the text, at the end of a walk. */
void nc_lists_text(struct nc_scan *scan);

#endif
