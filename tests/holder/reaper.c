/*
 * The process above each command.
 *
 * Theory of operation: it is the subreaper of all that the command starts, so whatever loses its
 * parent becomes its child: nothing gets away, but who kills it, which these boxes do not prevent;
 * then its orphans come to the holder. To end all of it, everything is stopped first, so that
 * nobody makes others meanwhile, then killed, until no child is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/pidfd.h"
#include "inside/put.h"
#include "kernel/process.h"
#include "plain.h"

/* Where a reaper has what came with the order, behind the streams. */
enum { LINE_FD = 3, PACK_FD, WORDS_FD, FILES_FD, LAST_FD };
#define HIGH_FD 64

static struct plain_told *told;
static pid_t program; /* 0: it has ended */

/* ---- who is below whom ---- */

struct below {
	struct nc_process *all;
	size_t count;
	bool *is;
};

static void below_done(struct below *below)
{
	free(below->all);
	free(below->is);
}

/* Everything that descends from a process, in no order. */
static int look_below(pid_t pid, struct below *below)
{
	bool more = true;

	if (nc_process_list(&below->all, &below->count) < 0)
		return -errno;
	below->is = calloc(below->count + 1, sizeof(*below->is));
	if (!below->is)
		return -ENOMEM;
	while (more) {
		more = false;
		for (size_t i = 0; i < below->count; i++) {
			bool is = below->all[i].parent == pid;

			for (size_t k = 0; !is && k < below->count; k++)
				is = below->is[k] && below->all[k].pid == below->all[i].parent;
			more |= is && !below->is[i];
			below->is[i] |= is;
		}
	}
	return 0;
}

/* How many of them there are that live. */
static size_t signal_below(pid_t pid, int number)
{
	nc_cleanup(below_done) struct below below = {0};
	size_t n = 0;

	if (look_below(pid, &below) < 0)
		return 0;
	for (size_t i = 0; i < below.count; i++)
		if (below.is[i] && !below.all[i].dead && below.all[i].pid > 1) {
			(void)kill(below.all[i].pid, number);
			n++;
		}
	return n;
}

void plain_count(pid_t pid, struct nc_box_now *now)
{
	nc_cleanup(below_done) struct below below = {0};
	struct nc_process own;

	if (nc_process_read(pid, &own) == 0) /* with those that it has waited for */
		now->cpu_us += own.user_us + own.system_us;
	if (look_below(pid, &below) < 0)
		return;
	for (size_t i = 0; i < below.count; i++) {
		if (!below.is[i] || below.all[i].dead)
			continue;
		now->cpu_us += below.all[i].user_us + below.all[i].system_us;
		now->memory_bytes += nc_process_memory(below.all[i].pid);
		now->pids += below.all[i].threads;
	}
}

/* ---- the program ---- */

_Noreturn static void give_up(enum nc_fail fail, int error, const char *step)
{
	(void)snprintf(told->step, sizeof(told->step), "%s", step);
	told->error = error;
	told->fail = fail;
	nc_child_exit(125);
}

static char **point_at(const struct nc_box_words *words)
{
	char **list = calloc(words->count + 1, sizeof(*list));
	const char *at = words->data;

	for (size_t i = 0; list && i < words->count; i++) {
		list[i] = (char *)(uintptr_t)at;
		at += strlen(at) + 1;
	}
	return list;
}

static int set_limit(__rlimit_resource_t resource, uint64_t value)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0)
		return -errno;
	limit.rlim_max = limit.rlim_max < value ? limit.rlim_max : value;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(resource, &limit) < 0 ? -errno : 0;
}

static void prepare(struct nc_box_order *order)
{
	static char words[NC_BOX_WORDS_MAX];
	char path[4096];
	sigset_t none;
	int r;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	for (size_t i = 0; i < PLAIN_IGNORED; i++)
		(void)signal(plain_ignored[i], SIG_DFL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || setsid() < 0 ||
		(order->flags & NC_ORDER_TTY && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0))
		give_up(NC_FAIL_BOX, errno, "begin a session");
	if (chdir(order->dir) < 0)
		give_up(NC_FAIL_BOX, errno, "enter the working directory");
	r = set_limit(RLIMIT_NOFILE, order->limits.open_files);
	if (r == 0)
		r = set_limit(RLIMIT_CORE, 0);
	if (r == 0 && order->limits.cpu_time_ms > 0)
		r = set_limit(RLIMIT_CPU, (order->limits.cpu_time_ms + 999) / 1000);
	if (r < 0)
		give_up(NC_FAIL_BOX, -r, "set limits");
	if (nc_box_fds_has(&order->fds, NC_FD_WORDS)) {
		r = nc_box_words_read(order, WORDS_FD, words);
		if (r < 0)
			give_up(NC_FAIL_BOX, -r, "read the words");
	}
	r = nc_box_fds_has(&order->fds, NC_FD_PACK) ? nc_put(PACK_FD, path) : 0;
	if (r < 0)
		give_up(NC_FAIL_FILES, -r, "put files into the box");
}

_Noreturn static void become_program(const struct nc_box_order *given)
{
	struct nc_box_order order = *given;
	char **argv, **env;
	int r = -ENOMEM;

	prepare(&order);
	argv = point_at(&order.argv);
	env = point_at(&order.env);
	if (argv && argv[0] && env && close_range(LINE_FD, ~0U, CLOSE_RANGE_CLOEXEC) == 0) {
		if (order.flags & NC_ORDER_FILES) {
			r = nc_become(FILES_FD, argv, env);
		} else {
			environ = env;
			(void)execvp(argv[0], argv); /* along its own PATH */
			r = -errno;
		}
	}
	give_up(NC_FAIL_PROGRAM, -r, "start the program");
}

