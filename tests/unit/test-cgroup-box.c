/*
 * Groups for boxes, attacked by what would live in them. All of it runs in a pid namespace of its
 * own, so that nothing outlives the test, and once more without the version 2 tree where there are
 * controllers of version 1 beside it.
 */
#include "unit.h"

#include <fcntl.h>
#include <ftw.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/pidfd.h"
#include "kernel/cgroup_box.h"
#include "kernel/cgroup_face.h"

#define MIB (1024UL * 1024)
#define LONG_NS (20 * NC_NS_PER_S) /* for what must happen, on a slow machine too */

static bool only_v1;
static enum nc_cgroup_kind kind = NC_CGROUP_FOR_HOME;
static char run_id[NC_ID_SIZE]; /* part of the id of every parent made here */
static struct nc_cgroup_parent parent;
static struct nc_cgroup_host host;
static volatile int *shared; /* with the children */

static const char *parent_id(const char *suffix)
{
	static char id[NC_CGROUP_NAME_MAX + 1];

	(void)snprintf(id, sizeof(id), "%s-%s", run_id, suffix);
	return id;
}

static void open_parent(struct nc_cgroup_parent *ret_parent, const char *suffix)
{
	struct nacre_err err = {0};
	int r = nc_cgroup_parent_open_on(ret_parent, &host, parent_id(suffix), true, &err);

	if (r < 0)
		fail_msg("%s", err.message);
}

static int setup(void **state)
{
	(void)state;
	host = (struct nc_cgroup_host){0};
	assert_int_equal(nc_cgroup_find(&host), 0);
	if (only_v1) {
		nc_freep(&host.v2_dir);
		nc_freep(&host.v2_top);
	}
	assert_int_equal(nc_id_new("ut", run_id), 0);
	open_parent(&parent, "a");
	print_message("trees: %zu, can: 0x%x\n", parent.n_trees, parent.can);
	return 0;
}

static int find_left(const char *path, const struct stat *status, int type, struct FTW *at)
{
	(void)status;
	if (type == FTW_D && strstr(path + at->base, run_id)) {
		print_error("left: %s\n", path);
		return 1;
	}
	return 0;
}

static bool is_of_this_run(const char *id, void *context)
{
	(void)context;
	return strstr(id, run_id) != NULL;
}

static int teardown(void **state)
{
	bool left;

	(void)state;
	nc_cgroup_parent_close(&parent);
	/* our own ids only: somebody else may be testing here too */
	left = nftw("/sys/fs/cgroup", find_left, 16, FTW_PHYS) != 0;
	if (left) { /* after a test that failed */
		open_parent(&parent, "z");
		(void)nc_cgroup_sweep(&host, parent.id, is_of_this_run, NULL);
		nc_cgroup_parent_close(&parent);
	}
	nc_cgroup_done(&host);
	return left ? -1 : 0;
}

static void need(unsigned int can)
{
	if (geteuid() != 0)
		unit_skip("needs root");
	if ((parent.can & can) != can)
		unit_skip("a controller is missing");
}

static struct nc_cgroup make(const struct nc_cgroup_limits *limits)
{
	struct nc_cgroup group = {0};
	struct nacre_err err = {0};

	if (nc_cgroup_make(&parent, kind, "bx_1", limits, &group, &err) < 0)
		fail_msg("%s", err.message);
	return group;
}

