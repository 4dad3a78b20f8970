/* What an order needs to know of the host before it can be given. */
#include "tier/settle.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/error.h"
#include "kernel/cgroup_box.h"

uint64_t nc_files_most(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) < 0 ? NC_FILES_USUAL : limit.rlim_max;
}

uint64_t nc_files_usual(void)
{
	uint64_t most = nc_files_most();

	return most < NC_FILES_USUAL ? most : NC_FILES_USUAL;
}

/* A limit that the caller names is held or refused, never weakened. */
static int check_named(const struct nc_box_order *order, const struct nc_wish *wish,
	const struct nc_box_host *host, struct nacre_err *err)
{
	static const unsigned int needs[NC_NAMED_MAX] = {
		[NC_NAMED_MEMORY] = NC_CGROUP_CAN_MEMORY,
		[NC_NAMED_CPUS] = NC_CGROUP_CAN_CPU,
		[NC_NAMED_CPU_TIME] = NC_CGROUP_CAN_CPU_TIME,
		[NC_NAMED_PIDS] = NC_CGROUP_CAN_PIDS,
	};

	for (size_t i = 0; i < NC_NAMED_MAX; i++) {
		bool in_process = order->tier == NC_TIER_PROCESS;

		if (!wish->named[i])
			continue;
		/* a container's user namespace counts processes where no group does */
		if ((host->cgroups & needs[i]) != needs[i] && (i != NC_NAMED_PIDS || in_process))
			return nc_err_set(err, -EOPNOTSUPP,
				"%s: no control group can hold this limit here: %s, or leave it "
				"out (see: nacre doctor)",
				wish->names[i],
				host->ranges ? "mount the cgroup controllers and let Nacre write "
					       "below its group"
					     : "run as root");
		if (in_process && (i == NC_NAMED_DISK || i == NC_NAMED_INODES))
			return nc_err_set(err, -EOPNOTSUPP,
				"%s: a process box has no file system of its own to hold this "
				"limit; use --tier container, or leave it out",
				wish->names[i]);
	}
	return 0;
}

static int check_floor(const struct nc_box_host *host, const struct nc_box_end *expected,
	const enum nc_grade *floor, struct nacre_err *err)
{
	enum nc_grade grades[NC_STRENGTH_MAX];

	nc_strength_of_box(host, expected, grades);
	for (size_t i = 0; i < NC_STRENGTH_MAX; i++)
		if (grades[i] < floor[i])
			return nc_err_set(err, -EOPNOTSUPP,
				"The floor wants %s=%s, and a %s box here has it %s (see: nacre "
				"doctor)",
				nc_property_names[i], nc_grade_names[floor[i]],
				nc_tier_names[expected->tier], nc_grade_names[grades[i]]);
	return 0;
}

void nc_box_places(const struct nc_box_order *order, const struct nc_box_host *host,
	char workspace[static NC_PLACE_SIZE], char temporary[static NC_PLACE_SIZE])
{
	unsigned long long id = order->id;

	if (order->tier == NC_TIER_PROCESS) {
		(void)snprintf(workspace, NC_PLACE_SIZE, "%s/%llu/workspace", host->scratch, id);
		(void)snprintf(temporary, NC_PLACE_SIZE, "%s/%llu/tmp", host->scratch, id);
	} else {
		(void)snprintf(workspace, NC_PLACE_SIZE, "/workspace");
		(void)snprintf(temporary, NC_PLACE_SIZE, "/tmp");
	}
}

int nc_settle(struct nc_box_order *order, const struct nc_wish *wish,
	const struct nc_box_host *host, int landlock, struct nacre_err *err)
{
	struct nc_box_end expected = {.tier = order->tier,
		.landlock = (uint32_t)landlock,
		.reported = true,
		.pid_ns = host->user_ns,
		.alone = !host->user_ns && host->cgroups == 0};
	char workspace[NC_PLACE_SIZE], temporary[NC_PLACE_SIZE];
	int r;

	if (order->tier == NC_TIER_CONTAINER && !host->user_ns)
		return nc_err_set(err, -EOPNOTSUPP,
			"No user namespace can be had here, which a container box needs: see nacre "
			"doctor for the fix, or take a weaker box with --tier process");
	r = check_named(order, wish, host, err);
	if (r == 0)
		r = check_floor(host, &expected, wish->floor, err);
	if (r < 0)
		return r;
	/* what was expected must be so, or nothing runs */
	order->landlock_min =
		wish->floor[NC_STRENGTH_ACCESS] > NC_GRADE_NONE || order->tier == NC_TIER_PROCESS
			? (uint32_t)landlock
			: 0;
	if (wish->floor[NC_STRENGTH_SYSCALLS] == NC_GRADE_FULL)
		order->flags |= NC_ORDER_MUST_REPORT;
	if (host->user_ns)
		order->flags |= NC_ORDER_MUST_PID_NS;
	nc_box_places(order, host, workspace, temporary);
	if (snprintf(order->dir, sizeof(order->dir), "%s", workspace) >= (int)sizeof(order->dir))
		return nc_err_set(
			err, -ENAMETOOLONG, "The directory of process boxes: %s", host->scratch);
	return 0;
}

void nc_word_add(struct nc_word_list *list, const char *word)
{
	nc_buf_add(&list->buf, word, strlen(word) + 1);
	list->count++;
}

struct nc_box_words nc_word_view(const struct nc_word_list *list)
{
	return (struct nc_box_words){list->buf.data, list->buf.size, list->count};
}

/* From here on what Node takes is half of it. */
#define NODE_HEAP_MIN (512ULL << 20)

static bool is_given(const char *const *given, const char *word)
{
	size_t name = strcspn(word, "=") + 1;

	for (; given && *given; given++)
		if (strncmp(*given, word, name) == 0)
			return true;
	return false;
}

/*
 * Node takes no less than 256 MB for its heap however little there is, and in a process box sees
 * the memory of the host; everybody else is told by files (inside/told.h).
 */
static void add_node_heap(
	struct nc_word_list *list, const struct nc_env_place *place, const char *const *given)
{
	char word[64];

	if (place->memory_bytes == 0 ||
		(place->tier == NC_TIER_CONTAINER && place->memory_bytes >= NODE_HEAP_MIN) ||
		is_given(given, "NODE_OPTIONS="))
		return;
	(void)snprintf(word, sizeof(word), "NODE_OPTIONS=--max-old-space-size=%llu",
		(unsigned long long)(place->memory_bytes >> 21));
	nc_word_add(list, word);
}

void nc_env_fill(
	struct nc_word_list *list, const struct nc_env_place *place, const char *const *given)
{
	char home_word[NC_PLACE_SIZE + 8], temporary_word[NC_PLACE_SIZE + 8];
	const char *const defaults[] = {home_word, "LANG=C.UTF-8",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"SHELL=/bin/sh", temporary_word, "USER=sandbox"};

	(void)snprintf(home_word, sizeof(home_word), "HOME=%s", place->workspace);
	(void)snprintf(temporary_word, sizeof(temporary_word), "TMPDIR=%s", place->temporary);
	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
		if (!is_given(given, defaults[i]))
			nc_word_add(list, defaults[i]);
	add_node_heap(list, place, given);
	for (; given && *given; given++)
		nc_word_add(list, *given);
}
