/*
 * What moves bytes waits for descriptors and for time: on libuv in whoever serves many, on poll()
 * in a command that waits for one program.
 */
#ifndef NC_LOOP_H
#define NC_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nc_poll;
struct nc_timer;
struct nc_loop;

/* As libuv has them; a hang-up or an error counts as readable. */
#define NC_READABLE 1
#define NC_WRITABLE 2

typedef void (*nc_poll_ready)(void *context, int events);

/* How a kind of loop does it. */
struct nc_loop_kind {
	int (*watch)(const struct nc_loop *loop, int fd, int events, nc_poll_ready ready,
		void *context, struct nc_poll **ret_poll);
	void (*set)(struct nc_poll *poll, int events);
	void (*unwatch)(struct nc_poll *poll);
	int (*after)(const struct nc_loop *loop, uint64_t ms, void (*due)(void *context),
		void *context, struct nc_timer **ret_timer);
	void (*cancel)(struct nc_timer *timer);
};

struct nc_loop {
	const struct nc_loop_kind *kind;
	void *self; /* of that kind */
};

/* The first member of what a kind of loop has for each. */
struct nc_poll {
	const struct nc_loop_kind *kind;
};
struct nc_timer {
	const struct nc_loop_kind *kind;
};

/*
 * Watches fd, which stays the caller's and must outlive it; begins with events (0: not yet).
 * -errno, -EPERM for a file that is always ready.
 */
static inline int nc_loop_watch(const struct nc_loop *loop, int fd, int events, nc_poll_ready ready,
	void *context, struct nc_poll **ret_poll)
{
	return loop->kind->watch(loop, fd, events, ready, context, ret_poll);
}

/* Watches for these from now on; 0: for nothing. */
static inline void nc_poll_set(struct nc_poll *poll, int events)
{
	poll->kind->set(poll, events);
}

/* Accepts NULL. ready is not called again. Returns NULL. */
static inline struct nc_poll *nc_poll_free(struct nc_poll *poll)
{
	if (poll)
		poll->kind->unwatch(poll);
	return NULL;
}

/* Calls due once, unless it is freed before. */
static inline int nc_loop_after(const struct nc_loop *loop, uint64_t ms, void (*due)(void *context),
	void *context, struct nc_timer **ret_timer)
{
	return loop->kind->after(loop, ms, due, context, ret_timer);
}

/* Accepts NULL. Returns NULL. */
static inline struct nc_timer *nc_timer_free(struct nc_timer *timer)
{
	if (timer)
		timer->kind->cancel(timer);
	return NULL;
}

/* A loop on poll(), for a few descriptors. */
struct nc_small_loop {
	struct nc_loop face; /* what nc_hub_new and nc_loop_watch take */
	struct nc_small_poll *polls;
	struct nc_small_timer *timers;
};

void nc_small_loop_init(struct nc_small_loop *small);

/* Waits until something has happened. 0 or -errno. */
int nc_small_loop_turn(struct nc_small_loop *small);

/* Lets go of whatever is still watched. */
void nc_small_loop_done(struct nc_small_loop *small);

#endif
