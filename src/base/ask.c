/* Asking programs of the host a question. */
#include "base/ask.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/pidfd.h"

/* "nobody", on every distribution */
#define NOBODY 65534

/* No question of ours starts more programs than this at once. */
#define ASKS_MAX 32

static int find_program(const char *name, char *out, size_t size)
{
	static const char path[] = NC_ASK_PATH;

	for (const char *dir = path; *dir;) {
		const char *end = strchrnul(dir, ':');

		if (snprintf(out, size, "%.*s/%s", (int)(end - dir), dir, name) < (int)size &&
			access(out, X_OK) == 0)
			return 0;
		dir = *end ? end + 1 : end;
	}
	out[0] = '\0';
	return -ENOENT;
}

static int drop_root(void)
{
	if (geteuid() != 0)
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
		setresuid(NOBODY, NOBODY, NOBODY) < 0)
		return -errno;
	return 0;
}

/* A descriptor to read the input from. */
static int open_input(const struct nc_ask *ask)
{
	cleanup_close int fd = -EBADF;
	int r;

	fd = ask->input ? memfd_create("input", MFD_CLOEXEC)
			: open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (ask->input) {
		r = nc_fd_write_all(fd, ask->input, ask->input_size);
		if (r < 0)
			return r;
		if (lseek(fd, 0, SEEK_SET) < 0)
			return -errno;
	}
	return take_fd(fd);
}

_Noreturn static void become(const struct nc_ask *ask, int input_fd, int output_fd)
{
	static char path[] = "PATH=" NC_ASK_PATH, locale[] = "LC_ALL=C",
		    home[] = "HOME=/nonexistent";
	static char *const environment[] = {path, locale, home, NULL};
	struct rlimit no_core = {0};

	if (dup2(input_fd, 0) < 0 || dup2(output_fd, 1) < 0 || dup2(output_fd, 2) < 0 ||
		chdir("/") < 0 || setrlimit(RLIMIT_CORE, &no_core) < 0 || setsid() < 0 ||
		drop_root() < 0)
		nc_child_exit(127);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)execve(ask->program, (char *const *)(uintptr_t)ask->argv, environment);
	nc_child_exit(127);
}

void nc_ask_start(struct nc_ask *ask)
{
	cleanup_close int input_fd = -EBADF;
	cleanup_close int write_fd = -EBADF;
	int ends[2];
	int r = find_program(ask->argv[0], ask->program, sizeof(ask->program));

	ask->pidfd = ask->output_fd = -EBADF;
	ask->output = (struct nc_buf)NC_BUF(NC_PROBE_OUTPUT_MAX);
	if (r == 0) {
		input_fd = open_input(ask);
		r = input_fd < 0 ? input_fd : 0;
	}
	if (r == 0 && pipe2(ends, O_CLOEXEC) < 0)
		r = -errno;
	if (r == 0) {
		ask->output_fd = ends[0];
		write_fd = ends[1];
		r = nc_fork(&ask->pidfd);
		if (r == 0)
			become(ask, input_fd, write_fd);
	}
	ask->status = r < 0 ? r : 0;
	if (r < 0)
		ask->output_fd = nc_fd_close(ask->output_fd);
}

/* Reads what is there; at the end closes and takes the exit status. */
static void read_some(struct nc_ask *ask, uint64_t deadline_ns)
{
	char chunk[4096];
	ssize_t n = read(ask->output_fd, chunk, sizeof(chunk));
	siginfo_t info = {0};
	int r;

	if (n > 0) {
		nc_buf_add(&ask->output, chunk, (size_t)n); /* what is too much is dropped */
		return;
	}
	ask->output_fd = nc_fd_close(ask->output_fd);
	r = nc_pidfd_wait(ask->pidfd, deadline_ns, &info);
	if (r < 0)
		return; /* finish ends it */
	ask->pidfd = nc_fd_close(ask->pidfd);
	ask->status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

void nc_ask_finish(struct nc_ask *asks, size_t n, uint64_t deadline_ns)
{
	struct pollfd events[ASKS_MAX];
	size_t open_count;

	if (n > ASKS_MAX)
		n = ASKS_MAX;
	do {
		open_count = 0;
		for (size_t i = 0; i < n; i++) {
			events[i] = (struct pollfd){.fd = asks[i].output_fd, .events = POLLIN};
			open_count += asks[i].output_fd >= 0;
		}
		if (open_count == 0 || poll(events, n, nc_clock_left_ms(deadline_ns)) <= 0)
			break;
		for (size_t i = 0; i < n; i++)
			if (events[i].revents)
				read_some(&asks[i], deadline_ns);
	} while (open_count > 0);
	for (size_t i = 0; i < n; i++) {
		if (asks[i].pidfd >= 0)
			asks[i].status = -ETIMEDOUT;
		asks[i].pidfd = nc_pidfd_end(asks[i].pidfd);
		asks[i].output_fd = nc_fd_close(asks[i].output_fd);
	}
}

void nc_ask_done(struct nc_ask *ask)
{
	ask->pidfd = nc_pidfd_end(ask->pidfd);
	ask->output_fd = nc_fd_close(ask->output_fd);
	nc_buf_done(&ask->output);
}
