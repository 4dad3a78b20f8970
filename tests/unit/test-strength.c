/* From probes to grades: each property at each grade, and the tiers that follow. */
#include "unit.h"

#include <string.h>

#include "kernel/boxwire.h"
#include "kernel/cgroup_box.h"
#include "kernel/means.h"
#include "kernel/strength.h"
#include "tier/tier.h"

/* A host where everything works. */
static struct nc_probes good_host(void)
{
	struct nc_probes probes;

	for (enum nc_probe_id id = 0; id < NC_PROBE_MAX; id++)
		nc_probe_pass(&probes, id, 0, "works");
	probes.probe[NC_PROBE_LANDLOCK].value = 7;
	probes.probe[NC_PROBE_CGROUP_KILL].value = 2;
	return probes;
}

/* An ordinary user whose host forbids user namespaces. */
static struct nc_probes bare_host(void)
{
	struct nc_probes probes = good_host();

	for (enum nc_probe_id id = NC_PROBE_USER_NS; id <= NC_PROBE_OVERLAYFS; id++)
		nc_probe_fail(&probes, id, -EPERM, "try");
	for (enum nc_probe_id id = NC_PROBE_CGROUP_MEMORY; id <= NC_PROBE_KVM; id++)
		nc_probe_fail(&probes, id, -EACCES, "try");
	return probes;
}

static void assert_grades(const struct nc_strength *strength, const char *letters)
{
	for (size_t i = 0; i < NC_STRENGTH_MAX; i++) {
		char letter = nc_grade_names[strength->property[i].grade][0];

		if (letter != letters[i])
			fail_msg("%s is %c, not %c", nc_property_names[i], letter, letters[i]);
		assert_true(strlen(strength->property[i].reason) > 0);
		/* whatever is not full says what to do about it */
		assert_true((strength->property[i].fix == NULL) == (letter == 'f'));
	}
}

static void test_everything_works(void **state)
{
	struct nc_probes probes = good_host();
	struct nc_strength strength;

	(void)state;
	nc_strength_judge(&probes, true, &strength);
	assert_grades(&strength, "fffffffffffnff"); /* no box limits disk traffic */
}

static void test_bare_host(void **state)
{
	struct nc_probes probes = bare_host();
	struct nc_strength strength;

	(void)state;
	nc_strength_judge(&probes, false, &strength);
	/* filesystem identity processes network ipc | syscalls access | limits | kill hypervisor */
	assert_grades(&strength, "rnrrr"
				 "ff"
				 "rnrrn"
				 "fn");
	assert_non_null(strstr(strength.property[NC_STRENGTH_NETWORK].reason, "not permitted"));
}

/* One thing is taken away from the good host, and exactly these properties change. */
static void test_one_thing_less(void **state)
{
	static const struct {
		enum nc_probe_id lost;
		enum nc_property property;
		enum nc_grade grade;
	} cases[] = {
		{NC_PROBE_USER_NS, NC_STRENGTH_FILESYSTEM, NC_GRADE_REDUCED},
		{NC_PROBE_MOUNT_NS, NC_STRENGTH_FILESYSTEM, NC_GRADE_REDUCED},
		{NC_PROBE_READ_ONLY, NC_STRENGTH_FILESYSTEM, NC_GRADE_REDUCED},
		{NC_PROBE_PROC, NC_STRENGTH_FILESYSTEM, NC_GRADE_REDUCED},
		{NC_PROBE_PIVOT_ROOT, NC_STRENGTH_FILESYSTEM, NC_GRADE_REDUCED},
		{NC_PROBE_MOUNT_API, NC_STRENGTH_DISK, NC_GRADE_REDUCED},
		{NC_PROBE_ID_RANGE, NC_STRENGTH_IDENTITY, NC_GRADE_REDUCED},
		{NC_PROBE_PID_NS, NC_STRENGTH_PROCESSES, NC_GRADE_REDUCED},
		{NC_PROBE_NET_NS, NC_STRENGTH_NETWORK, NC_GRADE_REDUCED},
		{NC_PROBE_IPC_NS, NC_STRENGTH_IPC, NC_GRADE_REDUCED},
		{NC_PROBE_SECCOMP, NC_STRENGTH_SYSCALLS, NC_GRADE_NONE},
		{NC_PROBE_SECCOMP_NOTIFY, NC_STRENGTH_SYSCALLS, NC_GRADE_REDUCED},
		{NC_PROBE_LANDLOCK, NC_STRENGTH_ACCESS, NC_GRADE_NONE},
		{NC_PROBE_CGROUP_MEMORY, NC_STRENGTH_MEMORY, NC_GRADE_REDUCED},
		{NC_PROBE_CGROUP_SWAP, NC_STRENGTH_MEMORY, NC_GRADE_REDUCED},
		{NC_PROBE_CGROUP_CPU, NC_STRENGTH_CPU, NC_GRADE_NONE},
		{NC_PROBE_CGROUP_PIDS, NC_STRENGTH_PIDS, NC_GRADE_REDUCED},
		{NC_PROBE_CGROUP_IO, NC_STRENGTH_IO, NC_GRADE_NONE},
		{NC_PROBE_KVM, NC_STRENGTH_HYPERVISOR, NC_GRADE_NONE},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++) {
		struct nc_probes probes = good_host();
		struct nc_strength strength;

		nc_probe_fail(&probes, cases[i].lost, -ENOSYS, "try");
		nc_strength_judge(&probes, true, &strength);
		assert_int_equal(strength.property[cases[i].property].grade, cases[i].grade);
		assert_non_null(strength.property[cases[i].property].fix);
	}
}

