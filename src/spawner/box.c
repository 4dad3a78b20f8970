/*
 * The boxes of a spawner: life and death. How their processes are made is in birth.c.
 *
 * Theory of operation: a box is made in steps between which the spawner does other things, so that
 * no box waits for another: the first process builds the root, the payload is forked and locks
 * itself in, and waits. That far a box is nobody's, and some may be made ahead of need. Then it is
 * given an order, whose program the payload becomes. A box runs one program and is never used
 * again. In the end the payload is reaped first, or process 1 could not end; with process 1
 * everything else in the box dies.
 */
#include "spawner/box.h"

#include <assert.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/pidfd.h"
#include "inside/told.h"
#include "kernel/bill.h"
#include "kernel/process.h"
#include "kernel/sample.h"
#include "spawner/birth.h"
#include "spawner/groups.h"

/* Refused calls that are answered before others get their turn. */
#define DENIED_AT_ONCE 16

/* A child that has not come so far by then never will. */
#define BIRTH_TIMEOUT_NS (10 * NC_NS_PER_S)

/* How often a running box is looked at: version 1 kills one process for memory, not the group. */
#define CHECK_NS (100 * NC_NS_PER_MS)

/* The limited file system of a box that is nobody's yet; nacre's own default. */
#define USUAL_DISK (100ULL << 20)
#define USUAL_INODES (USUAL_DISK / 4096 + 64)

/* How often a group is killed that does not get empty, for a fifth of a second each time. */
#define KILL_ROUNDS 25

/* How often a box is looked at that a command has left, and for how long. */
#define CLEAR_NS NC_NS_PER_MS
#define CLEAR_TIMEOUT_NS (2 * NC_NS_PER_S)

/* Processes of a box whose open files are counted. */
#define WATCHED_MAX 64

/* Without what only its command needed: of a thousand boxes every fork would copy that. */
static struct nc_box_pending *shrink(struct nc_box_pending *first)
{
	size_t size = offsetof(struct nc_box_pending, order.binds) +
		      first->order.n_binds * sizeof(first->order.binds[0]);
	struct nc_box_pending *smaller = realloc(first, size);

	return smaller ? smaller : first;
}

static void drop_order(struct nc_box *box)
{
	if (box->order)
		nc_box_fds_close(&box->order->order.fds);
	if (box->order != box->first)
		free(box->order);
	else if (box->first)
		box->first = shrink(box->first);
	box->order = NULL;
	if (!box->stays)
		nc_freep(&box->first);
}

static void note_order(struct nc_box *box, struct nc_box_pending *order)
{
	box->order = order;
	if (!box->first)
		box->first = order;
	box->ordered = true;
	box->stays = (order->order.flags & NC_ORDER_STAY) != 0;
	box->ordered_ns = nc_clock_ns();
	box->client = order->client;
	box->end.id = order->order.id;
	memcpy(box->name, order->order.name, sizeof(box->name));
	box->kept = (order->order.flags & NC_ORDER_KEEP) != 0;
	box->ahead |= (order->order.flags & NC_ORDER_AHEAD) != 0;
	box->kept_terminal = false;
	for (size_t i = 0; box->kept && i < 3; i++)
		box->kept_fd[i] = nc_box_fds_take(&order->order.fds, nc_box_own_streams[i]);
}

static void close_kept(struct nc_box *box)
{
	for (size_t i = 0; i < 3; i++)
		box->kept_fd[i] = nc_fd_close(box->kept_fd[i]);
}

/* One for all that will run in a home, with its limits. */
static int make_shared(
	struct nc_nursery *nursery, struct nc_box *box, const char *name, struct nacre_err *err)
{
	struct nc_cgroup_limits limits;
	int r;

	nc_birth_limits(&nursery->cgroups, &box->order->order.limits, &limits);
	r = nc_cgroup_make(&nursery->cgroups, NC_CGROUP_FOR_HOME, name, &limits, &box->shared, err);
	nc_cgroup_rest(&box->shared);
	return r < 0 ? r : nc_cgroup_share(&box->shared, err);
}

/* A group for the payload, which is as yet without limits. Process 1 needs none: it does nothing.
 */
