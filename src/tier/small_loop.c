/*
 * A loop on poll(): what a command needs that waits for one program.
 *
 * Theory of operation: whoever is called may free any of those that are watched, itself too. What
 * is freed is marked, and goes when the turn is over.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tier/loop.h"

/* More than one run has: its streams, the holder, a terminal, a door, a wish to cancel. */
#define POLLS_MAX 16

struct nc_small_poll {
	struct nc_poll face;
	struct nc_small_poll *next;
	int fd, events;
	nc_poll_ready ready;
	void *context;
	bool dead;
};

struct nc_small_timer {
	struct nc_timer face;
	struct nc_small_timer *next;
	uint64_t due_ns;
	void (*due)(void *context); /* NULL: it was called, and whoever has it frees it */
	void *context;
	bool dead;
};

static const struct nc_loop_kind kind;

static int watch(const struct nc_loop *loop, int fd, int events, nc_poll_ready ready, void *context,
	struct nc_poll **ret_poll)
{
	struct nc_small_loop *small = loop->self;
	struct nc_small_poll *poll = calloc(1, sizeof(*poll));

	if (!poll)
		return -ENOMEM;
	*poll = (struct nc_small_poll){.face = {&kind},
		.next = small->polls,
		.fd = fd,
		.events = events,
		.ready = ready,
		.context = context};
	small->polls = poll;
	*ret_poll = &poll->face;
	return 0;
}

static void set(struct nc_poll *face, int events)
{
	((struct nc_small_poll *)face)->events = events;
}

static void unwatch(struct nc_poll *face)
{
	((struct nc_small_poll *)face)->dead = true;
}

static int after(const struct nc_loop *loop, uint64_t ms, void (*due)(void *context), void *context,
	struct nc_timer **ret_timer)
{
	struct nc_small_loop *small = loop->self;
	struct nc_small_timer *timer = calloc(1, sizeof(*timer));

	if (!timer)
		return -ENOMEM;
	*timer = (struct nc_small_timer){.face = {&kind},
		.next = small->timers,
		.due_ns = nc_clock_ns() + ms * NC_NS_PER_MS,
		.due = due,
		.context = context};
	small->timers = timer;
	*ret_timer = &timer->face;
	return 0;
}

static void cancel(struct nc_timer *face)
{
	((struct nc_small_timer *)face)->dead = true;
}

static const struct nc_loop_kind kind = {watch, set, unwatch, after, cancel};

void nc_small_loop_init(struct nc_small_loop *small)
{
	*small = (struct nc_small_loop){.face = {.kind = &kind, .self = small}};
}

/* Those that were freed; all: whoever is left too. */
static void sweep(struct nc_small_loop *small, bool all)
{
	for (struct nc_small_poll *poll, **at = &small->polls; (poll = *at);)
		if (poll->dead || all) {
			*at = poll->next;
			free(poll);
		} else {
			at = &poll->next;
		}
	for (struct nc_small_timer *timer, **at = &small->timers; (timer = *at);)
		if (timer->dead || all) {
			*at = timer->next;
			free(timer);
		} else {
			at = &timer->next;
		}
}

static int time_left_ms(const struct nc_small_loop *small)
{
	uint64_t first = UINT64_MAX;

	for (const struct nc_small_timer *timer = small->timers; timer; timer = timer->next)
		if (timer->due && timer->due_ns < first)
			first = timer->due_ns;
	return first == UINT64_MAX ? -1 : nc_clock_left_ms(first);
}

static void call_due(struct nc_small_loop *small, uint64_t now)
{
	for (struct nc_small_timer *timer = small->timers; timer; timer = timer->next) {
		void (*due)(void *context) = timer->due;

		if (timer->dead || !due || timer->due_ns > now)
			continue;
		timer->due = NULL;
		due(timer->context);
	}
}

static int events_of(short revents)
{
	return (revents & ~POLLOUT ? NC_READABLE : 0) | (revents & POLLOUT ? NC_WRITABLE : 0);
}

int nc_small_loop_turn(struct nc_small_loop *small)
{
	struct nc_small_poll *polls[POLLS_MAX];
	struct pollfd fds[POLLS_MAX];
	uint64_t now;
	nfds_t n = 0;
	int r;

	sweep(small, false);
	for (struct nc_small_poll *poll = small->polls; poll; poll = poll->next) {
		if (poll->events == 0)
			continue;
		assert(n < POLLS_MAX);
		polls[n] = poll;
		fds[n++] = (struct pollfd){.fd = poll->fd,
			.events = (short)((poll->events & NC_READABLE ? POLLIN : 0) |
					  (poll->events & NC_WRITABLE ? POLLOUT : 0))};
	}
	r = poll(fds, n, time_left_ms(small));
	now = nc_clock_ns(); /* what those who are called take is nobody's silence */
	if (r < 0)
		return errno == EINTR ? 0 : -errno;
	/* the oldest first; who was called before may want no more of this */
	while (r > 0 && n-- > 0)
		if (fds[n].revents && !polls[n]->dead && polls[n]->events)
			polls[n]->ready(polls[n]->context, events_of(fds[n].revents));
	call_due(small, now);
	return 0;
}

void nc_small_loop_done(struct nc_small_loop *small)
{
	sweep(small, true);
}
