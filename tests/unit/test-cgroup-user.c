/*
 * Groups that were delegated to an ordinary user. Root makes them and gives them away; a child goes
 * in, becomes that user and does what the spawner does. All in a pid namespace of its own.
 */
#include "unit.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
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
#include "kernel/userns.h"

#define USER 1000U
#define MIB (1024UL * 1024)
#define LONG_NS (20 * NC_NS_PER_S)

/* For bodies in children: says where, and ends them. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			print_error("%s:%d: %s\n", __func__, __LINE__, #condition);                \
			nc_child_exit(1);                                                          \
		}                                                                                  \
	} while (0)

static char name[NC_ID_SIZE]; /* of the groups given away */
static struct nc_cgroup_host host;

static bool memory_is_v2(void)
{
	return !host.v1_dir[NC_CGROUP_MEMORY];
}

/* Calls each for the directory in every hierarchy once. */
static void each_dir(void (*each)(const char *dir, bool v2))
{
	if (host.v2_dir)
		each(host.v2_dir, true);
	for (size_t i = 0; i < NC_CGROUP_CONTROLLER_MAX; i++) {
		bool first = host.v1_dir[i] != NULL;

		for (size_t k = 0; first && k < i; k++)
			first = !host.v1_dir[k] || strcmp(host.v1_dir[k], host.v1_dir[i]) != 0;
		if (first)
			each(host.v1_dir[i], false);
	}
}

static void give_file(const char *dir, const char *file)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/%s/%s", dir, name, file);
	assert_int_equal(chown(path, USER, USER), 0);
}

/* As systemd does for Delegate=yes. */
static void delegate(const char *dir, bool v2)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(mkdir(path, 0755), 0);
	give_file(dir, ".");
	give_file(dir, "cgroup.procs");
	if (v2) {
		give_file(dir, "cgroup.subtree_control");
		if (memory_is_v2())
			assert_int_equal(nc_fd_write_control(AT_FDCWD,
						 "/sys/fs/cgroup/cgroup.subtree_control",
						 "+memory +cpu +pids"),
				0);
	} else {
		give_file(dir, "tasks");
	}
}

static void join(const char *dir, bool v2)
{
	char path[512];

	(void)v2;
	(void)snprintf(path, sizeof(path), "%s/%s/cgroup.procs", dir, name);
	CHECK(nc_fd_write_control(AT_FDCWD, path, "0") == 0);
}

static size_t n_left;

static int count_left(int dir_fd, const char *left, void *context)
{
	(void)dir_fd;
	(void)context;
	print_error("left: %s\n", left);
	n_left++;
	return 0;
}

static void take_away(const char *dir, bool v2)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct nc_cgroup_place place = {fd, name};

	(void)v2;
	(void)nc_cgroup_place_each(&place, count_left, NULL);
	if (nc_cgroup_place_remove(&place) < 0)
		n_left++;
	(void)nc_fd_close(fd);
}

static int setup(void **state)
{
	(void)state;
	if (geteuid() != 0)
		return 0;
	host = (struct nc_cgroup_host){0};
	n_left = 0;
	assert_int_equal(nc_cgroup_find(&host), 0);
	assert_int_equal(nc_id_new("ut", name), 0);
	each_dir(delegate);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (geteuid() == 0)
		each_dir(take_away);
	nc_cgroup_done(&host);
	return n_left ? -1 : 0;
}

/* A child that ends with this process; its signals are not cmocka's. */
static pid_t fork_plain(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (int i = 1; i < NSIG; i++)
			(void)signal(i, SIG_DFL);
		CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	}
	return pid;
}

static void become_user(void)
{
	CHECK(setgroups(0, NULL) == 0);
	CHECK(setresgid(USER, USER, USER) == 0);
	CHECK(setresuid(USER, USER, USER) == 0);
	/* as after an execve(); otherwise /proc/self stays root's */
	CHECK(prctl(PR_SET_DUMPABLE, 1) == 0);
}

