/* What a holder's boxes of one tier can do, and what they are held by, on this host. */
#ifndef NC_TIER_TERMS_H
#define NC_TIER_TERMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/tier_ids.h"
#include "kernel/grade.h"

struct nc_box_host;

/* Limits that not every host can hold. */
enum nc_named_limit {
	NC_NAMED_MEMORY,
	NC_NAMED_CPUS,
	NC_NAMED_CPU_TIME,
	NC_NAMED_PIDS,
	NC_NAMED_DISK,
	NC_NAMED_INODES,
	NC_NAMED_MAX,
};

struct nc_tier_terms {
	bool here;   /* it has boxes of this tier */
	bool stops;  /* they can be stopped, and let go on */
	bool shares; /* several commands run in one, each ended as a whole */
	bool mounts; /* images, layers, binds and doors */
	bool warms;  /* interpreters wait in them */
	bool users;  /* commands run as root of the box, and as other users of it */
	bool writes; /* their root can be written to, within their limits */
	bool holds[NC_NAMED_MAX];
	enum nc_grade grades[NC_STRENGTH_MAX]; /* at the best */
};

/* Of the boxes of nacre-spawner. */
void nc_terms_judge(
	const struct nc_box_host *host, enum nc_tier tier, struct nc_tier_terms *ret_terms);

/* Whether its boxes are held by no less than others are, property by property. */
bool nc_terms_are_enough(const struct nc_tier_terms *terms, const struct nc_tier_terms *others);

#endif
