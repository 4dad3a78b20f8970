/* Who our processes are. */
#include "kernel/privilege.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/caps.h"

int nc_privilege_ranges(bool *ret_ranges, struct nacre_err *err)
{
	cleanup_free char *map = NULL;
	unsigned long inside, outside, count;
	struct stat status;
	char *at;
	int r = nc_fd_read_proc("/proc/self/uid_map", &map);

	if (r == -ENOENT || (r == 0 && stat("/proc/sys", &status) < 0 && errno == ENOENT))
		return nc_err_set(err, -ENOENT,
			"/proc is not mounted here, and nothing works without it: mount -t proc "
			"proc /proc");
	if (r < 0 || stat("/proc/sys", &status) < 0)
		return nc_err_errno(err, r < 0 ? r : -errno, "Look at our own mapping of ids");
	/* the first line, "inside outside count"; an empty map reads as zeros, which is no range */
	inside = strtoul(map, &at, 10);
	outside = strtoul(at, &at, 10);
	count = strtoul(at, &at, 10);
	*ret_ranges = geteuid() == 0 && inside == 0 && outside == 0 && count > NC_SLOT_FIRST_ID;
	/* /proc/sys belongs to the host's root, and shows us by which number we would know it */
	if (!*ret_ranges && status.st_uid == geteuid())
		return nc_err_set(err, -EPERM,
			"In this user namespace we are the host's root, and boxes would run as it: "
			"run Nacre outside of it, or as another user");
	return 0;
}

unsigned int nc_privilege_outer_id(void)
{
	cleanup_free char *map = NULL;
	unsigned long inside, outside;
	char *at;

	if (nc_fd_read_proc("/proc/self/uid_map", &map) < 0)
		return geteuid();
	inside = strtoul(map, &at, 10);
	outside = strtoul(at, NULL, 10);
	return (unsigned int)(geteuid() - inside + outside);
}

static int become(bool ranges, unsigned int id)
{
	int r = 0;

	if (ranges && setgroups(0, NULL) < 0)
		return -errno;
	if (ranges)
		r = nc_caps_bound();
	if (r == 0 && ranges && (setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0))
		r = -errno;
	if (r == 0 && ranges)
		r = nc_caps_set(0);
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	return r;
}

int nc_privilege_drop(bool ranges)
{
	int r = become(ranges, NC_WORKER_ID);

	return r == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -errno : r;
}

int nc_privilege_become_recorder(bool ranges)
{
	return become(ranges, NC_RECORDER_ID);
}

int nc_privilege_become_egress(bool ranges)
{
	return become(ranges, NC_EGRESS_ID);
}

int nc_privilege_become_analyst(bool ranges)
{
	return become(ranges, NC_ANALYST_ID);
}

int nc_privilege_become_relay(bool ranges)
{
	return become(ranges, NC_RELAY_ID);
}

int nc_privilege_become_holder(bool ranges, unsigned int number)
{
	return become(ranges, NC_HOLDER_ID - number);
}
