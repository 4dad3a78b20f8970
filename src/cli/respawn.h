/*
 * The process that was started as the daemon: waits, and begins it anew when it is killed.
 *
 * Theory of operation: the spawner's death is the end of all boxes, so nobody below it can go on;
 * but its worker answers what is open with a reason and ends, and a new spawner with a new worker
 * begins on the same listening sockets, which are held here. This process listens to nothing but
 * signals, which it passes on.
 */
#ifndef NC_RESPAWN_H
#define NC_RESPAWN_H

#include <stdbool.h>

#include "cli/upgrade.h"

/*
 * Forks. True: we are the child, which is to become the daemon, and *ret_parent_fd is a pidfd of
 * the parent, with which it should end. False: it has ended, by itself or for good; *ret_code is
 * what is left to be said to whoever started us. To be called while there is one thread. SIGUSR2
 * begins an upgrade.
 */
bool nc_respawn(struct nc_upgrade *upgrade, int *ret_parent_fd, int *ret_code);

#endif
