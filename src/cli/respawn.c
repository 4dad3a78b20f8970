/* The process that was started as the daemon. */
#include "cli/respawn.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/pidfd.h"
#include "cli/cli.h"

/* Deaths within so long after a beginning count; after so many it is given up. */
#define SETTLED_NS (60 * NC_NS_PER_S)
#define DEATHS_MAX 5U
/* How often it is asked how an upgrade is. */
#define LOOK_NS (100 * 1000 * 1000)

static sigset_t signals(void)
{
	static const int numbers[] = {SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR2};
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		(void)sigaddset(&set, numbers[i]);
	return set;
}

/* The next signal; 0: there is none now, and an upgrade is under way. */
static int next_signal(const struct nc_upgrade *upgrade, siginfo_t *info)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	const sigset_t set = signals();
	int r = sigtimedwait(&set, info, nc_upgrade_is_under_way(upgrade) ? &pause : NULL);

	return r < 0 ? 0 : r;
}

/* Waits for the child's end, which is returned as waitpid() tells it. */
static int wait_for(pid_t child, struct nc_upgrade *upgrade, bool *ends)
{
	siginfo_t info;
	int number, status;

	for (;;) {
		if (waitpid(child, &status, WNOHANG) == child)
			return status;
		number = next_signal(upgrade, &info);
		if (number == SIGUSR2)
			nc_upgrade_want(upgrade);
		nc_upgrade_tick(upgrade);
		if (number == 0 || number == SIGCHLD || number == SIGUSR2)
			continue;
		*ends = *ends || number != SIGHUP;
		if (info.si_code <= 0) /* what a terminal sends, the child has as well */
			(void)kill(child, number);
	}
}

bool nc_respawn(struct nc_upgrade *upgrade, int *ret_parent_fd, int *ret_code)
{
	const sigset_t set = signals();
	const int parent_fd = nc_pidfd_open(getpid());
	unsigned int deaths = 0;
	bool ends = false;
	sigset_t before;

	(void)sigprocmask(SIG_BLOCK, &set, &before);
	for (;;) {
		const uint64_t began_ns = nc_clock_ns();
		const pid_t child = fork();
		int status;

		if (child == 0) {
			(void)sigprocmask(SIG_SETMASK, &before, NULL);
			*ret_parent_fd = parent_fd;
			return true;
		}
		status = child < 0 ? 0 : wait_for(child, upgrade, &ends);
		*ret_code = child >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : NC_EXIT_SELF;
		deaths = nc_clock_ns() - began_ns > SETTLED_NS ? 1 : deaths + 1;
		if (child < 0 || WIFEXITED(status) || ends || deaths > DEATHS_MAX)
			return false;
		nc_log(NC_LOG_ERROR, "The spawner has died and is started again",
			NC_LOG_TEXT("reason", strsignal(WTERMSIG(status))));
		/* not at once if that is what killed it; a signal ends the pause, not us */
		if (deaths > 1)
			(void)nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
	}
}