static int make_group(struct nc_nursery *nursery, struct nc_box *box, const struct nc_box *home,
	struct nacre_err *err)
{
	static uint64_t counter;
	/* a zygote is where its children come from: no group of it may have them left in it */
	bool loan =
		box->lender_id > 0 || (box->order && (box->order->order.flags & NC_ORDER_ZYGOTE));
	enum nc_cgroup_kind kind = loan ? NC_CGROUP_FOR_LOAN : NC_CGROUP_FOR_ONE;
	char name[32];
	int r = nc_groups_open(nursery, err);

	if (r < 0 || nursery->cgroups.can == 0)
		return r;
	(void)snprintf(name, sizeof(name), "bx_%llu", (unsigned long long)++counter);
	if (home == box && !box->shared.parent && box->order &&
		(box->order->order.flags & NC_ORDER_HOME)) {
		r = make_shared(nursery, box, name, err);
		if (r < 0)
			return r;
	}
	return home->shared.parent
		       ? nc_cgroup_make_below(&home->shared, name, NULL, &box->group, err)
		       : nc_cgroup_make(&nursery->cgroups, kind, name, NULL, &box->group, err);
}

static int make_payload(struct nc_nursery *nursery, struct nc_box *box, const struct nc_box *home,
	struct nacre_err *err)
{
	int r = 0;

	if (box->payload_fd < 0)
		r = nc_birth_payload(nursery, box, home, true, err);
	else /* one that could not come so far has said why, and is heard */
		box->report_fd = take_fd(box->channel_fd);
	box->state = box->order ? NC_BOX_STARTING : NC_BOX_WAITING;
	return r == 0 && box->order ? nc_birth_deliver(nursery, box, err) : r;
}

/*
 * A process box has a pid namespace where it can be had, for its end. Without one its group must be
 * able to end it, and without that it may make no processes: nothing of it can survive.
 */
static int begin_process(struct nc_nursery *nursery, struct nc_box *box, struct nacre_err *err)
{
	unsigned int owner = box->slot.held ? box->slot.first_id + NC_SANDBOX_ID : 0;
	int r = nc_scratch_make(&nursery->scratch, box->end.id, owner, err);

	if (r < 0)
		return r;
	box->scratch_made = true;
	if (nursery->host.user_ns) {
		r = nc_birth_first(nursery, box, err);
		box->means.pid_ns = r == 0;
		if (r == 0)
			return make_group(nursery, box, box, err);
		if (box->init_fd >= 0 ||
			box->order->order.required[NC_STRENGTH_PROCESSES] == NC_GRADE_FULL)
			return r;
		*err = (struct nacre_err){0};
	}
	r = make_group(nursery, box, box, err);
	if (r < 0)
		return r;
	box->means.alone = !nc_box_group(box);
	return make_payload(nursery, box, box, err);
}

/* All descriptors of a box but those that are kept for the next worker. */
static void change_fds(struct nc_box *box, int (*change)(int fd))
{
	int *const fds[] = {&box->init_fd, &box->payload_fd, &box->cleaner_fd, &box->report_fd,
		&box->built_fd, &box->scratch_fd, &box->listener_fd, &box->terminal_fd,
		&box->door_fd, &box->home_fd, &box->zygote_fd, &box->lender_fd, &box->shade_fd,
		&box->go_fd, &box->channel_fd};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		*fds[i] = change(*fds[i]);
}

static int no_fd(int fd)
{
	(void)fd;
	return -EBADF;
}

static void make_blank(struct nc_box *box)
{
	assert(box->state == NC_BOX_FREE);
	*box = (struct nc_box){.state = NC_BOX_GROWING,
		.kept_fd = {-EBADF, -EBADF, -EBADF},
		.deadline_ns = nc_clock_ns() + BIRTH_TIMEOUT_NS,
		.disk_bytes = USUAL_DISK,
		.inodes = USUAL_INODES};
	change_fds(box, no_fd);
}

