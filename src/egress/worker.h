/* nacre-egress and its worker: the closed table of messages. */
#ifndef NC_EGRESS_WORKER_H
#define NC_EGRESS_WORKER_H

#include "egress/door.h"

/* Watches the worker's socket, and the place where the next one comes in, or -EBADF. 0 or -errno.
 */
int nc_worker_init(struct nc_egress *egress, int worker_fd, int place_fd);
void nc_worker_done(struct nc_egress *egress);

/* Whether one is there, or may still come; never once one has broken the rules. */
bool nc_worker_may_come(const struct nc_egress *egress);

#endif
