/* The boxes that run on this machine. */
#include "watch/boxes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/text.h"
#include "kernel/cgroup.h"
#include "kernel/process.h"

/* As the spawner names them, see cgroup_parent.c and the spawner's groups.c. */
#define PARENT_PREFIX "/nacre-"
#define BOX_PREFIX "bx_"
#define SPAWNER_NAME "nacre-spawner"
#define KEEPER_NAME "nacre-keeper"
/* A process is in a dozen hierarchies. */
#define GROUPS_TEXT 8192

/* A look at all processes. */
struct look {
	struct nc_process *all; /* the older first */
	size_t count;
	bool *grouped; /* in the group of a box */
	struct nc_cgroup_host host;
	const char *const *holders;
	struct nc_live_boxes *boxes;
};

static void look_done(struct look *look)
{
	free(look->all);
	free(look->grouped);
	nc_cgroup_done(&look->host);
}

static void box_done(struct nc_live_box *box)
{
	for (size_t i = 0; i < box->n_dirs; i++)
		free(box->dir[i]);
	free(box->pid);
}

void nc_boxes_done(struct nc_live_boxes *boxes)
{
	for (size_t i = 0; i < boxes->count; i++)
		box_done(&boxes->box[i]);
	free(boxes->box);
	*boxes = (struct nc_live_boxes){0};
}

/* The box of that name, or a new one; NULL: there are too many. */
static struct nc_live_box *box_named(
	struct nc_live_boxes *boxes, const char *spawner, const char *name)
{
	struct nc_live_box *box;

	for (size_t i = 0; i < boxes->count; i++)
		if (nc_streq(boxes->box[i].spawner, spawner) && nc_streq(boxes->box[i].name, name))
			return &boxes->box[i];
	if (boxes->count == NC_BOXES_MAX)
		return NULL;
	box = &boxes->box[boxes->count++];
	*box = (struct nc_live_box){.waits = true};
	(void)snprintf(box->spawner, sizeof(box->spawner), "%s", spawner);
	(void)snprintf(box->name, sizeof(box->name), "%s", name);
	return box;
}

/* What its first process was called with, its words with blanks between them. */
static void take_command(struct nc_live_box *box, const struct nc_process *process)
{
	ssize_t size = nc_process_text(process->pid, "cmdline", box->command, sizeof(box->command));

	for (ssize_t i = 0; i + 1 < size; i++)
		if (box->command[i] == '\0')
			box->command[i] = ' ';
	if (size <= 0)
		(void)snprintf(box->command, sizeof(box->command), "[%s]", process->name);
}

static bool is_init(pid_t pid)
{
	struct nc_process_depth depth = nc_process_depth(pid);

	return depth.namespaces > 1 && depth.innermost == 1;
}

/* Processes come in the order of their age: the first is process 1, then the one that was asked
 * for. */
static int box_add(struct nc_live_box *box, const struct nc_process *process)
{
	pid_t *more;

	if (box->n_pids == NC_MONITOR_PROCESSES_MAX)
		return 0;
	more = reallocarray(box->pid, box->n_pids + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	more[box->n_pids++] = process->pid;
	box->pid = more;
	if (box->n_pids == 1)
		box->age_s = nc_process_age(process);
	if (box->waits && !is_init(process->pid)) {
		take_command(box, process);
		box->age_s = nc_process_age(process);
		box->waits = false;
	}
	return 0;
}

/* Splits "/a/nacre-ID/bx_N" into its last two names; false if it is not one of ours. */
static bool parse_group(const char *path, char *spawner, char *name)
{
	const char *last = strrchr(path, '/'), *parent = last;

	while (parent && parent > path && *--parent != '/')
		continue;
	if (!last || parent == last)
		return false;
	parent = nc_text_after(parent, PARENT_PREFIX);
	if (!parent || !nc_text_after(last + 1, BOX_PREFIX) ||
		(size_t)(last - parent) > NC_CGROUP_NAME_MAX ||
		strlen(last + 1) > NC_CGROUP_NAME_MAX)
		return false;
	memcpy(spawner, parent, (size_t)(last - parent));
	spawner[last - parent] = '\0';
	memcpy(name, last + 1, strlen(last + 1) + 1);
	return true;
}

/* Adds the directory of the group in one hierarchy, if that is mounted here. */
static int add_dir(struct nc_live_box *box, const char *top, const char *path)
{
	struct stat status;
	char *dir = NULL;

	if (!top || box->n_dirs == NC_CGROUP_TREES_MAX)
		return 0;
	if (asprintf(&dir, "%s%s", top, path) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < box->n_dirs; i++)
		if (nc_streq(box->dir[i], dir)) {
			free(dir);
			return 0;
		}
	if (stat(dir, &status) == 0)
		box->dir[box->n_dirs++] = dir;
	else
		free(dir);
	return 0;
}

/* One line of /proc/PID/cgroup, "number:controllers:path", which is cut. */
static int take_line(struct look *look, char *line, struct nc_live_box **box)
{
	char spawner[NC_CGROUP_NAME_MAX + 1], name[NC_CGROUP_NAME_MAX + 1];
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!path || !parse_group(path + 1, spawner, name))
		return 0;
	*path++ = '\0';
	if (!*box)
		*box = box_named(look->boxes, spawner, name);
	/* all of a box's hierarchies have it under the same name */
	if (!*box || !nc_streq((*box)->spawner, spawner) || !nc_streq((*box)->name, name))
		return 0;
	return add_dir(*box, nc_cgroup_top(&look->host, controllers + 1), path);
}

