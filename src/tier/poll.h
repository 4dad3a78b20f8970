/* Descriptors and timers on libuv's loop. libuv closes handles later; this hides it. */
#ifndef NC_POLL_H
#define NC_POLL_H

#include <uv.h>

#include "tier/loop.h"

/* What nc_hub_new takes of libuv's loop. */
struct nc_loop nc_loop_of_uv(uv_loop_t *loop);

/* As nc_loop_watch; also for UV_DISCONNECT. */
int nc_poll_new(uv_loop_t *loop, int fd, int events, nc_poll_ready ready, void *context,
	struct nc_poll **ret_poll);

#endif
