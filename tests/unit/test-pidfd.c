/* Processes as descriptors: forked, waited for, killed, ended with their scope or their parent. */
#include "unit-files.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/pidfd.h"

/* How long to wait for what is to happen at once; a busy machine may be slow. */
#define PATIENCE_NS (30 * NC_NS_PER_S)
#define PATIENCE_MS 30000

/* What happens to calls of the code under test. */
static struct {
	unsigned int poll_interruptions;
	unsigned int poll_ends; /* calls that time out at once, as if INT_MAX ms had passed */
	unsigned int wait_interruptions;
	const int *orphan; /* a pipe: a forked child goes on when its parent holds it no more */
} kernel;

int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);
int __real_waitid(idtype_t type, id_t id, siginfo_t *info, int options);
int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options);
pid_t __real_fork(void);
pid_t __wrap_fork(void);

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	if (kernel.poll_interruptions > 0) {
		kernel.poll_interruptions--;
		errno = EINTR;
		return -1;
	}
	if (kernel.poll_ends > 0) {
		kernel.poll_ends--;
		return 0;
	}
	return __real_poll(fds, n, timeout);
}

int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	if (kernel.wait_interruptions > 0) {
		kernel.wait_interruptions--;
		errno = EINTR;
		return -1;
	}
	return __real_waitid(type, id, info, options);
}

pid_t __wrap_fork(void)
{
	pid_t pid = __real_fork();
	char byte;

	if (pid == 0 && kernel.orphan) {
		close(kernel.orphan[1]);
		(void)!read(kernel.orphan[0], &byte, 1);
	}
	return pid;
}

static int note(void **state)
{
	memset(&kernel, 0, sizeof(kernel));
	return unit_fds_note(state);
}

/* No child is left either. */
static int check(void **state)
{
	pid_t left = waitpid(-1, NULL, WNOHANG);

	memset(&kernel, 0, sizeof(kernel));
	if (left != -1 || errno != ECHILD) {
		print_error("a child is left behind\n");
		return -1;
	}
	return unit_fds_check(state);
}

static _Noreturn void sleep_for_ever(void)
{
	for (;;)
		pause();
}

/* A child that exits with status at once. */
static int child_that_exits(int status)
{
	int pidfd = -EBADF;
	int r = nc_fork(&pidfd);

	if (r == 0)
		nc_child_exit(status);
	assert_true(r > 0);
	assert_true(pidfd >= 0);
	return pidfd;
}

static int child_that_sleeps(void)
{
	int pidfd = -EBADF;
	int r = nc_fork(&pidfd);

	if (r == 0)
		sleep_for_ever();
	assert_true(r > 0);
	assert_true(pidfd >= 0);
	return pidfd;
}

/* Whether the pipe has no writer any more, or gets none within our patience. */
static bool ends_soon(int fd)
{
	struct pollfd event = {.fd = fd, .events = POLLIN};
	char byte;

	return poll(&event, 1, PATIENCE_MS) == 1 && read(fd, &byte, 1) == 0;
}

static uint64_t soon(void)
{
	return nc_clock_ns() + PATIENCE_NS;
}

static void wait_gives_the_exit_status(void **state)
{
	static const int statuses[] = {0, 1, 7, 255};

	(void)state;
	for (size_t i = 0; i < unit_count(statuses); i++) {
		cleanup_close int pidfd = child_that_exits(statuses[i]);
		siginfo_t info = {0};

		assert_int_equal(nc_pidfd_wait(pidfd, soon(), &info), 0);
		assert_int_equal(info.si_signo, SIGCHLD);
		assert_int_equal(info.si_code, CLD_EXITED);
		assert_int_equal(info.si_status, statuses[i]);
		assert_true(info.si_pid > 1);
		/* and it is reaped */
		assert_int_equal(waitpid(info.si_pid, NULL, WNOHANG), -1);
		assert_int_equal(errno, ECHILD);
	}
}

static void wait_gives_the_signal(void **state)
{
	static const int signals[] = {SIGKILL, SIGTERM};

	(void)state;
	for (size_t i = 0; i < unit_count(signals); i++) {
		cleanup_close int pidfd = child_that_sleeps();
		siginfo_t info = {0};

		assert_int_equal(nc_pidfd_kill(pidfd, signals[i]), 0);
		assert_int_equal(nc_pidfd_wait(pidfd, soon(), &info), 0);
		assert_int_equal(info.si_code, CLD_KILLED);
		assert_int_equal(info.si_status, signals[i]);
	}
}