static int find_group(struct look *look, size_t index)
{
	struct nc_live_box *box = NULL;
	char text[GROUPS_TEXT];
	ssize_t size = nc_process_text(look->all[index].pid, "cgroup", text, sizeof(text));
	int r = 0;

	if (size <= 0 || look->all[index].dead)
		return 0;
	for (char *line = text, *end; r == 0 && *line; line = end) {
		end = strchrnul(line, '\n');
		if (*end)
			*end++ = '\0';
		r = take_line(look, line, &box);
	}
	look->grouped[index] = box != NULL;
	return r < 0 || !box ? r : box_add(box, &look->all[index]);
}

static const struct nc_process *find_process(const struct look *look, pid_t pid)
{
	for (size_t i = 0; i < look->count; i++)
		if (look->all[i].pid == pid)
			return &look->all[i];
	return NULL;
}

/* Anybody can call himself a spawner, also in a box; but that one is below a real one. */
static bool is_spawner(const struct look *look, size_t index)
{
	const struct nc_process *process = &look->all[index];

	if (!nc_streq(process->name, SPAWNER_NAME) || look->grouped[index] || process->dead)
		return false;
	for (size_t steps = 0; steps < look->count; steps++) {
		process = find_process(look, process->parent);
		if (!process)
			return true;
		if (nc_streq(process->name, SPAWNER_NAME))
			return false;
	}
	return false;
}

/* The spawner's first argument; 0: it started the worker itself, first of all. */
static pid_t worker_of(const struct look *look, const struct nc_process *spawner)
{
	char text[128];
	ssize_t size = nc_process_text(spawner->pid, "cmdline", text, sizeof(text));
	size_t first = size > 0 ? strlen(text) + 1 : 0;
	pid_t worker = size > 0 && first < (size_t)size ? (pid_t)strtol(text + first, NULL, 10) : 0;

	for (size_t i = 0; worker == 0 && i < look->count; i++)
		if (look->all[i].parent == spawner->pid)
			worker = look->all[i].pid;
	return worker;
}

#define NAMESPACE_SIZE 64

/* "pid:[4026531836]", or "" if we may not know. */
static void read_namespace(pid_t pid, char out[static NAMESPACE_SIZE])
{
	char path[64];
	ssize_t size;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	size = readlink(path, out, NAMESPACE_SIZE - 1);
	out[size > 0 ? size : 0] = '\0';
}

/* Process 1 of a box is in no group: whether it is that of a box that was found by its group, or
 * that cannot be told. */
static bool is_init_of_found(
	const struct look *look, const struct nc_process *process, const char *namespace)
{
	if (!is_init(process->pid))
		return false;
	for (size_t i = 0; i < look->count; i++) {
		char other[NAMESPACE_SIZE];

		if (!look->grouped[i] || look->all[i].parent != process->parent)
			continue;
		read_namespace(look->all[i].pid, other);
		if (nc_streq(other, namespace))
			return true;
	}
	return namespace[0] == '\0';
}

/* Processes of a box share a pid namespace; where that cannot be told each is on its own. */
static int find_child(struct look *look, const struct nc_process *spawner,
	const struct nc_process *process, const char *outer)
{
	char id[16], name[NC_CGROUP_NAME_MAX + 1], namespace[NAMESPACE_SIZE];
	struct nc_live_box *box;

	read_namespace(process->pid, namespace);
	if (is_init_of_found(look, process, namespace))
		return 0;
	if (namespace[0] && !nc_streq(namespace, outer))
		(void)snprintf(name, sizeof(name), "ns-%llu",
			strtoull(namespace + strcspn(namespace, "0123456789"), NULL, 10));
	else
		(void)snprintf(name, sizeof(name), "pid-%d", (int)process->pid);
	(void)snprintf(id, sizeof(id), "%d", (int)spawner->pid);
	box = box_named(look->boxes, id, name);
	return box ? box_add(box, process) : 0;
}

