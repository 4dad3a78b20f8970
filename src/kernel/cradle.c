/* What a first process takes along of the spawner's descriptors. */
#include "kernel/cradle.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/processor.h"

/* With more to copy it would not be what it is for. */
#define END_MAX 64

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

static bool reserve(int *fd, int of_fd, int *end)
{
	*fd = nc_fd_dup(of_fd);
	if (*fd >= *end)
		*end = *fd + 1;
	return *fd >= 0;
}

/* Reserves the numbers, while the low ones are free: for the first box of a spawner. */
static void build(struct nc_cradle *cradle, const int *constant_fds, int n_constant)
{
	int end = 0;
	bool whole = reserve(&cradle->empty_fd, constant_fds[0], &end) &&
		     reserve(&cradle->child_fd, constant_fds[0], &end);

	for (int i = 0; whole && i < NC_CRADLE_FDS; i++)
		whole = reserve(&cradle->fd[i], constant_fds[0], &end);
	for (int i = 0; i < n_constant; i++)
		end = constant_fds[i] >= end ? constant_fds[i] + 1 : end;
	cradle->left = mmap(NULL, sizeof(*cradle->left), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (whole && cradle->left != MAP_FAILED && end <= END_MAX)
		cradle->end = end;
}

bool nc_cradle_fill(struct nc_cradle *cradle, const int fds[static NC_CRADLE_FDS],
	const int *constant_fds, int n_constant)
{
	if (!cradle->tried)
		build(cradle, constant_fds, n_constant);
	cradle->tried = true;
	if (cradle->end == 0 || !nc_cradle_clear(cradle))
		return false;
	cradle->filled = true;
	cradle->came = false;
	__atomic_store_n(cradle->left, 0, __ATOMIC_RELEASE);
	for (int i = 0; i < NC_CRADLE_FDS; i++)
		if (fds[i] >= 0 && dup3(fds[i], cradle->fd[i], O_CLOEXEC) < 0) {
			(void)nc_cradle_clear(cradle);
			return false;
		}
	return true;
}

int nc_cradle_leave(const struct nc_cradle *cradle)
{
	int r = close_range((unsigned int)cradle->end, ~0U, CLOSE_RANGE_UNSHARE) < 0 ? -errno : 0;
	int cpu = sched_getcpu();

	__atomic_store_n(cradle->left, cpu > 0 ? 1 + cpu : 1, __ATOMIC_RELEASE);
	return r;
}

bool nc_cradle_is_here(const struct nc_cradle *cradle)
{
	int left = cradle->came ? __atomic_load_n(cradle->left, __ATOMIC_ACQUIRE) : -1;

	return left == 0 || left == 1 + sched_getcpu();
}

void nc_cradle_make_way(const struct nc_cradle *cradle, bool now)
{
	struct pollfd event = {.fd = cradle->free_fd, .events = POLLIN};

	if (cradle->free_fd >= 0 && nc_cradle_is_here(cradle) && (now || poll(&event, 1, 0) > 0))
		nc_processor_leave();
}

void nc_cradle_take(struct nc_cradle *cradle, int pidfd)
{
	cradle->came = true;
	(void)dup3(pidfd, cradle->child_fd, O_CLOEXEC); /* it cannot fail: both are open */
}

static bool is_empty(const struct nc_cradle *cradle)
{
	struct pollfd event = {.fd = cradle->child_fd, .events = POLLIN};

	return !cradle->came || __atomic_load_n(cradle->left, __ATOMIC_ACQUIRE) != 0 ||
	       poll(&event, 1, 0) > 0;
}

bool nc_cradle_clear(struct nc_cradle *cradle)
{
	if (!cradle->filled)
		return true;
	if (!is_empty(cradle))
		return false;
	for (int i = 0; i < NC_CRADLE_FDS; i++)
		(void)dup3(cradle->empty_fd, cradle->fd[i], O_CLOEXEC); /* as above */
	(void)dup3(cradle->empty_fd, cradle->child_fd, O_CLOEXEC);
	cradle->filled = false;
	return true;
}
