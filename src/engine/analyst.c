/* nacre-analyst: reads foreign programs for the daemon. */
#include "engine/analyst.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/meeting.h"
#include "base/text.h"
#include "base/wire.h"
#include "engine/study.h"
#include "kernel/fence.h"
#include "kernel/filter.h"
#include "kernel/privilege.h"
#include "policy/portable.h"

#define LOW_FD 3
#define HIGH_FD 64
/* A daemon that was taken over makes no more of them. */
#define CHILDREN_MAX 64U
/* Beyond the analysis' own bounds (policy/bounds.h), which end in a report: these end the child. */
#define CPU_SECONDS 6
#define MEMORY_MAX (320ULL << 20)
#define FILES_MAX 16
/* Policies that a child remembers. */
#define POLICIES_MAX 4

struct child {
	int fd;
	struct nc_policy *warm; /* that has looked up everything about languages */
	struct {
		uint64_t number;
		struct nc_policy *policy;
	} known[POLICIES_MAX];
	size_t next; /* the entry that is given up next */
	struct nc_wire_packet packet;
};

/* ---- questions ---- */

/* Memory that somebody else has sealed, for as long as we live or munmap() it. */
static int map_memory(int fd, size_t max, const char **ret_data, size_t *ret_size)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_WRITE;
	off_t size = lseek(fd, 0, SEEK_END);
	void *data;

	if (size <= 0 || (uint64_t)size > max || (fcntl(fd, F_GET_SEALS) & seals) != seals)
		return -EBADMSG;
	data = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	*ret_data = data;
	*ret_size = (size_t)size;
	return 0;
}

static int find_policy(struct child *child, uint64_t number, struct nc_policy **ret_policy)
{
	struct nc_policy *policy = NULL;
	const char *data;
	size_t size;
	int r;

	for (size_t i = 0; i < POLICIES_MAX; i++)
		if (child->known[i].policy && child->known[i].number == number) {
			*ret_policy = child->known[i].policy;
			return 0;
		}
	if (child->packet.n_fds < 1)
		return -EBADMSG;
	r = map_memory(child->packet.fds[0], NC_PORTABLE_POLICY_MAX, &data, &size);
	if (r < 0)
		return r;
	r = nc_policy_unpack(data, size, &policy);
	(void)munmap((void *)(uintptr_t)data, size);
	if (r < 0)
		return r;
	nc_policy_learn(policy, child->warm);
	nc_policy_free(child->known[child->next].policy);
	child->known[child->next].number = number;
	child->known[child->next].policy = policy;
	child->next = (child->next + 1) % POLICIES_MAX;
	*ret_policy = policy;
	return 0;
}

static int send_answer(const struct child *child, const struct nc_buf *answer)
{
	size_t at = 0;

	do {
		cleanup_wire_out struct nc_wire_out out = {0};
		size_t size = answer->size - at;
		int r;

		if (size > NC_ANALYST_PART_MAX)
			size = NC_ANALYST_PART_MAX;
		nc_wire_begin(&out, NC_ANALYST_ANSWER);
		nc_wire_put_u8(&out, at + size == answer->size);
		nc_wire_put_bytes(&out, answer->data + at, size);
		r = nc_wire_send(child->fd, &out, NULL, 0);
		if (r < 0)
			return r;
		at += size;
	} while (at < answer->size);
	return 0;
}

static int answer(const struct child *child, const struct nc_study_text *text)
{
	struct nc_wire_out out = {.buf = NC_BUF(NC_PORTABLE_REPORT_MAX + 1024)};
	int r;

	nc_wire_put_u32(&out, (uint32_t)-text->error);
	nc_wire_put_u8(&out, text->error == 0 ? (uint8_t)text->found.language : 0);
	nc_wire_put_text(&out, text->found.reason);
	if (text->error == 0)
		nc_report_pack(text->report, &out.buf);
	r = out.buf.error < 0 ? out.buf.error : send_answer(child, &out.buf);
	nc_wire_out_done(&out);
	return r;
}

/* This much of the processor and no more, until the next call: then the child is dead. */
static void allow_time(time_t seconds)
{
	const struct itimerval most = {.it_value.tv_sec = seconds};

	(void)setitimer(ITIMER_PROF, &most, NULL);
}

/* Others come first while a large program is read; this child does nothing after it. */
static void step_back(void)
{
	(void)setpriority(PRIO_PROCESS, 0, 19);
}

static int take_text(
	struct child *child, struct nc_wire_in *in, char *name, struct nc_study_text *ret_text)
{
	uint8_t language = nc_wire_get_u8(in);
	const void *code;
	int r;

	nc_wire_get_text(in, name, NC_ANALYST_NAME_MAX);
	*ret_text = (struct nc_study_text){.file = name};
	ret_text->size = nc_wire_get_bytes(in, NC_ANALYST_SMALL, &code);
	ret_text->code = code;
	ret_text->language =
		language == NC_ANALYST_DETECT ? NC_LANGUAGE_INVALID : (enum nc_language)language;
	r = nc_wire_close(in);
	if (r == 0 && child->packet.n_fds > 1) {
		step_back();
		r = map_memory(child->packet.fds[1], NC_REQUEST_SIZE_MAX, &ret_text->code,
			&ret_text->size);
	}
	return r;
}

