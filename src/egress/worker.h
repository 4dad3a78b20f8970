/* nacre-egress and its worker: the closed table of messages. */
#ifndef NC_EGRESS_WORKER_H
#define NC_EGRESS_WORKER_H

#include "egress/door.h"

/* Watches the worker's socket. 0 or -errno. */
int nc_worker_init(struct nc_egress *egress, int worker_fd);
void nc_worker_done(struct nc_egress *egress);

/* Whether it is still to be served; false once it closed its end or broke the rules. */
bool nc_worker_is_there(const struct nc_egress *egress);

#endif
