/*
 * Room on the disk that only the ends of executions may use: a file of bytes in the history. When
 * the disk is full it becomes shorter, and what was begun can still be recorded as it ended. All
 * recorders of a history have the same one.
 */
#ifndef NC_RESERVE_H
#define NC_RESERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Some thousand ends. A worker begins nothing while less than twice this is free. */
#define NC_RESERVE_BYTES (2U * 1024 * 1024)

struct nc_reserve {
	int fd;	       /* -EBADF: there is none */
	bool is_whole; /* as far as we know */
};

/* Makes it if there is none, as large as the disk allows. 0 or -errno, with which it is empty. */
int nc_reserve_open(struct nc_reserve *reserve, int history_fd);
void nc_reserve_done(struct nc_reserve *reserve);

/* Makes it whole again, if the disk allows that. */
void nc_reserve_fill(struct nc_reserve *reserve);

/*
 * Gives so many bytes of it, and what they need in whole blocks, to whoever writes next: that may
 * be somebody else, so no more than that. false: nothing is left.
 */
bool nc_reserve_spend(struct nc_reserve *reserve, size_t bytes);

#endif
