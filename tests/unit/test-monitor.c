/*
 * The resource monitor. What kills runs in a pid namespace of its own, with a /proc of its own:
 * a mistake there finds nobody but its own children.
 */
#include "unit.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "kernel/cgroup_box.h"
#include "kernel/process.h"
#include "watch/monitor.h"

#define MIB ((size_t)1 << 20)

static void touch(size_t size)
{
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		_exit(1);
	memset(memory, 1, size);
}

/* A failed test must not leave it for ever. */
static _Noreturn void stay(void)
{
	(void)alarm(60);
	for (;;)
		(void)pause();
}

/* A child with a child, which have touched 16 and 24 MiB when this returns. */
static pid_t start_pair(pid_t *ret_child)
{
	int ready[2];
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		pid_t child = fork();

		touch((child == 0 ? 24 : 16) * MIB);
		if (child == 0)
			child = getpid();
		if (write(ready[1], &child, sizeof(child)) != sizeof(child))
			_exit(1);
		stay();
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(read(ready[0], ret_child, sizeof(*ret_child)), sizeof(*ret_child));
	(void)close(ready[0]);
	(void)close(ready[1]);
	return pid;
}

static void end(pid_t pid)
{
	int status;

	assert_true(pid > 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

/* The grandchild is ours to kill, but not to wait for. */
static void end_pair(pid_t pid, pid_t child)
{
	end(pid);
	assert_true(child > 1);
	assert_int_equal(kill(child, SIGKILL), 0);
}

static void test_refusals(void **state)
{
	struct nc_monitor *monitor = NULL;
	struct nacre_err err;
	pid_t self = getpid(), none = 0, first = 1, all = -1, dead = fork();
	const char *const not_a_group[] = {"/tmp"}, *const missing[] = {"/sys/fs/cgroup/no/such"};

	(void)state;
	if (dead == 0)
		_exit(0);
	assert_int_equal(waitpid(dead, NULL, 0), dead);
	assert_int_equal(nc_monitor_start_processes(&none, 1, 5, &monitor, &err), -EINVAL);
	assert_int_equal(nc_monitor_start_processes(&first, 1, 5, &monitor, &err), -EINVAL);
	assert_int_equal(nc_monitor_start_processes(&all, 1, 5, &monitor, &err), -EINVAL);
	assert_int_equal(nc_monitor_start_processes(&self, 1, 5, &monitor, &err), -EINVAL);
	assert_int_equal(nc_monitor_start_processes(&self, 0, 5, &monitor, &err), -EINVAL);
	assert_int_equal(nc_monitor_start_processes(&dead, 1, 0, &monitor, &err), -EINVAL);
	assert_int_equal(
		nc_monitor_start_processes(&dead, 1, NC_MONITOR_RING_MAX + 1, &monitor, &err),
		-EINVAL);
	assert_int_equal(nc_monitor_start_processes(&dead, 1, 5, &monitor, &err), -ESRCH);
	assert_int_equal(nc_monitor_start_group(not_a_group, 1, 5, &monitor, &err), -ENOTSUP);
	assert_int_equal(nc_monitor_start_group(missing, 1, 5, &monitor, &err), -ENOENT);
	assert_int_equal(nc_monitor_start_group(missing, 0, 5, &monitor, &err), -EINVAL);
	assert_null(monitor);
	nc_monitor_free(NULL);
}

static void test_sample_of_a_tree(void **state)
{
	cleanup_monitor struct nc_monitor *monitor = NULL;
	struct nc_monitor_sample sample;
	struct nacre_err err;
	pid_t child, pid = start_pair(&child);

	(void)state;
	assert_int_equal(nc_monitor_start_processes(&pid, 1, 8, &monitor, &err), 0);
	assert_int_equal(nc_monitor_sample(monitor, &sample), 0);
	assert_int_equal(sample.processes, 2);
	assert_int_equal(sample.threads, 2);
	assert_in_range(sample.memory_bytes, 40 * MIB, 60 * MIB);
	assert_true(sample.memory_peak_bytes >= sample.memory_bytes);
	assert_true(sample.open_files >= 6);
	assert_true(sample.cpu_percent >= 0);
	assert_int_equal(nc_monitor_memory_limit(monitor), 0);
	end_pair(pid, child);
}

/* Who has touched it has four children that share it, and they are counted as one. */
static void test_memory_that_forks_share_counts_once(void **state)
{
	cleanup_monitor struct nc_monitor *monitor = NULL;
	struct nc_monitor_sample sample;
	struct nacre_err err;
	pid_t children[4], pid;
	int ready[2];

	(void)state;
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		touch(60 * MIB);
		for (size_t i = 0; i < 4; i++) {
			children[i] = fork();
			if (children[i] == 0)
				stay();
		}
		if (write(ready[1], children, sizeof(children)) != sizeof(children))
			_exit(1);
		stay();
	}
	assert_int_equal(read(ready[0], children, sizeof(children)), sizeof(children));
	(void)close(ready[0]);
	(void)close(ready[1]);
	assert_int_equal(nc_monitor_start_processes(&pid, 1, 8, &monitor, &err), 0);
	assert_int_equal(nc_monitor_sample(monitor, &sample), 0);
	assert_int_equal(sample.processes, 5);
	assert_in_range(sample.memory_bytes, 60 * MIB, 90 * MIB);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(kill(children[i], SIGKILL), 0);
	end(pid);
}

static void test_an_orphan_that_was_seen_stays(void **state)
{
	cleanup_monitor struct nc_monitor *monitor = NULL;
	struct nc_monitor_sample sample;
	struct nacre_err err;
	pid_t child, pid = start_pair(&child);
	int r = 0;

	(void)state;
	assert_int_equal(nc_monitor_start_processes(&pid, 1, 8, &monitor, &err), 0);
	end(pid);
	assert_int_equal(nc_monitor_sample(monitor, &sample), 0);
	assert_int_equal(sample.processes, 1);
	assert_in_range(sample.memory_bytes, 24 * MIB, 30 * MIB);
	assert_true(sample.memory_peak_bytes >= 40 * MIB);
	assert_int_equal(kill(child, SIGKILL), 0);
	for (int i = 0; i < 1000 && r == 0; i++) {
		r = nc_monitor_sample(monitor, NULL);
		(void)usleep(1000);
	}
	assert_int_equal(r, -ESRCH);
	assert_int_equal(nc_monitor_terminate_if_exceeded(monitor, &err), 0);
	assert_int_equal(nc_monitor_terminate(monitor, &err), 0);
}

static void test_cpu_use(void **state)
{
	cleanup_monitor struct nc_monitor *monitor = NULL;
	struct nc_monitor_sample sample = {0}, before = {0};
	struct nc_monitor_metrics metrics;
	struct nacre_err err;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		for (volatile unsigned long spins = 0;; spins++)
			continue;
	assert_int_equal(nc_monitor_start_processes(&pid, 1, 4, &monitor, &err), 0);
	assert_int_equal(nc_monitor_history(monitor, &before, 1), 1);
	for (int i = 0; i < 200 && sample.cpu_percent < 1; i++) {
		(void)usleep(50000);
		assert_int_equal(nc_monitor_sample(monitor, &sample), 0);
	}
	assert_true(sample.cpu_percent >= 1);
	assert_true(sample.cpu_user_us + sample.cpu_system_us >
		    before.cpu_user_us + before.cpu_system_us);
	assert_int_equal(nc_monitor_metrics(monitor, &metrics), 0);
	assert_true(metrics.cpu_percent_max >= metrics.cpu_percent_p95);
	assert_true(metrics.cpu_percent_max >= 1);
	assert_true(metrics.cpu_percent_average > 0);
	assert_true(metrics.duration_ns > 0);
	end(pid);
}

static void test_ring(void **state)
{
	cleanup_monitor struct nc_monitor *monitor = NULL;
	struct nc_monitor_sample samples[8] = {0}, last = {0};
	struct nc_monitor_metrics metrics;
	struct nacre_err err;
	pid_t child, pid = start_pair(&child);

	(void)state;
	assert_int_equal(nc_monitor_start_processes(&pid, 1, 4, &monitor, &err), 0);
	assert_int_equal(nc_monitor_history(monitor, samples, 8), 1);
	for (int i = 0; i < 9; i++)
		assert_int_equal(nc_monitor_sample(monitor, &last), 0);
	assert_int_equal(nc_monitor_history(monitor, samples, 8), 4);
	for (int i = 1; i < 4; i++)
		assert_true(samples[i - 1].at_ns < samples[i].at_ns);
	assert_int_equal(samples[3].at_ns, last.at_ns);
	assert_int_equal(nc_monitor_history(monitor, samples, 2), 2);
	assert_int_equal(samples[1].at_ns, last.at_ns);
	assert_int_equal(nc_monitor_metrics(monitor, &metrics), 0);
	assert_int_equal(metrics.samples, 4);
	assert_int_equal(metrics.threads_max, 2);
	assert_int_equal(metrics.duration_ns, last.at_ns);
	assert_in_range(metrics.memory_average_bytes, 40 * MIB, 60 * MIB);
	assert_true(metrics.memory_p95_bytes <= metrics.memory_max_bytes);
	assert_true(metrics.memory_average_bytes <= metrics.memory_max_bytes);
	end_pair(pid, child);
}

static enum nc_monitor_status status_at(struct nc_monitor *monitor, size_t which, uint64_t limit)
{
	struct nc_monitor_limits limits = {0};
	struct nc_monitor_check check;

	limits.value[which] = limit;
	nc_monitor_limit(monitor, &limits);
	nc_monitor_check(monitor, &check);
	for (size_t i = 0; i < NC_MONITOR_LIMIT_MAX; i++)
		if (i != which)
			assert_int_equal(check.status[i], NC_MONITOR_OK);
	assert_int_equal(check.worst, check.status[which]);
	return check.status[which];
}

static void test_limits(void **state)
{
	cleanup_monitor struct nc_monitor *monitor = NULL;
	struct nc_monitor_sample sample;
	struct nacre_err err;
	pid_t child, pid = start_pair(&child);

	(void)state;
	assert_int_equal(nc_monitor_start_processes(&pid, 1, 4, &monitor, &err), 0);
	assert_int_equal(nc_monitor_sample(monitor, &sample), 0);
	assert_int_equal(status_at(monitor, NC_MONITOR_MEMORY, 0), NC_MONITOR_OK);
	assert_int_equal(status_at(monitor, NC_MONITOR_MEMORY, UINT64_MAX), NC_MONITOR_OK);
	assert_int_equal(
		status_at(monitor, NC_MONITOR_MEMORY, sample.memory_bytes), NC_MONITOR_NEAR);
	assert_int_equal(status_at(monitor, NC_MONITOR_MEMORY, sample.memory_bytes - 1),
		NC_MONITOR_EXCEEDED);
	assert_int_equal(status_at(monitor, NC_MONITOR_MEMORY, sample.memory_bytes * 100 / 91),
		NC_MONITOR_NEAR);
	assert_int_equal(status_at(monitor, NC_MONITOR_MEMORY, sample.memory_bytes * 100 / 89),
		NC_MONITOR_OK);
	assert_int_equal(status_at(monitor, NC_MONITOR_PROCESSES, 1), NC_MONITOR_EXCEEDED);
	assert_int_equal(status_at(monitor, NC_MONITOR_PROCESSES, 2), NC_MONITOR_NEAR);
	assert_int_equal(status_at(monitor, NC_MONITOR_PROCESSES, 3), NC_MONITOR_OK);
	assert_int_equal(status_at(monitor, NC_MONITOR_WALL, 1), NC_MONITOR_EXCEEDED);
	assert_int_equal(status_at(monitor, NC_MONITOR_OPEN_FILES, 1), NC_MONITOR_EXCEEDED);
	assert_int_equal(status_at(monitor, NC_MONITOR_CPU, UINT64_MAX / 2), NC_MONITOR_OK);
	/* not exceeded: nobody dies */
	(void)status_at(monitor, NC_MONITOR_PROCESSES, 2);
	assert_int_equal(nc_monitor_terminate_if_exceeded(monitor, &err), 0);
	assert_int_equal(nc_monitor_sample(monitor, &sample), 0);
	assert_int_equal(sample.processes, 2);
	end_pair(pid, child);
}

/* In a namespace asserts of cmocka have nobody to tell: the exit status says the line. */
#define expect(condition)                                                                          \
	do {                                                                                       \
		if (!(condition))                                                                  \
			_exit(__LINE__ % 200 + 20);                                                \
	} while (0)

#define CANNOT 3

/* Runs body as process 1 of fresh pid and mount namespaces. */
static void run_alone(void (*body)(void))
{
	int status;
	pid_t outer = fork();

	assert_true(outer >= 0);
	if (outer == 0) {
		int flags = CLONE_NEWPID | CLONE_NEWNS | (geteuid() ? CLONE_NEWUSER : 0);
		pid_t first;

		if (unshare(flags) < 0)
			_exit(CANNOT);
		first = fork();
		if (first == 0) {
			if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
				mount("proc", "/proc", "proc", 0, NULL) < 0)
				_exit(CANNOT);
			body();
			_exit(0);
		}
		if (first < 0 || waitpid(first, &status, 0) != first)
			_exit(1);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
	}
	assert_int_equal(waitpid(outer, &status, 0), outer);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT)
		unit_skip("no pid namespace here");
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Lives of others than process 1 here. */
static size_t count_others(void)
{
	struct nc_process *list = NULL;
	size_t count = 0, living = 0;

	expect(nc_process_list(&list, &count) == 0);
	for (size_t i = 0; i < count; i++)
		living += !list[i].dead && list[i].pid != getpid();
	free(list);
	return living;
}