int nc_box_begin(struct nc_nursery *nursery, struct nc_box *box, struct nc_box_pending *order,
	const struct nc_box *lender, struct nacre_err *err)
{
	int r;

	make_blank(box);
	if (lender) {
		box->lender_id = lender->end.id;
		box->owner = lender->slot.held ? lender->slot.first_id + NC_SANDBOX_ID : 0;
		box->lender_fd = nc_fd_dup(lender->zygote_fd);
		if (box->lender_fd < 0)
			return nc_err_errno(err, box->lender_fd, "Hold the zygote");
	}
	if (order) {
		note_order(box, order);
		box->end.tier = order->order.tier;
		box->disk_bytes = order->order.limits.disk_bytes;
		box->inodes = order->order.limits.inodes;
		box->means.users = order->order.flags & NC_ORDER_USERS;
	}
	/* nobody's box has them while its first process makes the net namespace */
	r = order ? nc_birth_take_ids(nursery, box, err) : 0;
	if (r < 0)
		return r;
	if (box->end.tier == NC_TIER_PROCESS)
		return begin_process(nursery, box, err);
	box->means.pid_ns = true;
	r = nc_birth_first(nursery, box, err);
	return r < 0 || !nursery->is_filtered ? r : nc_box_hasten(nursery, box, err);
}

int nc_box_hasten(struct nc_nursery *nursery, struct nc_box *box, struct nacre_err *err)
{
	struct nacre_err ignored = {0};
	int r;

	if (box->state != NC_BOX_GROWING || box->end.tier != NC_TIER_CONTAINER)
		return 0;
	r = make_group(nursery, box, box, err);
	/* a zygote is outside of the pid namespace: it would wait for a root that fails */
	if (r < 0 || box->lender_id > 0 ||
		(box->order && box->order->order.flags & NC_ORDER_ZYGOTE))
		return r;
	(void)nc_cradle_clear(&nursery->cradle); /* or it would have the end of a pipe in there */
	/* whoever cannot be made now, or why not, is seen when the root is there */
	if (nc_birth_payload(nursery, box, box, false, &ignored) < 0)
		box->channel_fd = nc_fd_close(box->channel_fd);
	return 0;
}

int nc_box_take(struct nc_nursery *nursery, struct nc_box *box, struct nc_box_pending *order,
	struct nacre_err *err)
{
	assert(!box->ordered);
	note_order(box, order);
	box->deadline_ns = nc_clock_ns() + BIRTH_TIMEOUT_NS;
	if (box->state != NC_BOX_WAITING) /* it follows when the box is there */
		return 0;
	box->state = NC_BOX_STARTING;
	return nc_birth_deliver(nursery, box, err);
}

int nc_box_next(struct nc_nursery *nursery, struct nc_box *box, struct nc_box_pending *order,
	struct nacre_err *err)
{
	int r;

	if (box->state == NC_BOX_WAITING) {
		note_order(box, order);
		box->deadline_ns = nc_clock_ns() + BIRTH_TIMEOUT_NS;
		box->state = NC_BOX_STARTING;
		return nc_birth_deliver(nursery, box, err);
	}
	assert(box->state == NC_BOX_STAYS);
	r = nc_cgroup_remove(&box->group);
	close_kept(box);
	note_order(box, order);
	box->billed = box->deserted = false;
	box->handed_ns = box->started_ns = box->memory_seen_bytes = box->cpu_seen_us = 0;
	box->deadline_ns = nc_clock_ns() + BIRTH_TIMEOUT_NS;
	box->end = (struct nc_box_end){.id = box->end.id, .tier = box->end.tier};
	if (r < 0)
		return nc_err_errno(err, r, "End the last command's control group");
	/* its own: limits and bill are the command's, and one that was killed takes nobody in */
	r = make_group(nursery, box, box, err);
	return r < 0 ? r : make_payload(nursery, box, box, err);
}

int nc_box_join(struct nc_nursery *nursery, const struct nc_box *home, struct nc_box *box,
	struct nc_box_pending *order, struct nacre_err *err)
{
	int r;

	make_blank(box);
	note_order(box, order);
	box->home_id = home->end.id;
	box->end.tier = home->end.tier;
	box->means = home->means;
	box->home_fd = nc_fd_dup(home->init_fd);
	if (box->home_fd < 0)
		return nc_err_errno(err, box->home_fd, "Hold the box");
	if (home->scratch_fd >= 0)
		box->scratch_fd = nc_fd_dup(home->scratch_fd); /* to ask how full it is */
	r = make_group(nursery, box, home, err);
	if (r == 0 && !nc_box_group(box))
		return nc_err_set(err, -EOPNOTSUPP,
			"Without control groups a box runs one command at a time");
	return r < 0 ? r : make_payload(nursery, box, home, err);
}

