/* The table of the tiers: one row each, which is all that Nacre has to be told of a tier. */
#ifndef NC_TIER_ROWS_H
#define NC_TIER_ROWS_H

#include "tier/tier.h"

/* What a judgement goes by. */
struct nc_tier_evidence {
	const struct nc_strength *strength;
	const struct nc_ask *tools; /* NC_TOOL_MAX */
	uint64_t deadline_ns;
	const struct nc_tier_report *reports; /* of the rows before this one */
};

struct nc_tier_row {
	enum nc_tier tier;
	/*
	 * The program that holds its boxes; NULL: this version has none. Any other than the first
	 * one is started beside it, with a user id of its own, no capability, and no right but to
	 * be called (tier/launch.h).
	 */
	const char *holder;
	/* What this host offers for it: see nc_tier_say(). */
	void (*judge)(const struct nc_tier_evidence *evidence, struct nc_tier_report *out);
};

/* In the order of judgement: wasm asks what the process tier is. */
extern const struct nc_tier_row nc_tier_rows[NC_TIER_MAX];

/* fix: NULL when there is nothing to fix. */
void nc_tier_say(struct nc_tier_report *out, enum nc_grade grade, const char *fix,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

void nc_tier_judge_process(const struct nc_tier_evidence *evidence, struct nc_tier_report *out);
void nc_tier_judge_container(const struct nc_tier_evidence *evidence, struct nc_tier_report *out);
void nc_tier_judge_wasm(const struct nc_tier_evidence *evidence, struct nc_tier_report *out);
void nc_tier_judge_docker(const struct nc_tier_evidence *evidence, struct nc_tier_report *out);
void nc_tier_judge_microvm(const struct nc_tier_evidence *evidence, struct nc_tier_report *out);
void nc_tier_judge_remote(const struct nc_tier_evidence *evidence, struct nc_tier_report *out);

#endif
