/* Landlock around the payloads of boxes and around our own programs. */
#include "kernel/fence.h"

#include <assert.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/place.h"
#include "kernel/shown.h"

/* Debian 12's headers end at ABI 2; numbers of the kernel's interface never change. */
#define FS_TRUNCATE (1ULL << 14)  /* ABI 3 */
#define FS_IOCTL_DEV (1ULL << 15) /* ABI 5 */
#define NET_BIND_TCP (1ULL << 0)  /* ABI 4 */
#define NET_CONNECT_TCP (1ULL << 1)
#define SCOPE_ABSTRACT_UNIX (1ULL << 0)
#define SCOPE_SIGNAL (1ULL << 1)

#define NET_ALL (NET_BIND_TCP | NET_CONNECT_TCP)

#define FS_READ                                                                                    \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
/* The same without running. */
#define FS_LOOK (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
/* The rights that a rule for anything but a directory may carry; others are EINVAL. */
#define FS_OF_FILES                                                                                \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |                               \
		LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV)
/* What an image store holds: files, directories, links; nothing that is run, opened as a device
 * or connected to. */
#define FS_NOT_IN_STORES                                                                           \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR |                               \
		LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SOCK |                     \
		LANDLOCK_ACCESS_FS_MAKE_FIFO | FS_IOCTL_DEV)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The attributes as of ABI 6; older kernels take the beginning of it. */
struct ruleset {
	uint64_t fs;
	uint64_t net;
	uint64_t scoped;
};

/*
 * /proc is not among what can be written: a program would take itself out of the OOM killer's way
 * (oom_score_adj), which the kernel lets everybody do who has not been put there by
 * CAP_SYS_RESOURCE.
 */
#define CONTAINER_DEVICES                                                                          \
	{"/dev/null", NC_FENCE_DEVICE}, {"/dev/zero", NC_FENCE_DEVICE},                            \
		{"/dev/full", NC_FENCE_DEVICE}, {"/dev/random", NC_FENCE_DEVICE},                  \
		{"/dev/urandom", NC_FENCE_DEVICE}, {"/dev/tty", NC_FENCE_DEVICE},                  \
	{                                                                                          \
		"/dev/pts", NC_FENCE_DEVICE /* the box's own; the host's terminals are others' */  \
	}

static const struct nc_fence_path container_paths[] = {{"/", NC_FENCE_READ},
	{NC_BOX_WORKSPACE, NC_FENCE_WRITE}, {"/tmp", NC_FENCE_WRITE}, {"/dev/shm", NC_FENCE_WRITE},
	{NC_BOX_SUDO_RUN, NC_FENCE_WRITE}, CONTAINER_DEVICES};

/* Each mount says what of it can be written to. */
static const struct nc_fence_path writable_paths[] = {{"/", NC_FENCE_WRITE}, CONTAINER_DEVICES};

const struct nc_fence nc_fence_writable = {
	.paths = writable_paths, .n_paths = COUNT(writable_paths)};

const struct nc_fence nc_fence_container = {
	.paths = container_paths, .n_paths = COUNT(container_paths)};

/* Beside what is shown of the host: nothing that a user wrote. */
static const struct nc_fence_path process_paths[] = {
	{"/dev/null", NC_FENCE_DEVICE},
	{"/dev/zero", NC_FENCE_DEVICE},
	{"/dev/full", NC_FENCE_DEVICE},
	{"/dev/random", NC_FENCE_DEVICE},
	{"/dev/urandom", NC_FENCE_DEVICE},
	{"/dev/tty", NC_FENCE_DEVICE},
};

const struct nc_fence nc_fence_process = {.paths = process_paths,
	.n_paths = COUNT(process_paths),
	.shows_host = true,
	.takes_tcp = true};

/* All that the kernel can take away, and so grant. */
static uint64_t known_rights(int abi)
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

static uint64_t rights_of(enum nc_fence_right right, int abi)
{
	static const uint64_t rights[] = {
		[NC_FENCE_READ] = FS_READ,
		[NC_FENCE_WRITE] = ~FS_IOCTL_DEV,
		[NC_FENCE_DEVICE] = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
				    FS_TRUNCATE | FS_IOCTL_DEV,
	};
	_Static_assert(COUNT(rights) == NC_FENCE_RIGHT_MAX, "rights for each word");

	assert((unsigned int)right < NC_FENCE_RIGHT_MAX);
	return rights[right] & known_rights(abi);
}

static int add_rule(int ruleset_fd, int fd, uint64_t rights)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = rights, .parent_fd = fd};

	return syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
		       ? -errno
		       : 0;
}

static int allow_opened(int ruleset_fd, int fd, uint64_t rights)
{
	int r = add_rule(ruleset_fd, fd, rights);

	/* no directory: it may have a part of them */
	return r == -EINVAL && rights & ~FS_OF_FILES
		       ? add_rule(ruleset_fd, fd, rights & FS_OF_FILES)
		       : r;
}

struct shown {
	int ruleset_fd, root_fd;
	uint64_t rights;
};

