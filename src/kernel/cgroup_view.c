/* Groups that somebody else has made. */
#include "kernel/cgroup_view.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "base/fd.h"
#include "base/text.h"
#include "kernel/cgroup_face.h"

void nc_cgroup_view_close(struct nc_cgroup_view *view)
{
	for (size_t i = 0; i < view->n_trees; i++)
		view->tree[i].fd = nc_fd_close(view->tree[i].fd);
	view->n_trees = 0;
}

static int open_tree_of(struct nc_cgroup_view *view, const char *dir)
{
	cleanup_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs type;

	if (fd < 0 || fstatfs(fd, &type) < 0)
		return -errno;
	/* what only looks like a group would be believed */
	if (type.f_type != CGROUP_SUPER_MAGIC && type.f_type != CGROUP2_SUPER_MAGIC)
		return -ENOTSUP;
	view->tree[view->n_trees].v2 = type.f_type == CGROUP2_SUPER_MAGIC;
	view->tree[view->n_trees++].fd = take_fd(fd);
	return 0;
}

int nc_cgroup_view_open(struct nc_cgroup_view *ret_view, const char *const *dirs, size_t n_dirs)
{
	struct nc_cgroup_view view = {0};
	int r = n_dirs > 0 && n_dirs <= NC_CGROUP_TREES_MAX ? 0 : -EINVAL;

	for (size_t i = 0; r == 0 && i < n_dirs; i++)
		r = open_tree_of(&view, dirs[i]);
	if (r < 0)
		nc_cgroup_view_close(&view);
	else
		*ret_view = view;
	return r;
}

/* Adds what the file counts. Whether the group has it. */
static bool take(int fd, const struct nc_cgroup_gauge *gauge, struct nc_cgroup_usage *usage)
{
	const struct nc_cgroup_place place = {fd, "."};
	char text[NC_CGROUP_FILE_MAX];

	if (nc_cgroup_read_file(&place, gauge->file, text, sizeof(text)) < 0)
		return false;
	gauge->take(text, usage);
	return true;
}

int nc_cgroup_view_usage(
	const struct nc_cgroup_view *view, struct nc_cgroup_usage *ret_usage, unsigned int *ret_can)
{
	struct nc_cgroup_usage usage = {0};
	unsigned int can = 0;
	pid_t none;
	int r = nc_cgroup_view_pids(view, &none, 0);

	if (r < 0)
		return r;
	for (size_t i = 0; i < view->n_trees; i++) {
		const struct nc_cgroup_face *faces = view->tree[i].v2 ? nc_cgroup_v2 : nc_cgroup_v1;
		int fd = view->tree[i].fd;

		for (size_t c = 0; c < NC_CGROUP_CONTROLLER_MAX; c++)
			for (const struct nc_cgroup_gauge *gauge = faces[c].gauge; gauge->file;
				gauge++)
				can |= take(fd, gauge, &usage) ? faces[c].can : 0;
		if (view->tree[i].v2 && take(fd, &nc_cgroup_v2_time, &usage))
			can |= NC_CGROUP_CAN_CPU_TIME;
	}
	*ret_usage = usage;
	*ret_can = can;
	return 0;
}

uint64_t nc_cgroup_view_memory_limit(const struct nc_cgroup_view *view)
{
	for (size_t i = 0; i < view->n_trees; i++) {
		const struct nc_cgroup_place place = {view->tree[i].fd, "."};
		const struct nc_cgroup_face *faces = view->tree[i].v2 ? nc_cgroup_v2 : nc_cgroup_v1;
		char text[64];
		uint64_t limit;

		if (nc_cgroup_read_file(&place, faces[NC_CGROUP_MEMORY].file, text, sizeof(text)) <
			0)
			continue;
		limit = nc_cgroup_number(text); /* 0 for "max" */
		return limit < nc_cgroup_pages_max() ? limit : 0;
	}
	return 0;
}

/* The tree that kills best: version 2, else any: that of the freezer is found by its file. */
static size_t main_tree(const struct nc_cgroup_view *view)
{
	size_t best = 0;

	for (size_t i = 0; i < view->n_trees; i++) {
		const struct nc_cgroup_place place = {view->tree[i].fd, "."};

		if (view->tree[i].v2)
			return i;
		if (nc_cgroup_has_file(&place, "freezer.state"))
			best = i;
	}
	return best;
}

int nc_cgroup_view_pids(const struct nc_cgroup_view *view, pid_t *ret_pids, size_t max)
{
	const struct nc_cgroup_place place = {view->tree[main_tree(view)].fd, "."};

	return nc_cgroup_place_pids(&place, ret_pids, max);
}

/* Whether fd is the directory, or one above it. */
static bool is_at_or_above(int fd, const char *dir)
{
	struct stat group, above;
	char path[4096];

	if (!dir || fstat(fd, &group) < 0 || snprintf(path, sizeof(path), "%s", dir) < 0)
		return false;
	for (char *end = path + strlen(path); end && end != path; end = strrchr(path, '/')) {
		*end = '\0';
		if (stat(path, &above) == 0 && above.st_dev == group.st_dev &&
			above.st_ino == group.st_ino)
			return true;
	}
	return false;
}

/* cgroup.kill also kills what is in groups below: are we? If it cannot be told, we may be. */
static bool has_us(const struct nc_cgroup_view *view)
{
	struct nc_cgroup_host host = {0};
	bool found = nc_cgroup_find(&host) < 0;

	for (size_t i = 0; i < view->n_trees; i++) {
		found |= is_at_or_above(view->tree[i].fd, host.v2_dir);
		for (size_t c = 0; c < NC_CGROUP_CONTROLLER_MAX; c++)
			found |= is_at_or_above(view->tree[i].fd, host.v1_dir[c]);
	}
	nc_cgroup_done(&host);
	return found;
}

int nc_cgroup_view_kill(const struct nc_cgroup_view *view)
{
	size_t tree = main_tree(view);
	const struct nc_cgroup_place place = {view->tree[tree].fd, "."};

	if (has_us(view))
		return -EDEADLK;
	return nc_cgroup_place_kill(&place, view->tree[tree].v2);
}
