/* What a policy lets a request ask for, and what the host must hold: of executions and sandboxes.
 */
#ifndef NC_BOUNDS_H
#define NC_BOUNDS_H

#include "engine/request.h"
#include "tier/settle.h"

struct nc_terms;

/* The kernel counts threads as processes; a default of the configuration allows so many each. */
#define NC_THREADS_PER_PROCESS 16U

/*
 * A request may ask for less than the policy allows, never for more: 0, or -EPERM with err and the
 * name of the limit.
 */
int nc_bounds_check(const struct nc_terms *terms, const struct nc_request_limits *named,
	const char **ret_name, struct nacre_err *err);

/* Lowers limits that nobody has named to what the policy allows. */
void nc_bounds_hold(const struct nc_terms *terms, struct nc_box_limits *limits);

/* What was named is insisted on, and so is the floor, which a policy raises and never lowers. */
void nc_bounds_wish(const struct nc_terms *terms, const struct nc_request_limits *named,
	struct nc_wish *ret_wish);

static inline uint64_t nc_named_or(const struct nc_request_limit *limit, uint64_t usual)
{
	return limit->given ? limit->value : usual;
}

/*
 * Whether a box may have a root of its own (user: it was asked for), and one that can be written
 * to. -EPERM with err, which names the key of the policy.
 */
int nc_bounds_check_root(
	const struct nc_terms *terms, bool user, bool writable_root, struct nacre_err *err);

#endif
