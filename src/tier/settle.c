/* What has to be known of the host before something is run in a box. */
#include "tier/settle.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/error.h"
#include "base/place.h"

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
static int check_named(const struct nc_holder *holder, enum nc_tier tier,
	const struct nc_wish *wish, struct nacre_err *err)
{
	const struct nc_tier_terms *terms = &holder->welcome.terms[tier];

	for (size_t i = 0; i < NC_NAMED_MAX; i++) {
		if (!wish->named[i] || terms->holds[i])
			continue;
		if (i == NC_NAMED_DISK || i == NC_NAMED_INODES)
			return nc_err_set(err, -EOPNOTSUPP,
				"%s: a %s box has no file system of its own to hold this limit; "
				"use --tier container, or leave it out",
				wish->names[i], nc_tier_names[tier]);
		return nc_err_set(err, -EOPNOTSUPP,
			"%s: no control group can hold this limit here: %s, or leave it out (see: "
			"nacre doctor)",
			wish->names[i],
			holder->welcome.ranges ? "mount the cgroup controllers and let Nacre write "
						 "below its group"
					       : "run as root");
	}
	return 0;
}

/* Users of a box are told apart where it has ids of its own, and root of it is all of them. */
static int check_users(const struct nc_holder *holder, const struct nc_wish *wish,
	const struct nc_exec_spec *exec, struct nacre_err *err)
{
	const struct nc_tier_terms *terms = &holder->welcome.terms[exec->tier];
	const char *what = exec->writable ? "A root that can be written to"
					  : "Another user than the sandbox's";

	if ((exec->users && !terms->users) || (exec->writable && !terms->writes))
		return nc_err_set(err, -EOPNOTSUPP, "%s: %s", what,
			exec->tier != NC_TIER_CONTAINER ? "a process box has neither users nor a "
							  "root of its own; use --tier "
							  "container"
							: "boxes of an ordinary user have one user "
							  "id, as which they cannot be "
							  "root of anything; start nacre as root");
	if (exec->users && wish->floor[NC_STRENGTH_IDENTITY] == NC_GRADE_FULL)
		return nc_err_set(err, -EOPNOTSUPP,
			"The floor wants identity=full, and a box with a root of its own has it "
			"reduced");
	return 0;
}

static int check_floor(const struct nc_holder *holder, enum nc_tier tier,
	const enum nc_grade *floor, struct nacre_err *err)
{
	const enum nc_grade *grades = holder->welcome.terms[tier].grades;

	for (size_t i = 0; i < NC_STRENGTH_MAX; i++)
		if (grades[i] < floor[i])
			return nc_err_set(err, -EOPNOTSUPP,
				"The floor wants %s=%s, and a %s box here has it %s (see: nacre "
				"doctor)",
				nc_property_names[i], nc_grade_names[floor[i]], nc_tier_names[tier],
				nc_grade_names[grades[i]]);
	return 0;
}

void nc_box_places(const struct nc_holder *first, enum nc_tier tier, uint64_t id,
	char workspace[static NC_PLACE_SIZE], char temporary[static NC_PLACE_SIZE])
{
	const struct nc_holder *holder = nc_holder_of(first, tier);
	const char *scratch = holder->welcome.scratch;
	const unsigned long long number = id;

	/* without mounts of its own it is somewhere in the tree of whoever holds it */
	if (!holder->welcome.terms[tier].mounts && *scratch && tier != NC_TIER_CONTAINER) {
		(void)snprintf(workspace, NC_PLACE_SIZE, "%s/%llu/workspace", scratch, number);
		(void)snprintf(temporary, NC_PLACE_SIZE, "%s/%llu/tmp", scratch, number);
	} else {
		(void)snprintf(workspace, NC_PLACE_SIZE, NC_BOX_WORKSPACE);
		(void)snprintf(temporary, NC_PLACE_SIZE, NC_BOX_TEMPORARY);
	}
}

int nc_settle(const struct nc_holder *first, const struct nc_wish *wish, struct nc_exec_spec *exec,
	struct nacre_err *err)
{
	const struct nc_holder *holder = nc_holder_of(first, exec->tier);
	const struct nc_tier_terms *terms = &holder->welcome.terms[exec->tier];
	char workspace[NC_PLACE_SIZE], temporary[NC_PLACE_SIZE];
	int r;

	if (!terms->here && exec->tier != NC_TIER_CONTAINER)
		return nc_err_set(err, -EOPNOTSUPP, "No %s box can be had here (see: nacre doctor)",
			nc_tier_names[exec->tier]);
	if (!terms->here)
		return nc_err_set(err, -EOPNOTSUPP,
			"No user namespace can be had here, which a container box needs: see nacre "
			"doctor for the fix, or take a weaker box with --tier process");
	r = check_named(holder, exec->tier, wish, err);
	if (r == 0)
		r = check_floor(holder, exec->tier, wish->floor, err);
	if (r == 0)
		r = check_users(holder, wish, exec, err);
	if (r < 0)
		return r;
	memcpy(exec->required, wish->floor, sizeof(exec->required));
	/* what was expected of these must be so, or nothing runs */
	exec->required[NC_STRENGTH_PROCESSES] = terms->grades[NC_STRENGTH_PROCESSES];
	if (!terms->mounts)
		exec->required[NC_STRENGTH_ACCESS] = terms->grades[NC_STRENGTH_ACCESS];
	nc_box_places(holder, exec->tier, exec->id, workspace, temporary);
	if (snprintf(exec->dir, sizeof(exec->dir), "%s", workspace) >= (int)sizeof(exec->dir))
		return nc_err_set(err, -ENAMETOOLONG, "The directory of process boxes: %s",
			holder->welcome.scratch);
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
#define USUAL_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
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
	char user_word[NC_BOX_USER_MAX + 8];
	const char *user = place->user && place->user[0] ? place->user : NC_SANDBOX_USER;
	const bool is_root = strcmp(user, "root") == 0 || strcmp(user, "0") == 0;
	const char *const defaults[] = {home_word, "LANG=C.UTF-8",
		place->user && place->user[0] ? "PATH=" NC_BOX_SUDO_BIN ":" USUAL_PATH
					      : "PATH=" USUAL_PATH,
		"SHELL=/bin/sh", temporary_word, user_word};

	(void)snprintf(home_word, sizeof(home_word), "HOME=%s",
		is_root && place->writable ? NC_BOX_ROOT_HOME : place->workspace);
	(void)snprintf(user_word, sizeof(user_word), "USER=%s", is_root ? "root" : user);
	(void)snprintf(temporary_word, sizeof(temporary_word), "TMPDIR=%s", place->temporary);
	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
		if (!is_given(given, defaults[i]))
			nc_word_add(list, defaults[i]);
	add_node_heap(list, place, given);
	for (; given && *given; given++)
		nc_word_add(list, *given);
}
