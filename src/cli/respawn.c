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

static sigset_t signals(void)
{
	static const int numbers[] = {SIGCHLD, SIGHUP, SIGINT, SIGTERM};
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		(void)sigaddset(&set, numbers[i]);
	return set;
}

/* Waits for the child's end, which is returned as waitpid() tells it. */
static int wait_for(pid_t child, bool *ends)
{
	const sigset_t set = signals();
	siginfo_t info;
	int status;

	for (;;) {
		if (waitpid(child, &status, WNOHANG) == child)
			return status;
		if (sigwaitinfo(&set, &info) < 0 || info.si_signo == SIGCHLD)
			continue;
		*ends = *ends || info.si_signo != SIGHUP;
		if (info.si_code <= 0) /* what a terminal sends, the child has as well */
			(void)kill(child, info.si_signo);
	}
}

bool nc_respawn(int *ret_parent_fd, int *ret_code)
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
		status = child < 0 ? 0 : wait_for(child, &ends);
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
