/*
 * `nacre serve` upgraded in place: another executable goes on as its worker.
 *
 * Theory of operation: the process that was started as the daemon (cli/respawn.h) opens the
 * executable that has its name now, and asks it what it speaks. If a worker of it can live below
 * our spawner it is handed in at a socket that all workers inherit (`next`). The worker sees that,
 * takes no new connection, finishes what runs, and ends; the spawner starts the next one as after a
 * death, from the executable that it knows. That one takes what waits at the socket, and becomes
 * it, before it has read anything. It has so many seconds to say that it is up; a worker that does
 * not, or dies, is followed by one of the old executable, which finds nothing at `next` any more,
 * and goes on. What is up is handed in at a second socket (`now`), where each worker looks and
 * takes nothing. Boxes, commands and the ledger are the spawner's, and stay.
 */
#ifndef NC_UPGRADE_H
#define NC_UPGRADE_H

#include <stdbool.h>
#include <uv.h>

#include "cli/heirs.h"

/*
 * Raised with every change of what a worker and those who outlive it tell each other, beside the
 * box wire: pages of the ledger, recordwire, egresswire, what the analyst is sent, heirs.
 */
#define NC_UPGRADE_BESIDE 1

/* The sockets; [0] is for who waits, [1] for workers. */
struct nc_upgrade {
	int next[2], now[2];
	char path[4096];	/* of our executable, when we were started */
	uint64_t device, inode; /* of what was handed in; 0, 0: nothing waits */
	int exe_fd;		/* the same */
	bool upgraded;		/* something waits at `now` */
	bool wanted;		/* it is to begin, when the last is long enough ago */
	uint64_t began_ns;	/* the last */
};

/* In the process that waits, before it does. 0 or -errno with err. */
int nc_upgrade_init(struct nc_upgrade *upgrade, struct nacre_err *err);

/* In its child: what is not to be handed on. */
void nc_upgrade_leave_to_parent(struct nc_upgrade *upgrade);

/* What is to be heirs. */
void nc_upgrade_bequeath(const struct nc_upgrade *upgrade, struct nc_heirs *heirs);

/* The executable that has our name now is wanted: all else is logged. */
void nc_upgrade_want(struct nc_upgrade *upgrade);

/* Whether nc_upgrade_tick() is to be called about ten times a second; it takes seconds at most. */
bool nc_upgrade_is_under_way(const struct nc_upgrade *upgrade);
void nc_upgrade_tick(struct nc_upgrade *upgrade);

/* Says on standard output what this executable speaks, for who upgrades. */
int nc_upgrade_speak(void);

/*
 * In every process of ours, first of all: a worker that is started again becomes the executable
 * that was handed in, if there is one.
 */
void nc_upgrade_follow(char **argv);

/* Whether that was what began this one. */
bool nc_upgrade_is_new(void);

/* In a worker: leave(context) is called when an executable waits at the heir `next`. */
struct nc_upgrade_watch {
	int fd; /* or -EBADF: nobody waits for us */
	uv_poll_t poll;
	void (*leave)(void *context);
	void *context;
};

void nc_upgrade_watch(struct nc_upgrade_watch *watch, uv_loop_t *loop);

/* It is up, and answers; it stays after all, for this reason. */
void nc_upgrade_up(const struct nc_upgrade_watch *watch);
void nc_upgrade_stay(struct nc_upgrade_watch *watch, const char *reason);

#endif
