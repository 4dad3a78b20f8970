/*
 * Killing and freezing whole groups.
 *
 * cgroup.kill of version 2 (Linux 5.14) does it in the kernel, also in a tree without controllers.
 * Without it the group is frozen, so that nothing forks or exits, then every process listed is
 * killed, then it is thawed to die, until the list is empty. Between reading a pid and opening it a
 * process may die and its number go to somebody else: a process is killed only if its pid is still
 * listed after its pidfd was opened. If the pid has changed hands before the opening, the new
 * holder is not listed; if after it, the pidfd names the dead.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/pidfd.h"
#include "kernel/cgroup_face.h"

#define BATCH 64

/* Reads the pids of an open list, piece by piece. */
struct list {
	int fd;
	char text[1024];
	size_t size, at;
};

/* The next pid to *ret_pid: 1; 0: the list is at its end; or -errno. */
static int list_next(struct list *list, pid_t *ret_pid)
{
	pid_t pid = 0;
	bool any = false;

	for (;;) {
		char c;

		if (list->at == list->size) {
			ssize_t n = read(list->fd, list->text, sizeof(list->text));

			if (n < 0 && errno == EINTR)
				continue;
			if (n < 0)
				return -errno;
			if (n == 0)
				break;
			list->size = (size_t)n;
			list->at = 0;
		}
		c = list->text[list->at++];
		if (c == '\n')
			break;
		if (c < '0' || c > '9' || pid > 400000000)
			return -EPROTO;
		pid = pid * 10 + (c - '0');
		any = true;
	}
	*ret_pid = pid;
	return any;
}

static int list_open(struct list *list, const struct nc_cgroup_place *place)
{
	list->size = list->at = 0;
	/* opened anew each time: version 1 shows an open file the list of its first reading */
	list->fd = nc_cgroup_open_file(place, "cgroup.procs", O_RDONLY);
	return list->fd < 0 ? list->fd : 0;
}

struct batch {
	size_t n;
	pid_t pid[BATCH];
	int pidfd[BATCH];
	bool listed[BATCH];
};

/* Opens up to BATCH of the processes that the list goes on with. 0: that was its end. */
static int batch_fill(struct batch *batch, struct list *list)
{
	pid_t pid = 0;
	int r = 1;

	batch->n = 0;
	while (batch->n < BATCH && (r = list_next(list, &pid)) > 0) {
		int pidfd;

		/* 0: a process of a pid namespace that we cannot see into */
		if (pid <= 1 || pid == getpid())
			continue;
		pidfd = nc_pidfd_open(pid);
		if (pidfd < 0)
			continue; /* it has died; the next round looks again */
		batch->pid[batch->n] = pid;
		batch->pidfd[batch->n] = pidfd;
		batch->listed[batch->n] = false;
		batch->n++;
	}
	return r;
}

static int batch_check(struct batch *batch, const struct nc_cgroup_place *place)
{
	struct list list;
	pid_t pid = 0;
	int r = list_open(&list, place);

	if (r < 0)
		return r;
	while ((r = list_next(&list, &pid)) > 0)
		for (size_t i = 0; i < batch->n; i++)
			batch->listed[i] |= batch->pid[i] == pid;
	(void)nc_fd_close(list.fd);
	return r;
}

static int kill_listed(const struct nc_cgroup_place *place)
{
	struct list list;
	struct batch batch;
	int more, r = list_open(&list, place);

	if (r < 0)
		return r;
	do {
		more = batch_fill(&batch, &list);
		r = batch.n ? batch_check(&batch, place) : 0;
		for (size_t i = 0; i < batch.n; i++) {
			if (r >= 0 && batch.listed[i])
				(void)nc_pidfd_kill(batch.pidfd[i], SIGKILL); /* or it is gone */
			(void)nc_fd_close(batch.pidfd[i]);
		}
	} while (more > 0 && r >= 0);
	(void)nc_fd_close(list.fd);
	return more < 0 ? more : r;
}

int nc_cgroup_place_pids(const struct nc_cgroup_place *place, pid_t *ret_pids, size_t max)
{
	struct list list;
	size_t n = 0;
	int r = list_open(&list, place);

	if (r < 0)
		return r;
	while (n < max && (r = list_next(&list, &ret_pids[n])) > 0)
		n++;
	(void)nc_fd_close(list.fd);
	return r < 0 ? r : (int)n;
}

int nc_cgroup_place_busy(const struct nc_cgroup_place *place, bool v2)
{
	struct list list;
	char text[256];
	uint64_t populated = 1;
	pid_t pid = 0;
	int r;

	if (v2) {
		r = nc_cgroup_read_file(place, "cgroup.events", text, sizeof(text));
		if (r < 0)
			return r;
		nc_cgroup_field(text, "populated", &populated);
		return populated != 0;
	}
	r = list_open(&list, place);
	if (r < 0)
		return r;
	r = list_next(&list, &pid);
	(void)nc_fd_close(list.fd);
	return r;
}

/* Whether all of the group stands still. */
static int is_frozen(const struct nc_cgroup_place *place, bool v2)
{
	char text[256];
	uint64_t frozen = 0;
	int r = nc_cgroup_read_file(
		place, v2 ? "cgroup.events" : "freezer.state", text, sizeof(text));

	if (r < 0)
		return r;
	if (!v2)
		return strcmp(text, "FROZEN\n") == 0;
	nc_cgroup_field(text, "frozen", &frozen);
	return frozen != 0;
}

