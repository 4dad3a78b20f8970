/*
 * Ranges of user ids, one per living box. A range is held by a lock on a file, so that several
 * spawners on one machine never share one, and a spawner that dies lets its ranges go.
 */
#ifndef NC_SPAWNER_SLOT_H
#define NC_SPAWNER_SLOT_H

#include <stdbool.h>

#include "base/error.h"

/* Ids per range, and how many ranges there are, from the first id on. */
#define NC_SLOT_IDS 65536U
#define NC_SLOT_FIRST_ID 0x70000000U
#define NC_SLOT_COUNT 4095U

struct nc_slot {
	int lock_fd; /* -EBADF: none is held */
	unsigned int first_id;
};

/* Opens the directory of locks, making it if need be. Only for root. Returns a descriptor. */
int nc_slot_open_dir(struct nacre_err *err);

/* Takes a range that nobody holds. -EBUSY: all are held. */
int nc_slot_take(int dir_fd, struct nc_slot *ret_slot);

void nc_slot_give_back(struct nc_slot *slot);

/*
 * A spawner's own lock: a file named id ("sp_..."), held while it lives. Whoever finds the file
 * unlocked knows that the spawner is gone.
 */
int nc_slot_lock_self(int dir_fd, const char *id, struct nacre_err *err);
bool nc_slot_is_dead(int dir_fd, const char *id);
void nc_slot_unlock_self(int dir_fd, const char *id, int lock_fd);

/*
 * Removes old files of the dead. Not at once: groups are made below the one that the spawner was
 * started in, and only a spawner that is started there again finds, and may judge, them.
 */
void nc_slot_sweep(int dir_fd);

#endif
