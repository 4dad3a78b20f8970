/* The loop: deadlines, events, and the end of the worker and of all boxes. */
#include "spawner/spawner.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/pidfd.h"
#include "spawner/events.h"

/* For a worker that was told twice to end. */
#define HURRY_NS (5 * NC_NS_PER_S)
/* How often dying boxes are looked after, should a stranger hold one up. */
#define STRAYS_NS (100 * NC_NS_PER_MS)
/* How often it is looked whether a first process has left the cradle. */
#define CRADLE_NS (1 * NC_NS_PER_MS)

/* More than a socket holds. */
#define LAST_WORDS_MAX 4096U

/* What all boxes together may take to die when we end, and how often strays are looked for. */
#define BURY_NS (90 * NC_NS_PER_S)
#define BURY_TICK_MS 1

static uint64_t check_deadlines(struct nc_spawner *spawner)
{
	uint64_t now = nc_clock_ns(), next = UINT64_MAX;

	if (spawner->kill_ns > now)
		next = spawner->kill_ns;
	else if (spawner->kill_ns > 0)
		(void)nc_pidfd_kill(spawner->worker.pidfd, SIGKILL);
	NC_EACH_MOVING (&spawner->table, box) {
		if (box->state == NC_BOX_FREE || box->state == NC_BOX_KEPT)
			continue;
		if (box->state == NC_BOX_DYING && now + STRAYS_NS < next)
			next = now + STRAYS_NS;
		if (box->frozen_ns > 0)
			continue;
		if (box->deadline_ns <= now)
			nc_step_late(spawner, box);
		else if (box->deadline_ns < next)
			next = box->deadline_ns;
		if (box->state == NC_BOX_CLEARING && box->check_ns <= now)
			nc_step_clear(spawner, box);
		if (box->state == NC_BOX_RUNS && box->check_ns <= now)
			box->check_ns = nc_box_check(box, now);
		if (box->state != NC_BOX_RUNS && box->state != NC_BOX_CLEARING)
			continue;
		if (box->check_ns < next)
			next = box->check_ns;
	}
	return next;
}

/*
 * Reaps children that are none of ours. The filter refuses what would give us any; but while one is
 * unreaped its box cannot end, so that is not left to one layer.
 */
static void reap_strays(struct nc_spawner *spawner)
{
	for (int i = 0; i < 64; i++) {
		siginfo_t info = {0};

		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 ||
			info.si_pid <= 0 || info.si_pid == spawner->worker.pid)
			return;
		NC_EACH_BOX (&spawner->table, box)
			if (box->state != NC_BOX_FREE &&
				(box->init_pid == info.si_pid || box->payload_pid == info.si_pid ||
					box->cleaner_fd >= 0))
				return; /* seen by its own descriptor */
		(void)waitpid(info.si_pid, NULL, WNOHANG | __WALL);
	}
}

/*
 * What we are told is the worker's to act on, if it may take its time; the second time it hears of
 * it again, and has a moment to end well.
 */