/* Forks children that fork, as fast as it can; 2000 at most, should the test fail to stop it. */
static _Noreturn void fork_on(void)
{
	for (int i = 0; i < 500; i++) {
		if (fork() == 0) {
			for (int j = 0; j < 3; j++)
				if (fork() == 0)
					stay();
			stay();
		}
		(void)usleep(200);
	}
	stay();
}

static void kill_while_it_forks(void)
{
	struct nc_monitor_limits limits = {.value = {[NC_MONITOR_PROCESSES] = 20}};
	struct nc_monitor *monitor = NULL;
	struct nacre_err err = {0};
	pid_t pid = fork();
	int r = 0;

	if (pid == 0)
		fork_on();
	expect(nc_monitor_start_processes(&pid, 1, 4, &monitor, &err) == 0);
	nc_monitor_limit(monitor, &limits);
	while (r == 0)
		r = nc_monitor_terminate_if_exceeded(monitor, &err);
	expect(r == 1);
	expect(count_others() == 0);
	expect(nc_monitor_terminate_if_exceeded(monitor, &err) == 0);
	expect(nc_monitor_sample(monitor, NULL) == -ESRCH);
	nc_monitor_free(monitor);
}

static void test_a_forking_tree_is_killed(void **state)
{
	(void)state;
	run_alone(kill_while_it_forks);
}

