/* The descriptors of a first process: it has its own, and none that are others'; the spawner keeps
 * all. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/pidfd.h"
#include "kernel/cradle.h"

/* Of boxes that live, at numbers above all that a first process needs. */
#define OTHERS 200

static struct nc_cradle cradle;
static int constant_fds[2], others[OTHERS];

static int set_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		constant_fds[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
		assert_true(constant_fds[i] >= 0);
	}
	return 0;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* A clone with our own table of descriptors. */
static pid_t clone_sharing(void)
{
	struct clone_args arguments = {.flags = CLONE_FILES, .exit_signal = SIGCHLD};

	return (pid_t)syscall(SYS_clone3, &arguments, sizeof(arguments));
}

static int status_of(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* The child's part: which of the promises is broken, 0: none. */
static int look(void)
{
	if (nc_cradle_leave(&cradle) < 0)
		return 1;
	for (size_t i = 0; i < OTHERS; i++)
		if (others[i] >= cradle.end && is_open(others[i]))
			return 2;
	if (!is_open(constant_fds[0]) || !is_open(constant_fds[1]) || !is_open(2))
		return 3;
	if (write(cradle.fd[1], "x", 1) != 1)
		return 4;
	/* whatever it does from now on is its own affair */
	if (close_range(0, ~0U, 0) < 0)
		return 5;
	return 0;
}

static void test_a_first_process_has_its_own(void **state)
{
	int pipe_fds[2];
	char byte;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	assert_true(nc_cradle_fill(
		&cradle, (int[]){pipe_fds[0], pipe_fds[1], -EBADF, -EBADF}, constant_fds, 2));
	for (size_t i = 0; i < OTHERS; i++)
		others[i] = nc_fd_dup(constant_fds[0]);
	pid = clone_sharing();
	if (pid == 0)
		_exit(look());
	nc_cradle_take(&cradle, nc_pidfd_open(pid));
	assert_int_equal(status_of(pid), 0);
	assert_true(nc_cradle_clear(&cradle));
	/* nothing of it is left with us: the pipe has an end, and numbers stay reserved */
	(void)close(pipe_fds[1]);
	assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
	assert_int_equal(read(pipe_fds[0], &byte, 1), 0);
	(void)close(pipe_fds[0]);
	for (size_t i = 0; i < NC_CRADLE_FDS; i++)
		assert_true(is_open(cradle.fd[i]));
	for (size_t i = 0; i < OTHERS; i++)
		assert_true(is_open(others[i]));
}

static void test_the_next_does_not_disturb_who_is_in_there(void **state)
{
	const int fds[NC_CRADLE_FDS] = {constant_fds[0], constant_fds[1], -EBADF, -EBADF};
	pid_t pid;
	int pidfd;

	(void)state;
	assert_true(nc_cradle_fill(&cradle, fds, constant_fds, 2));
	assert_false(nc_cradle_is_here(&cradle));
	assert_true(nc_cradle_clear(&cradle)); /* nobody came */
	assert_true(nc_cradle_fill(&cradle, fds, constant_fds, 2));
	pid = clone_sharing();
	if (pid == 0) {
		for (;;)
			(void)pause();
	}
	pidfd = nc_pidfd_open(pid);
	nc_cradle_take(&cradle, pidfd);
	assert_true(nc_cradle_is_here(&cradle)); /* for all that is known */
	assert_false(nc_cradle_clear(&cradle));
	assert_false(nc_cradle_fill(&cradle, fds, constant_fds, 2));
	/* he dies without a word */
	assert_int_equal(nc_pidfd_kill(pidfd, SIGKILL), 0);
	assert_int_equal(status_of(pid), 128);
	assert_true(nc_cradle_clear(&cradle));
	(void)close(pidfd);
}

static void test_high_numbers_are_left_alone(void **state)
{
	struct nc_cradle late = {0};
	const int fds[NC_CRADLE_FDS] = {-EBADF, -EBADF, -EBADF, -EBADF};

	(void)state;
	assert_false(nc_cradle_fill(&late, fds, constant_fds, 2));
	assert_int_equal(late.end, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_first_process_has_its_own),
		cmocka_unit_test(test_the_next_does_not_disturb_who_is_in_there),
		cmocka_unit_test(test_high_numbers_are_left_alone),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
