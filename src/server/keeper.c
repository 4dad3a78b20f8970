/* nacre-keeper: starts those who work beside the daemon, and starts them again. */
#include "server/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/meeting.h"
#include "base/pidfd.h"
#include "base/text.h"
#include "kernel/caps.h"
#include "kernel/privilege.h"

/* Who lived so long is started again at once. */
#define SETTLED_NS (30 * NC_NS_PER_S)
#define DELAY_SHIFT_MAX 4U

static const char *const names[NC_AIDE_HOLDER] = {
	[NC_AIDE_RECORDER] = "recorder",
	[NC_AIDE_EGRESS] = "egress",
	[NC_AIDE_ARCHIVE] = "archive",
	[NC_AIDE_ANALYST] = "analyst",
	[NC_AIDE_COURIER] = "courier",
	[NC_AIDE_EXPORTER] = "exporter",
	[NC_AIDE_CERTIFIER] = "certifier",
};

const char *nc_aide_name(enum nc_aide which)
{
	const char *program =
		which < NC_AIDE_HOLDER ? names[which] : nc_tier_program(which - NC_AIDE_HOLDER + 1);
	const char *rest = nc_text_after(program, "nacre-");

	return rest ? rest : program;
}

enum state {
	LET_GO, /* for good, or it was never there */
	RUNS,	/* pidfd */
	WAITS,	/* is started at due_ns */
};

struct aide {
	enum state state;
	int place_fd, pidfd;
	unsigned int failures; /* in a row */
	uint64_t began_ns, due_ns;
};

struct keeper {
	const struct nc_keeper_setup *setup;
	struct nc_keeper_page *page;
	pid_t parent;
	int guard_fd; /* -EBADF: there is none, or it has ended */
	struct aide aide[NC_AIDE_MAX];
};

static bool is_asked_for(const struct nc_keeper_setup *setup, size_t which)
{
	return which < NC_AIDE_HOLDER
		       ? setup->start[which] != NULL
		       : setup->start_holder &&
				 nc_tier_program((unsigned int)which - NC_AIDE_HOLDER + 1);
}

static int start_one(struct keeper *keeper, enum nc_aide which, struct nacre_err *err)
{
	const struct nc_keeper_setup *setup = keeper->setup;
	struct aide *aide = &keeper->aide[which];
	int r;

	aide->began_ns = nc_clock_ns();
	r = which < NC_AIDE_HOLDER
		    ? setup->start[which](setup->context, aide->place_fd, &aide->pidfd, err)
		    : setup->start_holder(setup->context, which - NC_AIDE_HOLDER + 1,
			      aide->place_fd, &aide->pidfd, err);
	if (r < 0)
		return r;
	if (which < NC_AIDE_HOLDER)
		(void)nc_fd_close(r); /* whoever wants to talk to it calls */
	aide->state = RUNS;
	atomic_store(&keeper->page->up[which], 1);
	return 0;
}

/* Whether somebody is left who could call it. */
static bool is_wanted(const struct aide *aide)
{
	struct pollfd event = {.fd = aide->place_fd};

	return poll(&event, 1, 0) == 0 || !(event.revents & POLLHUP);
}

static void put_off(struct keeper *keeper, enum nc_aide which, const char *reason)
{
	struct aide *aide = &keeper->aide[which];
	const uint64_t now = nc_clock_ns();
	unsigned int shift;

	aide->failures = now - aide->began_ns > SETTLED_NS ? 0 : aide->failures + 1;
	shift = aide->failures < DELAY_SHIFT_MAX ? aide->failures : DELAY_SHIFT_MAX;
	/* 0.1 s, then 2, 4, and 8 s from then on */
	aide->due_ns = now + (aide->failures < 2 ? 100 * NC_NS_PER_MS : NC_NS_PER_S << (shift - 1));
	aide->state = WAITS;
	nc_log(NC_LOG_ERROR, "An aide has died and is started again",
		NC_LOG_TEXT("aide", nc_aide_name(which)), NC_LOG_TEXT("reason", reason),
		NC_LOG_INT("milliseconds", (int64_t)((aide->due_ns - now) / NC_NS_PER_MS)));
}

