/* Who our processes are: the ids of the worker and of boxes, and how privilege is left behind. */
#ifndef NC_PRIVILEGE_H
#define NC_PRIVILEGE_H

#include <stdbool.h>

#include "base/error.h"

/* The user that the payload is inside a box; see /etc/passwd there. */
#define NC_SANDBOX_ID 1000U

/* Ids per box, and how many ranges of them there are, from the first id on. */
#define NC_SLOT_IDS 65536U
#define NC_SLOT_FIRST_ID 0x70000000U
#define NC_SLOT_COUNT 4095U

/* What the unprivileged side runs as when root started it: an id that owns nothing but its state.
 */
#define NC_WORKER_ID (NC_SLOT_FIRST_ID - 1)

/* The same for the recorder: the history is its own, and a worker that was taken over cannot write
 * to it. */
#define NC_RECORDER_ID (NC_SLOT_FIRST_ID - 2)

/* The same for the egress: what it reaches is the network's alone. */
#define NC_EGRESS_ID (NC_SLOT_FIRST_ID - 3)

/* The same for who reads foreign programs: it has nothing at all. */
#define NC_ANALYST_ID (NC_SLOT_FIRST_ID - 4)

/* The same for the relay, which has nothing but its descriptors. */
#define NC_RELAY_ID (NC_SLOT_FIRST_ID - 5)

/* The same for holders of boxes beside the spawner: one each, this less its number. */
#define NC_HOLDER_ID (NC_SLOT_FIRST_ID - 16)

/*
 * Whether ranges of ids can be mapped: we are root of the first user namespace. -EPERM: we are the
 * host's root under another number, as which no box may run.
 */
int nc_privilege_ranges(bool *ret_ranges, struct nacre_err *err);

/* Our user id as the namespace above ours sees it, or as we do where nothing tells. */
unsigned int nc_privilege_outer_id(void);

/*
 * Makes this process the unprivileged side, for good: with ranges its id and no capability, always
 * no_new_privs, and SIGKILL when its parent dies. 0 or -errno. Async-signal-safe.
 */
int nc_privilege_drop(bool ranges);

/*
 * The same for the recorder, or for who reads what it wrote; it outlives its parent, since it has
 * to record how that ended.
 */
int nc_privilege_become_recorder(bool ranges);

/* The same for the egress, which ends when its worker does. */
int nc_privilege_become_egress(bool ranges);

/* The same for nacre-analyst. */
int nc_privilege_become_analyst(bool ranges);

/* The same for nacre-relay. */
int nc_privilege_become_relay(bool ranges);

/* The same for the holder of boxes of this number, which is not the spawner. */
int nc_privilege_become_holder(bool ranges, unsigned int number);

#endif