int nc_box_grown(struct nc_nursery *nursery, struct nc_box *box, struct nacre_err *err)
{
	int r = nc_birth_read_first(nursery, box, err);

	if (r < 0)
		return r;
	if (box->lender_id > 0) {
		box->state = NC_BOX_BORROWING;
		return nc_birth_borrow(box, err);
	}
	if (!box->order)
		box->deadline_ns = UINT64_MAX;
	return make_payload(nursery, box, box, err);
}

int nc_box_lent(struct nc_nursery *nursery, struct nc_box *box, struct nacre_err *err)
{
	int r = nc_birth_take(box, err);

	if (r < 0)
		return r;
	if (!box->order)
		box->deadline_ns = UINT64_MAX;
	box->silent = true;
	box->state = box->order ? NC_BOX_STARTING : NC_BOX_WAITING;
	return box->order ? nc_birth_deliver(nursery, box, err) : 0;
}

int nc_box_heard(struct nc_box *box, struct nacre_err *err)
{
	int r = nc_birth_read_payload(box, err);

	if (r <= 0)
		return r;
	if (r == 1 && (box->silent || box->state == NC_BOX_WAITING ||
			      (box->order && box->order->order.flags & NC_ORDER_AHEAD)))
		return nc_err_set(err, -ECHILD, "The box died while it waited");
	drop_order(box);
	if (r == 2) {
		box->silent = true;
		box->handed_ns = 0;
		box->state = NC_BOX_WAITING;
		box->deadline_ns = UINT64_MAX;
		return 0;
	}
	nc_cgroup_limit_close(&box->group);
	box->started_ns = nc_clock_ns();
	box->deadline_ns = box->started_ns + box->limits.wall_ms * NC_NS_PER_MS;
	box->check_ns = box->started_ns + CHECK_NS;
	box->state = NC_BOX_RUNS;
	return 0;
}

int nc_box_freeze(struct nc_box *box, bool frozen)
{
	uint64_t now = nc_clock_ns();
	int r = nc_box_group(box) ? nc_cgroup_freeze(&box->group, frozen) : -EOPNOTSUPP;

	/* what goes on keeps its clock; ETIMEDOUT: it stops as soon as it can */
	if ((r < 0 && r != -ETIMEDOUT && box->state == NC_BOX_RUNS) ||
		frozen == (box->frozen_ns > 0))
		return r;
	if (!frozen && box->deadline_ns != UINT64_MAX)
		box->deadline_ns += now - box->frozen_ns;
	box->frozen_ns = frozen ? now : 0;
	return r;
}

/* By the programs in it, not by what tells them their limits. */
static uint64_t disk_used(const struct statfs *fs)
{
	uint64_t used = (uint64_t)(fs->f_blocks - fs->f_bfree) * (uint64_t)fs->f_bsize;

	return used > NC_TOLD_BYTES ? used - NC_TOLD_BYTES : 0;
}

void nc_box_look(const struct nc_box *box, struct nc_box_now *ret_now)
{
	const struct nc_cgroup *group = box->shared.parent ? &box->shared : nc_box_group(box);
	struct nc_box_usage *bill = &ret_now->so_far.usage;
	struct nc_cgroup_usage usage;
	struct nc_made made;
	struct statfs fs;

	*ret_now = (struct nc_box_now){
		.id = box->end.id, .frozen = box->frozen_ns > 0, .so_far = box->end};
	if (box->handed_ns > 0)
		bill->wall_ns = nc_clock_ns() - box->handed_ns;
	bill->cpu_user_us = box->cpu_seen_us;
	bill->memory_peak_bytes = box->memory_seen_bytes;
	if (box->scratch_fd >= 0 && fstatfs(box->scratch_fd, &fs) == 0)
		bill->disk_bytes = ret_now->disk_bytes = disk_used(&fs);
	if (!group || nc_cgroup_usage(group, &usage) < 0)
		return;
	nc_bill_take(&ret_now->so_far, group, &usage, nc_box_has_shade(box));
	ret_now->cpu_us = usage.cpu_user_us + usage.cpu_system_us;
	ret_now->memory_bytes = usage.memory_now_bytes;
	ret_now->memory_peak_bytes = usage.memory_peak_bytes;
	ret_now->pids = usage.pids_now - (usage.pids_now > 1 && nc_box_has_shade(box));
	ret_now->io_read_bytes = usage.io_read_bytes;
	ret_now->io_written_bytes = usage.io_written_bytes;
	bill->io_read_bytes = usage.io_read_bytes;
	bill->io_written_bytes = usage.io_written_bytes;
	if (!box->means.pid_ns || box->payload_fd < 0 || box->handed_ns == 0)
		return;
	made = nc_sample_made(box->payload_pid, group);
	ret_now->made = made.count;
	if (made.count > 0 && bill->wall_ns > made.age_ns)
		ret_now->made_ns = bill->wall_ns - made.age_ns;
}

