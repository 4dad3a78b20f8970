/* The way out of a box of nacre exec: hosts that --allow names, through nacre-egress. */
#ifndef NC_EXEC_DOOR_H
#define NC_EXEC_DOOR_H

#include <jansson.h>

#include "cli/exec_here.h"

/* Before the spawner: starts nacre-egress, and puts what leads there into the variables. */
int nc_exec_door_start(struct nc_order_args *args, struct nacre_err *err);

/* For struct nc_exec: in the worker, before the order. */
int nc_exec_door_prepare(struct nc_run *run, struct nacre_err *err);

/* After the run: what was refused, as a list; NULL: there was no door. The caller's. */
json_t *nc_exec_door_denials(void);

#endif