/* Of its programs beside the spawner; the kernel keeps 15 bytes of a name. */
static bool is_holder(const struct look *look, const struct nc_process *process)
{
	for (const char *const *name = look->holders; *name; name++)
		if (strncmp(process->name, *name, sizeof(process->name) - 1) == 0)
			return true;
	return false;
}

/* Each child of another holder is a box, or what keeps one: what runs in it is its first child. */
static int find_held(struct look *look, const struct nc_process *holder)
{
	const char *name = nc_text_after(holder->name, "nacre-");
	char id[NC_CGROUP_NAME_MAX + 1], box_name[NC_CGROUP_NAME_MAX + 1];
	int r = 0;

	(void)snprintf(id, sizeof(id), "%s-%d", name ? name : holder->name, (int)holder->pid);
	for (size_t i = 0; r == 0 && i < look->count; i++) {
		const struct nc_process *process = &look->all[i];
		struct nc_live_box *box;

		if (process->parent != holder->pid || process->dead || look->grouped[i])
			continue;
		(void)snprintf(box_name, sizeof(box_name), "pid-%d", (int)process->pid);
		box = box_named(look->boxes, id, box_name);
		r = box ? box_add(box, process) : 0;
		for (size_t k = i + 1; box && k < look->count; k++)
			if (look->all[k].parent == process->pid) {
				take_command(box, &look->all[k]);
				break;
			}
	}
	return r;
}

/* Who keeps those who work beside a daemon is in nobody's box, and has holders below it. */
static int find_kept(struct look *look, const struct nc_process *keeper)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < look->count; i++)
		if (look->all[i].parent == keeper->pid && is_holder(look, &look->all[i]))
			r = find_held(look, &look->all[i]);
	return r;
}

/* Whether it is none of a box: those are in a pid namespace of their own, where that can be had. */
static bool is_outside(const struct nc_process *process, const char *outer)
{
	char namespace[NAMESPACE_SIZE];

	read_namespace(process->pid, namespace);
	return outer[0] && nc_streq(namespace, outer);
}

/* The children of a spawner that are in no group. */
static int find_children(struct look *look, const struct nc_process *spawner)
{
	pid_t worker = worker_of(look, spawner);
	char outer[NAMESPACE_SIZE];
	int r = 0;

	read_namespace(spawner->pid, outer);
	for (size_t i = 0; r == 0 && i < look->count; i++) {
		const struct nc_process *process = &look->all[i];

		if (process->parent != spawner->pid || process->pid == worker || process->dead ||
			look->grouped[i])
			continue;
		if (nc_streq(process->name, KEEPER_NAME) && is_outside(process, outer))
			r = find_kept(look, process);
		else if (is_holder(look, process) && is_outside(process, outer))
			r = find_held(look, process);
		else
			r = find_child(look, spawner, process, outer);
	}
	return r;
}

static int by_age(const void *a, const void *b)
{
	const struct nc_process *first = a, *second = b;

	if (first->start_ticks != second->start_ticks)
		return first->start_ticks < second->start_ticks ? -1 : 1;
	return first->pid < second->pid ? -1 : first->pid > second->pid;
}

static int by_name(const void *a, const void *b)
{
	const struct nc_live_box *first = a, *second = b;
	int order = strcmp(first->spawner, second->spawner);

	return order ? order : strverscmp(first->name, second->name);
}

static int look_around(struct look *look)
{
	int r = nc_process_list(&look->all, &look->count);

	if (r == 0)
		r = nc_cgroup_find(&look->host);
	if (r < 0)
		return r;
	qsort(look->all, look->count, sizeof(*look->all), by_age);
	look->grouped = calloc(look->count + 1, sizeof(*look->grouped));
	look->boxes->box = calloc(NC_BOXES_MAX, sizeof(*look->boxes->box));
	if (!look->grouped || !look->boxes->box)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < look->count; i++)
		r = find_group(look, i);
	for (size_t i = 0; r == 0 && i < look->count; i++)
		if (is_spawner(look, i))
			r = find_children(look, &look->all[i]);
	return r;
}

int nc_boxes_find(const char *const *holders, struct nc_live_boxes *ret_boxes)
{
	struct nc_live_boxes boxes = {0};
	nc_cleanup(look_done) struct look look = {.holders = holders, .boxes = &boxes};
	int r = look_around(&look);

	if (r < 0) {
		nc_boxes_done(&boxes);
		return r;
	}
	qsort(boxes.box, boxes.count, sizeof(*boxes.box), by_name);
	*ret_boxes = boxes;
	return 0;
}