static void bury(struct keeper *keeper, enum nc_aide which)
{
	struct aide *aide = &keeper->aide[which];
	siginfo_t end = {0};

	(void)waitid(P_PIDFD, (id_t)aide->pidfd, &end, WEXITED);
	aide->pidfd = nc_fd_close(aide->pidfd);
	aide->state = LET_GO;
	atomic_store(&keeper->page->up[which], 0);
	if ((end.si_code == CLD_EXITED && end.si_status == 0) || !is_wanted(aide))
		return;
	atomic_fetch_add(&keeper->page->deaths[which], 1);
	put_off(keeper, which, end.si_code == CLD_EXITED ? "it gave up" : strsignal(end.si_status));
}

static void start_again(struct keeper *keeper, enum nc_aide which)
{
	struct nacre_err err = {0};

	if (start_one(keeper, which, &err) < 0)
		put_off(keeper, which, err.message);
}

/* Who started all of it was killed; the parent, if it is still ours, ends well then. */
static void end_parent(struct keeper *keeper)
{
	keeper->guard_fd = nc_fd_close(keeper->guard_fd);
	if (getppid() == keeper->parent)
		(void)kill(keeper->parent, SIGTERM);
}

/* Waits for what is next: the end of one that runs, the time or the last caller of one that waits.
 */
static void wait_next(struct keeper *keeper)
{
	struct pollfd events[NC_AIDE_MAX + 1];
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < NC_AIDE_MAX; i++) {
		const struct aide *aide = &keeper->aide[i];

		events[i] = (struct pollfd){.fd = aide->state == RUNS	 ? aide->pidfd
						  : aide->state == WAITS ? aide->place_fd
									 : -EBADF,
			.events = aide->state == RUNS ? POLLIN : 0};
		if (aide->state == WAITS && aide->due_ns < next)
			next = aide->due_ns;
	}
	events[NC_AIDE_MAX] = (struct pollfd){.fd = keeper->guard_fd, .events = POLLIN};
	if (poll(events, NC_AIDE_MAX + 1, next == UINT64_MAX ? -1 : nc_clock_left_ms(next)) < 0)
		return; /* interrupted */
	if (events[NC_AIDE_MAX].revents)
		end_parent(keeper);
	for (size_t i = 0; i < NC_AIDE_MAX; i++) {
		struct aide *aide = &keeper->aide[i];

		if (aide->state == RUNS && events[i].revents)
			bury(keeper, (enum nc_aide)i);
		else if (aide->state == WAITS && events[i].revents & POLLHUP)
			aide->state = LET_GO;
		else if (aide->state == WAITS && nc_clock_ns() >= aide->due_ns)
			start_again(keeper, (enum nc_aide)i);
	}
}

static bool has_any(const struct keeper *keeper)
{
	for (size_t i = 0; i < NC_AIDE_MAX; i++)
		if (keeper->aide[i].state != LET_GO)
			return true;
	return false;
}

static int compare(const void *a, const void *b)
{
	return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

/* Sockets of others would stay alive with us. */
static int close_others(const struct keeper *keeper, int life_fd)
{
	int fds[NC_AIDE_MAX + 16];
	size_t n = 0;
	unsigned int from = STDERR_FILENO + 1;

	if (keeper->setup->n_fds > 14)
		return -E2BIG;
	fds[n++] = life_fd;
	fds[n++] = keeper->guard_fd;
	for (size_t i = 0; i < keeper->setup->n_fds; i++)
		fds[n++] = keeper->setup->fds[i];
	for (size_t i = 0; i < NC_AIDE_MAX; i++)
		fds[n++] = keeper->aide[i].place_fd;
	qsort(fds, n, sizeof(fds[0]), compare);
	for (size_t i = 0; i < n; i++) {
		if (fds[i] < (int)from)
			continue;
		if (fds[i] > (int)from && close_range(from, (unsigned int)fds[i] - 1, 0) < 0)
			return -errno;
		from = (unsigned int)fds[i] + 1;
	}
	return close_range(from, ~0U, 0) < 0 ? -errno : 0;
}

/* What it takes to become others and to open what is theirs; nothing is ever gained from here on.
 */
static int lock_in(void)
{
	const uint64_t keep = 1ULL << CAP_SETUID | 1ULL << CAP_SETGID | 1ULL << CAP_SETPCAP |
			      1ULL << CAP_DAC_OVERRIDE;
	struct nacre_err ignored = {0};
	bool ranges = false;
	int r = nc_privilege_ranges(&ranges, &ignored);

	if (r == 0 && ranges)
		r = nc_caps_bound();
	if (r == 0 && ranges)
		r = nc_caps_set(keep);
	return r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : r;
}

_Noreturn static void be_keeper(struct keeper *keeper, int life_fd)
{
	struct nacre_err err[NC_AIDE_MAX] = {0};
	int r = close_others(keeper, life_fd);

	(void)prctl(PR_SET_NAME, "nacre-keeper");
	(void)signal(SIGINT, SIG_IGN); /* it ends when all others have */
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; r == 0 && i < NC_AIDE_MAX; i++)
		if (is_asked_for(keeper->setup, i))
			(void)start_one(keeper, (enum nc_aide)i, &err[i]);
	if (r == 0)
		r = lock_in(); /* the first time it may have had to make what they need */
	if (r == 0)
		r = nc_fd_write_all(life_fd, err, sizeof(err));
	while (r == 0 && has_any(keeper))
		wait_next(keeper);
	_exit(r < 0 ? 125 : 0);
}

