/* Descriptors and timers on libuv's loop. */
#include "tier/poll.h"

#include <errno.h>
#include <stdlib.h>

_Static_assert(NC_READABLE == UV_READABLE && NC_WRITABLE == UV_WRITABLE, "libuv has other events");

struct on_uv {
	struct nc_poll face;
	uv_poll_t handle;
	nc_poll_ready ready;
	void *context;
};

struct timer_on_uv {
	struct nc_timer face;
	uv_timer_t handle;
	void (*due)(void *context);
	void *context;
};

static const struct nc_loop_kind kind;

static void on_event(uv_poll_t *handle, int status, int events)
{
	struct on_uv *poll = handle->data;

	poll->ready(poll->context, status < 0 ? UV_READABLE : events);
}

static void free_data(uv_handle_t *handle)
{
	free(handle->data);
}

static void set(struct nc_poll *face, int events)
{
	struct on_uv *poll = (struct on_uv *)face;

	if (events)
		(void)uv_poll_start(&poll->handle, events, on_event); /* fails when closing only */
	else
		(void)uv_poll_stop(&poll->handle);
}

int nc_poll_new(uv_loop_t *loop, int fd, int events, nc_poll_ready ready, void *context,
	struct nc_poll **ret_poll)
{
	struct on_uv *poll = calloc(1, sizeof(*poll));
	int r;

	if (!poll)
		return -ENOMEM;
	*poll = (struct on_uv){.face = {&kind}, .ready = ready, .context = context};
	poll->handle.data = poll;
	r = uv_poll_init(loop, &poll->handle, fd);
	if (r < 0) { /* libuv's errors are -errno here; the handle was not begun */
		free(poll);
		return r;
	}
	set(&poll->face, events);
	*ret_poll = &poll->face;
	return 0;
}

static int watch(const struct nc_loop *loop, int fd, int events, nc_poll_ready ready, void *context,
	struct nc_poll **ret_poll)
{
	return nc_poll_new(loop->self, fd, events, ready, context, ret_poll);
}

static void unwatch(struct nc_poll *face)
{
	uv_close((uv_handle_t *)&((struct on_uv *)face)->handle, free_data);
}

static void on_time(uv_timer_t *handle)
{
	struct timer_on_uv *timer = handle->data;

	timer->due(timer->context);
}

static void cancel(struct nc_timer *face)
{
	uv_close((uv_handle_t *)&((struct timer_on_uv *)face)->handle, free_data);
}

static int after(const struct nc_loop *loop, uint64_t ms, void (*due)(void *context), void *context,
	struct nc_timer **ret_timer)
{
	struct timer_on_uv *timer = calloc(1, sizeof(*timer));
	int r;

	if (!timer)
		return -ENOMEM;
	*timer = (struct timer_on_uv){.face = {&kind}, .due = due, .context = context};
	timer->handle.data = timer;
	r = uv_timer_init(loop->self, &timer->handle);
	if (r < 0) {
		free(timer);
		return r;
	}
	(void)uv_timer_start(&timer->handle, on_time, ms, 0); /* fails when closing only */
	*ret_timer = &timer->face;
	return 0;
}

static const struct nc_loop_kind kind = {watch, set, unwatch, after, cancel};

struct nc_loop nc_loop_of_uv(uv_loop_t *loop)
{
	return (struct nc_loop){.kind = &kind, .self = loop};
}
