/*
 * The strength vector: what a box on this host can be held by, as a fixed set of named properties.
 * It goes with every result, so that nothing is dropped silently.
 */
#ifndef NC_STRENGTH_H
#define NC_STRENGTH_H

#include <stdbool.h>

#include "kernel/grade.h"
#include "kernel/probe.h"

struct nc_strength {
	struct {
		enum nc_grade grade;
		char reason[200];
		const char *fix; /* a command or advice; NULL when there is nothing to fix */
	} property[NC_STRENGTH_MAX];
};

/* Judges the probes. is_root says whether they were made as root, of the host and not of a
 * namespace. */
void nc_strength_judge(
	const struct nc_probes *probes, bool is_root, struct nc_strength *ret_strength);

/* Where no box is made at all. fix is borrowed. */
void nc_strength_nothing(const char *why, const char *fix, struct nc_strength *ret_strength);

/* Below this nothing runs: what an ordinary user on a stock distribution can get. */
extern const enum nc_grade nc_strength_floor[NC_STRENGTH_MAX];

#endif
