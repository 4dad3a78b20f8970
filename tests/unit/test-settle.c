/* What an order needs to know of the host: limits that are held or refused, the floor, words. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "kernel/cgroup_box.h"
#include "tier/settle.h"

static const char *const names[NC_NAMED_MAX] = {"m", "c", "t", "p", "d", "i"};
static const struct nc_box_host full = {.ranges = true,
	.user_ns = true,
	.cgroups = NC_CGROUP_CAN_MEMORY | NC_CGROUP_CAN_CPU | NC_CGROUP_CAN_CPU_TIME |
		   NC_CGROUP_CAN_PIDS,
	.scratch = "/scratch"};
static const struct nc_box_host bare = {.user_ns = true, .scratch = "/scratch"};

static int settle_for(const struct nc_box_host *host, const struct nc_wish *wish,
	struct nc_exec_spec *exec, struct nacre_err *err)
{
	struct nc_holder holder = {.host = *host};

	for (enum nc_tier i = 0; i < NC_TIER_MAX; i++)
		nc_terms_judge(host, 5, i, &holder.terms[i]);
	return nc_settle(&holder, wish, exec, err);
}

static int settle(enum nc_tier tier, const struct nc_box_host *host, int named,
	struct nc_exec_spec *exec, struct nacre_err *err)
{
	struct nc_wish wish = {.names = names};

	if (named >= 0)
		wish.named[named] = true;
	*exec = (struct nc_exec_spec){.id = 7, .tier = tier};
	return settle_for(host, &wish, exec, err);
}

static void named_limits_are_held_or_refused(void **state)
{
	struct nc_exec_spec exec;
	struct nacre_err err = {0};

	(void)state;
	for (int i = 0; i < NC_NAMED_MAX; i++) {
		bool by_group = i <= NC_NAMED_CPU_TIME;

		assert_int_equal(settle(NC_TIER_CONTAINER, &full, i, &exec, &err), 0);
		assert_int_equal(settle(NC_TIER_CONTAINER, &bare, i, &exec, &err),
			by_group ? -EOPNOTSUPP : 0);
		if (by_group)
			assert_int_equal(strncmp(err.message, names[i], 1), 0);
		err = (struct nacre_err){0};
		assert_int_equal(settle(NC_TIER_PROCESS, &full, i, &exec, &err),
			i >= NC_NAMED_DISK ? -EOPNOTSUPP : 0);
		err = (struct nacre_err){0};
		assert_int_equal(settle(NC_TIER_PROCESS, &bare, i, &exec, &err), -EOPNOTSUPP);
		err = (struct nacre_err){0};
	}
}

static void the_place_depends_on_the_tier(void **state)
{
	struct nc_exec_spec exec;
	struct nacre_err err = {0};

	(void)state;
	assert_int_equal(settle(NC_TIER_CONTAINER, &full, -1, &exec, &err), 0);
	assert_string_equal(exec.dir, "/workspace");
	assert_int_equal(exec.required[NC_STRENGTH_PROCESSES], NC_GRADE_FULL);
	assert_int_equal(exec.required[NC_STRENGTH_ACCESS], NC_GRADE_NONE);
	assert_int_equal(settle(NC_TIER_PROCESS, &full, -1, &exec, &err), 0);
	assert_string_equal(exec.dir, "/scratch/7/workspace");
	assert_int_equal(exec.required[NC_STRENGTH_PROCESSES], NC_GRADE_FULL);
	assert_int_equal(exec.required[NC_STRENGTH_ACCESS], NC_GRADE_REDUCED);
}

static void a_container_needs_a_user_namespace(void **state)
{
	struct nc_box_host host = full;
	struct nc_exec_spec exec;
	struct nacre_err err = {0};

	(void)state;
	host.user_ns = false;
	assert_int_equal(settle(NC_TIER_CONTAINER, &host, -1, &exec, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.message, "user namespace"));
	err = (struct nacre_err){0};
	assert_int_equal(settle(NC_TIER_PROCESS, &host, -1, &exec, &err), 0);
	assert_int_equal(exec.required[NC_STRENGTH_PROCESSES], NC_GRADE_REDUCED);
}

static void the_floor_is_held(void **state)
{
	struct nc_exec_spec exec = {.tier = NC_TIER_CONTAINER};
	struct nc_wish wish = {.names = names};
	struct nacre_err err = {0};

	(void)state;
	wish.floor[NC_STRENGTH_HYPERVISOR] = NC_GRADE_FULL;
	assert_int_equal(settle_for(&full, &wish, &exec, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.message, "hypervisor=full"));
	wish = (struct nc_wish){.names = names};
	wish.floor[NC_STRENGTH_SYSCALLS] = NC_GRADE_FULL;
	wish.floor[NC_STRENGTH_ACCESS] = NC_GRADE_REDUCED;
	err = (struct nacre_err){0};
	assert_int_equal(settle_for(&full, &wish, &exec, &err), 0);
	assert_int_equal(exec.required[NC_STRENGTH_SYSCALLS], NC_GRADE_FULL);
	assert_int_equal(exec.required[NC_STRENGTH_ACCESS], NC_GRADE_REDUCED);
}

static bool has_word(const struct nc_word_list *list, const char *word)
{
	struct nc_box_words view = nc_word_view(list);

	for (const char *at = view.data; at < view.data + view.size; at += strlen(at) + 1)
		if (strcmp(at, word) == 0)
			return true;
	return false;
}

static void what_is_given_wins(void **state)
{
	const char *const given[] = {"PATH=/x", "OTHER=1", NULL};
	struct nc_word_list list = NC_WORD_LIST;

	(void)state;
	nc_env_fill(&list, &(struct nc_env_place){"/w", "/t", NC_TIER_CONTAINER, 0}, given);
	assert_int_equal(list.count, 7);
	assert_true(has_word(&list, "HOME=/w"));
	assert_true(has_word(&list, "TMPDIR=/t"));
	assert_true(has_word(&list, "PATH=/x"));
	assert_true(has_word(&list, "OTHER=1"));
	assert_false(has_word(
		&list, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"));
	nc_buf_done(&list.buf);
}

static void node_is_told_its_heap(void **state)
{
	static const char small[] = "NODE_OPTIONS=--max-old-space-size=128";
	static const char *const none[] = {NULL};
	static const char *const own[] = {"NODE_OPTIONS=--no-warnings", NULL};
	static const struct {
		struct nc_env_place place;
		const char *const *given;
		bool told;
	} cases[] = {
		{{"/w", "/t", NC_TIER_CONTAINER, 256U << 20}, none, true},
		{{"/w", "/t", NC_TIER_PROCESS, 256U << 20}, none, true},
		{{"/w", "/t", NC_TIER_CONTAINER, 512U << 20}, none,
			false}, /* it sees that itself */
		{{"/w", "/t", NC_TIER_CONTAINER, 0}, none, false},
		{{"/w", "/t", NC_TIER_CONTAINER, 256U << 20}, own, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct nc_word_list list = NC_WORD_LIST;

		nc_env_fill(&list, &cases[i].place, cases[i].given);
		assert_int_equal(has_word(&list, small), cases[i].told);
		nc_buf_done(&list.buf);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(node_is_told_its_heap),
		cmocka_unit_test(named_limits_are_held_or_refused),
		cmocka_unit_test(the_place_depends_on_the_tier),
		cmocka_unit_test(a_container_needs_a_user_namespace),
		cmocka_unit_test(the_floor_is_held),
		cmocka_unit_test(what_is_given_wins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
