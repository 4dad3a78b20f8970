/* A descriptor on the event loop. libuv closes handles later; this hides it. */
#ifndef NC_POLL_H
#define NC_POLL_H

#include <uv.h>

struct nc_poll;

/* events are UV_READABLE and UV_WRITABLE; a hang-up or an error counts as readable. */
typedef void (*nc_poll_ready)(void *context, int events);

/*
 * Watches fd, which stays the caller's and must outlive it; begins with events (0: not yet).
 * -errno, -EPERM for a file that is always ready.
 */
int nc_poll_new(uv_loop_t *loop, int fd, int events, nc_poll_ready ready, void *context,
	struct nc_poll **ret_poll);

/* Watches for these from now on; 0: for nothing. */
void nc_poll_set(struct nc_poll *poll, int events);

/* Accepts NULL. ready is not called again. Returns NULL. */
struct nc_poll *nc_poll_free(struct nc_poll *poll);

#endif
