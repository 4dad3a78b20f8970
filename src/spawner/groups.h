/* The control groups of a spawner's boxes, and what spawners that are gone have left of theirs. */
#ifndef NC_SPAWNER_GROUPS_H
#define NC_SPAWNER_GROUPS_H

#include "spawner/box.h"

/*
 * Opens them, once; further calls do nothing. That is while the first box builds its root, on
 * another processor if there is one.
 */
int nc_groups_open(struct nc_nursery *nursery, struct nacre_err *err);

/* Removes ours, if no box has one any more. They can be opened again. */
void nc_groups_close(struct nc_nursery *nursery);

/* The same while a box dies, if nobody of it can be where we are. */
void nc_groups_close_early(struct nc_nursery *nursery);

/* Removes what is left of spawners that are gone, once; further calls do nothing. */
void nc_groups_sweep(struct nc_nursery *nursery);

#endif
