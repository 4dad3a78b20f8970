/* A descriptor on the event loop. */
#include "tier/poll.h"

#include <errno.h>
#include <stdlib.h>

struct nc_poll {
	uv_poll_t handle;
	nc_poll_ready ready;
	void *context;
};

static void on_event(uv_poll_t *handle, int status, int events)
{
	struct nc_poll *poll = handle->data;

	poll->ready(poll->context, status < 0 ? UV_READABLE : events);
}

static void on_close(uv_handle_t *handle)
{
	free(handle->data);
}

int nc_poll_new(uv_loop_t *loop, int fd, int events, nc_poll_ready ready, void *context,
	struct nc_poll **ret_poll)
{
	struct nc_poll *poll = calloc(1, sizeof(*poll));
	int r;

	if (!poll)
		return -ENOMEM;
	*poll = (struct nc_poll){.ready = ready, .context = context};
	poll->handle.data = poll;
	r = uv_poll_init(loop, &poll->handle, fd);
	if (r < 0) { /* libuv's errors are -errno here; the handle was not begun */
		free(poll);
		return r;
	}
	nc_poll_set(poll, events);
	*ret_poll = poll;
	return 0;
}

void nc_poll_set(struct nc_poll *poll, int events)
{
	if (events)
		(void)uv_poll_start(&poll->handle, events, on_event); /* fails when closing only */
	else
		(void)uv_poll_stop(&poll->handle);
}

struct nc_poll *nc_poll_free(struct nc_poll *poll)
{
	if (poll)
		uv_close((uv_handle_t *)&poll->handle, on_close);
	return NULL;
}