static void run_as_user(void (*body)(void), bool inside)
{
	int status = 1;
	pid_t pid;

	if (geteuid() != 0)
		unit_skip("needs root");
	pid = fork_plain();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (inside)
			each_dir(join);
		become_user();
		body();
		nc_child_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static struct nc_cgroup_parent open_parent(const char *suffix)
{
	struct nc_cgroup_parent parent;
	struct nacre_err err = {0};
	char id[NC_CGROUP_NAME_MAX + 1];

	(void)snprintf(id, sizeof(id), "%s-%s", name, suffix);
	if (nc_cgroup_parent_open(&parent, id, true, &err) < 0) {
		print_error("%s\n", err.message);
		nc_child_exit(1);
	}
	return parent;
}

static pid_t spawn(const struct nc_cgroup *group)
{
	struct clone_args arguments = {.exit_signal = SIGCHLD};
	long pid;

	if (group->clone_fd >= 0) {
		arguments.flags = CLONE_INTO_CGROUP;
		arguments.cgroup = (unsigned int)group->clone_fd;
	}
	pid = syscall(SYS_clone3, &arguments, sizeof(arguments));
	CHECK(pid >= 0);
	if (pid > 0)
		return (pid_t)pid;
	CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	CHECK(nc_cgroup_join_self(group, group->clone_fd >= 0) == 0);
	for (;;)
		(void)pause();
}

/* The child has joined everywhere when the last hierarchy lists it. */
static void wait_joined(const struct nc_cgroup *group)
{
	size_t last = 31 - (size_t)__builtin_clz(group->made);
	struct nc_cgroup_place place = {group->parent->tree[last].fd, group->name};
	uint64_t deadline_ns = nc_clock_ns() + LONG_NS;

	while (nc_cgroup_place_busy(&place, group->parent->tree[last].v2) == 0) {
		CHECK(nc_clock_ns() < deadline_ns);
		(void)usleep(1000);
	}
}

static void end(struct nc_cgroup *group, pid_t pid)
{
	uint64_t deadline_ns = nc_clock_ns() + LONG_NS;
	int r, status = 0;

	do /* without cgroup.kill it takes rounds, many on a slow machine */
		r = nc_cgroup_kill(group);
	while (r == -ETIMEDOUT && nc_clock_ns() < deadline_ns);
	CHECK(r == 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK(nc_cgroup_wait_empty(group, nc_clock_ns() + LONG_NS) == 0);
	CHECK(nc_cgroup_remove(group) == 0);
}

/* Whether the version 2 group that we are in is the one that was given to us. */
static bool is_home(void)
{
	char own[NC_ID_SIZE + 8];
	char *text = NULL;
	bool home;

	(void)snprintf(own, sizeof(own), "/%s\n", name);
	CHECK(nc_fd_read_proc("/proc/self/cgroup", &text) == 0);
	home = !host.v2_dir || strstr(strstr(text, "0::"), own) != NULL;
	free(text);
	return home;
}

static void body_box(void)
{
	const unsigned int limits = NC_CGROUP_CAN_MEMORY | NC_CGROUP_CAN_CPU | NC_CGROUP_CAN_PIDS;
	const unsigned int all = limits | NC_CGROUP_CAN_CPU_TIME;
	struct nc_cgroup_parent parent = open_parent("box");
	struct nc_cgroup group = {0};
	struct nc_cgroup_usage usage;
	struct nacre_err err = {0};
	uint64_t us;
	pid_t pid, listed = 0;

	print_message("trees: %zu, can: 0x%x\n", parent.n_trees, parent.can);
	CHECK((parent.can & all) == all);
	CHECK(is_home() == !memory_is_v2());
	/* as the spawner of a user goes on */
	CHECK(nc_userns_enter_self() == 0);
	for (int i = 0; i < 2; i++) {
		CHECK(nc_cgroup_make(&parent, NC_CGROUP_FOR_HOME, "bx_1", NULL, &group, &err) == 0);
		pid = spawn(&group);
		wait_joined(&group);
		CHECK(nc_cgroup_pids(&group, &listed, 1) == 1 && listed == pid);
		CHECK(nc_cgroup_limit(&group, &(struct nc_cgroup_limits){32 * MIB, 8, 500}, &err) ==
			0);
		CHECK(nc_cgroup_usage(&group, &usage) == 0);
		CHECK(usage.pids_now == 1);
		CHECK(nc_cgroup_cpu_us(&group, &us) == 0);
		end(&group, pid);
	}
	nc_cgroup_parent_close(&parent);
	CHECK(is_home());
}

static void test_what_is_delegated_is_used(void **state)
{
	(void)state;
	run_as_user(body_box, true);
	/* all was put right: another can do the same */
	run_as_user(body_box, true);
}

/* Opens a parent and runs a box in it. */
static void use_groups(const char *id, bool expect_memory)
{
	struct nc_cgroup_parent parent = open_parent(id);
	struct nc_cgroup group = {0};
	pid_t pid;

	CHECK(((parent.can & NC_CGROUP_CAN_MEMORY) != 0) == expect_memory);
	CHECK(nc_cgroup_make(&parent, NC_CGROUP_FOR_HOME, "bx_1", NULL, &group, NULL) == 0);
	pid = spawn(&group);
	wait_joined(&group);
	end(&group, pid);
	nc_cgroup_parent_close(&parent);
	CHECK(is_home());
}

/* Somebody who is not a child is in the group: the one who waits here. */
static void body_company(void)
{
	pid_t pid = fork_plain();
	int status;

	if (pid == 0) {
		use_groups("company", !memory_is_v2());
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* A spawner has its worker with it, which goes where it goes. */
static void body_family(void)
{
	pid_t worker = fork_plain();
	int status;

	if (worker == 0)
		for (;;)
			(void)pause();
	use_groups("family", true);
	CHECK(kill(worker, SIGKILL) == 0 && waitpid(worker, &status, 0) == worker);
}

static void test_a_group_shared_with_children(void **state)
{
	(void)state;
	run_as_user(body_family, true);
}

static void test_a_group_shared_with_others(void **state)
{
	(void)state;
	run_as_user(body_company, true);
}

static void body_nothing(void)
{
	struct nc_cgroup_parent parent = open_parent("none");

	CHECK(parent.can == 0 && parent.n_trees == 0);
	nc_cgroup_parent_close(&parent);
}

static void test_nothing_is_delegated(void **state)
{
	(void)state;
	run_as_user(body_nothing, false);
}

static bool always(const char *id, void *context)
{
	(void)id;
	(void)context;
	return true;
}

/* A group of the user's whose maker has gone, and one of root's beside it. */
static void body_sweep(void)
{
	struct nc_cgroup_host found = {0};
	struct nc_cgroup_parent parent;

	CHECK(nc_cgroup_find(&found) == 0);
	parent = open_parent("sweeper");
	for (size_t i = 0; i < parent.n_trees; i++)
		CHECK(mkdirat(parent.tree[i].above_fd, "nacre-left", 0755) == 0);
	CHECK(nc_cgroup_sweep(&found, parent.id, always, NULL) == (int)parent.n_trees);
	CHECK(nc_cgroup_sweep(&found, parent.id, always, NULL) == 0);
	nc_cgroup_parent_close(&parent);
	nc_cgroup_done(&found);
}

static void make_foreign(const char *dir, bool v2)
{
	char path[512];

	(void)v2;
	(void)snprintf(path, sizeof(path), "%s/%s/nacre-foreign", dir, name);
	assert_int_equal(mkdir(path, 0777), 0);
}

static void remove_foreign(const char *dir, bool v2)
{
	char path[512];

	(void)v2;
	(void)snprintf(path, sizeof(path), "%s/%s/nacre-foreign", dir, name);
	assert_int_equal(rmdir(path), 0);
}

static void test_sweep_sees_only_the_users_own(void **state)
{
	(void)state;
	if (geteuid() == 0)
		each_dir(make_foreign);
	run_as_user(body_sweep, true);
	each_dir(remove_foreign);
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_is_delegated_is_used, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_group_shared_with_others, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_group_shared_with_children, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_is_delegated, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_sweep_sees_only_the_users_own, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The first process of the namespace only waits and reaps. */
static int wait_for(int (*body)(void))
{
	pid_t pid = fork();
	int status = 1;

	if (pid == 0)
		return prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? 1 : body();
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int run_as_second(void)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 1;
	/* the leak checker looks itself up there by pid; without it nobody does */
	(void)mount("proc", "/proc", "proc", 0, NULL);
	return wait_for(run);
}

int main(void)
{
	if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
		return run(); /* no root: all of it is skipped */
	nc_child_exit(wait_for(run_as_second));
}
