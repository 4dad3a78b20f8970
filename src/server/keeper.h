/*
 * Those who work beside the daemon, each with rights of its own: started, and started again when
 * they die.
 *
 * Theory of operation: nacre-keeper is forked with the caller's rights before these are dropped,
 * since it takes them to start an aide, and is the parent of all aides. It reads nothing that
 * anybody says: what it knows is who has ended, and the time. It holds each aide's end of its place
 * (base/meeting.h), so that whoever is started again meets the worker where the one before did. An
 * aide that ended well was let go, and so is one whose callers have all gone; any other is started
 * again, at once if it lived for a while, later each time if not. How often each has died is in
 * memory that all others can only read (struct nc_keeper_page).
 */
#ifndef NC_KEEPER_H
#define NC_KEEPER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "tier/tier.h"

enum nc_aide {
	NC_AIDE_RECORDER, /* first: others read what it makes */
	NC_AIDE_EGRESS,
	NC_AIDE_ARCHIVE,
	NC_AIDE_ANALYST,
	NC_AIDE_COURIER,
	NC_AIDE_EXPORTER,
	NC_AIDE_CERTIFIER,
	/* holders of boxes, by their numbers from 1 on (tier/tier.h) */
	NC_AIDE_HOLDER,
	NC_AIDE_MAX = NC_AIDE_HOLDER + NC_TIER_HOLDERS_MAX,
};

/* Without "nacre-"; of a holder that there is. */
const char *nc_aide_name(enum nc_aide which);

/*
 * Forks the aide with its end of the place, and returns the other end of its first connection,
 * which nobody uses. *ret_pidfd is the caller's.
 */
typedef int (*nc_aide_start)(
	const void *context, int place_fd, int *ret_pidfd, struct nacre_err *err);

struct nc_keeper_setup {
	nc_aide_start start[NC_AIDE_HOLDER]; /* NULL: this one is not wanted */
	/* all holders that the table of the tiers has beside the first; NULL: none is wanted */
	int (*start_holder)(const void *context, unsigned int number, int place_fd, int *ret_pidfd,
		struct nacre_err *err);
	const void *context;
	int guard_fd;	/* a process (pidfd) with which our parent is told to end; or -EBADF */
	const int *fds; /* that they need; all others are closed in the keeper */
	size_t n_fds;
};

struct nc_keeper {
	int place_fd[NC_AIDE_MAX]; /* for callers; -EBADF: it was not wanted, or could not begin */
	struct nacre_err err[NC_AIDE_MAX]; /* why it could not */
	int page_fd;			   /* of struct nc_keeper_page, sealed against writing */
	int life_fd;			   /* the end of it is the end of the keeper */
};

struct nc_keeper_page {
	_Atomic uint32_t deaths[NC_AIDE_MAX];
	_Atomic uint32_t up[NC_AIDE_MAX];
};

/* To be called while there is one thread. Waits until each has been started once. */
int nc_keeper_start(
	const struct nc_keeper_setup *setup, struct nc_keeper *ret_keeper, struct nacre_err *err);

/* What others see of it, for good; NULL: no memory. */
const struct nc_keeper_page *nc_keeper_page(int page_fd);

#endif