static void wait_times_out_at_the_deadline_and_not_before(void **state)
{
	cleanup_process int pidfd = child_that_sleeps();
	uint64_t deadline = nc_clock_ns() + 5 * NC_NS_PER_MS;
	siginfo_t info, untouched;

	(void)state;
	memset(&info, 0x5a, sizeof(info));
	memset(&untouched, 0x5a, sizeof(untouched));
	assert_int_equal(nc_pidfd_wait(pidfd, deadline, &info), -ETIMEDOUT);
	assert_true(nc_clock_ns() >= deadline);
	assert_int_equal(nc_pidfd_wait(pidfd, 0, &info), -ETIMEDOUT);
	assert_memory_equal(&info, &untouched, sizeof(info));
	/* it still runs, and can be waited for again */
	assert_int_equal(nc_pidfd_kill(pidfd, 0), 0);
	assert_int_equal(nc_pidfd_kill(pidfd, SIGKILL), 0);
	assert_int_equal(nc_pidfd_wait(pidfd, soon(), &info), 0);
}

static void wait_finds_what_has_ended_also_behind_the_deadline(void **state)
{
	cleanup_close int pidfd = child_that_exits(3);
	struct pollfd event = {.fd = pidfd, .events = POLLIN};
	siginfo_t info = {0};

	(void)state;
	assert_int_equal(poll(&event, 1, PATIENCE_MS), 1);
	assert_int_equal(nc_pidfd_wait(pidfd, 0, &info), 0);
	assert_int_equal(info.si_status, 3);
}

static void wait_goes_on_through_interruptions(void **state)
{
	cleanup_close int pidfd = child_that_exits(3);
	siginfo_t info = {0};

	(void)state;
	kernel.poll_interruptions = 3;
	kernel.wait_interruptions = 3;
	assert_int_equal(nc_pidfd_wait(pidfd, soon(), &info), 0);
	assert_int_equal(kernel.poll_interruptions, 0);
	assert_int_equal(kernel.wait_interruptions, 0);
	assert_int_equal(info.si_status, 3);
}

/* poll() can wait for 24 days at most; a deadline may be further away, such as "never". */
static void wait_goes_on_when_poll_ends_before_the_deadline(void **state)
{
	int pidfd = child_that_exits(3), r;
	siginfo_t info = {0};

	(void)state;
	kernel.poll_ends = 2;
	r = nc_pidfd_wait(pidfd, UINT64_MAX, &info);
	(void)nc_pidfd_end(pidfd);
	assert_int_equal(r, 0);
	assert_int_equal(info.si_status, 3);
}

static void wait_returns_the_error(void **state)
{
	cleanup_close int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int pidfd = child_that_exits(0);
	siginfo_t info;

	(void)state;
	assert_true(nc_pidfd_wait(file, soon(), &info) < 0);
	assert_int_equal(nc_pidfd_wait(pidfd, soon(), &info), 0);
	/* nothing is there to be reaped a second time */
	assert_int_equal(nc_pidfd_wait(pidfd, soon(), &info), -ECHILD);
	close(pidfd);
	assert_int_equal(nc_pidfd_wait(INT_MAX, soon(), &info), -EBADF);
}

/* -ETIMEDOUT would say that it still runs. */
static void wait_for_an_empty_descriptor_is_an_error(void **state)
{
	siginfo_t info;

	(void)state;
	assert_int_equal(nc_pidfd_wait(-EBADF, 0, &info), -EBADF);
}

static void kill_says_when_it_is_gone(void **state)
{
	int pidfd = child_that_exits(0);
	siginfo_t info;

	(void)state;
	assert_int_equal(nc_pidfd_wait(pidfd, soon(), &info), 0);
	assert_int_equal(nc_pidfd_kill(pidfd, SIGKILL), -ESRCH);
	assert_int_equal(nc_pidfd_kill(pidfd, 0), -ESRCH);
	close(pidfd);
	assert_int_equal(nc_pidfd_kill(-EBADF, SIGKILL), -EBADF);
}

static void kill_refuses_what_is_no_signal(void **state)
{
	cleanup_process int pidfd = child_that_sleeps();

	(void)state;
	assert_int_equal(nc_pidfd_kill(pidfd, 4711), -EINVAL);
	assert_int_equal(nc_pidfd_kill(pidfd, -1), -EINVAL);
}

