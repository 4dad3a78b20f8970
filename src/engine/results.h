/* Replies that may be given again. */
#ifndef NC_RESULTS_H
#define NC_RESULTS_H

#include "engine/execution.h"

/* Whether a reply is to be looked for, and kept. */
bool nc_results_wants(const struct nc_execution *execution);

/* The reply to an equal request that asked to be kept, with the names of this one, if there is one:
 * execution->kept. Of those that want it. */
void nc_results_find(struct nc_execution *execution);

/* Keeps the reply of one that succeeded and wants it. */
void nc_results_keep(const struct nc_execution *execution, const json_t *reply);

#endif