/* Its memory is ours alone to write from the moment at which it is mapped. */
static int make_page(struct keeper *keeper)
{
	cleanup_close int fd = memfd_create("nacre-keeper", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, sizeof(*keeper->page)) < 0)
		return -errno;
	keeper->page = mmap(NULL, sizeof(*keeper->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (keeper->page == MAP_FAILED)
		return -errno;
	return fcntl(fd, F_ADD_SEALS,
		       F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) < 0
		       ? -errno
		       : take_fd(fd);
}

const struct nc_keeper_page *nc_keeper_page(int page_fd)
{
	void *page = mmap(NULL, sizeof(struct nc_keeper_page), PROT_READ, MAP_SHARED, page_fd, 0);

	return page == MAP_FAILED ? NULL : page;
}

/* How it went, from the keeper. */
static int hear(struct nc_keeper *keeper)
{
	ssize_t n = nc_fd_read_upto(keeper->life_fd, keeper->err, sizeof(keeper->err));

	if (n != (ssize_t)sizeof(keeper->err))
		return n < 0 ? (int)n : -EPIPE;
	for (size_t i = 0; i < NC_AIDE_MAX; i++)
		if (keeper->err[i].code < 0)
			keeper->place_fd[i] = nc_fd_close(keeper->place_fd[i]);
	return 0;
}

static int make_places(
	const struct nc_keeper_setup *setup, struct keeper *keeper, struct nc_keeper *ret_keeper)
{
	for (size_t i = 0; i < NC_AIDE_MAX; i++) {
		const bool asked = is_asked_for(setup, i);
		int ends[2], r = asked ? nc_meeting_new(ends) : 0;

		if (r < 0)
			return r;
		ret_keeper->place_fd[i] = asked ? ends[0] : -EBADF;
		keeper->aide[i].place_fd = asked ? ends[1] : -EBADF;
	}
	return 0;
}

int nc_keeper_start(
	const struct nc_keeper_setup *setup, struct nc_keeper *ret_keeper, struct nacre_err *err)
{
	struct keeper keeper = {.setup = setup, .parent = getpid(), .guard_fd = setup->guard_fd};
	int ends[2], r = make_places(setup, &keeper, ret_keeper);
	pid_t pid;

	if (r == 0)
		r = ret_keeper->page_fd = make_page(&keeper);
	if (r >= 0 && pipe2(ends, O_CLOEXEC) < 0)
		r = -errno;
	if (r < 0)
		return nc_err_errno(err, r, "Prepare nacre-keeper");
	pid = fork(); /* it outlives us, and ends when all of its aides have */
	if (pid == 0)
		be_keeper(&keeper, ends[1]);
	r = pid < 0 ? -errno : 0;
	ret_keeper->life_fd = ends[0];
	(void)close(ends[1]);
	(void)munmap(keeper.page, sizeof(*keeper.page));
	for (size_t i = 0; i < NC_AIDE_MAX; i++)
		(void)nc_fd_close(keeper.aide[i].place_fd);
	if (r == 0)
		r = hear(ret_keeper);
	return r < 0 ? nc_err_errno(err, r, "Start nacre-keeper") : 0;
}
