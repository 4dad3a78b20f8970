/* What the threat detector says about an execution: while it runs, and as `alerts` in its reply. */
#ifndef NC_ALERTS_H
#define NC_ALERTS_H

#include <jansson.h>

#include "engine/execution.h"
#include "policy/threat.h"

/* The alerts so far, the worst first, from what was told of the box last. */
size_t nc_alerts_now(
	struct nc_execution *execution, struct nc_alert ret_alerts[static NC_SIGNAL_MAX]);

/* The same of a command in a sandbox. */
struct nc_process;
size_t nc_alerts_of_command_now(
	struct nc_process *process, struct nc_alert ret_alerts[static NC_SIGNAL_MAX]);
json_t *nc_alerts_of_command(const struct nc_process *process);

/* end: of all steps together. NULL: out of memory. */
json_t *nc_alerts_json(
	const struct nc_execution *execution, const struct nc_box_end *end, uint64_t output_bytes);

#endif
