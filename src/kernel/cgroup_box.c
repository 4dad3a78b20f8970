/* The group of one box: made with its limits, joined, read, removed. */
#include "kernel/cgroup_box.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "kernel/cgroup_face.h"

static const struct nc_cgroup_limits no_limits = {0};

static struct nc_cgroup_place place_of(const struct nc_cgroup *group, size_t tree)
{
	return (struct nc_cgroup_place){group->parent->tree[tree].fd, group->name};
}

static bool is_in(const struct nc_cgroup *group, size_t tree)
{
	return group->made & (1U << tree);
}

static void group_init(struct nc_cgroup *group)
{
	*group = (struct nc_cgroup){.clone_fd = -EBADF};
	for (size_t i = 0; i < NC_CGROUP_TREES_MAX; i++)
		group->join_fd[i] = -EBADF;
	for (size_t i = 0; i < NC_CGROUP_GAUGES_MAX; i++)
		group->gauge_fd[i] = -EBADF;
	for (size_t i = 0; i < NC_CGROUP_CONTROLLER_MAX; i++)
		for (size_t k = 0; k < NC_CGROUP_KNOBS_MAX; k++)
			group->knob_fd[i][k] = -EBADF;
}

void nc_cgroup_limit_close(struct nc_cgroup *group)
{
	if (!group->parent)
		return;
	for (size_t i = 0; i < NC_CGROUP_CONTROLLER_MAX; i++)
		for (size_t k = 0; k < NC_CGROUP_KNOBS_MAX; k++)
			group->knob_fd[i][k] = nc_fd_close(group->knob_fd[i][k]);
}

void nc_cgroup_join_close(struct nc_cgroup *group)
{
	if (!group->parent)
		return;
	group->clone_fd = nc_fd_close(group->clone_fd);
	for (size_t i = 0; i < NC_CGROUP_TREES_MAX; i++)
		group->join_fd[i] = nc_fd_close(group->join_fd[i]);
}

void nc_cgroup_rest(struct nc_cgroup *group)
{
	if (!group->parent)
		return;
	nc_cgroup_join_close(group);
	nc_cgroup_limit_close(group);
	for (size_t i = 0; i < NC_CGROUP_GAUGES_MAX; i++)
		group->gauge_fd[i] = nc_fd_close(group->gauge_fd[i]);
	group->rests = true;
}

int nc_cgroup_remove(struct nc_cgroup *group)
{
	int error = 0;

	if (!group->parent)
		return 0;
	for (size_t i = 0; i < group->parent->n_trees; i++) {
		struct nc_cgroup_place place = place_of(group, i);
		int r = is_in(group, i) ? nc_cgroup_place_remove(&place) : 0;

		if (r == 0)
			group->made &= ~(1U << i);
		else if (error == 0)
			error = r;
	}
	if (error < 0)
		return error;
	nc_cgroup_rest(group);
	*group = (struct nc_cgroup){0};
	return 0;
}

static void group_removep(struct nc_cgroup *group)
{
	(void)nc_cgroup_remove(group); /* nobody has been in it: it goes */
}

static int open_joins(struct nc_cgroup *group, struct nacre_err *err)
{
	for (size_t i = 0; i < group->parent->n_trees; i++) {
		const struct nc_cgroup_tree *tree = &group->parent->tree[i];
		struct nc_cgroup_place place = place_of(group, i);
		int *fd = tree->v2 ? &group->clone_fd : &group->join_fd[i];

		if (!is_in(group, i))
			continue;
		*fd = nc_cgroup_open_file(&place, tree->v2 ? "." : "tasks",
			tree->v2 ? O_RDONLY | O_DIRECTORY : O_WRONLY);
		if (*fd < 0)
			return nc_err_errno(err, *fd, "Open group '%s' to join it", group->name);
	}
	return 0;
}

static int open_gauges(struct nc_cgroup *group, struct nacre_err *err)
{
	for (size_t i = 0; i < group->parent->n_gauges; i++) {
		const struct nc_cgroup_gauge *gauge = group->parent->gauge[i].gauge;
		struct nc_cgroup_place place = place_of(group, group->parent->gauge[i].tree);
		int fd;

		if (!is_in(group, group->parent->gauge[i].tree) || gauge->rare)
			continue;
		fd = gauge->writable ? nc_cgroup_open_file(&place, gauge->file, O_RDWR) : -EACCES;
		if (gauge->writable)
			group->peak_resets = fd >= 0;
		if (fd == -EACCES || fd == -EINVAL)
			fd = nc_cgroup_open_file(&place, gauge->file, O_RDONLY);
		/* counters that came with later kernels */
		if (fd < 0 && fd != -ENOENT)
			return nc_err_errno(
				err, fd, "Open %s of group '%s'", gauge->file, group->name);
		group->gauge_fd[i] = fd < 0 ? -EBADF : fd;
	}
	return 0;
}