static void open_gives_a_descriptor_of_a_child(void **state)
{
	pid_t pid = fork();
	siginfo_t info = {0};
	int pidfd;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(9);
	pidfd = nc_pidfd_open(pid);
	assert_true(pidfd >= 0);
	assert_int_equal(fcntl(pidfd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(nc_pidfd_wait(pidfd, soon(), &info), 0);
	assert_int_equal(info.si_pid, pid);
	assert_int_equal(info.si_status, 9);
	close(pidfd);
}

static void open_returns_the_error(void **state)
{
	(void)state;
	assert_int_equal(nc_pidfd_open(0), -EINVAL);
	assert_int_equal(nc_pidfd_open(-1), -EINVAL);
	assert_int_equal(nc_pidfd_open(INT_MAX), -ESRCH); /* beyond any pid_max */
}

static void fork_gives_a_descriptor_with_cloexec(void **state)
{
	cleanup_process int pidfd = child_that_sleeps();

	(void)state;
	assert_int_equal(fcntl(pidfd, F_GETFD), FD_CLOEXEC);
}

static void end_accepts_an_empty_descriptor(void **state)
{
	(void)state;
	errno = EXDEV;
	assert_int_equal(nc_pidfd_end(-EBADF), -EBADF);
	assert_int_equal(errno, EXDEV);
}

static void end_kills_reaps_and_closes(void **state)
{
	int pidfd = child_that_sleeps();

	(void)state;
	errno = EXDEV;
	assert_int_equal(nc_pidfd_end(pidfd), -EBADF);
	assert_int_equal(errno, EXDEV);
	assert_int_equal(fcntl(pidfd, F_GETFD), -1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void end_takes_a_zombie_and_what_is_reaped_already(void **state)
{
	int zombie = child_that_exits(0), gone = child_that_exits(0);
	struct pollfd event = {.fd = zombie, .events = POLLIN};
	siginfo_t info;

	(void)state;
	assert_int_equal(poll(&event, 1, PATIENCE_MS), 1);
	assert_int_equal(nc_pidfd_wait(gone, soon(), &info), 0);
	errno = EXDEV;
	assert_int_equal(nc_pidfd_end(zombie), -EBADF);
	assert_int_equal(nc_pidfd_end(gone), -EBADF);
	assert_int_equal(errno, EXDEV);
	assert_int_equal(fcntl(zombie, F_GETFD), -1);
	assert_int_equal(fcntl(gone, F_GETFD), -1);
}

static void end_goes_on_through_interruptions(void **state)
{
	int pidfd = child_that_sleeps();

	(void)state;
	kernel.wait_interruptions = 3;
	assert_int_equal(nc_pidfd_end(pidfd), -EBADF);
	assert_int_equal(kernel.wait_interruptions, 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

/* A child that ignores SIGTERM or has stopped, once it says that it is so far. */
static int stubborn_child(bool stops)
{
	int ready[2], pidfd = -EBADF, r;
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	r = nc_fork(&pidfd);
	if (r == 0) {
		signal(SIGTERM, SIG_IGN);
		(void)!write(ready[1], "x", 1);
		if (stops)
			raise(SIGSTOP);
		sleep_for_ever();
	}
	assert_true(r > 0);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pidfd;
}

static void leaving_the_scope_ends_the_process(void **state)
{
	(void)state;
	for (int stops = 0; stops < 2; stops++) {
		int second;

		{
			cleanup_process int pidfd = stubborn_child(stops);

			second = nc_fd_dup(pidfd);
			assert_true(second >= 0);
			assert_int_equal(nc_pidfd_kill(pidfd, SIGTERM), 0);
			assert_int_equal(nc_pidfd_kill(second, 0), 0);
			errno = EXDEV;
		}
		assert_int_equal(errno, EXDEV);
		assert_int_equal(nc_pidfd_kill(second, 0), -ESRCH);
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
		assert_int_equal(errno, ECHILD);
		close(second);
	}
}

static void leaving_the_scope_accepts_an_empty_descriptor(void **state)
{
	int pidfd = -EBADF;

	(void)state;
	{
		cleanup_process int empty = -EBADF;

		(void)empty;
		errno = EXDEV;
	}
	assert_int_equal(errno, EXDEV);
	nc_pidfd_endp(&pidfd);
	assert_int_equal(pidfd, -EBADF);
}

/*
 * Forks a middle process that forks one below it with nc_fork() and ends: at once, or when that one
 * says on the pipe that nc_fork() has returned there. Returns the middle.
 */
static pid_t fork_two(const int *ready)
{
	pid_t middle = __real_fork();
	int pidfd;
	char byte;

	assert_true(middle >= 0);
	if (middle > 0)
		return middle;
	if (nc_fork(&pidfd) == 0) {
		alarm(2 * PATIENCE_MS / 1000); /* if it should outlive its parent after all */
		if (ready)
			(void)!write(ready[1], "x", 1);
		sleep_for_ever();
	}
	if (ready)
		(void)!read(ready[0], &byte, 1);
	_exit(0);
}

static void a_child_dies_with_its_parent(void **state)
{
	int alive[2], ready[2], status;
	pid_t middle;

	(void)state;
	assert_int_equal(pipe2(alive, O_CLOEXEC), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	middle = fork_two(ready);
	close(alive[1]);
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(waitpid(middle, &status, 0), middle);
	assert_int_equal(status, 0);
	assert_true(ends_soon(alive[0]));
	close(alive[0]);
}

/* The parent ends between fork() and the child's request to die with it. */
static void a_child_of_a_dead_parent_ends(void **state)
{
	int alive[2], orphan[2], status;
	pid_t middle;

	(void)state;
	assert_int_equal(pipe2(alive, O_CLOEXEC), 0);
	assert_int_equal(pipe2(orphan, O_CLOEXEC), 0);
	kernel.orphan = orphan;
	middle = fork_two(NULL);
	close(alive[1]);
	close(orphan[1]);
	assert_int_equal(waitpid(middle, &status, 0), middle);
	assert_int_equal(status, 0);
	assert_true(ends_soon(alive[0]));
	close(orphan[0]);
	close(alive[0]);
}

static int exit_fd;

static void write_at_exit(void)
{
	(void)!write(exit_fd, "handler", 7);
}

static void child_exit_runs_no_handlers_and_flushes_nothing(void **state)
{
	int out[2], pidfd, r;
	siginfo_t info = {0};
	char data[20];
	FILE *stream;

	(void)state;
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	stream = fdopen(out[1], "w");
	assert_non_null(stream);
	exit_fd = out[1];
	r = nc_fork(&pidfd);
	if (r == 0) {
		(void)atexit(write_at_exit);
		(void)fputs("stream", stream);
		nc_child_exit(5);
	}
	assert_true(r > 0);
	fclose(stream);
	assert_int_equal(nc_pidfd_wait(pidfd, soon(), &info), 0);
	assert_int_equal(info.si_code, CLD_EXITED);
	assert_int_equal(info.si_status, 5);
	assert_int_equal(read(out[0], data, sizeof(data)), 0);
	close(out[0]);
	close(pidfd);
}

#define pidfd_test(function) cmocka_unit_test_setup_teardown(function, note, check)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		pidfd_test(wait_gives_the_exit_status),
		pidfd_test(wait_gives_the_signal),
		pidfd_test(wait_times_out_at_the_deadline_and_not_before),
		pidfd_test(wait_finds_what_has_ended_also_behind_the_deadline),
		pidfd_test(wait_goes_on_through_interruptions),
		pidfd_test(wait_goes_on_when_poll_ends_before_the_deadline),
		pidfd_test(wait_returns_the_error),
		pidfd_test(wait_for_an_empty_descriptor_is_an_error),
		pidfd_test(kill_says_when_it_is_gone),
		pidfd_test(kill_refuses_what_is_no_signal),
		pidfd_test(open_gives_a_descriptor_of_a_child),
		pidfd_test(open_returns_the_error),
		pidfd_test(fork_gives_a_descriptor_with_cloexec),
		pidfd_test(end_accepts_an_empty_descriptor),
		pidfd_test(end_kills_reaps_and_closes),
		pidfd_test(end_takes_a_zombie_and_what_is_reaped_already),
		pidfd_test(end_goes_on_through_interruptions),
		pidfd_test(leaving_the_scope_ends_the_process),
		pidfd_test(leaving_the_scope_accepts_an_empty_descriptor),
		pidfd_test(a_child_dies_with_its_parent),
		pidfd_test(a_child_of_a_dead_parent_ends),
		pidfd_test(child_exit_runs_no_handlers_and_flushes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