static void test_kill(void **state)
{
	struct nc_probes probes = good_host();
	struct nc_strength strength;

	(void)state;
	nc_probe_fail(&probes, NC_PROBE_PID_NS, -EPERM, "try");
	nc_strength_judge(&probes, true, &strength);
	assert_int_equal(strength.property[NC_STRENGTH_KILL].grade, NC_GRADE_FULL);
	nc_probe_pass(&probes, NC_PROBE_CGROUP_KILL, 1, "freezer");
	nc_strength_judge(&probes, true, &strength);
	assert_int_equal(strength.property[NC_STRENGTH_KILL].grade, NC_GRADE_REDUCED);
	nc_probe_fail(&probes, NC_PROBE_CGROUP_KILL, -EPERM, "try");
	nc_strength_judge(&probes, true, &strength);
	/* then it may make no processes */
	assert_int_equal(strength.property[NC_STRENGTH_KILL].grade, NC_GRADE_FULL);
}

static void test_landlock_abi(void **state)
{
	static const struct {
		int abi;
		enum nc_grade access;
		enum nc_grade filesystem; /* where Landlock is all there is */
	} cases[] = {
		{1, NC_GRADE_REDUCED, NC_GRADE_NONE},
		{2, NC_GRADE_REDUCED, NC_GRADE_NONE},
		{3, NC_GRADE_REDUCED, NC_GRADE_REDUCED},
		{5, NC_GRADE_REDUCED, NC_GRADE_REDUCED},
		{6, NC_GRADE_FULL, NC_GRADE_REDUCED},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++) {
		struct nc_probes probes = bare_host();
		struct nc_strength strength;

		probes.probe[NC_PROBE_LANDLOCK].value = cases[i].abi;
		nc_strength_judge(&probes, false, &strength);
		assert_int_equal(strength.property[NC_STRENGTH_ACCESS].grade, cases[i].access);
		assert_int_equal(
			strength.property[NC_STRENGTH_FILESYSTEM].grade, cases[i].filesystem);
	}
}

/* The tiers of a host, with tools that were never found. */
static void judge_tiers(struct nc_probes *probes, struct nc_tier_report *tiers)
{
	struct nc_ask tools[NC_TOOL_MAX];
	struct nc_strength strength;

	nc_tool_questions(tools);
	for (size_t i = 0; i < NC_TOOL_MAX; i++)
		tools[i].status = -ENOENT;
	nc_strength_judge(probes, true, &strength);
	nc_tier_judge(&strength, tools, 0, tiers);
}

static void test_tiers(void **state)
{
	struct nc_probes probes = good_host();
	struct nc_tier_report tiers[NC_TIER_MAX];

	(void)state;
	judge_tiers(&probes, tiers);
	assert_int_equal(tiers[NC_TIER_CONTAINER].grade, NC_GRADE_FULL);
	assert_int_equal(tiers[NC_TIER_PROCESS].grade, NC_GRADE_FULL);
	assert_int_equal(tiers[NC_TIER_WASM].grade, NC_GRADE_NONE);
	assert_int_equal(tiers[NC_TIER_MICROVM].grade, NC_GRADE_NONE);
	for (size_t i = 0; i < NC_TIER_MAX; i++)
		assert_true(strlen(tiers[i].reason) > 0);

	probes = bare_host();
	judge_tiers(&probes, tiers);
	assert_int_equal(tiers[NC_TIER_CONTAINER].grade, NC_GRADE_NONE);
	assert_string_equal(tiers[NC_TIER_CONTAINER].reason, "filesystem is reduced");
	assert_int_equal(tiers[NC_TIER_PROCESS].grade, NC_GRADE_REDUCED);

	nc_probe_fail(&probes, NC_PROBE_SECCOMP, -ENOSYS, "try");
	judge_tiers(&probes, tiers);
	assert_int_equal(tiers[NC_TIER_PROCESS].grade, NC_GRADE_NONE);
}