static void kill_all(struct nc_box *box)
{
	if (box->frozen_ns > 0) { /* let go on before that, it would for a moment */
		(void)nc_cgroup_kill(&box->group);
		(void)nc_box_freeze(box, false);
	}
	nc_cgroup_unthrottle(&box->group);
	/* process 1 takes the payload with it */
	if (box->init_fd >= 0 && !box->stays)
		(void)nc_pidfd_kill(box->init_fd, SIGKILL);
	/* but for a zygote, which is not inside */
	if (box->payload_fd >= 0 && (box->init_fd < 0 || box->stays || box->zygote_fd >= 0))
		(void)nc_pidfd_kill(box->payload_fd, SIGKILL);
}

void nc_box_fail(struct nc_box *box)
{
	box->failed = true;
	box->stays = false;
	box->deadline_ns = UINT64_MAX;
	drop_order(box);
	box->report_fd = nc_fd_close(box->report_fd);
	kill_all(box);
	nc_cgroup_rest(&box->group); /* descriptors may be what it failed for */
	box->state = NC_BOX_DYING;
}

/* The box ends although its command has ended before. */
static void end_staying(struct nc_box *box)
{
	box->stays = false;
	box->state = NC_BOX_DYING;
	box->deadline_ns = UINT64_MAX;
	kill_all(box);
}

void nc_box_kill(struct nc_box *box, enum nc_box_cause cause)
{
	if (box->state == NC_BOX_FREE || box->state == NC_BOX_DYING || box->state == NC_BOX_KEPT)
		return;
	/* its end is then seen like any other */
	if (box->end.cause == NC_CAUSE_EXIT)
		box->end.cause = cause;
	if (cause == NC_CAUSE_CANCEL)
		box->stays = false;
	if (box->state == NC_BOX_CLEARING || box->state == NC_BOX_STAYS ||
		box->state == NC_BOX_SETTLED) {
		if (!box->stays && box->home_id == 0)
			end_staying(box);
		return;
	}
	if (box->state != NC_BOX_RUNS) {
		bool told = box->failed;

		nc_box_fail(box);
		box->failed = told;
	}
	box->deadline_ns = UINT64_MAX;
	kill_all(box);
}

static uint64_t microseconds(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000 + (uint64_t)time->tv_usec;
}

