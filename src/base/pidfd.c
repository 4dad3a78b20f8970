/* Processes, held as descriptors. */
#include "base/pidfd.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#ifdef NACRE_COVERAGE
#include <sys/mman.h>

void __gcov_dump(void);
#endif

int nc_pidfd_open(pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	return pidfd < 0 ? -errno : pidfd;
}

int nc_pidfd_kill(int pidfd, int signal_number)
{
	return syscall(SYS_pidfd_send_signal, pidfd, signal_number, NULL, 0) < 0 ? -errno : 0;
}

static int reap(int pidfd, siginfo_t *ret_info)
{
	int r;

	do
		r = waitid(P_PIDFD, (id_t)pidfd, ret_info, WEXITED | __WALL);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

int nc_pidfd_wait(int pidfd, uint64_t deadline_ns, siginfo_t *ret_info)
{
	if (pidfd < 0)
		return -EBADF; /* poll() would just sleep */
	for (;;) {
		struct pollfd event = {.fd = pidfd, .events = POLLIN};
		int r = poll(&event, 1, nc_clock_left_ms(deadline_ns));

		if (r < 0 && errno != EINTR)
			return -errno;
		if (r > 0)
			return reap(pidfd, ret_info);
		if (r == 0 && nc_clock_ns() >= deadline_ns)
			return -ETIMEDOUT;
	}
}

int nc_pidfd_end(int pidfd)
{
	int saved = errno;
	siginfo_t info;

	if (pidfd >= 0) {
		(void)nc_pidfd_kill(pidfd, SIGKILL); /* it may be a zombie already */
		(void)reap(pidfd, &info);
	}
	errno = saved;
	return nc_fd_close(pidfd);
}

int nc_fork(int *ret_pidfd)
{
	pid_t parent = getpid();
	pid_t pid = fork();
	int pidfd;

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		/* the parent may have died before the signal was asked for */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
			nc_child_exit(1);
		return 0;
	}
	pidfd = nc_pidfd_open(pid);
	if (pidfd < 0) {
		(void)kill(pid, SIGKILL); /* our own unreaped child: the pid is still its own */
		(void)waitpid(pid, NULL, __WALL);
		return pidfd;
	}
	*ret_pidfd = pidfd;
	return 1;
}

void nc_child_exit(int status)
{
#ifdef NACRE_COVERAGE
	/* a child without the old root cannot write its counters: its complaint goes nowhere */
	(void)dup2(memfd_create("gcov", MFD_CLOEXEC), 2);
	__gcov_dump();
#endif
	_exit(status);
}

int nc_become(int program_fd, char *const *argv, char *const *env)
{
#ifdef NACRE_COVERAGE
	__gcov_dump(); /* which libgcov does for the other functions of this family */
#endif
	(void)fexecve(program_fd, argv, env);
	return -errno;
}
