/* Waiting for descriptors. */
#include "egress/loop.h"

#include <errno.h>

#include "base/clock.h"
#include "base/fd.h"

#define EVENTS_PER_TURN 256

int nc_loop_init(struct nc_loop *loop)
{
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loop->now_ns = nc_clock_ns();
	return loop->epoll_fd < 0 ? -errno : 0;
}

void nc_loop_done(struct nc_loop *loop)
{
	loop->epoll_fd = nc_fd_close(loop->epoll_fd);
}

static int control(struct nc_loop *loop, int how, int fd, uint32_t events, struct nc_watch *watch)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	return epoll_ctl(loop->epoll_fd, how, fd, &event) < 0 ? -errno : 0;
}

int nc_loop_add(struct nc_loop *loop, int fd, uint32_t events, struct nc_watch *watch)
{
	return control(loop, EPOLL_CTL_ADD, fd, events, watch);
}

int nc_loop_change(struct nc_loop *loop, int fd, uint32_t events, struct nc_watch *watch)
{
	return control(loop, EPOLL_CTL_MOD, fd, events, watch);
}

void nc_loop_remove(struct nc_loop *loop, int fd)
{
	(void)control(loop, EPOLL_CTL_DEL, fd, 0, NULL);
}

int nc_loop_turn(struct nc_loop *loop, int timeout_ms)
{
	struct epoll_event events[EVENTS_PER_TURN];
	int n = epoll_wait(loop->epoll_fd, events, EVENTS_PER_TURN, timeout_ms);

	loop->now_ns = nc_clock_ns();
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n; i++) {
		struct nc_watch *watch = events[i].data.ptr;

		watch->ready(watch, events[i].events);
	}
	return 0;
}
