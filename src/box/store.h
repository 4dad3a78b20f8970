/*
 * Where Nacre keeps what its worker may change: directories below /var/lib/nacre (others than root:
 * below their own data directory; $NACRE_STATE names another), each of them the worker's.
 */
#ifndef NC_STORE_H
#define NC_STORE_H

#include <stdbool.h>

#include "base/error.h"

/*
 * Opens one, makes it if it is to be. ranges: we are root, and it is the worker's. A descriptor;
 * -ENOENT without a message if it is not there and not to be made; or -errno with err.
 */
int nc_store_open(const char *name, bool make, bool ranges, struct nacre_err *err);

/* A path descriptor of one that need not be ours. -errno; with err only if it has no place. */
int nc_store_find(const char *name, struct nacre_err *err);

/* With ranges: acts as the worker until nc_store_act_as_self(). */
int nc_store_act_as_worker(bool ranges);
void nc_store_act_as_self(bool ranges);

#endif