static void kill_the_family_of_ours(void)
{
	struct nc_monitor *monitor = NULL;
	struct nacre_err err = {0};
	int status;
	pid_t parent = fork();

	if (parent == 0) {
		pid_t child = fork();

		if (child == 0) {
			pid_t above = getppid();

			expect(nc_monitor_start_processes(&above, 1, 4, &monitor, &err) == 0);
			expect(nc_monitor_terminate(monitor, &err) == -EDEADLK);
			expect(err.code == -EDEADLK);
			nc_monitor_free(monitor);
			_exit(0);
		}
		expect(waitpid(child, &status, 0) == child && WIFEXITED(status));
		_exit(WEXITSTATUS(status));
	}
	expect(waitpid(parent, &status, 0) == parent && WIFEXITED(status));
	_exit(WEXITSTATUS(status));
}

static void test_the_monitor_does_not_kill_itself(void **state)
{
	(void)state;
	run_alone(kill_the_family_of_ours);
}

/* A stranger beside the tree lives on. */
static void spare_the_stranger(void)
{
	struct nc_monitor *monitor = NULL;
	struct nacre_err err = {0};
	pid_t stranger = fork(), pid;

	if (stranger == 0)
		stay();
	pid = fork();
	if (pid == 0)
		stay();
	expect(nc_monitor_start_processes(&pid, 1, 4, &monitor, &err) == 0);
	expect(nc_monitor_terminate(monitor, &err) == 0);
	expect(waitpid(pid, NULL, 0) == pid);
	expect(count_others() == 1);
	expect(kill(stranger, 0) == 0);
	nc_monitor_free(monitor);
}

