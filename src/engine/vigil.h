/* The threat detector on an execution that runs: what its policy wants ended is ended. */
#ifndef NC_VIGIL_H
#define NC_VIGIL_H

#include "egress/reason.h"
#include "engine/execution.h"

/* The alert to which the policy responds most, and how; NULL: to none. */
enum nc_policy_response nc_vigil_judge(const struct nc_terms *terms, const struct nc_alert *alerts,
	size_t count, const struct nc_alert **ret_worst);

/* Its program begins; without memory for it nobody looks before the end. */
void nc_vigil_begin(struct nc_execution *execution);

/* A limit of its network was met: it is frozen or ended. An nc_access_over. */
void nc_vigil_over(void *context, enum nc_reason reason, enum nc_policy_over how);

/* Nothing of it runs any more; again does no harm. */
void nc_vigil_end(struct nc_execution *execution);

#endif