/* ---- the reaper ---- */

/* Buries who has died; false: there is no child any more. */
static bool bury(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0)
		if (pid == program) {
			told->status = status;
			program = 0;
		}
	return pid == 0;
}

static void end_all(void)
{
	while (bury()) {
		while (signal_below(getpid(), SIGSTOP) < signal_below(getpid(), SIGSTOP))
			continue;
		(void)signal_below(getpid(), SIGKILL);
		(void)usleep(500);
	}
}

_Noreturn static void leave(char what)
{
	end_all();
	(void)getrusage(RUSAGE_CHILDREN, &told->usage);
	(void)send(LINE_FD, &what, 1, MSG_NOSIGNAL);
	nc_child_exit(0);
}

static void obey(void)
{
	char what;

	if (recv(LINE_FD, &what, 1, 0) <= 0) { /* whoever could be told is gone */
		end_all();
		nc_child_exit(0);
	}
	if (what == PLAIN_KILL)
		end_all();
	else if (what == PLAIN_STOP)
		while (signal_below(getpid(), SIGSTOP) < signal_below(getpid(), SIGSTOP))
			continue;
	else if (what == PLAIN_GO)
		(void)signal_below(getpid(), SIGCONT);
	else if (program > 0)
		(void)kill(program, (unsigned char)what - 128);
}

/* ready_fd ends when the program runs, or will not. */
_Noreturn static void watch(int ready_fd, int dead_fd)
{
	for (;;) {
		struct pollfd events[] = {{.fd = LINE_FD, .events = POLLIN},
			{.fd = dead_fd, .events = POLLIN}, {.fd = ready_fd, .events = POLLIN}};
		struct signalfd_siginfo info;

		if (poll(events, 3, -1) < 0)
			continue;
		if (events[0].revents)
			obey();
		if (events[1].revents && read(dead_fd, &info, sizeof(info)) > 0)
			(void)bury();
		if (ready_fd >= 0 && events[2].revents) {
			const char what = PLAIN_STARTED;

			ready_fd = nc_fd_close(ready_fd);
			if (told->fail)
				leave(PLAIN_FAILED);
			(void)send(LINE_FD, &what, 1, MSG_NOSIGNAL);
		}
		if (ready_fd < 0 && program == 0)
			leave(PLAIN_ENDED);
	}
}

/* Nothing of the holder's is left to it, but what the command needs. */
static int place_all(const struct nc_box_order *order, int terminal_fd, int line_fd)
{
	const int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int from[LAST_FD];

	for (size_t i = 0; i < 3; i++)
		from[i] = terminal_fd >= 0 ? terminal_fd
					   : nc_box_fds_find(&order->fds, nc_box_streams[i]);
	from[LINE_FD] = line_fd;
	from[PACK_FD] = nc_box_fds_find(&order->fds, NC_FD_PACK);
	from[WORDS_FD] = nc_box_fds_find(&order->fds, NC_FD_WORDS);
	from[FILES_FD] = plain.files_fd;
	for (size_t i = 0; i < LAST_FD; i++) {
		from[i] = fcntl(from[i] >= 0 ? from[i] : null_fd, F_DUPFD_CLOEXEC, HIGH_FD);
		if (from[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < LAST_FD; i++)
		if (dup2(from[i], (int)i) < 0)
			return -errno;
	return close_range(LAST_FD, ~0U, 0) < 0 ? -errno : 0;
}

_Noreturn static void be_reaper(const struct nc_box_order *order, int terminal_fd, int line_fd)
{
	sigset_t dead;
	int ready[2], dead_fd, null_fd, r = place_all(order, terminal_fd, line_fd);

	(void)prctl(PR_SET_NAME, "nacre-plain-cmd");
	(void)sigemptyset(&dead);
	(void)sigaddset(&dead, SIGCHLD);
	if (r < 0 || setsid() < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ||
		sigprocmask(SIG_BLOCK, &dead, NULL) < 0 || pipe2(ready, O_CLOEXEC) < 0)
		give_up(NC_FAIL_BOX, r < 0 ? -r : errno, "make a reaper");
	dead_fd = signalfd(-1, &dead, SFD_CLOEXEC | SFD_NONBLOCK);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	program = dead_fd < 0 || null_fd < 0 ? -1 : fork();
	if (program < 0)
		give_up(NC_FAIL_BOX, errno, "fork");
	if (program == 0)
		become_program(order);
	(void)close(ready[1]);
	for (int i = 0; i < LAST_FD; i++) /* the streams are the program's alone */
		if (i != LINE_FD)
			(void)dup2(null_fd, i);
	watch(ready[0], dead_fd);
}

int plain_fork(struct plain_box *box, const struct nc_box_order *order, int terminal_fd)
{
	int ends[2];

	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (told == MAP_FAILED)
		return -errno;
	box->told = told;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	box->line_fd = ends[0];
	box->reaper = fork();
	if (box->reaper == 0)
		be_reaper(order, terminal_fd, ends[1]);
	(void)close(ends[1]);
	if (box->reaper < 0) {
		box->reaper = 0;
		return -EAGAIN;
	}
	return 0;
}