static uint64_t limit_of(const struct nc_cgroup_limits *limits, size_t controller)
{
	switch ((enum nc_cgroup_controller)controller) {
	case NC_CGROUP_MEMORY:
		return limits->memory_bytes;
	case NC_CGROUP_CPU:
		return limits->cpu_milli;
	case NC_CGROUP_PIDS:
		return limits->pids;
	case NC_CGROUP_IO:
	case NC_CGROUP_FREEZER:
	case NC_CGROUP_CPUACCT:
	case NC_CGROUP_CONTROLLER_MAX:
		break;
	}
	return 0;
}

/* Whether everything that is asked for can be had at all. */
static int check_limits(const struct nc_cgroup_parent *parent,
	const struct nc_cgroup_limits *limits, struct nacre_err *err)
{
	for (size_t i = 0; i < NC_CGROUP_CONTROLLER_MAX; i++)
		if (limit_of(limits, i) && !(parent->can & nc_cgroup_v1[i].can))
			return nc_err_set(err, -EOPNOTSUPP,
				"No %s limit: no control group with that controller can be made "
				"here",
				nc_cgroup_v1[i].name);
	if (limits->memory_bytes && parent->swap_unknown)
		return nc_err_set(err, -EOPNOTSUPP,
			"No memory limit that covers swap: this kernel does not count swap per "
			"group (swapaccount=1 at boot)");
	if (limits->memory_bytes && nc_cgroup_pages(limits->memory_bytes) == 0)
		return nc_err_set(err, -EINVAL, "A memory limit below one page");
	return 0;
}

static const struct nc_cgroup_face *faces_of(const struct nc_cgroup_tree *tree)
{
	return tree->v2 ? nc_cgroup_v2 : nc_cgroup_v1;
}

/* Sets the limits that differ from those that the group has. */
static int set_limits(struct nc_cgroup *group, const struct nc_cgroup_limits *limits, bool in_use,
	struct nacre_err *err)
{
	const struct nc_cgroup_parent *parent = group->parent;

	for (size_t i = 0; i < parent->n_trees; i++) {
		const struct nc_cgroup_face *faces = faces_of(&parent->tree[i]);

		for (size_t k = 0; k < NC_CGROUP_CONTROLLER_MAX; k++) {
			uint64_t value = limit_of(limits, k), old = limit_of(&group->limits, k);
			struct nc_cgroup_setting setting = {place_of(group, i), faces[k].knob,
				group->knob_fd[k], value, old == 0, in_use, parent->can};
			int r;

			if (!is_in(group, i) || !(parent->tree[i].controllers & (1U << k)) ||
				value == old)
				continue;
			r = faces[k].limit(&setting, err);
			if (r < 0)
				return r;
		}
	}
	group->limits = *limits;
	return 0;
}

/* Opens what limits are written to, for nc_cgroup_limit: most of its time would go into that. */
static int open_knobs(struct nc_cgroup *group, struct nacre_err *err)
{
	const struct nc_cgroup_parent *parent = group->parent;

	for (size_t i = 0; i < parent->n_trees * NC_CGROUP_CONTROLLER_MAX; i++) {
		const struct nc_cgroup_tree *tree = &parent->tree[i / NC_CGROUP_CONTROLLER_MAX];
		size_t controller = i % NC_CGROUP_CONTROLLER_MAX;
		struct nc_cgroup_place place = {tree->fd, group->name};

		if (!is_in(group, i / NC_CGROUP_CONTROLLER_MAX) ||
			!(tree->controllers & (1U << controller)))
			continue;
		for (size_t k = 0; k < NC_CGROUP_KNOBS_MAX; k++) {
			const struct nc_cgroup_face *face = &faces_of(tree)[controller];
			const char *file =
				face->rare_from && k >= face->rare_from ? NULL : face->knob[k];
			int fd = file ? nc_cgroup_open_file(&place, file, O_RDWR) : -ENOENT;

			/* some kernels count no swap */
			if (fd < 0 && fd != -ENOENT)
				return nc_err_errno(
					err, fd, "Open %s of group '%s'", file, group->name);
			group->knob_fd[controller][k] = fd < 0 ? -EBADF : fd;
		}
	}
	return 0;
}

