/* Landlock: the probe shuts everything away and looks whether it is gone. */
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/probe.h"

/* Forbids reading any file to this process, then tries to. */
static int check_denies(void)
{
	struct landlock_ruleset_attr attributes = {
		.handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR};
	cleanup_close int ruleset_fd =
		(int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0);
	cleanup_close int file_fd = -EBADF;

	if (ruleset_fd < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		syscall(SYS_landlock_restrict_self, ruleset_fd, 0) < 0)
		return -errno;
	file_fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	if (file_fd >= 0)
		return -EPROTO;
	return errno == EACCES ? 0 : -errno;
}

void nc_probe_landlock(struct nc_probes *probes)
{
	long abi = syscall(
		SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_CREATE_RULESET_VERSION);
	int r = abi < 0 ? -errno : check_denies();

	if (r < 0)
		nc_probe_fail(probes, NC_PROBE_LANDLOCK, r, "a Landlock domain that denies files");
	else
		nc_probe_pass(probes, NC_PROBE_LANDLOCK, (int)abi,
			"a Landlock domain that denies files, ABI %ld", abi);
}