static int place_freeze(const struct nc_cgroup_place *place, bool v2, bool frozen)
{
	uint64_t deadline_ns = nc_clock_ns() + NC_CGROUP_STEP_MS * NC_NS_PER_MS;
	unsigned int moment_us = 0;
	int r;

	if (v2)
		r = nc_cgroup_write_file(place, "cgroup.freeze", frozen ? "1" : "0");
	else
		r = nc_cgroup_write_file(place, "freezer.state", frozen ? "FROZEN" : "THAWED");
	if (r == -ENOENT)
		return -EOPNOTSUPP;
	while (r == 0 && frozen) {
		r = is_frozen(place, v2);
		if (r != 0)
			return r < 0 ? r : 0;
		if (nc_clock_ns() >= deadline_ns)
			return -ETIMEDOUT;
		nc_cgroup_pause(&moment_us);
	}
	return r;
}

int nc_cgroup_place_kill_listed(const struct nc_cgroup_place *place, bool v2)
{
	uint64_t deadline_ns = nc_clock_ns() + NC_CGROUP_STEP_MS * NC_NS_PER_MS;
	unsigned int moment_us = 0;

	for (;;) {
		int killed, r;

		/* what does not freeze in time, or at all, is killed as well as can be */
		(void)place_freeze(place, v2, true);
		killed = kill_listed(place);
		/* also after a failure: nobody stays frozen */
		r = place_freeze(place, v2, false);
		if (killed < 0 || (r < 0 && r != -EOPNOTSUPP))
			return killed < 0 ? killed : r;
		r = nc_cgroup_place_busy(place, v2);
		if (r <= 0)
			return r;
		if (nc_clock_ns() >= deadline_ns)
			return -ETIMEDOUT;
		nc_cgroup_pause(&moment_us);
	}
}

int nc_cgroup_place_kill(const struct nc_cgroup_place *place, bool v2)
{
	int r = v2 ? nc_cgroup_write_file(place, "cgroup.kill", "1") : -ENOENT;

	return r == -ENOENT ? nc_cgroup_place_kill_listed(place, v2) : r;
}

/* The tree that kills and freezes best: version 2, else the freezer, else any. */
static int main_tree(const struct nc_cgroup *group, struct nc_cgroup_place *place, bool *ret_v2)
{
	const struct nc_cgroup_parent *parent = group->parent;
	size_t best = NC_CGROUP_TREES_MAX;

	for (size_t i = 0; parent && i < parent->n_trees; i++) {
		if (!(group->made & (1U << i)))
			continue;
		if (best == NC_CGROUP_TREES_MAX ||
			parent->tree[i].controllers & (1U << NC_CGROUP_FREEZER))
			best = i;
		if (parent->tree[i].v2)
			break;
	}
	if (best == NC_CGROUP_TREES_MAX)
		return -EOPNOTSUPP;
	place->fd = parent->tree[best].fd;
	place->name = group->name;
	*ret_v2 = parent->tree[best].v2;
	return 0;
}

void nc_cgroup_unthrottle(const struct nc_cgroup *group)
{
	const struct nc_cgroup_parent *parent = group->parent;

	for (size_t i = 0; parent && i < parent->n_trees; i++) {
		const struct nc_cgroup_tree *tree = &parent->tree[i];
		struct nc_cgroup_place place = {tree->fd, group->name};

		/* if it cannot be had, death takes longer */
		if (tree->controllers & (1U << NC_CGROUP_CPU) && group->made & (1U << i))
			(void)nc_cgroup_write_file(&place,
				tree->v2 ? "cpu.max" : "cpu.cfs_quota_us", tree->v2 ? "max" : "-1");
	}
}

int nc_cgroup_kill(struct nc_cgroup *group)
{
	struct nc_cgroup_place place;
	bool v2;
	int r = main_tree(group, &place, &v2);

	if (r < 0)
		return r;
	return nc_cgroup_place_kill(&place, v2);
}

int nc_cgroup_freeze(const struct nc_cgroup *group, bool frozen)
{
	struct nc_cgroup_place place;
	bool v2;
	int r = main_tree(group, &place, &v2);

	return r < 0 ? r : place_freeze(&place, v2, frozen);
}

int nc_cgroup_pids(const struct nc_cgroup *group, pid_t *ret_pids, size_t max)
{
	struct nc_cgroup_place place;
	bool v2;
	int r = main_tree(group, &place, &v2);

	return r < 0 ? r : nc_cgroup_place_pids(&place, ret_pids, max);
}

int nc_cgroup_is_empty(const struct nc_cgroup *group)
{
	const struct nc_cgroup_parent *parent = group->parent;

	/* all of them: a child that died while joining may have been in some only */
	for (size_t i = 0; parent && i < parent->n_trees; i++) {
		struct nc_cgroup_place place = {parent->tree[i].fd, group->name};
		int r = group->made & (1U << i) ? nc_cgroup_place_busy(&place, parent->tree[i].v2)
						: 0;

		if (r != 0)
			return r < 0 ? r : 0;
	}
	return 1;
}

int nc_cgroup_wait_empty(const struct nc_cgroup *group, uint64_t deadline_ns)
{
	unsigned int moment_us = 0;

	for (;;) {
		int r = nc_cgroup_is_empty(group);

		if (r != 0)
			return r < 0 ? r : 0;
		if (nc_clock_ns() >= deadline_ns)
			return -ETIMEDOUT;
		nc_cgroup_pause(&moment_us);
	}
}
