/* The control groups of a spawner's boxes. */
#include "spawner/groups.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Only ids of spawners are judged, and each by its own lock; others' groups are others' business.
 */
static bool is_dead_spawner(const char *id, void *context)
{
	const struct nc_nursery *nursery = context;

	return strncmp(id, "sp_", 3) == 0 && nc_locks_is_dead(&nursery->locks, id);
}

/* Where our groups are, in each hierarchy. */
static void describe_place(const struct nc_cgroup_parent *parent, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < parent->n_trees && used < size; i++) {
		struct stat status = {0};

		(void)fstat(parent->tree[i].above_fd, &status); /* zeros then, like another's */
		used += (size_t)snprintf(out + used, size - used, "%llu:%llu ",
			(unsigned long long)status.st_dev, (unsigned long long)status.st_ino);
	}
}

int nc_groups_open(struct nc_nursery *nursery, struct nacre_err *err)
{
	char place[256];
	int r;

	if (nursery->groups_open)
		return 0;
	r = nc_cgroup_parent_open(&nursery->cgroups, nursery->scratch.id, err);
	if (r < 0)
		return r;
	nursery->groups_open = true;
	describe_place(&nursery->cgroups, place, sizeof(place));
	r = nc_locks_note_place(&nursery->locks, place);
	return r < 0 ? nc_err_errno(err, r, "Write to our lock") : 0;
}

void nc_groups_sweep(struct nc_nursery *nursery)
{
	char place[256];
	int r;

	if (nursery->groups_swept || !nursery->groups_open)
		return;
	nursery->groups_swept = true;
	if (!nc_locks_has_dead(&nursery->locks))
		return;
	describe_place(&nursery->cgroups, place, sizeof(place));
	r = nc_cgroup_sweep(&nursery->cgroups, is_dead_spawner, nursery);
	if (r < 0)
		fprintf(stderr, "nacre-spawner: sweep leftovers, ignoring: %s\n", nc_errno_text(r));
	else
		nc_locks_forget_dead(&nursery->locks, place);
}
