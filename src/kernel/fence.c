/* Landlock around the payload of a box. */
#include "kernel/fence.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

/* Debian 12's headers end at ABI 2; numbers of the kernel's interface never change. */
#define FS_TRUNCATE (1ULL << 14)  /* ABI 3 */
#define FS_IOCTL_DEV (1ULL << 15) /* ABI 5 */
#define NET_BIND_TCP (1ULL << 0)  /* ABI 4 */
#define NET_CONNECT_TCP (1ULL << 1)
#define SCOPE_ABSTRACT_UNIX (1ULL << 0)
#define SCOPE_SIGNAL (1ULL << 1)

#define FS_READ                                                                                    \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define FS_DEVICE (LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

/* The attributes as of ABI 6; older kernels take the beginning of it. */
struct ruleset {
	uint64_t fs;
	uint64_t net;
	uint64_t scoped;
};

static uint64_t known_rights(long abi)
{
	uint64_t rights = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1; /* ABI 1: the first thirteen */

	if (abi >= 2)
		rights |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3)
		rights |= FS_TRUNCATE;
	if (abi >= 5)
		rights |= FS_IOCTL_DEV;
	return rights;
}

static int allow(int ruleset_fd, const char *path, uint64_t rights)
{
	cleanup_close int fd = open(path, O_PATH | O_CLOEXEC);
	struct landlock_path_beneath_attr rule = {.allowed_access = rights, .parent_fd = fd};

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	return syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
		       ? -errno
		       : 0;
}

/* A ruleset that handles all that this kernel knows of. Returns its ABI, or as nc_fence_payload. */
static int make_ruleset(uint64_t net, int *ret_fd)
{
	long abi = syscall(
		SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_CREATE_RULESET_VERSION);
	struct ruleset attributes = {.scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL};
	size_t size = abi >= 6	 ? sizeof(attributes)
		      : abi >= 4 ? offsetof(struct ruleset, scoped)
				 : sizeof(attributes.fs);
	long fd;

	if (abi <= 0)
		return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -errno;
	attributes.fs = known_rights(abi);
	attributes.net = abi >= 4 ? net : 0;
	fd = syscall(SYS_landlock_create_ruleset, &attributes, size, 0);
	if (fd < 0)
		return -errno;
	*ret_fd = (int)fd;
	return (int)abi;
}

int nc_fence_all(void)
{
	cleanup_close int ruleset_fd = -EBADF;
	int abi = make_ruleset(NET_BIND_TCP | NET_CONNECT_TCP, &ruleset_fd);

#if defined(__SANITIZE_ADDRESS__) || defined(NACRE_COVERAGE)
	/* the leak check looks at its own threads, coverage writes its counters: builds for tests
	 * only */
	if (abi > 0 && allow(ruleset_fd, "/", known_rights(abi)) < 0)
		return -errno;
#endif
	if (abi > 0 && syscall(SYS_landlock_restrict_self, ruleset_fd, 0) < 0)
		return -errno;
	return abi;
}

int nc_fence_payload(void)
{
	static const char *const writable[] = {"/workspace", "/tmp", "/dev/shm"};
	static const char *const devices[] = {
		"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"};
	cleanup_close int ruleset_fd = -EBADF;
	int abi = make_ruleset(0, &ruleset_fd);
	uint64_t known = abi > 0 ? known_rights(abi) : 0;
	int r;

	if (abi <= 0)
		return abi;
	r = allow(ruleset_fd, "/", FS_READ & known);
	for (size_t i = 0; r == 0 && i < sizeof(writable) / sizeof(writable[0]); i++)
		r = allow(ruleset_fd, writable[i], known & ~FS_IOCTL_DEV);
	for (size_t i = 0; r == 0 && i < sizeof(devices) / sizeof(devices[0]); i++)
		r = allow(
			ruleset_fd, devices[i], (FS_DEVICE | LANDLOCK_ACCESS_FS_READ_FILE) & known);
	/* a program may rename its threads and adjust itself through its own /proc entries */
	if (r == 0)
		r = allow(ruleset_fd, "/proc",
			(LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE | FS_READ) & known);
	if (r == 0 && syscall(SYS_landlock_restrict_self, ruleset_fd, 0) < 0)
		r = -errno;
	return r < 0 ? r : abi;
}
