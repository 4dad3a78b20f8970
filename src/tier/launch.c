/* Starting a holder of boxes beside the first one. */
#include "tier/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/meeting.h"
#include "base/pidfd.h"
#include "base/text.h"
#include "kernel/privilege.h"
#include "kernel/program.h"
#include "tier/tier.h"

/* Above its place: what is moved there must not be overwritten before. */
#define HIGH_FD 64

/* What the keeper ignores, and a worker blocks, is not what programs in boxes begin with. */
static int reset_signals(void)
{
	static const int ignored[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM};
	sigset_t none;

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_DFL);
	(void)sigemptyset(&none);
	return sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? -errno : 0;
}

_Noreturn static void become_holder(unsigned int number, int program_fd, int place_fd, bool ranges)
{
	char name[64];
	char *argv[] = {name, NULL};
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC), r = 0;

	(void)snprintf(name, sizeof(name), "%s", nc_tier_program(number));
	program_fd = fcntl(program_fd, F_DUPFD_CLOEXEC, HIGH_FD);
	if (null_fd < 0 || program_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 ||
		dup2(null_fd, STDOUT_FILENO) < 0 || dup2(place_fd, NC_HOLDER_PLACE_FD) < 0)
		r = -errno;
	if (place_fd == NC_HOLDER_PLACE_FD && fcntl(place_fd, F_SETFD, 0) < 0)
		r = -errno;
	if (r == 0 && close_range(NC_HOLDER_PLACE_FD + 1, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		r = -errno;
	if (r == 0)
		r = reset_signals();
	if (r == 0)
		r = nc_privilege_become_holder(ranges, number);
	if (r == 0)
		r = nc_become(program_fd, argv, environ);
	(void)dprintf(STDERR_FILENO, "nacre: Start %s: %s\n", name, nc_errno_text(r));
	_exit(125);
}

int nc_holder_launch(
	unsigned int number, int place_fd, bool ranges, int *ret_pidfd, struct nacre_err *err)
{
	char path[NC_PROGRAM_PATH_SIZE];
	cleanup_close int program_fd = -EBADF;
	int r = nc_program_find(nc_tier_program(number), path, err);
	pid_t pid;

	if (r < 0)
		return r;
	/* opened with our rights: its own user may not walk the way there */
	program_fd = open(path, O_PATH | O_CLOEXEC);
	if (program_fd < 0)
		return nc_err_errno(err, -errno, "Open %s", path);
	pid = fork(); /* it outlives workers, and ends when nobody can call it any more */
	if (pid == 0)
		become_holder(number, program_fd, place_fd, ranges);
	r = pid < 0 ? -errno : nc_pidfd_open(pid);
	if (r < 0)
		return nc_err_errno(err, r, "Start %s", path);
	*ret_pidfd = r;
	return 0;
}

static void hear(struct nc_holder *holder, uint64_t deadline_ns)
{
	struct pollfd event = {.fd = holder->fd, .events = POLLIN};
	struct nc_holder_event welcome;

	if (poll(&event, 1, nc_clock_left_ms(deadline_ns)) == 1 &&
		nc_holder_receive(holder, &welcome) == 0 && holder->greeted)
		return;
	holder->fd = nc_fd_close(holder->fd); /* it is met when it answers */
}

int nc_holders_begin(
	struct nc_holder_set *set, enum nc_tier tier, bool ranges, struct nacre_err *err)
{
	const char *wanted = tier < NC_TIER_MAX ? nc_tier_holder(tier) : NULL, *program;
	cleanup_close int ours = -EBADF, theirs = -EBADF, pidfd = -EBADF;
	unsigned int n = 1;
	int ends[2], r;

	for (size_t i = 0; i < NC_HOLDERS_MAX - 1; i++)
		set->fd[i] = -EBADF;
	while (wanted && (program = nc_tier_program(n)) && !nc_streq(program, wanted))
		n++;
	if (!wanted || !program)
		return 0;
	r = nc_meeting_new(ends);
	if (r < 0)
		return nc_err_errno(err, r, "Make a place for %s", program);
	ours = ends[0];
	theirs = ends[1];
	r = nc_holder_launch(n, theirs, ranges, &pidfd, err);
	if (r < 0)
		return r;
	r = set->fd[n - 1] = nc_meeting_call(ours, SOCK_SEQPACKET);
	return r < 0 ? nc_err_errno(err, r, "Call %s", program) : 0;
}

static uint32_t tiers_of(unsigned int number)
{
	uint32_t tiers = 0;

	for (enum nc_tier i = 0; i < NC_TIER_MAX; i++)
		if (nc_tier_holder(i) && nc_streq(nc_tier_holder(i), nc_tier_program(number)))
			tiers |= 1U << i;
	return tiers;
}

void nc_holders_join(struct nc_holder *first, struct nc_holder_set *set, unsigned int patience_ms)
{
	const uint64_t deadline_ns = nc_clock_ns() + patience_ms * NC_NS_PER_MS;
	struct nc_holder *last = first;

	for (unsigned int n = 1; nc_tier_program(n); n++) {
		struct nc_holder *holder = &set->holder[n - 1];

		*holder = (struct nc_holder){.fd = set->fd[n - 1],
			.number = n,
			.tiers = tiers_of(n),
			.last_id = first->last_id};
		if (holder->fd >= 0 && nc_holder_greet(holder) < 0)
			holder->fd = nc_fd_close(holder->fd);
		last = last->next = holder;
	}
	for (struct nc_holder *holder = first->next; holder; holder = holder->next)
		if (holder->fd >= 0)
			hear(holder, deadline_ns);
}