static int allow_shown(void *context, const char *path)
{
	const struct shown *shown = context;
	cleanup_close int fd = openat(shown->root_fd, path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	return allow_opened(shown->ruleset_fd, fd, shown->rights);
}

static int allow_host(int ruleset_fd, uint64_t rights)
{
	cleanup_close int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return root_fd < 0
		       ? -errno
		       : nc_shown_walk(allow_shown, &(struct shown){ruleset_fd, root_fd, rights});
}

static int allow(int ruleset_fd, const char *path, uint64_t rights)
{
	cleanup_close int fd = open(path, O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno : allow_opened(ruleset_fd, fd, rights);
}

static int allow_all(int ruleset_fd, const struct nc_fence_path *paths, size_t n, int abi)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		r = allow(ruleset_fd, paths[i].path, rights_of(paths[i].right, abi));
		if (r == -ENOENT)
			r = 0;
	}
	return r;
}

int nc_fence_abi(void)
{
	long abi = syscall(
		SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi > 0 ? (int)abi : 0;
}

/* A ruleset that handles these, and the scopes. Returns the ABI, or as nc_fence_payload. */
static int make_ruleset(bool files, uint64_t net, int *ret_fd)
{
	const int abi = nc_fence_abi();
	struct ruleset attributes = {.scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL};
	size_t size = abi >= 6	 ? sizeof(attributes)
		      : abi >= 4 ? offsetof(struct ruleset, scoped)
				 : sizeof(attributes.fs);
	long fd;

	if (abi <= 0)
		return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -errno;
	attributes.fs = files ? known_rights(abi) : 0;
	attributes.net = abi >= 4 ? net : 0;
	fd = syscall(SYS_landlock_create_ruleset, &attributes, size, 0);
	if (fd < 0)
		return -errno;
	*ret_fd = (int)fd;
	return abi;
}

static int restrict_self(int ruleset_fd)
{
	return syscall(SYS_landlock_restrict_self, ruleset_fd, 0) < 0 ? -errno : 0;
}

int nc_fence_payload(
	const struct nc_fence *fence, const struct nc_fence_path *extra, size_t n_extra)
{
	cleanup_close int ruleset_fd = -EBADF;
	int abi = make_ruleset(true, fence->takes_tcp ? NET_ALL : 0, &ruleset_fd);
	int r;

	if (abi <= 0)
		return abi;
	r = allow_all(ruleset_fd, fence->paths, fence->n_paths, abi);
	if (r == 0 && fence->shows_host)
		r = allow_host(ruleset_fd, rights_of(NC_FENCE_READ, abi));
	if (r == 0)
		r = allow_all(ruleset_fd, extra, n_extra, abi);
	if (r == 0)
		r = restrict_self(ruleset_fd);
	return r < 0 ? r : abi;
}

int nc_fence_scopes(void)
{
	cleanup_close int ruleset_fd = -EBADF;
	int abi = make_ruleset(false, 0, &ruleset_fd);
	int r;

	if (abi <= 0) /* ENOMSG: before ABI 6 it would handle nothing */
		return abi == -ENOMSG ? 0 : abi;
	r = restrict_self(ruleset_fd);
	return r < 0 ? r : abi;
}

int nc_fence_all(void)
{
	return nc_fence_worker(NULL);
}

static int allow_each(int ruleset_fd, const int *fds, size_t n_fds, uint64_t rights)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n_fds; i++)
		if (fds[i] >= 0)
			r = allow_opened(ruleset_fd, fds[i], rights);
	return r;
}

static int fence_ours(const int *fds, size_t n_fds, uint64_t rights, const int *readable_fds,
	size_t n_readable, uint64_t net)
{
	cleanup_close int ruleset_fd = -EBADF;
	int abi = make_ruleset(true, net, &ruleset_fd);
	int r;

	if (abi <= 0)
		return abi;
	r = allow_each(ruleset_fd, fds, n_fds, known_rights(abi) & rights);
	if (r == 0)
		r = allow_each(ruleset_fd, readable_fds, n_readable, FS_LOOK);
#if defined(__SANITIZE_ADDRESS__) || defined(NACRE_COVERAGE)
	/* the leak check looks at its own threads, coverage writes its counters: builds for tests
	 * only */
	if (r == 0)
		r = allow(ruleset_fd, "/", known_rights(abi));
#endif
	if (r == 0)
		r = restrict_self(ruleset_fd);
	return r < 0 ? r : abi;
}

static int fence_dir(const char *dir, uint64_t rights)
{
	cleanup_close int fd = dir ? open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC) : -EBADF;

	return dir && fd < 0 ? -errno : fence_ours(&fd, 1, rights, NULL, 0, NET_ALL);
}

int nc_fence_egress(void)
{
	return fence_ours(NULL, 0, 0, NULL, 0, NET_BIND_TCP);
}

int nc_fence_worker(const char *writable_dir)
{
	return fence_dir(writable_dir, ~(uint64_t)FS_NOT_IN_STORES);
}

int nc_fence_stores(const int *store_fds, size_t n_stores)
{
	return nc_fence_server(store_fds, n_stores, NULL, 0);
}

int nc_fence_server(
	const int *store_fds, size_t n_stores, const int *readable_fds, size_t n_readable)
{
	return fence_ours(store_fds, n_stores, ~(uint64_t)FS_NOT_IN_STORES, readable_fds,
		n_readable, NET_ALL);
}

int nc_fence_reader(const char *readable_dir)
{
	return fence_dir(readable_dir, FS_LOOK);
}