static void test_strangers_live_on(void **state)
{
	(void)state;
	run_alone(spare_the_stranger);
}

/* A group with a child in it that has touched 16 MiB. */
struct group {
	struct nc_cgroup_parent parent;
	struct nc_cgroup group;
	char path[NC_CGROUP_TREES_MAX][64];
	const char *dirs[NC_CGROUP_TREES_MAX];
	size_t n_dirs;
	pid_t pid;
};

static void group_start(struct group *group, void (*body)(struct group *group, int ready_fd))
{
	struct nacre_err err = {0};
	char id[32], byte;
	int ready[2];

	(void)snprintf(id, sizeof(id), "pr_monitor_%d", (int)getpid());
	if (nc_cgroup_parent_open(&group->parent, id, true, &err) < 0 ||
		!(group->parent.can & NC_CGROUP_CAN_CPU_TIME)) {
		nc_cgroup_parent_close(&group->parent);
		unit_skip("no control groups here");
	}
	assert_int_equal(nc_cgroup_make(&group->parent, NC_CGROUP_FOR_HOME, "bx_1", NULL,
				 &group->group, &err),
		0);
	for (size_t i = 0; i < group->parent.n_trees; i++) {
		if (!(group->group.made & (1U << i)))
			continue;
		(void)snprintf(group->path[i], sizeof(group->path[i]), "/proc/self/fd/%d/bx_1",
			group->parent.tree[i].fd);
		group->dirs[group->n_dirs++] = group->path[i];
	}
	assert_int_equal(pipe(ready), 0);
	group->pid = fork();
	assert_true(group->pid >= 0);
	if (group->pid == 0) {
		expect(nc_cgroup_join_self(&group->group, false) == 0);
		touch(16 * MIB);
		body(group, ready[1]);
		stay();
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
}

static void group_end(struct group *group)
{
	assert_int_equal(nc_cgroup_remove(&group->group), 0);
	nc_cgroup_parent_close(&group->parent);
}

static void say_ready(struct group *group, int ready_fd)
{
	(void)group;
	expect(write(ready_fd, "r", 1) == 1);
}

/* Without the first skip directories; the first is that of version 2, if there is one. */
static void check_group(size_t skip)
{
	cleanup_monitor struct nc_monitor *monitor = NULL;
	struct nc_monitor_limits limits = {.value = {[NC_MONITOR_WALL] = 1}};
	struct nc_monitor_sample sample;
	struct group group = {0};
	struct nacre_err err;
	int status;

	group_start(&group, say_ready);
	if (skip >= group.n_dirs)
		skip = 0; /* once more the same */
	assert_int_equal(
		nc_monitor_start_group(group.dirs + skip, group.n_dirs - skip, 4, &monitor, &err),
		0);
	assert_int_equal(nc_monitor_sample(monitor, &sample), 0);
	assert_int_equal(sample.processes, 1);
	assert_int_equal(sample.threads, 1);
	assert_in_range(sample.memory_bytes, 15 * MIB, 40 * MIB);
	assert_true(sample.memory_peak_bytes >= sample.memory_bytes);
	assert_true(sample.open_files > 0);
	assert_int_equal(nc_monitor_memory_limit(monitor), 0);
	assert_int_equal(nc_monitor_terminate_if_exceeded(monitor, &err), 0);
	nc_monitor_limit(monitor, &limits);
	assert_int_equal(nc_monitor_terminate_if_exceeded(monitor, &err), 1);
	assert_int_equal(waitpid(group.pid, &status, 0), group.pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(nc_monitor_sample(monitor, NULL), -ESRCH);
	group_end(&group);
	assert_int_equal(nc_monitor_sample(monitor, NULL), -ESRCH);
	assert_int_equal(nc_monitor_terminate(monitor, &err), 0);
}

static void test_group(void **state)
{
	(void)state;
	check_group(0);
}

static void test_group_without_version_2(void **state)
{
	(void)state;
	check_group(1);
}

/* From inside the group, whose directories its parent has open. */
static void terminate_own_group(struct group *group, int ready_fd)
{
	struct nc_monitor *monitor = NULL;
	struct nacre_err err = {0};

	expect(nc_monitor_start_group(group->dirs, group->n_dirs, 4, &monitor, &err) == 0);
	expect(nc_monitor_terminate(monitor, &err) == -EDEADLK);
	nc_monitor_free(monitor);
	expect(write(ready_fd, "r", 1) == 1);
	_exit(0);
}

static void test_the_monitor_does_not_kill_its_own_group(void **state)
{
	struct group group = {0};
	int status;

	(void)state;
	group_start(&group, terminate_own_group);
	assert_int_equal(waitpid(group.pid, &status, 0), group.pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	group_end(&group);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_sample_of_a_tree),
		cmocka_unit_test(test_memory_that_forks_share_counts_once),
		cmocka_unit_test(test_an_orphan_that_was_seen_stays),
		cmocka_unit_test(test_cpu_use),
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_a_forking_tree_is_killed),
		cmocka_unit_test(test_the_monitor_does_not_kill_itself),
		cmocka_unit_test(test_strangers_live_on),
		cmocka_unit_test(test_group),
		cmocka_unit_test(test_group_without_version_2),
		cmocka_unit_test(test_the_monitor_does_not_kill_its_own_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
