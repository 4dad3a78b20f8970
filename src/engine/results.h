/* Replies that may be given again. */
#ifndef NC_RESULTS_H
#define NC_RESULTS_H

#include "engine/execution.h"

/*
 * The reply to an equal request that asked to be kept, with the names of this one; NULL: there is
 * none, or this request does not want it.
 */
json_t *nc_results_find(struct nc_execution *execution);

/* Keeps the reply of one that succeeded and wants it. */
void nc_results_keep(const struct nc_execution *execution, const json_t *reply);

#endif
