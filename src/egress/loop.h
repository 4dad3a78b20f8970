/* Waiting for descriptors: epoll, and what is called when one is ready. */
#ifndef NC_LOOP_H
#define NC_LOOP_H

#include <stdint.h>
#include <sys/epoll.h>

/* Part of what owns the descriptor; must stay where it is, and live until the turn is over. */
struct nc_watch {
	void (*ready)(struct nc_watch *watch, uint32_t events);
};

struct nc_loop {
	int epoll_fd;
	uint64_t now_ns; /* of this turn */
};

int nc_loop_init(struct nc_loop *loop);
void nc_loop_done(struct nc_loop *loop);

/* EPOLLET among events for edges. 0 or -errno. */
int nc_loop_add(struct nc_loop *loop, int fd, uint32_t events, struct nc_watch *watch);
int nc_loop_change(struct nc_loop *loop, int fd, uint32_t events, struct nc_watch *watch);

/* Before fd is closed, where others may hold the same file: closing ours would not end the watch.
 */
void nc_loop_remove(struct nc_loop *loop, int fd);

/* One turn: waits at most timeout_ms (-1: for ever) and calls whom it concerns. 0 or -errno. */
int nc_loop_turn(struct nc_loop *loop, int timeout_ms);

#endif