/* The limits of a group that nobody is in; NULL: they come later. */
static int begin_limits(
	struct nc_cgroup *group, const struct nc_cgroup_limits *limits, struct nacre_err *err)
{
	int r = set_limits(group, limits ? limits : &no_limits, false, err);

	nc_cgroup_limit_close(group);
	return r < 0 || limits ? r : open_knobs(group, err);
}

/* name is its path below the parent. */
static int make_group(const struct nc_cgroup_parent *parent, enum nc_cgroup_kind kind,
	const char *name, const struct nc_cgroup_limits *limits, struct nc_cgroup *ret_group,
	struct nacre_err *err)
{
	nc_cleanup(group_removep) struct nc_cgroup group = {0};
	int r = check_limits(parent, limits ? limits : &no_limits, err);

	if (r < 0)
		return r;
	group_init(&group);
	group.parent = parent;
	(void)snprintf(group.name, sizeof(group.name), "%s", name);
	for (size_t i = 0; i < parent->n_trees; i++) {
		if (!(parent->tree[i].kinds & kind))
			continue;
		if (mkdirat(parent->tree[i].fd, name, 0755) < 0)
			return nc_err_errno(err, -errno, "Make the control group '%s'", name);
		group.made |= 1U << i;
	}
	r = begin_limits(&group, limits, err);
	if (r == 0)
		r = open_joins(&group, err);
	if (r == 0)
		r = open_gauges(&group, err);
	if (r < 0)
		return r;
	*ret_group = group;
	group = (struct nc_cgroup){0};
	return 0;
}

static int check_name(const char *name, struct nacre_err *err)
{
	char quoted[NC_TEXT_QUOTED_MAX];

	return nc_cgroup_name_ok(name) ? 0
				       : nc_err_set(err, -EINVAL, "%s cannot name a control group",
						 nc_text_quote(quoted, name));
}

int nc_cgroup_make(const struct nc_cgroup_parent *parent, enum nc_cgroup_kind kind,
	const char *name, const struct nc_cgroup_limits *limits, struct nc_cgroup *ret_group,
	struct nacre_err *err)
{
	int r = check_name(name, err);

	return r < 0 ? r : make_group(parent, kind, name, limits, ret_group, err);
}

int nc_cgroup_make_below(const struct nc_cgroup *above, const char *name,
	const struct nc_cgroup_limits *limits, struct nc_cgroup *ret_group, struct nacre_err *err)
{
	char path[sizeof(above->name)];
	int r = check_name(name, err);

	if (r == 0 && snprintf(path, sizeof(path), "%s/%s", above->name, name) >= (int)sizeof(path))
		r = nc_err_errno(err, -ENAMETOOLONG, "Name a control group");
	return r < 0 ? r
		     : make_group(above->parent, NC_CGROUP_FOR_HOME, path, limits, ret_group, err);
}

int nc_cgroup_share(const struct nc_cgroup *group, struct nacre_err *err)
{
	for (size_t i = 0; i < group->parent->n_trees; i++) {
		struct nc_cgroup_place place = place_of(group, i);
		int r = is_in(group, i) && group->parent->tree[i].v2
				? nc_cgroup_hand_down(&place, group->parent->tree[i].controllers)
				: 0;

		if (r < 0)
			return nc_err_errno(err, r, "Hand controllers down from '%s'", group->name);
	}
	return 0;
}

/* The slow way into the version 2 tree, for which no descriptor is kept. */
static int join_v2(const struct nc_cgroup *group)
{
	cleanup_close int fd = openat(group->clone_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);

	return fd < 0 || write(fd, "0", 1) < 0 ? -errno : 0;
}

int nc_cgroup_join_self(const struct nc_cgroup *group, bool cloned)
{
	/* the version 2 tree is the first: what kills the group reaches us from there on */
	for (size_t i = 0; i < group->parent->n_trees; i++) {
		bool v2 = group->parent->tree[i].v2;
		int r = 0;

		if (!is_in(group, i))
			continue;
		if (v2 && !cloned)
			r = join_v2(group);
		else if (!v2 && write(group->join_fd[i], "0", 1) < 0)
			r = -errno;
		if (r < 0)
			return r;
	}
	return 0;
}