/* A process in the group that runs body and ends with what it returns. */
static int spawn_how(const struct nc_cgroup *group, int (*body)(void), bool into)
{
	int pidfd = -EBADF;
	struct clone_args arguments = {
		.flags = CLONE_PIDFD,
		.pidfd = (uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	uint64_t begun_ns;
	long pid;

	if (into) {
		arguments.flags |= CLONE_INTO_CGROUP;
		arguments.cgroup = (unsigned int)group->clone_fd;
	}
	pid = syscall(SYS_clone3, &arguments, sizeof(arguments));
	assert_true(pid >= 0);
	if (pid > 0)
		return pidfd;
	/* cmocka's handlers would go on with the tests in here */
	for (int i = 1; i < NSIG; i++)
		(void)signal(i, SIG_DFL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		nc_child_exit(98);
	begun_ns = nc_clock_ns();
	if (nc_cgroup_join_self(group, into) < 0)
		nc_child_exit(99);
	shared[1] = (int)(nc_clock_ns() - begun_ns); /* for test_costs */
	nc_child_exit(body());
}

static int spawn(const struct nc_cgroup *group, int (*body)(void))
{
	return spawn_how(group, body, group->clone_fd >= 0);
}

/* Exit status, or 128 and the signal. */
static int finish(int pidfd)
{
	siginfo_t info = {0};

	assert_int_equal(nc_pidfd_wait(pidfd, nc_clock_ns() + LONG_NS, &info), 0);
	(void)nc_fd_close(pidfd);
	return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

static struct nc_cgroup_usage usage_of(const struct nc_cgroup *group)
{
	struct nc_cgroup_usage usage;

	assert_int_equal(nc_cgroup_usage(group, &usage), 0);
	return usage;
}

/* Orphans come to us, who are their reaper. */
static void reap_orphans(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* A zombie's reaping reaches the counter with a delay. */
static void wait_no_pids(const struct nc_cgroup *group)
{
	uint64_t deadline_ns = nc_clock_ns() + LONG_NS;

	for (;;) {
		reap_orphans();
		if (usage_of(group).pids_now == 0)
			return;
		assert_true(nc_clock_ns() < deadline_ns);
		(void)usleep(1000);
	}
}

/* Without cgroup.kill it takes rounds, more of them than it allows itself on a slow machine. */
static void kill_by(struct nc_cgroup *group, int (*killer)(struct nc_cgroup *))
{
	uint64_t deadline_ns = nc_clock_ns() + LONG_NS;
	int r;

	do
		r = killer(group);
	while (r == -ETIMEDOUT && nc_clock_ns() < deadline_ns);
	assert_int_equal(r, 0);
}

static void kill_group(struct nc_cgroup *group)
{
	kill_by(group, nc_cgroup_kill);
}

static void end(struct nc_cgroup *group)
{
	kill_group(group);
	assert_int_equal(nc_cgroup_wait_empty(group, nc_clock_ns() + LONG_NS), 0);
	wait_no_pids(group);
	assert_int_equal(nc_cgroup_remove(group), 0);
	assert_null(group->parent);
}

static void wait_shared(int wanted)
{
	uint64_t deadline_ns = nc_clock_ns() + LONG_NS;

	while (*shared < wanted) {
		assert_true(nc_clock_ns() < deadline_ns);
		(void)usleep(1000);
	}
}

static _Noreturn void pause_for_ever(void)
{
	for (;;)
		(void)pause();
}

static char *fill(size_t size)
{
	char *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (data != MAP_FAILED)
		memset(data, 1, size);
	return data;
}

static int body_fill_96(void)
{
	return fill(96 * MIB) == MAP_FAILED;
}

static int body_nothing(void)
{
	return 0;
}

static int body_pause(void)
{
	*shared = 1;
	pause_for_ever();
}

static void test_memory_limit_kills_and_counts(void **state)
{
	const struct nc_cgroup_limits limits = {.memory_bytes = 32 * MIB};
	struct nc_cgroup group;
	struct nc_cgroup_usage usage;

	(void)state;
	need(NC_CGROUP_CAN_MEMORY);
	group = make(&limits);
	assert_int_equal(finish(spawn(&group, body_fill_96)), 128 + SIGKILL);
	usage = usage_of(&group);
	/* Linux 6.1 counts the first of a group that is killed as a whole twice */
	assert_in_range(usage.oom_kills, 1, 2);
	assert_true(usage.memory_peak_bytes <= 32 * MIB);
	/* v2 before Linux 5.19 has no peak */
	assert_true(usage.memory_peak_bytes >= 24 * MIB || usage.memory_peak_bytes == 0);
	end(&group);
}

static int write_96(int fd)
{
	char *data = fill(MIB);

	for (size_t i = 0; i < 96; i++)
		if (write(fd, data, MIB) != (ssize_t)MIB)
			return 1;
	return 0;
}

static int body_memfd(void)
{
	return write_96(memfd_create("x", MFD_CLOEXEC));
}

static int body_tmpfs(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("x", "/tmp", "tmpfs", 0, NULL) < 0)
		return 2;
	return write_96(open("/tmp/x", O_CREAT | O_RDWR | O_CLOEXEC, 0600));
}

/* Each below the limit, all of them above it. */
static int body_children(void)
{
	for (int i = 0; i < 8; i++)
		if (fork() == 0) {
			(void)fill(12 * MIB);
			(void)__atomic_add_fetch((int *)(uintptr_t)shared, 1, __ATOMIC_SEQ_CST);
			pause_for_ever();
		}
	pause_for_ever();
}

static void test_memory_of_all_kinds_is_charged(void **state)
{
	static int (*const bodies[])(void) = {body_memfd, body_tmpfs};
	const struct nc_cgroup_limits limits = {.memory_bytes = 32 * MIB};
	uint64_t deadline_ns = nc_clock_ns() + LONG_NS;
	struct nc_cgroup group;
	int pidfd;

	(void)state;
	need(NC_CGROUP_CAN_MEMORY);
	for (size_t i = 0; i < unit_count(bodies); i++) {
		group = make(&limits);
		assert_int_equal(finish(spawn(&group, bodies[i])), 128 + SIGKILL);
		assert_true(usage_of(&group).oom_kills >= 1);
		end(&group);
	}
	group = make(&limits);
	*shared = 0;
	pidfd = spawn(&group, body_children);
	while (usage_of(&group).oom_kills == 0) {
		assert_true(nc_clock_ns() < deadline_ns);
		(void)usleep(1000);
	}
	assert_true(*shared < 8);
	assert_true(usage_of(&group).memory_now_bytes <= 32 * MIB);
	kill_group(&group);
	assert_int_equal(finish(pidfd), 128 + SIGKILL);
	end(&group);
}

static int body_bomb(void)
{
	int refused = 0;

	for (int i = 0; i < 50; i++) {
		pid_t pid = fork();

		if (pid == 0)
			pause_for_ever();
		refused += pid < 0;
	}
	*shared = refused;
	pause_for_ever();
}

static void test_pids_limit_stops_a_fork_bomb(void **state)
{
	const struct nc_cgroup_limits limits = {.pids = 8};
	struct nc_cgroup group;
	struct nc_cgroup_usage usage;
	int pidfd;

	(void)state;
	need(NC_CGROUP_CAN_PIDS);
	group = make(&limits);
	*shared = 0;
	pidfd = spawn(&group, body_bomb);
	wait_shared(1);
	/* 7 of 50, with itself */
	assert_int_equal(*shared, 43);
	usage = usage_of(&group);
	assert_int_equal(usage.pids_now, 8);
	assert_true(usage.pids_peak == 8 || usage.pids_peak == 0);
	assert_int_equal(usage.pids_refused, 43);
	kill_group(&group);
	assert_int_equal(finish(pidfd), 128 + SIGKILL);
	end(&group);
}

static int body_spin(void)
{
	do
		*shared += 1;
	while (getppid() > 0 || *shared);
	return 0;
}

static void test_cpu_quota_throttles(void **state)
{
	const struct nc_cgroup_limits limits = {.cpu_milli = 100};
	uint64_t begun_ns = nc_clock_ns();
	struct nc_cgroup group;
	struct nc_cgroup_usage usage;
	int pidfd;

	(void)state;
	need(NC_CGROUP_CAN_CPU);
	group = make(&limits);
	pidfd = spawn(&group, body_spin);
	do {
		(void)usleep(10000);
		usage = usage_of(&group);
		assert_true(nc_clock_ns() - begun_ns < LONG_NS);
	} while (usage.throttled_us < 300000);
	if (parent.can & NC_CGROUP_CAN_CPU_TIME) {
		uint64_t passed_us = (nc_clock_ns() - begun_ns) / 1000;

		assert_true(usage.cpu_user_us + usage.cpu_system_us > 0);
		/* a tenth, and some slack: what was withheld cannot have been used */
		assert_true(usage.cpu_user_us + usage.cpu_system_us < passed_us / 2);
	}
	kill_group(&group);
	assert_int_equal(finish(pidfd), 128 + SIGKILL);
	end(&group);
}

/* The text of a group's file, from whichever tree has it; "" if none. */
static const char *file_of(const struct nc_cgroup *group, const char *file)
{
	static char text[256];

	for (size_t i = 0; i < parent.n_trees; i++) {
		struct nc_cgroup_place place = {parent.tree[i].fd, group->name};

		if (nc_cgroup_read_file(&place, file, text, sizeof(text)) == 0)
			return text;
	}
	return "";
}

static bool memory_is_v2(void)
{
	return !host.v1_dir[NC_CGROUP_MEMORY];
}

static void test_limits_read_back(void **state)
{
	/* neither a whole number of pages nor a quota that fits the usual period */
	const struct nc_cgroup_limits limits = {64 * MIB + 100, 17, 5};
	struct nc_cgroup group;

	(void)state;
	need(NC_CGROUP_CAN_MEMORY | NC_CGROUP_CAN_SWAP | NC_CGROUP_CAN_CPU | NC_CGROUP_CAN_PIDS);
	group = make(&limits);
	assert_string_equal(file_of(&group, "pids.max"), "17\n");
	if (memory_is_v2()) {
		assert_string_equal(file_of(&group, "memory.max"), "67108864\n");
		assert_string_equal(file_of(&group, "memory.swap.max"), "0\n");
		assert_string_equal(file_of(&group, "memory.oom.group"), "1\n");
		assert_string_equal(file_of(&group, "cpu.max"), "5000 1000000\n");
		assert_true(*file_of(&group, "memory.zswap.max") == '\0' ||
			    strcmp(file_of(&group, "memory.zswap.max"), "0\n") == 0);
	} else {
		assert_string_equal(file_of(&group, "memory.limit_in_bytes"), "67108864\n");
		assert_string_equal(file_of(&group, "memory.memsw.limit_in_bytes"), "67108864\n");
		assert_string_equal(file_of(&group, "cpu.cfs_quota_us"), "5000\n");
		assert_string_equal(file_of(&group, "cpu.cfs_period_us"), "1000000\n");
	}
	end(&group);
}

/* What building leaves in a group: processes that wait, and a memory peak. */
static int body_build(void)
{
	munmap(fill(16 * MIB), 16 * MIB);
	(void)fill(3 * MIB);
	*shared = 1;
	while (*shared == 1)
		(void)usleep(1000);
	return fill(96 * MIB) == MAP_FAILED;
}

static void test_late_limits(void **state)
{
	const struct nc_cgroup_limits limits = {32 * MIB, 17, 500};
	struct nc_cgroup group;
	struct nc_cgroup_usage usage;
	struct nacre_err err = {0};
	int pidfd;

	(void)state;
	need(NC_CGROUP_CAN_MEMORY | NC_CGROUP_CAN_CPU | NC_CGROUP_CAN_PIDS);
	group = make(NULL);
	assert_string_equal(file_of(&group, "pids.max"), "max\n");
	*shared = 0;
	pidfd = spawn(&group, body_build);
	wait_shared(1);
	nc_cgroup_join_close(&group);
	if (nc_cgroup_limit(&group, &limits, &err) < 0)
		fail_msg("%s", err.message);
	nc_cgroup_limit_close(&group);
	assert_string_equal(file_of(&group, "pids.max"), "17\n");
	if (memory_is_v2()) {
		assert_string_equal(file_of(&group, "memory.max"), "33554432\n");
		assert_string_equal(file_of(&group, "memory.high"), "max\n");
		assert_string_equal(file_of(&group, "cpu.max"), "50000 100000\n");
	} else {
		assert_string_equal(file_of(&group, "memory.limit_in_bytes"), "33554432\n");
		assert_string_equal(file_of(&group, "cpu.cfs_quota_us"), "50000\n");
	}
	usage = usage_of(&group);
	assert_int_equal(usage.oom_kills + usage.pids_refused, 0);
	if (group.peak_resets)
		assert_true(usage.memory_peak_bytes < 8 * MIB);
	/* without descriptors it goes as well */
	assert_int_equal(
		nc_cgroup_limit(&group, &(struct nc_cgroup_limits){24 * MIB, 16, 0}, &err), 0);
	assert_string_equal(file_of(&group, "pids.max"), "16\n");
	*shared = 2;
	assert_int_equal(finish(pidfd), 128 + SIGKILL);
	assert_true(usage_of(&group).oom_kills > 0);
	assert_true(usage_of(&group).memory_peak_bytes <= 24 * MIB);
	end(&group);
}

static void test_late_limit_below_what_is_used(void **state)
{
	const struct nc_cgroup_limits least = {.memory_bytes = MIB};
	struct nc_cgroup group;
	struct nacre_err err = {0};
	siginfo_t info;
	int pidfd;

	(void)state;
	need(NC_CGROUP_CAN_MEMORY);
	group = make(NULL);
	*shared = 0;
	pidfd = spawn(&group, body_build);
	wait_shared(1);
	assert_int_equal(nc_cgroup_limit(&group, &least, &err), -EBUSY);
	assert_non_null(strstr(err.message, "memory."));
	assert_non_null(strstr(err.message, "1048576"));
	print_message("%s\n", err.message);
	/* nobody died of it */
	assert_int_equal(
		nc_pidfd_wait(pidfd, nc_clock_ns() + 50 * NC_NS_PER_MS, &info), -ETIMEDOUT);
	assert_int_equal(usage_of(&group).oom_kills, 0);
	kill_group(&group);
	assert_int_equal(finish(pidfd), 128 + SIGKILL);
	end(&group);
}

static void ignore_all(void)
{
	for (int i = 1; i < NSIG; i++)
		(void)signal(i, SIG_IGN);
}

/* A family that has left its session and its parents, ignores signals, and one of it is stopped. */
static int body_family(void)
{
	ignore_all();
	if (fork() == 0) {
		(void)setsid();
		if (fork() == 0) {
			(void)setsid();
			if (fork() == 0) {
				(void)__atomic_add_fetch(
					(int *)(uintptr_t)shared, 1, __ATOMIC_SEQ_CST);
				(void)raise(SIGSTOP);
			}
			(void)__atomic_add_fetch((int *)(uintptr_t)shared, 1, __ATOMIC_SEQ_CST);
			pause_for_ever();
		}
		nc_child_exit(0);
	}
	pause_for_ever();
}

/* Every process makes another and ends. */
static int body_flee(void)
{
	ignore_all();
	for (;;) {
		pid_t pid = fork();

		if (pid > 0)
			nc_child_exit(0);
		(void)__atomic_add_fetch((int *)(uintptr_t)shared, 1, __ATOMIC_SEQ_CST);
	}
}

static int kill_by_list(struct nc_cgroup *group)
{
	size_t tree = 0;

	for (size_t i = 0; i < parent.n_trees; i++)
		if (group->made & (1U << i) &&
			parent.tree[i].controllers & (1U << NC_CGROUP_FREEZER))
			tree = i;
	return nc_cgroup_place_kill_listed(
		&(struct nc_cgroup_place){parent.tree[tree].fd, group->name}, parent.tree[tree].v2);
}

static void check_kill(int (*body)(void), int ready, int (*killer)(struct nc_cgroup *))
{
	const struct nc_cgroup_limits limits = {.pids = 32};
	struct nc_cgroup group = make(&limits);
	int pidfd;

	*shared = 0;
	pidfd = spawn(&group, body);
	wait_shared(ready);
	assert_int_equal(nc_cgroup_is_empty(&group), 0);
	kill_by(&group, killer);
	assert_int_equal(nc_cgroup_wait_empty(&group, nc_clock_ns() + LONG_NS), 0);
	(void)finish(pidfd); /* the one that flees has ended itself */
	end(&group);
}

static void test_kill_reaches_the_whole_tree(void **state)
{
	(void)state;
	need(NC_CGROUP_CAN_PIDS | NC_CGROUP_CAN_FREEZE);
	check_kill(body_family, 2, nc_cgroup_kill);
	check_kill(body_family, 2, kill_by_list);
	check_kill(body_flee, 50, nc_cgroup_kill);
	check_kill(body_flee, 50, kill_by_list);
	check_kill(body_bomb, 1, kill_by_list);
}

static void test_freeze_and_thaw(void **state)
{
	const struct nc_cgroup_limits limits = {0};
	struct nc_cgroup group;
	int pidfd, now;

	(void)state;
	need(NC_CGROUP_CAN_FREEZE);
	group = make(&limits);
	*shared = 0;
	pidfd = spawn(&group, body_spin);
	wait_shared(1000);
	assert_int_equal(nc_cgroup_freeze(&group, true), 0);
	now = *shared;
	(void)usleep(50000);
	assert_int_equal(*shared, now);
	assert_int_equal(nc_cgroup_freeze(&group, false), 0);
	*shared = 0;
	wait_shared(1000);
	/* what is frozen is killed as well */
	assert_int_equal(nc_cgroup_freeze(&group, true), 0);
	kill_group(&group);
	assert_int_equal(finish(pidfd), 128 + SIGKILL);
	end(&group);
}

static int body_work(void)
{
	char *data = fill(16 * MIB);
	uint64_t begun_ns = nc_clock_ns();

	while (nc_clock_ns() - begun_ns < 100 * NC_NS_PER_MS)
		data[(*shared)++ & 4095]++;
	munmap(data, 16 * MIB);
	return 0;
}

static void test_usage_is_plausible(void **state)
{
	const struct nc_cgroup_limits limits = {.memory_bytes = 64 * MIB, .pids = 8};
	struct nc_cgroup group;
	struct nc_cgroup_usage usage, resting;

	(void)state;
	need(NC_CGROUP_CAN_MEMORY | NC_CGROUP_CAN_PIDS);
	group = make(&limits);
	usage = usage_of(&group);
	assert_int_equal(usage.cpu_user_us + usage.cpu_system_us, 0);
	assert_int_equal(usage.memory_peak_bytes, 0);
	assert_int_equal(finish(spawn(&group, body_work)), 0);
	usage = usage_of(&group);
	/* spun for 100 ms, of which others may have taken most */
	if (parent.can & NC_CGROUP_CAN_CPU_TIME)
		assert_in_range(usage.cpu_user_us + usage.cpu_system_us, 5000, 1000000);
	assert_in_range(usage.memory_peak_bytes, 16 * MIB, 20 * MIB);
	assert_true(usage.memory_now_bytes < 8 * MIB);
	assert_int_equal(usage.oom_kills, 0);
	assert_int_equal(usage.pids_refused, 0);
	assert_in_range(usage.pids_peak, 0, 1);
	/* without its descriptors it says the same */
	nc_cgroup_rest(&group);
	for (size_t i = 0; i < NC_CGROUP_GAUGES_MAX; i++)
		assert_int_equal(group.gauge_fd[i], -EBADF);
	resting = usage_of(&group);
	assert_int_equal(resting.memory_peak_bytes, usage.memory_peak_bytes);
	assert_int_equal(resting.pids_peak, usage.pids_peak);
	assert_in_range(resting.cpu_user_us + resting.cpu_system_us,
		usage.cpu_user_us + usage.cpu_system_us, 1000000);
	end(&group);
}

static void test_cpu_time_and_pids(void **state)
{
	struct nc_cgroup group;
	uint64_t us = 1;
	pid_t pids[8];
	int pidfd, n;

	(void)state;
	need(NC_CGROUP_CAN_PIDS | NC_CGROUP_CAN_CPU_TIME);
	group = make(&(struct nc_cgroup_limits){.pids = 8});
	assert_int_equal(nc_cgroup_cpu_us(&group, &us), 0);
	assert_int_equal(us, 0);
	assert_int_equal(nc_cgroup_pids(&group, pids, unit_count(pids)), 0);
	assert_int_equal(finish(spawn(&group, body_work)), 0);
	assert_int_equal(nc_cgroup_cpu_us(&group, &us), 0);
	assert_in_range(us, 5000, 1000000);
	*shared = 0;
	pidfd = spawn(&group, body_bomb);
	wait_shared(1);
	n = nc_cgroup_pids(&group, pids, unit_count(pids));
	assert_int_equal(n, 8);
	for (int i = 0; i < n; i++)
		assert_true(pids[i] > 1 && pids[i] != getpid());
	assert_int_equal(nc_cgroup_pids(&group, pids, 3), 3);
	assert_int_equal(nc_cgroup_pids(&group, pids, 0), 0);
	kill_group(&group);
	assert_int_equal(finish(pidfd), 128 + SIGKILL);
	end(&group);
}

static void test_failures_leave_nothing(void **state)
{
	static const struct {
		const char *name;
		struct nc_cgroup_limits limits;
		int code;
		const char *text;
	} bad[] = {
		{"bx_1", {32 * MIB, 1ULL << 40, 1000}, -EINVAL, "pids.max"},
		{"bx_1", {1ULL << 63, 10, 1000}, -ERANGE, "memory."},
		{"bx_1", {100, 10, 1000}, -EINVAL, "page"},
		{"..", {0}, -EINVAL, "'..'"},
		{"a/b", {0}, -EINVAL, "'a/b'"},
		{"", {0}, -EINVAL, "''"},
		{"taken", {0}, -EEXIST, "'taken'"},
	};
	struct nc_cgroup group = {0}, taken = {0};

	(void)state;
	need(NC_CGROUP_CAN_MEMORY | NC_CGROUP_CAN_PIDS | NC_CGROUP_CAN_CPU);
	assert_int_equal(nc_cgroup_make(&parent, kind, "taken", &bad[3].limits, &taken, NULL), 0);
	for (size_t i = 0; i < unit_count(bad); i++) {
		struct nacre_err err = {0};
		int r = nc_cgroup_make(&parent, kind, bad[i].name, &bad[i].limits, &group, &err);

		assert_int_equal(r, bad[i].code);
		assert_int_equal(err.code, bad[i].code);
		assert_non_null(strstr(err.message, bad[i].text));
		assert_null(group.parent);
	}
	/* version 1 calls it out of range, version 2 invalid */
	assert_true(
		nc_cgroup_make(&parent, kind, "bx_1",
			&(struct nc_cgroup_limits){32 * MIB, 10, UINT64_MAX}, &group, NULL) < 0);
	for (size_t i = 0; i < parent.n_trees; i++) {
		struct stat status;

		/* only the one that is there rightly: others would count as links */
		assert_int_equal(fstat(parent.tree[i].fd, &status), 0);
		assert_int_equal(status.st_nlink, taken.made & (1U << i) ? 3 : 2);
	}
	end(&taken);
	assert_int_equal(nc_cgroup_remove(&taken), 0);
}

static void test_remove(void **state)
{
	const struct nc_cgroup_limits limits = {0};
	struct nc_cgroup group;
	int pidfd;

	(void)state;
	need(NC_CGROUP_CAN_MEMORY);
	group = make(&limits);
	*shared = 0;
	pidfd = spawn(&group, body_pause);
	wait_shared(1);
	assert_int_equal(nc_cgroup_remove(&group), -EBUSY);
	assert_int_equal(nc_cgroup_is_empty(&group), 0);
	kill_group(&group);
	assert_int_equal(finish(pidfd), 128 + SIGKILL);
	for (size_t i = 0; i < parent.n_trees; i++) {
		if (!(group.made & (1U << i)))
			continue;
		assert_int_equal(mkdirat(parent.tree[i].fd, "bx_1/left", 0755), 0);
		assert_int_equal(mkdirat(parent.tree[i].fd, "bx_1/left/deep", 0755), 0);
	}
	assert_int_equal(nc_cgroup_remove(&group), 0);
}

static bool is_named(const char *id, void *context)
{
	return strcmp(id, context) == 0;
}

/* A spawner that dies leaves its groups, with what is in them. */
static int leave_behind(const char *suffix, struct nc_cgroup_parent *left, struct nc_cgroup *group)
{
	const struct nc_cgroup_limits limits = {0};
	int pidfd;

	open_parent(left, suffix);
	assert_int_equal(nc_cgroup_make(left, kind, "bx_1", &limits, group, NULL), 0);
	*shared = 0;
	pidfd = spawn(group, body_pause);
	wait_shared(1);
	return pidfd;
}

static void test_sweep_touches_only_the_dead(void **state)
{
	struct nc_cgroup_parent dead, alive;
	struct nc_cgroup dead_group = {0}, alive_group = {0};
	char id[NC_CGROUP_NAME_MAX + 1];
	siginfo_t info;
	int dead_fd, alive_fd;

	(void)state;
	need(NC_CGROUP_CAN_MEMORY);
	dead_fd = leave_behind("dead", &dead, &dead_group);
	alive_fd = leave_behind("alive", &alive, &alive_group);
	(void)snprintf(id, sizeof(id), "%s", parent_id("none"));
	assert_int_equal(nc_cgroup_sweep(&host, parent.id, is_named, id), 0);
	/* not even if somebody says that we are dead */
	assert_int_equal(nc_cgroup_sweep(&host, parent.id, is_named, parent.id), 0);
	(void)snprintf(id, sizeof(id), "%s", parent_id("dead"));
	assert_int_equal(nc_cgroup_sweep(&host, parent.id, is_named, id), (int)parent.n_trees);
	assert_int_equal(finish(dead_fd), 128 + SIGKILL);
	assert_int_equal(
		nc_pidfd_wait(alive_fd, nc_clock_ns() + 50 * NC_NS_PER_MS, &info), -ETIMEDOUT);
	assert_int_equal(nc_cgroup_is_empty(&alive_group), 0);
	/* the id is free again */
	assert_int_equal(nc_cgroup_remove(&dead_group), 0);
	nc_cgroup_parent_close(&dead);
	open_parent(&dead, "dead");
	nc_cgroup_parent_close(&dead);
	kill_group(&alive_group);
	assert_int_equal(finish(alive_fd), 128 + SIGKILL);
	assert_int_equal(nc_cgroup_remove(&alive_group), 0);
	nc_cgroup_parent_close(&alive);
}

static void test_parents(void **state)
{
	static const char *const bad[] = {"", ".", "..", "a/b", "a.b", "a b", "a\n"};
	struct nc_cgroup_parent other = {0};
	struct nacre_err err = {0};

	(void)state;
	need(NC_CGROUP_CAN_MEMORY);
	for (size_t i = 0; i < unit_count(bad); i++)
		assert_int_equal(
			nc_cgroup_parent_open_on(&other, &host, bad[i], true, &err), -EINVAL);
	assert_int_equal(nc_cgroup_parent_open_on(&other, &host, parent.id, true, &err), -EEXIST);
	assert_non_null(strstr(err.message, parent.id));
	/* and the first one is unharmed */
	end(&(struct nc_cgroup[]){make(&(struct nc_cgroup_limits){.pids = 3})}[0]);
	assert_int_equal(nc_cgroup_parent_open(&other, parent_id("b"), true, &err), 0);
	nc_cgroup_parent_close(&other);
}

static void test_without_any_hierarchy(void **state)
{
	const struct nc_cgroup_host nothing = {0};
	const struct nc_cgroup_limits none = {0}, memory = {.memory_bytes = MIB};
	struct nc_cgroup_parent other;
	struct nc_cgroup group = {0};
	struct nacre_err err = {0};

	(void)state;
	assert_int_equal(nc_cgroup_parent_open_on(&other, &nothing, "x", true, &err), 0);
	assert_int_equal(other.can, 0);
	assert_int_equal(nc_cgroup_make(&other, kind, "y", &memory, &group, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.message, "memory"));
	assert_int_equal(nc_cgroup_make(&other, kind, "y", &none, &group, &err), 0);
	assert_int_equal(nc_cgroup_join_self(&group, false), 0);
	assert_int_equal(nc_cgroup_cpu_us(&group, &(uint64_t){0}), -EOPNOTSUPP);
	assert_int_equal(nc_cgroup_pids(&group, NULL, 0), -EOPNOTSUPP);
	assert_int_equal(nc_cgroup_limit(&group, &memory, &err), -EOPNOTSUPP);
	assert_int_equal(nc_cgroup_limit(&group, &none, &err), 0);
	assert_int_equal(nc_cgroup_kill(&group), -EOPNOTSUPP);
	assert_int_equal(nc_cgroup_freeze(&group, true), -EOPNOTSUPP);
	assert_int_equal(nc_cgroup_remove(&group), 0);
	nc_cgroup_parent_close(&other);
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void print_cost(const char *what, uint64_t *ns, size_t n)
{
	qsort(ns, n, sizeof(ns[0]), compare);
	print_message("%-36s p50 %6.1f us, p90 %6.1f us\n", what, (double)ns[n / 2] / 1000,
		(double)ns[n * 9 / 10] / 1000);
}

/* A join after some idleness, when the kernel's grace periods (RCU) are long. */
static void print_idle_join(const char *what, bool into)
{
	enum { ROUNDS = 11 };
	const struct nc_cgroup_limits limits = {0};
	uint64_t ns[ROUNDS];

	for (size_t i = 0; i < ROUNDS; i++) {
		struct nc_cgroup group = make(&limits);

		(void)usleep(80000);
		assert_int_equal(finish(spawn_how(&group, body_nothing, into)), 0);
		ns[i] = (uint64_t)shared[1];
		end(&group);
	}
	print_cost(what, ns, ROUNDS);
}

/* Figures for people; nothing is asserted about them. */
static void test_costs(void **state)
{
	enum { ROUNDS = 100 };
	const struct nc_cgroup_limits limits = {64 * MIB, 32, 1000};
	uint64_t make_ns[ROUNDS], join_ns[ROUNDS], usage_ns[ROUNDS], remove_ns[ROUNDS];

	(void)state;
	need(NC_CGROUP_CAN_MEMORY | NC_CGROUP_CAN_PIDS | NC_CGROUP_CAN_CPU);
	for (size_t i = 0; i < ROUNDS; i++) {
		uint64_t ns[5];
		struct nc_cgroup group;

		ns[0] = nc_clock_ns();
		group = make(&limits);
		ns[1] = nc_clock_ns();
		assert_int_equal(finish(spawn(&group, body_nothing)), 0);
		wait_no_pids(&group);
		ns[2] = nc_clock_ns();
		(void)usage_of(&group);
		ns[3] = nc_clock_ns();
		assert_int_equal(nc_cgroup_remove(&group), 0);
		ns[4] = nc_clock_ns();
		make_ns[i] = ns[1] - ns[0];
		join_ns[i] = (uint64_t)shared[1];
		usage_ns[i] = ns[3] - ns[2];
		remove_ns[i] = ns[4] - ns[3];
	}
	print_cost("make, limits set and read back", make_ns, ROUNDS);
	print_cost("join", join_ns, ROUNDS);
	print_cost("usage", usage_ns, ROUNDS);
	print_cost("remove", remove_ns, ROUNDS);
	if (parent.can & NC_CGROUP_CAN_CLONE && parent.tree[0].kinds & kind) {
		print_idle_join("join after idleness, cloned", true);
		print_idle_join("join after idleness, cgroup.procs", false);
	} else {
		print_idle_join("join after idleness", false);
	}
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_limit_kills_and_counts),
		cmocka_unit_test(test_memory_of_all_kinds_is_charged),
		cmocka_unit_test(test_pids_limit_stops_a_fork_bomb),
		cmocka_unit_test(test_cpu_quota_throttles),
		cmocka_unit_test(test_limits_read_back),
		cmocka_unit_test(test_late_limits),
		cmocka_unit_test(test_late_limit_below_what_is_used),
		cmocka_unit_test(test_kill_reaches_the_whole_tree),
		cmocka_unit_test(test_freeze_and_thaw),
		cmocka_unit_test(test_usage_is_plausible),
		cmocka_unit_test(test_cpu_time_and_pids),
		cmocka_unit_test(test_failures_leave_nothing),
		cmocka_unit_test(test_remove),
		cmocka_unit_test(test_sweep_touches_only_the_dead),
		cmocka_unit_test(test_parents),
		cmocka_unit_test(test_without_any_hierarchy),
		cmocka_unit_test(test_costs),
	};
	struct nc_cgroup_host found = {0};
	int r = cmocka_run_group_tests_name("as this host is", tests, setup, teardown);

	if (nc_cgroup_find(&found) == 0 && strcmp(nc_cgroup_version(&found), "hybrid") == 0) {
		kind = NC_CGROUP_FOR_LOAN;
		r += cmocka_run_group_tests_name("loans", tests, setup, teardown);
		kind = NC_CGROUP_FOR_HOME;
		only_v1 = true;
		r += cmocka_run_group_tests_name("version 1 alone", tests, setup, teardown);
	}
	nc_cgroup_done(&found);
	return r;
}

/* Runs body in a child and returns its exit status. */
static int in_child(int (*body)(void))
{
	/* not nc_fork: in a new namespace our pid is not the one that its child would look for */
	pid_t pid = fork();
	int status = 1;

	if (pid == 0)
		return prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? 1 : body();
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int run_as_reaper(void)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ? 1 : run();
}

/* The first process of the namespace only waits: the leak checker cannot stop such a one. */
static int run_as_second(void)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 1;
	/* the leak checker looks itself up there by pid; without it nobody does */
	(void)mount("proc", "/proc", "proc", 0, NULL);
	return in_child(run_as_reaper);
}

int main(void)
{
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
		return run_as_reaper(); /* no root: all that can run is harmless */
	/* the leak checker cannot clone when the namespace has ended; there is nothing to check */
	nc_child_exit(in_child(run_as_second));
}
