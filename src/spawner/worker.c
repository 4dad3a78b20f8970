/* The unprivileged side. */
#include "spawner/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/pidfd.h"
#include "kernel/privilege.h"

#define EXIT_SELF 125
/* Where the worker finds its end of the pair, and is told so by a variable. */
#define WORKER_FD 3

/* A worker that is started again more often than this has no future. */
#define STARTS_SPAN_NS (10 * NC_NS_PER_S)

int nc_worker_take(struct nc_worker *worker, pid_t pid, int fd, struct nacre_err *err)
{
	siginfo_t info;
	int r;

	worker->pid = pid;
	worker->broken = false;
	r = worker->pidfd = nc_pidfd_open(pid);
	/* whom we cannot wait for we must not kill either */
	if (r >= 0 && waitid(P_PIDFD, (id_t)r, &info, WEXITED | WNOHANG | WNOWAIT) < 0) {
		r = -errno;
		worker->pidfd = nc_fd_close(worker->pidfd);
	}
	if (r >= 0)
		r = nc_client_take(worker->client, fd);
	return r < 0 ? nc_err_errno(err, r, "Hold the worker") : 0;
}

_Noreturn static void give_up(const char *step)
{
	fprintf(stderr, "nacre-spawner: start the worker: %s: %s\n", step, nc_errno_text(errno));
	_exit(EXIT_SELF);
}

_Noreturn static void become_worker(const struct nc_worker *worker, int socket_fd)
{
	/* above where heirs go */
	int exe_fd = fcntl(worker->exe_fd, F_DUPFD_CLOEXEC, WORKER_FD + 1 + NC_WORKER_HEIRS_MAX);
	sigset_t none;
	int r = nc_privilege_drop(worker->ranges);

	if (r < 0) {
		errno = -r;
		give_up("drop privileges");
	}
	(void)setpriority(PRIO_PROCESS, 0, 0); /* it was ours, and lower is always allowed */
	(void)sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0 || setenv("NACRE_SPAWNER", "3", 1) < 0)
		give_up("make it as new");
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGQUIT, SIG_DFL);
	(void)signal(SIGHUP, SIG_DFL);
	(void)signal(SIGPIPE, SIG_DFL);
	if (exe_fd < 0 || dup2(socket_fd, WORKER_FD) < 0)
		give_up("hand over the socket");
	for (int i = 0; i < worker->n_heirs; i++)
		if (dup2(worker->heir_fd + i, WORKER_FD + 1 + i) < 0)
			give_up("hand over what it inherits");
	if (close_range(WORKER_FD + 1 + (unsigned int)worker->n_heirs, ~0U, CLOSE_RANGE_CLOEXEC) <
		0)
		give_up("close everything else");
	(void)syscall(SYS_execveat, exe_fd, "", worker->argv, environ, AT_EMPTY_PATH);
	give_up("execute it");
}

static bool starts_too_often(struct nc_worker *worker)
{
	const size_t n = sizeof(worker->starts_ns) / sizeof(worker->starts_ns[0]);
	uint64_t now = nc_clock_ns();
	uint64_t *oldest = &worker->starts_ns[worker->n_starts++ % n];
	bool too_often = worker->n_starts > n && now - *oldest < STARTS_SPAN_NS;

	*oldest = now;
	return too_often;
}

int nc_worker_start(struct nc_worker *worker, struct nacre_err *err)
{
	int ends[2];
	pid_t pid;

	if (starts_too_often(worker))
		return nc_err_set(err, -EAGAIN, "The worker died too often");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return nc_err_errno(err, -errno, "Make a socket pair");
	pid = fork();
	if (pid == 0)
		become_worker(worker, ends[1]);
	(void)close(ends[1]);
	if (pid < 0) {
		(void)close(ends[0]);
		return nc_err_errno(err, -errno, "Start the worker");
	}
	return nc_worker_take(worker, pid, ends[0], err);
}

int nc_worker_reap(struct nc_worker *worker)
{
	siginfo_t info = {0};
	int r = nc_pidfd_wait(worker->pidfd, nc_clock_ns() + NC_NS_PER_S, &info);

	worker->pidfd = nc_fd_close(worker->pidfd);
	worker->client->fd = nc_fd_close(worker->client->fd);
	worker->pid = 0;
	if (r < 0 || worker->broken)
		return EXIT_SELF;
	/* all that it can say before it greets is that it is content, or 125 and why */
	if (!worker->client->greeted &&
		(info.si_code != CLD_EXITED ||
			(info.si_status != 0 && info.si_status != EXIT_SELF))) {
		fputs("nacre-spawner: the worker died before it began\n", stderr);
		return EXIT_SELF;
	}
	return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}
