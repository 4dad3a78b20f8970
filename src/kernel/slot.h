/*
 * Locks: on ranges of user ids, one per living box, and on the spawner itself. Several spawners on
 * one machine never share a range, and one that dies lets its ranges go and is known to be dead.
 */
#ifndef NC_SLOT_H
#define NC_SLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "kernel/privilege.h"

struct nc_slot {
	bool held;
	unsigned int first_id;
};

/* Where the locks are: /run/nacre for root; for users $XDG_RUNTIME_DIR/nacre, or in /tmp. */
struct nc_locks {
	int dir_fd;
	int self_fd; /* the spawner's own */
	int ids_fd;  /* a byte for each range; -EBADF: there are no ranges */
	bool open;
};

/*
 * Opens the locks, once, and locks the spawner's own file, named id. Ranges only for root. Zeroed
 * locks with descriptors -EBADF may be closed in any case.
 */
int nc_locks_open(struct nc_locks *locks, bool ranges, const char *id, struct nacre_err *err);
void nc_locks_close(struct nc_locks *locks, const char *id);

/* Lets go of the spawner's own file only: no group of it is left, and none will be made. */
void nc_locks_let_go(struct nc_locks *locks, const char *id);

/* Takes a range that nobody holds. -EBUSY: all are held. */
int nc_slot_take(const struct nc_locks *locks, struct nc_slot *ret_slot);
void nc_slot_give_back(const struct nc_locks *locks, struct nc_slot *slot);

/* Whether a spawner is surely gone: its file is there and not locked. */
bool nc_locks_is_dead(const struct nc_locks *locks, const char *id);

/*
 * Notes where this spawner makes its groups, as text. Only a spawner that is started in the same
 * place finds, and may judge, the groups of one that is gone.
 */
int nc_locks_note_place(const struct nc_locks *locks, const char *place);

bool nc_locks_has_dead(const struct nc_locks *locks);

/* Removes the files of the dead whose groups were in this place, and of those dead for long. */
void nc_locks_forget_dead(const struct nc_locks *locks, const char *place);

#endif
