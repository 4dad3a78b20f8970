/*
 * What the end of something that ran moves: the CPU time of its tenant's quota, and the metrics.
 * The one place for executions and for commands in sandboxes.
 */
#ifndef NC_ACCOUNT_H
#define NC_ACCOUNT_H

#include "server/server.h"

/* told: what everybody is told of it, as a reply or as nc_process_json(). */
void nc_account_end(
	struct nc_server *server, enum nc_metrics_of kind, const char *tenant, const json_t *told);

#endif
