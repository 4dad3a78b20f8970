/*
 * Locks: on ranges of user ids, one per living box, and on the spawner itself. Several spawners on
 * one machine never share a range, and one that dies lets its ranges go and is known to be dead.
 */
#ifndef NC_SLOT_H
#define NC_SLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/id.h"
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

/*
 * Notes where this spawner makes its groups, as text. Only a spawner that is started in the same
 * place finds, and may judge, the groups of one that is gone.
 */
int nc_locks_note_place(const struct nc_locks *locks, const char *place);

/*
 * Dead spawners whose locks we hold, so that nobody sweeps after them beside us: who meets a group
 * while another one looks at its lock would take it for a living one's, and forget it all the same.
 */
#define NC_DEAD_MAX 32U
struct nc_dead {
	const struct nc_locks *locks;
	size_t n; /* more wait for the next sweep */
	int fd[NC_DEAD_MAX];
	char id[NC_DEAD_MAX][NC_ID_SIZE];
};

/*
 * Takes the locks of the dead whose groups were in this place, and of those dead for long. Whether
 * any spawner is dead.
 */
bool nc_dead_take(const struct nc_locks *locks, const char *place, struct nc_dead *ret_dead);

/* Whether this spawner is one of them, or of those of other places: its file is there and free. */
bool nc_dead_has(const struct nc_dead *dead, const char *id);

/* Lets go of them; their files go too if they are done with. */
void nc_dead_leave(struct nc_dead *dead, bool done);

#endif
