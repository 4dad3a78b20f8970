/* The keeper: who dies is started again and counted, who ends well or could not begin is not. */
#include "server/keeper.h"

#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/meeting.h"
#include "base/pidfd.h"
#include "unit.h"

/* An aide that reads one byte from each who calls, and does what it says. */
static int start_obedient(const void *context, int place_fd, int *ret_pidfd, struct nacre_err *err)
{
	int ends[2];
	pid_t pid;

	(void)context, (void)err;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	pid = fork();
	if (pid == 0) {
		int fd = ends[1];
		char order;

		(void)close(ends[0]);
		while (nc_meeting_wait(&place_fd, &fd) > 0) {
			if (read(fd, &order, 1) == 1)
				_exit(order == 'd' ? 1 : 0);
			fd = nc_fd_close(fd);
		}
		_exit(0);
	}
	(void)close(ends[1]);
	*ret_pidfd = nc_pidfd_open(pid);
	return ends[0];
}

static int start_never(const void *context, int place_fd, int *ret_pidfd, struct nacre_err *err)
{
	(void)context, (void)place_fd, (void)ret_pidfd;
	return nc_err_set(err, -ENOENT, "There is none");
}

static void tell(const struct nc_keeper *keeper, enum nc_aide which, char order)
{
	int fd = nc_meeting_call(keeper->place_fd[which], SOCK_STREAM);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, &order, 1), 1);
	(void)close(fd);
}

static void wait_until(const _Atomic uint32_t *number, uint32_t value)
{
	for (int i = 0; i < 1000 && atomic_load(number) != value; i++)
		(void)usleep(10000);
	assert_int_equal(atomic_load(number), value);
}

static void who_dies_is_started_again(void **state)
{
	static const struct nc_keeper_setup setup = {.guard_fd = -EBADF,
		.start = {[NC_AIDE_RECORDER] = start_never,
			[NC_AIDE_ARCHIVE] = start_obedient,
			[NC_AIDE_COURIER] = start_obedient}};
	struct nc_keeper keeper;
	struct nacre_err err = {0};
	const struct nc_keeper_page *page;
	struct pollfd life;

	(void)state;
	assert_int_equal(nc_keeper_start(&setup, &keeper, &err), 0);
	assert_int_equal(keeper.err[NC_AIDE_RECORDER].code, -ENOENT);
	assert_true(keeper.place_fd[NC_AIDE_RECORDER] < 0 && keeper.place_fd[NC_AIDE_EGRESS] < 0);
	assert_true(mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, keeper.page_fd,
			    0) == MAP_FAILED);
	page = nc_keeper_page(keeper.page_fd);
	assert_non_null(page);
	assert_int_equal(atomic_load(&page->up[NC_AIDE_ARCHIVE]), 1);

	tell(&keeper, NC_AIDE_ARCHIVE, 'd');
	wait_until(&page->deaths[NC_AIDE_ARCHIVE], 1);
	wait_until(&page->up[NC_AIDE_ARCHIVE], 1);
	tell(&keeper, NC_AIDE_COURIER, 'e'); /* as it was told to: nobody misses it */
	wait_until(&page->up[NC_AIDE_COURIER], 0);
	assert_int_equal(atomic_load(&page->deaths[NC_AIDE_COURIER]), 0);

	/* nobody can call any more, and that ends all of it */
	life = (struct pollfd){.fd = keeper.life_fd, .events = POLLIN};
	assert_int_equal(poll(&life, 1, 0), 0);
	(void)close(keeper.place_fd[NC_AIDE_ARCHIVE]);
	(void)close(keeper.place_fd[NC_AIDE_COURIER]);
	assert_int_equal(poll(&life, 1, 10000), 1);
	assert_int_equal(waitpid(-1, NULL, 0) > 0, 1);
	(void)close(keeper.life_fd);
	(void)close(keeper.page_fd);
	assert_int_equal(munmap((void *)(uintptr_t)page, sizeof(*page)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(who_dies_is_started_again)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
