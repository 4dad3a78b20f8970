/* Capabilities and the other ways to privilege. */
#include "kernel/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Kernels know some forty capabilities; the first unknown one ends the search. */
#define CAPABILITIES_MAX 64

static int bound(uint64_t keep, unsigned long bits)
{
	/* dropping takes a capability itself, which whoever has closed them before has no more */
	for (int i = 0; i < CAPABILITIES_MAX; i++) {
		int open;

		if (keep >> i & 1)
			continue;
		open = prctl(PR_CAPBSET_DROP, i, 0, 0, 0);

		if (open < 0 && errno == EPERM)
			open = prctl(PR_CAPBSET_READ, i, 0, 0, 0);
		if (open < 0 && errno == EINVAL)
			break; /* the first that this kernel does not know */
		if (open != 0)
			return open < 0 ? -errno : -EPERM;
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	if (prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) != (int)bits &&
		prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

int nc_caps_bound(void)
{
	return bound(0, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
				SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED | SECBIT_KEEP_CAPS_LOCKED);
}

int nc_caps_bound_root(uint64_t keep)
{
	return bound(keep, SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |
				   SECBIT_NO_CAP_AMBIENT_RAISE |
				   SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED);
}

int nc_caps_set(uint64_t keep)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[2] = {0};

	for (int i = 0; i < 2; i++)
		sets[i].effective = sets[i].permitted = (uint32_t)(keep >> (32 * i));
	return syscall(SYS_capset, &header, sets) < 0 ? -errno : 0;
}
