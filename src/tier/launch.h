/*
 * Starting a holder of boxes beside the first one.
 *
 * Theory of operation: a holder outlives workers, so it has a place (base/meeting.h) as descriptor
 * 3, at which each worker calls; on what is handed in there they speak the box wire. It ends when
 * nobody can call any more. It has a user id that nobody else has, no capability, no other
 * descriptor than its place and standard error, and the environment of whoever started it.
 */
#ifndef NC_TIER_LAUNCH_H
#define NC_TIER_LAUNCH_H

#include <stdbool.h>

#include "base/error.h"
#include "base/limits.h"
#include "tier/holder.h"

/* Where a holder finds its end of its place. */
#define NC_HOLDER_PLACE_FD 3

/* Forks it, with its end of the place, which stays the caller's. *ret_pidfd is the caller's. */
int nc_holder_launch(
	unsigned int number, int place_fd, bool ranges, int *ret_pidfd, struct nacre_err *err);

/* Those beside the first one, in the order of their numbers from 1 on. */
struct nc_holder_set {
	struct nc_holder holder[NC_HOLDERS_MAX - 1];
	int fd[NC_HOLDERS_MAX - 1]; /* of a connection to it, until they are joined; or -EBADF */
};

/*
 * For one run, which needs no other: starts the holder of the tier, if that is not the first, with
 * the caller's rights, and calls it. It ends when we do.
 */
int nc_holders_begin(
	struct nc_holder_set *set, enum nc_tier tier, bool ranges, struct nacre_err *err);

/*
 * Puts all of the table behind the first, greets those that were called, and waits for their
 * answers, for so long together. Who has not answered by then is not there yet: see nc_hub_meet().
 */
void nc_holders_join(struct nc_holder *first, struct nc_holder_set *set, unsigned int patience_ms);

#endif
