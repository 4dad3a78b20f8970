/* How a command ended, in the words of replies. */
#ifndef NC_BOX_STATUS_H
#define NC_BOX_STATUS_H

#include "kernel/boxwire.h"

/* "success", "timeout" and so on. */
const char *nc_outcome_status(const struct nc_box_end *end);

/* The name of a refused system call; never NULL. */
const char *nc_outcome_call(const struct nc_box_denied *denied);

#endif
