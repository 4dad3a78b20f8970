/* The probe of process descriptors. */
#include <unistd.h>

#include "base/clock.h"
#include "base/pidfd.h"
#include "kernel/probe.h"

static int check_pidfd(void)
{
	cleanup_process int pidfd = -EBADF;
	siginfo_t info = {0};
	int r = nc_fork(&pidfd);

	if (r < 0)
		return r;
	if (r == 0)
		for (;;)
			(void)pause();
	r = nc_pidfd_kill(pidfd, SIGKILL);
	if (r == 0)
		r = nc_pidfd_wait(pidfd, nc_clock_ns() + NC_NS_PER_S, &info);
	if (r < 0)
		return r;
	pidfd = nc_fd_close(pidfd);
	return info.si_code == CLD_KILLED && info.si_status == SIGKILL ? 0 : -EPROTO;
}

void nc_probe_pidfd(struct nc_probes *probes)
{
	nc_probe_judge(probes, NC_PROBE_PIDFD, check_pidfd(),
		"a process killed and waited for by descriptor");
}
