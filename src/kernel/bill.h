/* What a box used, as it is billed. */
#ifndef NC_BILL_H
#define NC_BILL_H

#include "kernel/boxwire.h"
#include "kernel/cgroup_box.h"

/* Takes in what the group has counted, as far as it counts; shade: one in it is not the box's. */
void nc_bill_take(struct nc_box_end *end, const struct nc_cgroup *group,
	const struct nc_cgroup_usage *usage, bool shade);

/*
 * Once nothing is added: no program has more CPU time than its time on all processors. Those that
 * it has left go on for a moment after its end, and that was time as well.
 */
void nc_bill_close(struct nc_box_usage *bill);

/* What ran in turn: costs add up, peaks are those of the largest. Time, disk and limits stay. */
void nc_bill_add(struct nc_box_usage *bill, const struct nc_box_usage *more);

#endif
