/* Shades: they keep memory, and can do nothing else, whoever writes over what they execute. */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "inside/shade.h"

#define PATIENCE_MS 30000

/* The child's, which both of us see. */
struct shared {
	pid_t shade;
	bool failed;
};

static pid_t pid_of(int pidfd)
{
	char path[64], text[1024] = "", *line;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	file = fopen(path, "r");
	if (!file || fread(text, 1, sizeof(text) - 1, file) == 0)
		return -1;
	(void)fclose(file);
	line = strstr(text, "\nPid:");
	return line ? (pid_t)strtol(line + 5, NULL, 10) : -1;
}

_Noreturn static void live_with_shade(struct shared *shared)
{
	int pidfd = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? nc_shade_make() : -errno;

	if (pidfd >= 0) {
		nc_shade_wait();
		shared->shade = pid_of(pidfd);
	}
	/* nobody waits for it by chance */
	shared->failed = pidfd < 0 || waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD;
	_exit(7);
}

/* A shade whose process has ended, and which is ours since. */
static pid_t orphaned_shade(void)
{
	struct shared *shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid, shade;
	int status;

	assert_ptr_not_equal(shared, MAP_FAILED);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		live_with_shade(shared);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	assert_false(shared->failed);
	shade = shared->shade;
	assert_true(shade > 1);
	assert_int_equal(munmap(shared, sizeof(*shared)), 0);
	return shade;
}

/* Ends it, and says how it ended. */
static int end_of(pid_t shade, int signal_number)
{
	int status = 0;

	if (signal_number > 0)
		assert_int_equal(kill(shade, signal_number), 0);
	assert_int_equal(waitpid(shade, &status, __WALL), shade);
	return status;
}

static void test_outlives_its_process(void **state)
{
	pid_t shade = orphaned_shade();

	(void)state;
	assert_int_equal(kill(shade, SIGTERM), 0); /* which it does not take */
	assert_int_equal(waitpid(shade, NULL, __WALL | WNOHANG), 0);
	assert_int_equal(WTERMSIG(end_of(shade, SIGKILL)), SIGKILL);
}

/* Stopped and let go on, it goes back to sleep by itself. */
static void test_sleeps_on(void **state)
{
	pid_t shade = orphaned_shade();
	int status;

	(void)state;
	assert_int_equal(kill(shade, SIGSTOP), 0);
	assert_int_equal(waitpid(shade, &status, __WALL | WUNTRACED), shade);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(kill(shade, SIGCONT), 0);
	(void)usleep(20000);
	assert_int_equal(waitpid(shade, NULL, __WALL | WNOHANG), 0);
	assert_int_equal(WTERMSIG(end_of(shade, SIGKILL)), SIGKILL);
}

#ifdef __x86_64__
/* As if its memory were another's: made to call something else, it dies of that. */
static void check_call(long number, bool may)
{
	pid_t shade = orphaned_shade();
	struct user_regs_struct registers;
	int status;

	if (ptrace(PTRACE_SEIZE, shade, NULL, NULL) < 0) {
		(void)end_of(shade, SIGKILL);
		unit_skip("needs ptrace");
	}
	assert_int_equal(ptrace(PTRACE_INTERRUPT, shade, NULL, NULL), 0);
	assert_int_equal(waitpid(shade, &status, __WALL), shade);
	assert_int_equal(ptrace(PTRACE_GETREGS, shade, NULL, &registers), 0);
	registers.rax = (unsigned long)number;
	registers.orig_rax = (unsigned long)-1; /* it is in none, so none is begun anew */
	registers.rip -= 2;			/* the instruction that begins one */
	assert_int_equal(ptrace(PTRACE_SETREGS, shade, NULL, &registers), 0);
	assert_int_equal(ptrace(PTRACE_DETACH, shade, NULL, NULL), 0);
	if (!may) {
		assert_int_equal(WTERMSIG(end_of(shade, 0)), SIGSYS);
		return;
	}
	(void)usleep(20000);
	assert_int_equal(WTERMSIG(end_of(shade, SIGKILL)), SIGKILL);
}

static void test_can_only_sleep(void **state)
{
	static const long refused[] = {SYS_getpid, SYS_write, SYS_openat, SYS_execve, SYS_clone,
		SYS_kill, SYS_mmap, SYS_exit_group, SYS_poll, SYS_ppoll | 0x40000000};

	(void)state;
	check_call(SYS_ppoll, true); /* or the others would prove nothing */
	for (size_t i = 0; i < unit_count(refused); i++)
		check_call(refused[i], false);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_outlives_its_process),
		cmocka_unit_test(test_sleeps_on),
#ifdef __x86_64__
		cmocka_unit_test(test_can_only_sleep),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
