/* The control groups of a spawner's boxes, and what spawners that are gone have left of theirs. */
#ifndef NC_SPAWNER_GROUPS_H
#define NC_SPAWNER_GROUPS_H

#include "spawner/box.h"

/*
 * Opens them, once; further calls do nothing. Root's are opened while the first box builds its
 * root, on another processor if there is one; a user's before he enters his user namespace.
 */
int nc_groups_open(struct nc_nursery *nursery, struct nacre_err *err);

/* Removes what is left of spawners that are gone, once; further calls do nothing. */
void nc_groups_sweep(struct nc_nursery *nursery);

#endif