/* 1: the next; 0: this was the last one for this child; -errno: so it was, and is not answered. */
static int take_question(struct child *child)
{
	char name[NC_ANALYST_NAME_MAX + 1];
	struct nc_study_text text;
	struct nc_policy *policy;
	struct nc_wire_in in;
	uint64_t number;
	int r = nc_wire_receive(child->fd, &child->packet, 2);

	if (r <= 0)
		return r;
	allow_time(CPU_SECONDS);
	r = nc_wire_open(&in, child->packet.data, child->packet.size);
	if (r < 0 || in.type != NC_ANALYST_QUESTION)
		return -EBADMSG;
	number = nc_wire_get_u64(&in);
	r = take_text(child, &in, name, &text);
	if (r == 0)
		r = find_policy(child, number, &policy);
	if (r < 0)
		return r;
	nc_study_read(&text, policy);
	r = answer(child, &text);
	nc_report_free(text.report);
	allow_time(0);
	return r < 0 ? r : child->packet.n_fds < 2;
}

/* ---- processes ---- */

static int limit(__rlimit_resource_t which, rlim_t most)
{
	const struct rlimit both = {most, most};

	return setrlimit(which, &both) < 0 ? -errno : 0;
}

/* Builds for tests only: AddressSanitizer has 20 TiB of shadows. */
static int limit_memory(void)
{
#if defined(__SANITIZE_ADDRESS__)
	return 0;
#else
	return limit(RLIMIT_DATA, MEMORY_MAX);
#endif
}

_Noreturn static void be_child(int fd, struct nc_policy *warm, pid_t parent)
{
	struct child child = {.warm = warm};
	int r = prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent ? -ESRCH : 0;

	if (r == 0 && dup2(fd, LOW_FD) < 0)
		r = -errno;
	child.fd = LOW_FD;
	if (r == 0 && close_range(LOW_FD + 1, ~0U, 0) < 0)
		r = -errno;
	(void)signal(SIGCHLD, SIG_DFL);
	if (r == 0)
		r = limit_memory();
	if (r == 0)
		r = limit(RLIMIT_NOFILE, FILES_MAX);
	if (r == 0)
		r = limit(RLIMIT_CORE, 1); /* 0 would not stop a piped core_pattern */
	if (r == 0)
		r = nc_filter_load(NC_FILTER_ANALYST, NULL);
	while (r == 0 && (r = take_question(&child)) > 0)
		r = 0;
	_exit(r < 0 ? 125 : 0);
}

/* So that a child finds in memory what every analysis needs. */
static int warm_up(struct nc_policy **ret_policy)
{
	static const struct nc_policy_options options = {.profile = NC_PROFILE_STANDARD};
	static const char text[] = "print(1)";
	int r = nc_policy_new(&options, ret_policy);

	for (enum nc_language i = 0; r == 0 && i < NC_LANGUAGE_MAX; i++) {
		struct nc_report *report = NULL;

		r = nc_policy_analyse(*ret_policy, i, text, strlen(text), &report);
		nc_report_free(report);
	}
	return r;
}

static void on_child(int number)
{
	(void)number; /* it ends ppoll() */
}

/* Hands a socket to a new child, as long as there are not too many. */
static void give_away(int fd, struct nc_policy *warm, size_t *children)
{
	const pid_t parent = getpid();
	pid_t pid = *children < CHILDREN_MAX ? fork() : -1;

	if (pid == 0)
		be_child(fd, warm, parent);
	*children += pid > 0;
	(void)close(fd); /* without a child whoever has the other end sees it close */
}

static int serve(int place_fd, struct nc_policy *warm)
{
	size_t children = 0;
	sigset_t none;

	(void)sigemptyset(&none);
	for (;;) {
		struct pollfd event = {.fd = place_fd, .events = POLLIN};
		int r;

		(void)ppoll(&event, 1, NULL, &none);
		while (children > 0 && waitpid(-1, NULL, WNOHANG) > 0)
			children--;
		r = nc_meeting_take(place_fd);
		if (r >= 0)
			give_away(r, warm, &children);
		else if (r != -EAGAIN)
			return r == -ECONNRESET ? 0 : r;
	}
}

/* Once, in order: descriptors, user, files, what is known; it reads nothing foreign, and forks. */
static int lock_in(int *place_fd, bool ranges, struct nc_policy **ret_warm)
{
	const struct sigaction action = {.sa_handler = on_child};
	sigset_t children;
	int r;

	(void)prctl(PR_SET_NAME, "nacre-analyst");
	(void)signal(SIGINT, SIG_IGN); /* it ends when the daemon does */
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&children);
	(void)sigaddset(&children, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &children, NULL);
	(void)sigaction(SIGCHLD, &action, NULL);
	*place_fd = fcntl(*place_fd, F_DUPFD_CLOEXEC, HIGH_FD);
	if (*place_fd < 0 || dup2(*place_fd, LOW_FD) < 0 || close_range(LOW_FD + 1, ~0U, 0) < 0)
		return -errno;
	*place_fd = LOW_FD;
	r = nc_privilege_become_analyst(ranges);
	if (r == 0 && prctl(PR_SET_DUMPABLE, 0) < 0)
		r = -errno;
	if (r == 0)
		r = nc_fence_all();
	return r < 0 ? r : warm_up(ret_warm);
}

_Noreturn static void be_analyst(int place_fd, bool ranges)
{
	struct nc_policy *warm = NULL;
	int r = lock_in(&place_fd, ranges, &warm);

	if (r == 0)
		r = serve(place_fd, warm);
	if (r < 0)
		(void)dprintf(STDERR_FILENO, "nacre serve: nacre-analyst: %s\n", nc_errno_text(r));
	_exit(r < 0 ? 125 : 0);
}

int nc_analyst_start(int place_fd, bool ranges, int *ret_pidfd, struct nacre_err *err)
{
	/* its first connection, which nobody uses */
	int fd, r = nc_meeting_fork(SOCK_SEQPACKET, &fd, ret_pidfd, err);

	if (r > 0)
		be_analyst(place_fd, ranges);
	return r < 0 ? r : fd;
}
