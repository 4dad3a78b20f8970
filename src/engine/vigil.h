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

/* What its box has used so far has been told. */
void nc_vigil_look(struct nc_execution *execution);

/* It is being ended: late is called if that takes too long. */
void nc_vigil_expect_end(struct nc_execution *execution, void (*late)(uv_timer_t *timer));

/* A limit of its network was met: it is frozen or ended. An nc_access_over. */
void nc_vigil_over(void *context, enum nc_reason reason, enum nc_policy_over how);

/* Nothing of it runs any more; again does no harm. */
void nc_vigil_end(struct nc_execution *execution);

#endif