static void handle_signal_to_us(struct nc_spawner *spawner)
{
	struct signalfd_siginfo info = {0};
	bool again = spawner->ends;

	if (read(spawner->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP) {
		(void)nc_pidfd_kill(spawner->worker.pidfd, SIGHUP);
		return;
	}
	spawner->ends = true;
	if (!again)
		spawner->kill_ns = nc_clock_ns() + spawner->patience_ns;
	else if (spawner->kill_ns > nc_clock_ns() + HURRY_NS)
		spawner->kill_ns = nc_clock_ns() + HURRY_NS;
	(void)nc_pidfd_kill(spawner->worker.pidfd, spawner->patience_ns == 0 ? SIGKILL : SIGTERM);
}

/* Waits for what comes next, and uses the time. Returns how many events there are, or -errno. */
static int wait_for_events(
	struct nc_spawner *spawner, int events_fd, uint64_t next, struct nc_event *events)
{
	bool armed = nc_events_arm(events_fd, &spawner->table);
	int n = nc_events_wait(events_fd, spawner->table.box, 0, events);

	/* boxes are prepared and given up only when nobody waits for anything else */
	if (n != 0 || nc_ready_prepare(spawner, &next) || nc_ready_drop_orphan(spawner))
		return n;
	if (!armed && nc_clock_ns() + STRAYS_NS < next)
		next = nc_clock_ns() + STRAYS_NS;
	if (!nc_cradle_clear(&spawner->nursery.cradle) && nc_clock_ns() + CRADLE_NS < next)
		next = nc_clock_ns() + CRADLE_NS;
	n = nc_events_wait(events_fd, spawner->table.box,
		next == UINT64_MAX ? -1 : nc_clock_left_ms(next), events);
	/* for that the kernel goes through all children */
	if (n == 0 && nc_clock_ns() >= spawner->strays_ns) {
		reap_strays(spawner);
		spawner->strays_ns = nc_clock_ns() + STRAYS_NS;
	}
	return n;
}

static void handle_event(struct nc_spawner *spawner, const struct nc_event *event)
{
	struct nc_box *box = &spawner->table.box[event->box];

	if (event->kind == NC_EVENT_SIGNAL)
		handle_signal_to_us(spawner);
	else if (event->kind == NC_EVENT_CLIENT && spawner->client[event->box].fd >= 0)
		nc_requests_receive(spawner, event->box);
	if (event->kind >= NC_EVENT_BOX)
		nc_table_touch(&spawner->table, box);
	/* what was refused is noted before the end is */
	if (event->kind >= NC_EVENT_BOX && box->state != NC_BOX_FREE && box->listener_fd >= 0)
		nc_box_denied(box, spawner->patience_ns == 0);
	/* an event before may have changed what this one was about */
	if (event->kind == NC_EVENT_BOX && nc_events_is_due(box))
		nc_step_event(spawner, box);
}

/* Serves until the worker ends. 0, or -errno if it never began. */
static int serve(struct nc_spawner *spawner, struct nacre_err *err)
{
	cleanup_close int events_fd = epoll_create1(EPOLL_CLOEXEC);
	int r = events_fd < 0
			? -errno
			: nc_events_watch(events_fd, spawner->worker.pidfd, NC_EVENT_WORKER, 0);
	bool ends = false;

	if (r == 0)
		r = nc_events_watch(events_fd, spawner->signal_fd, NC_EVENT_SIGNAL, 0);
	for (size_t i = 0; r == 0 && i <= NC_BOX_CLIENTS_MAX; i++)
		if (spawner->client[i].fd >= 0)
			r = nc_events_watch(events_fd, spawner->client[i].fd, NC_EVENT_CLIENT, i);
	if (r < 0)
		return nc_err_errno(err, r, "Watch what happens");
	spawner->events_fd = events_fd;
	NC_EACH_BOX (&spawner->table, box) {
		memset(box->watch, 0, sizeof(box->watch));
		nc_table_touch(&spawner->table, box);
	}
	while (!ends) {
		struct nc_event events[NC_EVENTS_MAX];
		uint64_t next = check_deadlines(spawner);
		int n;

		n = wait_for_events(spawner, events_fd, next, events);
		for (int i = 0; i < n; i++) {
			handle_event(spawner, &events[i]);
			ends |= events[i].kind == NC_EVENT_WORKER;
		}
	}
	return 0;
}

/* Kills every box that is left, but for kept ones, and others', if somebody will ask for them. */
static void kill_boxes(struct nc_spawner *spawner, bool all)
{
	NC_EACH_BOX (&spawner->table, box) {
		if (!all && (box->kept || box->client > 0))
			continue;
		nc_box_kill(box, NC_CAUSE_CANCEL);
		box->failed = true; /* there is nobody to tell of its end */
	}
}

static bool is_dead(const struct nc_box *box)
{
	return box->state == NC_BOX_FREE || box->state == NC_BOX_KEPT;
}

/* What a dying box waits for may have come; false: it is dead. */
static bool bury_step(struct nc_spawner *spawner, struct nc_box *box)
{
	struct pollfd event = {.fd = nc_events_awaited(box), .events = POLLIN};

	if (is_dead(box))
		return false;
	if (box->state == NC_BOX_CLEARING && event.fd < 0)
		nc_step_clear(spawner, box);
	else if (event.fd < 0 || poll(&event, 1, 0) == 1)
		nc_step_end(spawner, box);
	return !is_dead(box);
}

/* Until something happens to one of the dying, or one whom we cannot see has had time to. */
static void wait_for_deaths(struct nc_spawner *spawner)
{
	struct pollfd events[NC_EVENTS_MAX];
	nfds_t n = 0;

	NC_EACH_BOX (&spawner->table, box) {
		int fd = nc_events_awaited(box);

		if (box->state != NC_BOX_FREE && fd >= 0 && n < NC_EVENTS_MAX)
			events[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
	}
	(void)poll(events, n, BURY_TICK_MS);
}

void nc_loop_end_boxes(struct nc_spawner *spawner)
{
	uint64_t deadline = nc_clock_ns() + BURY_NS;
	bool left = true;

	kill_boxes(spawner, true);
	spawner->patience_ns = 0; /* nothing is put off any more */
	/* in turn: one may wait for a stranger who is seen only when those of others are reaped */
	while (left && nc_clock_ns() < deadline) {
		left = false;
		NC_EACH_BOX (&spawner->table, box)
			left |= bury_step(spawner, box);
		reap_strays(spawner);
		if (left)
			wait_for_deaths(spawner);
	}
}

/* What it has said before it died holds: others may have been told that it was done. */
static void hear_out(struct nc_spawner *spawner)
{
	spawner->client[0].dead = true;
	for (unsigned int i = 0; i < LAST_WORDS_MAX && spawner->client[0].fd >= 0; i++)
		nc_requests_receive(spawner, 0);
}

int nc_loop_serve(struct nc_spawner *spawner, struct nacre_err *err)
{
	for (;;) {
		int code, r = serve(spawner, err);

		if (r < 0) {
			spawner->worker.pidfd = nc_pidfd_end(spawner->worker.pidfd);
			return r;
		}
		if (spawner->worker.argv)
			hear_out(spawner);
		code = nc_worker_reap(&spawner->worker);
		if (!spawner->worker.argv || spawner->ends || code == 0)
			return code;
		kill_boxes(spawner, false);
		r = nc_worker_start(&spawner->worker, err);
		if (r < 0)
			return r;
	}
}