enum reading { READ_TIME, READ_BILL, READ_ALL };

/* One counter's file. -ENOENT: this kernel has none. */
static int read_gauge(const struct nc_cgroup *group, size_t i, char *text, size_t size)
{
	const struct nc_cgroup_gauge *gauge = group->parent->gauge[i].gauge;
	struct nc_cgroup_place place = place_of(group, group->parent->gauge[i].tree);

	if (gauge->rare || group->rests)
		return nc_cgroup_read_file(&place, gauge->file, text, size);
	return group->gauge_fd[i] < 0 ? -ENOENT : nc_cgroup_read(group->gauge_fd[i], text, size);
}

/* Never below 0: a counter that the kernel sums up per CPU may seem to go back for a moment. */
static void subtract(uint64_t *value, uint64_t before)
{
	*value -= before < *value ? before : *value;
}

static int read_gauges(
	const struct nc_cgroup *group, enum reading reading, struct nc_cgroup_usage *ret_usage)
{
	struct nc_cgroup_usage usage = {0};
	char text[NC_CGROUP_FILE_MAX] __attribute__((uninitialized));

	for (size_t i = 0; i < group->parent->n_gauges; i++) {
		const struct nc_cgroup_gauge *gauge = group->parent->gauge[i].gauge;
		int r;

		if (!is_in(group, group->parent->gauge[i].tree) ||
			(reading == READ_TIME && !gauge->time) ||
			(reading < READ_ALL && gauge->rare))
			continue;
		r = read_gauge(group, i, text, sizeof(text));
		/* a counter of later kernels; a disk that counts nothing for groups, on some */
		if (r == -ENOENT || r == -EOPNOTSUPP)
			continue;
		if (r < 0)
			return r;
		gauge->take(text, &usage);
	}
	subtract(&usage.cpu_user_us, group->before_user_us);
	subtract(&usage.cpu_system_us, group->before_system_us);
	*ret_usage = usage;
	return 0;
}

int nc_cgroup_usage(const struct nc_cgroup *group, struct nc_cgroup_usage *ret_usage)
{
	return read_gauges(group, READ_ALL, ret_usage);
}

int nc_cgroup_bill(const struct nc_cgroup *group, struct nc_cgroup_usage *ret_usage)
{
	return read_gauges(group, READ_BILL, ret_usage);
}

int nc_cgroup_cpu_us(const struct nc_cgroup *group, uint64_t *ret_us)
{
	struct nc_cgroup_usage usage;
	int r = group->parent->can & NC_CGROUP_CAN_CPU_TIME ? read_gauges(group, READ_TIME, &usage)
							    : -EOPNOTSUPP;

	if (r < 0)
		return r;
	*ret_us = usage.cpu_user_us + usage.cpu_system_us;
	return 0;
}

/* Sets the memory peak to what is charged now. -EOPNOTSUPP: the kernel cannot. */
static int forget_peak(struct nc_cgroup *group)
{
	for (size_t i = 0; group->peak_resets && i < group->parent->n_gauges; i++) {
		if (!group->parent->gauge[i].gauge->writable ||
			pwrite(group->gauge_fd[i], "0", 1, 0) >= 0)
			continue;
		if (errno != EINVAL)
			return -errno;
		/* before Linux 6.12 version 2 lets root open it for writing, but not write */
		group->peak_resets = false;
	}
	return group->peak_resets ? 0 : -EOPNOTSUPP;
}

static int forget_time(struct nc_cgroup *group, struct nacre_err *err)
{
	struct nc_cgroup_usage usage;
	int r;

	group->before_user_us = group->before_system_us = 0;
	r = read_gauges(group, READ_TIME, &usage);
	if (r < 0)
		return nc_err_errno(err, r, "Read the time of group '%s'", group->name);
	group->before_user_us = usage.cpu_user_us;
	group->before_system_us = usage.cpu_system_us;
	return 0;
}

int nc_cgroup_limit(
	struct nc_cgroup *group, const struct nc_cgroup_limits *limits, struct nacre_err *err)
{
	int r = check_limits(group->parent, limits, err);

	if (r == 0)
		r = set_limits(group, limits, true, err);
	if (r < 0)
		return r;
	r = forget_peak(group);
	if (r < 0 && r != -EOPNOTSUPP)
		return nc_err_errno(err, r, "Reset the memory peak of group '%s'", group->name);
	return forget_time(group, err);
}
