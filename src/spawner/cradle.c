/* What a first process takes along of the spawner's descriptors. */
#include "spawner/cradle.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"

/* With more to copy it would not be what it is for. */
#define END_MAX 64

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif

/* Reserves the numbers, while the low ones are free: for the first box of a spawner. */
static void build(struct nc_cradle *cradle, const int *constant_fds, int n_constant)
{
	int end = 0;

	cradle->empty_fd = nc_fd_dup(constant_fds[0]);
	for (int i = 0; i < NC_CRADLE_FDS; i++) {
		cradle->fd[i] = nc_fd_dup(constant_fds[0]);
		if (cradle->fd[i] < 0)
			return;
		end = cradle->fd[i] >= end ? cradle->fd[i] + 1 : end;
	}
	for (int i = 0; i < n_constant; i++)
		end = constant_fds[i] >= end ? constant_fds[i] + 1 : end;
	cradle->left = mmap(NULL, sizeof(*cradle->left), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (cradle->left != MAP_FAILED && cradle->empty_fd >= 0 && end <= END_MAX)
		cradle->end = end;
}

bool nc_cradle_fill(struct nc_cradle *cradle, const int fds[static NC_CRADLE_FDS],
	const int *constant_fds, int n_constant)
{
	if (!cradle->tried)
		build(cradle, constant_fds, n_constant);
	cradle->tried = true;
	nc_cradle_clear(cradle, false);
	if (cradle->end == 0 || cradle->filled)
		return false;
	cradle->filled = true;
	__atomic_store_n(cradle->left, false, __ATOMIC_RELEASE);
	for (int i = 0; i < NC_CRADLE_FDS; i++)
		if (fds[i] >= 0 && dup3(fds[i], cradle->fd[i], O_CLOEXEC) < 0) {
			nc_cradle_clear(cradle, true);
			return false;
		}
	return true;
}

int nc_cradle_leave(const struct nc_cradle *cradle)
{
	int r = close_range((unsigned int)cradle->end, ~0U, CLOSE_RANGE_UNSHARE) < 0 ? -errno : 0;

	__atomic_store_n(cradle->left, true, __ATOMIC_RELEASE);
	return r;
}

void nc_cradle_clear(struct nc_cradle *cradle, bool never_came)
{
	if (!cradle->filled || !(never_came || __atomic_load_n(cradle->left, __ATOMIC_ACQUIRE)))
		return;
	/* it cannot fail: both are open */
	for (int i = 0; i < NC_CRADLE_FDS; i++)
		(void)dup3(cradle->empty_fd, cradle->fd[i], O_CLOEXEC);
	cradle->filled = false;
}
