/* The control groups of a spawner's boxes. */
#include "spawner/groups.h"

#include <stdio.h>

/* Each is judged by its own lock; others' groups are others' business. */
static bool is_dead(const char *id, void *context)
{
	return nc_dead_has(context, id);
}

/* Where they will be is told before they are made: whoever sweeps after us must know. */
static int note_place(struct nc_nursery *nursery, struct nacre_err *err)
{
	int r = nc_cgroup_find(&nursery->cgroup_host);

	if (r < 0)
		return nc_err_errno(err, r, "Find the control groups");
	if (nursery->place[0]) /* it is noted, and we were closed meanwhile */
		return 0;
	nc_cgroup_describe(&nursery->cgroup_host, nursery->place, sizeof(nursery->place));
	r = nc_locks_note_place(&nursery->locks, nursery->place);
	return r < 0 ? nc_err_errno(err, r, "Write to our lock") : 0;
}

int nc_groups_open(struct nc_nursery *nursery, struct nacre_err *err)
{
	int r;

	if (nursery->groups_open)
		return 0;
	r = note_place(nursery, err);
	if (r == 0)
		r = nc_cgroup_parent_open_on(&nursery->cgroups, &nursery->cgroup_host,
			nursery->scratch.id, nursery->lasting, err);
	if (r < 0 || nursery->groups_swept)
		nc_cgroup_done(&nursery->cgroup_host);
	nursery->groups_open = r == 0;
	return r;
}

void nc_groups_close(struct nc_nursery *nursery)
{
	if (nursery->groups_open)
		nc_cgroup_parent_close(&nursery->cgroups);
	nursery->groups_open = false;
}

void nc_groups_close_early(struct nc_nursery *nursery)
{
	/* who steps up takes all along who stepped down with him, and the dying cannot be moved */
	for (size_t i = 0; i < nursery->cgroups.n_trees; i++)
		if (nursery->cgroups.tree[i].stepped_down)
			return;
	nc_groups_close(nursery);
}

void nc_groups_sweep(struct nc_nursery *nursery)
{
	struct nc_dead dead;
	int r = 0;

	if (nursery->groups_swept || !nursery->groups_open)
		return;
	nursery->groups_swept = true;
	if (nc_dead_take(&nursery->locks, nursery->place, &dead) || nursery->lasting)
		r = nc_cgroup_sweep(&nursery->cgroup_host, nursery->scratch.id, is_dead, &dead);
	if (r < 0)
		fprintf(stderr, "nacre-spawner: sweep leftovers: %s\n", nc_errno_text(r));
	nc_dead_leave(&dead, r >= 0);
	nc_cgroup_done(&nursery->cgroup_host);
}