/* How the payload ended, and what it and those that it waited for have used. */
static void reap_payload(struct nc_box *box)
{
	struct nc_box_usage *bill = &box->end.usage;
	struct rusage usage = {0};
	siginfo_t info = {0};

	if (box->handed_ns > 0)
		bill->wall_ns = nc_clock_ns() - box->handed_ns;
	(void)syscall(SYS_waitid, P_PIDFD, box->payload_fd, &info, WEXITED | __WALL, &usage);
	box->payload_fd = nc_fd_close(box->payload_fd);
	if (info.si_code == CLD_EXITED)
		box->end.code = (uint32_t)info.si_status;
	else
		box->end.signal = (uint32_t)info.si_status;
	bill->cpu_user_us = microseconds(&usage.ru_utime);
	bill->cpu_system_us = microseconds(&usage.ru_stime);
	bill->memory_peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
	bill->context_switches = (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
	/* the kernel counts blocks of 512 bytes, whatever the disk has */
	bill->io_read_bytes = (uint64_t)usage.ru_inblock * 512;
	bill->io_written_bytes = (uint64_t)usage.ru_oublock * 512;
	if (box->end.signal == SIGXCPU && box->end.cause == NC_CAUSE_EXIT)
		box->end.cause = NC_CAUSE_CPU;
}

static void check_scratch(struct nc_box *box)
{
	struct statfs fs;

	if (box->scratch_fd < 0 || fstatfs(box->scratch_fd, &fs) < 0)
		return;
	box->end.usage.disk_bytes = disk_used(&fs);
	if (fs.f_bfree == 0)
		box->end.hit |= NC_HIT_DISK;
	if (fs.f_ffree == 0)
		box->end.hit |= NC_HIT_INODES;
}

/* Without a group: what process 1 has waited for, since nobody else did. To the tick. */
static void bill_orphans(const struct nc_box *box, struct nc_box_usage *bill)
{
	struct nc_process first;

	if (box->init_fd < 0 || box->stays || nc_process_read(box->init_pid, &first) < 0)
		return;
	bill->cpu_user_us += first.user_us;
	bill->cpu_system_us += first.system_us;
}

static void collect_group(struct nc_box *box)
{
	struct nc_cgroup_usage usage;

	if (!nc_box_group(box) || nc_cgroup_bill(&box->group, &usage) < 0)
		return;
	nc_bill_take(&box->end, &box->group, &usage, nc_box_has_shade(box));
	/* or a shell that tells of it, before we could end it too */
	if (usage.oom_kills > 0 && box->end.cause == NC_CAUSE_EXIT &&
		(box->end.signal == SIGKILL || box->end.code == 128 + SIGKILL))
		box->end.cause = NC_CAUSE_MEMORY;
}

/* The bill, once nobody can add to it. */
static void collect_usage(struct nc_box *box)
{
	struct nc_box_usage *bill = &box->end.usage;

	check_scratch(box);
	if (!nc_box_group(box) || !(box->group.parent->can & NC_CGROUP_CAN_CPU_TIME))
		bill_orphans(box, bill);
	if (bill->memory_peak_bytes < box->memory_seen_bytes)
		bill->memory_peak_bytes = box->memory_seen_bytes;
	collect_group(box);
	nc_bill_close(bill);
}

/* Once nobody can add to it: the bill, and then the group goes. */
static void close_bill(struct nc_box *box)
{
	if (box->billed)
		return;
	collect_usage(box);
	box->billed = true;
	if (box->means.pid_ns)
		(void)nc_cgroup_remove(&box->group);
}

/*
 * The command has ended; what it has left in the box is to die before the next one. A group kills
 * it, or somebody in the pid namespace; who has neither could make no processes.
 */
static void leave_behind(const struct nc_nursery *nursery, struct nc_box *box)
{
	box->state = NC_BOX_CLEARING;
	box->deadline_ns = UINT64_MAX;
	box->check_ns = nc_clock_ns();
	box->clear_ns = box->check_ns + CLEAR_TIMEOUT_NS;
	nc_cgroup_unthrottle(&box->group);
	if (!nc_box_group(box) && box->init_fd >= 0 && nc_birth_sweeper(nursery, box) < 0)
		end_staying(box);
	else if (nc_box_group(box) && nc_cgroup_is_empty(&box->group) != 1)
		(void)nc_cgroup_kill(&box->group); /* looked at again until it has worked */
}

/* With everything dead: gives back what it had. */
static void bury(struct nc_nursery *nursery, struct nc_box *box)
{
	box->end.stays = false;
	nc_freep(&box->first);
	change_fds(box, nc_fd_close);
	(void)nc_cgroup_remove(&box->group);
	(void)nc_cgroup_remove(&box->shared);
	if (box->scratch_made && nc_scratch_remove(&nursery->scratch, box->end.id) < 0)
		fputs("nacre-spawner: directories of a box are left for the next sweep\n", stderr);
	/* a range is given back after everything that has it is gone */
	nc_slot_give_back(&nursery->locks, &box->slot);
	box->state = NC_BOX_KEPT;
}

bool nc_box_clear(struct nc_nursery *nursery, struct nc_box *box, uint64_t now)
{
	/* a group that is gone went with everything in its home */
	int is_empty = nc_box_group(box) ? nc_cgroup_is_empty(&box->group) : 1;

	assert(box->state == NC_BOX_CLEARING);
	if (box->payload_fd >= 0 || (is_empty != 1 && is_empty != -ENOENT)) {
		box->check_ns = now + CLEAR_NS;
		if (now >= box->clear_ns && box->home_id > 0)
			(void)nc_pidfd_kill(box->home_fd, SIGKILL);
		else if (now >= box->clear_ns)
			end_staying(box);
		return false;
	}
	close_bill(box);
	if (box->home_id > 0) {
		bury(nursery, box);
		return true;
	}
	box->listener_fd = nc_fd_close(box->listener_fd);
	box->terminal_fd = nc_fd_close(box->terminal_fd);
	box->end.stays = true;
	box->state = NC_BOX_STAYS;
	return true;
}

/* Without a pid namespace the group ends what is left. What does not die even so is announced. */
static void kill_group(struct nc_box *box)
{
	int r = -ETIMEDOUT;

	for (int i = 0; r < 0 && i < KILL_ROUNDS; i++) {
		r = nc_cgroup_kill(&box->group);
		if (r == 0)
			r = nc_cgroup_wait_empty(&box->group, nc_clock_ns() + NC_NS_PER_S);
	}
	if (r < 0)
		fprintf(stderr, "nacre-spawner: processes of a box do not die: %s\n",
			nc_errno_text(r));
}

/* Nobody is left of those who had joined the group, but for a shade that lives: it is that one. */
static bool is_deserted(const struct nc_box *box)
{
	struct pollfd event = {.fd = box->shade_fd, .events = POLLIN};
	pid_t pids[2];
	int n = nc_cgroup_pids(&box->group, pids, 2);

	return n == 0 || (n == 1 && box->shade_fd >= 0 && poll(&event, 1, 0) == 0);
}

bool nc_box_settle(struct nc_box *box, bool hurries)
{
	if (box->state != NC_BOX_RUNS || box->stays || box->home_id > 0 || box->kept ||
		box->init_fd < 0 || (!nc_box_group(box) && !(hurries && box->deserted)))
		return false;
	/* whoever is left goes with it; the payload is dead, and its status is what it is */
	if (hurries)
		(void)nc_pidfd_kill(box->init_fd, SIGKILL);
	reap_payload(box);
	if (nc_box_group(box) && !is_deserted(box))
		return false;
	collect_usage(box);
	return box->billed = true;
}

bool nc_box_ended(struct nc_nursery *nursery, struct nc_box *box)
{
	if (box->state == NC_BOX_CLEARING) {
		box->payload_fd = nc_pidfd_end(box->payload_fd);
		return false;
	}
	if (box->payload_fd >= 0 || box->state == NC_BOX_RUNS || box->state == NC_BOX_SETTLED) {
		if (box->payload_fd >= 0)
			reap_payload(box);
		if (box->stays || box->home_id > 0) {
			leave_behind(nursery, box);
			return false;
		}
		box->state = NC_BOX_DYING;
		box->deadline_ns = UINT64_MAX;
		if (!box->billed) {
			kill_all(box);
		} else { /* nobody is left, but for a shade */
			(void)nc_pidfd_kill(box->init_fd, SIGKILL);
			if (box->shade_fd < 0)
				(void)nc_cgroup_remove(&box->group); /* or in the end */
		}
		/* while process 1 goes; unless others were left, whom it takes along */
		if (!box->billed && box->init_fd >= 0 && nc_box_group(box) &&
			nc_cgroup_is_empty(&box->group) == 1)
			close_bill(box);
		if (box->init_fd >= 0)
			return false;
	}
	if (!nc_box_group(box)) /* while process 1 can still be asked */
		close_bill(box);
	box->init_fd = nc_pidfd_end(box->init_fd);
	close_bill(box);
	if (box->cleaner_fd < 0 && box->end.tier == NC_TIER_PROCESS && box->scratch_made) {
		if (!box->means.pid_ns && nc_box_group(box))
			kill_group(box);
		box->cleaner_fd = nc_scratch_clean(&nursery->scratch, box->end.id);
		if (box->cleaner_fd >= 0)
			return false;
	}
	box->cleaner_fd = nc_pidfd_end(box->cleaner_fd);
	bury(nursery, box);
	return true;
}

void nc_box_forget(struct nc_box *box)
{
	assert(box->state == NC_BOX_KEPT);
	close_kept(box);
	box->state = NC_BOX_FREE;
}

static void count_denied(struct nc_box_end *end, uint32_t call)
{
	for (size_t i = 0; i < end->n_denied; i++) {
		if (end->denied[i].call == call) {
			end->denied[i].count += end->denied[i].count < UINT32_MAX;
			return;
		}
	}
	if (end->n_denied < NC_DENIED_MAX)
		end->denied[end->n_denied++] = (struct nc_box_denied){call, 1};
}

/*
 * Nobody is left who has the filter, and that is everybody in the box but process 1: all have gone
 * so far that no signal changes any more what they end with. So process 1 dies while they do, and
 * not after them.
 */
static void end_first(const struct nc_box *box)
{
	if (box->state == NC_BOX_RUNS && !box->stays && box->home_id == 0 && !box->kept &&
		box->init_fd >= 0)
		(void)nc_pidfd_kill(box->init_fd, SIGKILL);
}

void nc_box_denied(struct nc_box *box, bool hurries)
{
	/* whoever floods us with refused calls waits for its turn, others do not wait for it */
	for (int i = 0; i < DENIED_AT_ONCE; i++) {
		struct pollfd event = {.fd = box->listener_fd, .events = POLLIN};
		struct seccomp_notif request = {0};
		struct seccomp_notif_resp answer = {.error = -EPERM};

		if (poll(&event, 1, 0) != 1)
			return;
		if (!(event.revents & POLLIN)) { /* nobody is left who could ask */
			box->listener_fd = nc_fd_close(box->listener_fd);
			box->deserted = true;
			if (hurries)
				end_first(box);
			return;
		}
		if (ioctl(box->listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
			continue; /* it was killed meanwhile */
		count_denied(&box->end, (uint32_t)request.data.nr);
		answer.id = request.id;
		(void)ioctl(box->listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &answer); /* the same */
	}
}

/* Since Linux 6.2 the size of this directory is how many there are. */
static bool has_all_files(pid_t pid, uint64_t limit)
{
	struct stat status;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	return stat(path, &status) == 0 && status.st_size >= (off_t)limit;
}

static void check_files(struct nc_box *box)
{
	pid_t pids[WATCHED_MAX] = {box->payload_pid};
	int n = nc_box_group(box) ? nc_cgroup_pids(&box->group, pids, WATCHED_MAX) : 1;

	for (int i = 0; i < n; i++)
		if (has_all_files(pids[i], box->limits.open_files))
			box->end.hit |= NC_HIT_FILES;
}

/* When the CPU time that is left can be used up at the earliest; 0: it is. */
static uint64_t cpu_time_left_ns(const struct nc_box *box)
{
	uint64_t limit_us = box->limits.cpu_time_ms * 1000, used_us = 0;

	if (limit_us == 0 || !nc_box_group(box) || nc_cgroup_cpu_us(&box->group, &used_us) < 0)
		return UINT64_MAX;
	if (used_us >= limit_us)
		return 0;
	/* one CPU more than the quota rounds up to, since the kernel settles it by slices */
	return (limit_us - used_us) * 1000 / (box->limits.cpu_milli / 1000 + 1) + NC_NS_PER_MS;
}

/* Where no group counts what its processes use together, they are looked at one by one. */
static void check_by_looking(struct nc_box *box)
{
	const pid_t roots[] = {box->payload_pid, box->init_pid};
	unsigned int can = box->group.parent ? box->group.parent->can : 0;
	struct nc_sample sample;

	if (can & NC_CGROUP_CAN_MEMORY ||
		nc_sample_take(roots, 2, box->limits.memory_bytes, &sample) < 0)
		return;
	if (box->memory_seen_bytes < sample.memory_bytes)
		box->memory_seen_bytes = sample.memory_bytes;
	if (box->cpu_seen_us < sample.cpu_us)
		box->cpu_seen_us = sample.cpu_us;
	if (sample.memory_bytes > box->limits.memory_bytes)
		nc_box_kill(box, NC_CAUSE_MEMORY);
	else if (!(can & NC_CGROUP_CAN_CPU_TIME) && box->limits.cpu_time_ms > 0 &&
		 sample.cpu_us >= box->limits.cpu_time_ms * 1000)
		nc_box_kill(box, NC_CAUSE_CPU);
}

uint64_t nc_box_check(struct nc_box *box, uint64_t now)
{
	struct nc_cgroup_usage usage;
	uint64_t left = cpu_time_left_ns(box);

	if (left == 0) {
		nc_box_kill(box, NC_CAUSE_CPU);
	} else if (nc_box_group(box) && nc_cgroup_bill(&box->group, &usage) == 0 &&
		   usage.oom_kills > 0) {
		nc_box_kill(box, NC_CAUSE_MEMORY);
	}
	check_by_looking(box);
	check_scratch(box);
	check_files(box);
	if (box->zygote_fd >= 0) /* nothing foreign runs there */
		return now + 100 * CHECK_NS;
	return now + (left < CHECK_NS ? left : CHECK_NS);
}