/* What a tier lacks most is what it names, not what it lacks first. */
static void test_worst_reason_wins(void **state)
{
	struct nc_probes probes = good_host();
	struct nc_tier_report tiers[NC_TIER_MAX];

	(void)state;
	nc_probe_fail(&probes, NC_PROBE_CGROUP_MEMORY, -EPERM, "try");
	judge_tiers(&probes, tiers);
	assert_int_equal(tiers[NC_TIER_CONTAINER].grade, NC_GRADE_REDUCED);
	assert_string_equal(tiers[NC_TIER_CONTAINER].reason, "memory is reduced");
	nc_probe_fail(&probes, NC_PROBE_NET_NS, -EPERM, "try");
	judge_tiers(&probes, tiers);
	assert_int_equal(tiers[NC_TIER_CONTAINER].grade, NC_GRADE_NONE);
	assert_string_equal(tiers[NC_TIER_CONTAINER].reason, "network is reduced");
}

/* What a box says of itself, from what held it. */
static void test_boxes(void **state)
{
	const uint32_t all = NC_CGROUP_CAN_MEMORY | NC_CGROUP_CAN_SWAP | NC_CGROUP_CAN_CPU |
			     NC_CGROUP_CAN_PIDS | NC_CGROUP_CAN_KILL;
	/* in the order of enum nc_property: f(ull), r(educed), n(one) */
	const struct {
		struct nc_box_host host;
		enum nc_tier tier;
		struct nc_means means;
		const char *letters;
	} cases[] = {
		{{.ranges = true, .user_ns = true, .cgroups = all}, NC_TIER_CONTAINER,
			{.landlock = 7, .reported = true, .pid_ns = true}, "fffffffffffnfn"},
		/* its commands may be root of it */
		{{.ranges = true, .user_ns = true, .cgroups = all}, NC_TIER_CONTAINER,
			{.landlock = 7, .reported = true, .pid_ns = true, .users = true},
			"frfffffffffnfn"},
		{{.user_ns = true}, NC_TIER_CONTAINER,
			{.landlock = 7, .reported = true, .pid_ns = true}, "frfffffrnrfnfn"},
		{{.user_ns = true}, NC_TIER_CONTAINER, {.landlock = 1, .pid_ns = true},
			"frfffrrrnrfnfn"},
		{{.user_ns = true}, NC_TIER_CONTAINER, {.pid_ns = true}, "frfffrnrnrfnfn"},
		{{.ranges = true, .user_ns = true, .cgroups = all}, NC_TIER_PROCESS,
			{.landlock = 7, .reported = true, .pid_ns = true}, "rffrrfffffrnfn"},
		{{.user_ns = true}, NC_TIER_PROCESS,
			{.landlock = 7, .reported = true, .pid_ns = true}, "rrfrrffrnrrnfn"},
		/* neither a pid namespace nor a group: alone, nothing can survive */
		{{0}, NC_TIER_PROCESS, {.landlock = 7, .reported = true, .alone = true},
			"rnrrrffrnrrnfn"},
		/* a group that can kill, and one that cannot */
		{{.ranges = true, .cgroups = all}, NC_TIER_PROCESS,
			{.landlock = 7, .reported = true}, "rfrrrfffffrnfn"},
		{{.ranges = true, .cgroups = all & ~(uint32_t)NC_CGROUP_CAN_KILL}, NC_TIER_PROCESS,
			{.landlock = 7, .reported = true}, "rfrrrfffffrnrn"},
		/* before ABI 3 nothing is around files */
		{{.user_ns = true}, NC_TIER_PROCESS,
			{.landlock = 2, .reported = true, .pid_ns = true}, "nrfrrfrrnrrnfn"},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++) {
		enum nc_grade grades[NC_STRENGTH_MAX];

		nc_means_grade(&cases[i].host, cases[i].tier, &cases[i].means, grades);
		for (size_t j = 0; j < NC_STRENGTH_MAX; j++)
			if (nc_grade_names[grades[j]][0] != cases[i].letters[j])
				fail_msg("case %zu: %s is %s", i, nc_property_names[j],
					nc_grade_names[grades[j]]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything_works),
		cmocka_unit_test(test_bare_host),
		cmocka_unit_test(test_one_thing_less),
		cmocka_unit_test(test_kill),
		cmocka_unit_test(test_landlock_abi),
		cmocka_unit_test(test_tiers),
		cmocka_unit_test(test_worst_reason_wins),
		cmocka_unit_test(test_boxes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
