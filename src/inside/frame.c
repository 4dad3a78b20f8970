/* The frame of a box's root. */
#include "inside/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "inside/mounts.h"
#include "kernel/shown.h"

/* The tmpfs that is the root itself holds directories, links and a few small files. */
#define ROOT_BYTES "1m"
#define ROOT_INODES "256"

static const struct {
	const char *name;
	unsigned int major, minor;
} devices[] = {
	{"null", 1, 3},
	{"zero", 1, 5},
	{"full", 1, 7},
	{"random", 1, 8},
	{"urandom", 1, 9},
	{"tty", 5, 0},
};

const char nc_frame_passwd[] = "root:x:0:0:root:/root:/usr/sbin/nologin\n"
			       "sandbox:x:1000:1000:sandbox:/workspace:/bin/sh\n"
			       "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
const char nc_frame_group[] = "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n";

/* What /proc/cgroups says in a box (told.h): these are of version 2, and nothing of the host's. */
static const char groups[] = "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"
			     "cpuset\t0\t1\t1\ncpu\t0\t1\t1\ncpuacct\t0\t1\t1\n"
			     "memory\t0\t1\t1\npids\t0\t1\t1\n";

static const struct {
	const char *path;
	const char *text;
} files[] = {
	{"etc/passwd", nc_frame_passwd},
	{"etc/group", nc_frame_group},
	{"etc/hosts", "127.0.0.1 localhost nacre\n::1 localhost nacre\n"},
	{"etc/hostname", "nacre\n"},
	{"etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
	{"etc/resolv.conf", ""},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int nc_frame_make_file(int at_fd, const char *path, const char *text)
{
	cleanup_close int fd =
		openat(at_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);

	if (fd < 0)
		return -errno;
	return nc_fd_write_all(fd, text, strlen(text));
}

/* What every box has, and what the host's tree needs beside what is shown of it. */
static const char *const dirs[] = {"dev", "dev/shm", "dev/pts", "mnt", "proc", "tmp", "workspace",
	"sys", "sys/fs", "sys/fs/cgroup", "sys/devices", "sys/devices/system",
	"sys/devices/system/cpu"};
static const char *const host_dirs[] = {"etc", "etc/ssl", "root", "var"};
static const char *const links[][2] = {{"/proc/self/fd", "dev/fd"},
	{"/proc/self/fd/0", "dev/stdin"}, {"/proc/self/fd/1", "dev/stdout"},
	{"/proc/self/fd/2", "dev/stderr"}, {"pts/ptmx", "dev/ptmx"},
	{"/sys/fs/cgroup/cpus", "sys/devices/system/cpu/online"}};
static const char *const host_links[][2] = {{"/proc/self/mounts", "etc/mtab"}, {"/tmp", "var/tmp"}};

static int make_dirs(int root_fd, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (mkdirat(root_fd, names[i], 0755) < 0)
			return -errno;
	return 0;
}

static int make_links(int root_fd, const char *const (*pairs)[2], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (symlinkat(pairs[i][0], root_fd, pairs[i][1]) < 0)
			return -errno;
	return 0;
}

static int make_skeleton(int root_fd, bool host)
{
	int r = make_dirs(root_fd, dirs, COUNT(dirs));

	if (r == 0)
		r = make_links(root_fd, links, COUNT(links));
	if (r == 0)
		r = nc_frame_make_file(root_fd, "sys/cgroups", groups);
	if (r < 0 || !host)
		return r;
	r = make_dirs(root_fd, host_dirs, COUNT(host_dirs));
	if (r == 0)
		r = make_links(root_fd, host_links, COUNT(host_links));
	for (size_t i = 0; r == 0 && i < COUNT(files); i++)
		r = nc_frame_make_file(root_fd, files[i].path, files[i].text);
	return r;
}

/* To be covered by a mount. */
static int make_empty(int at_fd, const char *path)
{
	return mknodat(at_fd, path, S_IFREG | 0644, 0) < 0 ? -errno : 0;
}

int nc_frame_make_place(mode_t mode, int at_fd, const char *path)
{
	if (!S_ISDIR(mode))
		return make_empty(at_fd, path);
	return mkdirat(at_fd, path, 0755) < 0 ? -errno : 0;
}

static int copy_link(int host_fd, int root_fd, const char *path)
{
	char target[256];
	ssize_t size = readlinkat(host_fd, path, target, sizeof(target));

	if (size < 0)
		return -errno;
	if ((size_t)size == sizeof(target))
		return -ENAMETOOLONG;
	target[size] = '\0';
	return symlinkat(target, root_fd, path) < 0 ? -errno : 0;
}

/* Two ways to the same: only what is attached can be the target of mount(), which is one call. */
static int put_mount(int host_fd, int root_fd, const char *path, bool is_here)
{
	cleanup_close int fd = -EBADF;
	char source[64];

	if (is_here) {
		(void)snprintf(source, sizeof(source), "/%s", path);
		return mount(source, path, NULL, MS_BIND | MS_REC, NULL) < 0 ? -errno : 0;
	}
	fd = nc_mount_copy(host_fd, path, true);
	return fd < 0 ? fd : nc_mount_attach(fd, root_fd, path);
}

struct places {
	int host_fd, root_fd;
	bool is_here;
};

static int put_shown(void *context, const char *path)
{
	const struct places *places = context;
	struct stat status;
	int r;

	if (fstatat(places->host_fd, path, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISLNK(status.st_mode))
		return copy_link(places->host_fd, places->root_fd, path);
	r = nc_frame_make_place(status.st_mode, places->root_fd, path);
	return r < 0 ? r : put_mount(places->host_fd, places->root_fd, path, places->is_here);
}

/* All of them at once; things are still put into the root itself. */
static int close_shown(int root_fd)
{
	struct mount_attr open = {.attr_clr = MOUNT_ATTR_RDONLY};
	int r = nc_mount_restrict(root_fd, NC_MOUNT_LOCKED_DOWN | MOUNT_ATTR_RDONLY, true);

	return r == 0 && mount_setattr(root_fd, "", AT_EMPTY_PATH, &open, sizeof(open)) < 0 ? -errno
											    : r;
}

/* A device is taken only if it is the one that its name says. */
static int put_device(int host_fd, int root_fd, size_t i)
{
	cleanup_close int fd = -EBADF;
	char path[32];
	struct stat status;
	int r;

	(void)snprintf(path, sizeof(path), "dev/%s", devices[i].name);
	fd = nc_mount_copy(host_fd, path, false);
	if (fd < 0)
		return fd;
	if (fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISCHR(status.st_mode) ||
		status.st_rdev != makedev(devices[i].major, devices[i].minor))
		return -ENODEV;
	r = nc_mount_restrict(fd, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, false);
	if (r == 0)
		r = make_empty(root_fd, path);
	return r < 0 ? r : nc_mount_attach(fd, root_fd, path);
}

int nc_frame_put(int root_fd, bool host, bool is_here)
{
	cleanup_close int host_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = host_fd < 0 ? -errno : make_skeleton(root_fd, host);

	if (r == 0 && host)
		r = nc_shown_walk(put_shown, &(struct places){host_fd, root_fd, is_here});
	if (r == 0 && host)
		r = close_shown(root_fd);
	for (size_t i = 0; r == 0 && i < COUNT(devices); i++)
		r = put_device(host_fd, root_fd, i);
	return r;
}

int nc_frame_new_root(void)
{
	static const char *const options[] = {
		"size", ROOT_BYTES, "nr_inodes", ROOT_INODES, "mode", "0755", NULL};

	return nc_mount_new("tmpfs", options, NC_MOUNT_LOCKED_DOWN);
}

/* Nothing changes in it any more: neither by a write nor by a mount on the host's side. */
static int seal(int root_fd)
{
	cleanup_close int fd = fspick(root_fd, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH);
	struct mount_attr apart = {.propagation = MS_PRIVATE};

	if (fd < 0 || fsconfig(fd, FSCONFIG_SET_FLAG, "ro", NULL, 0) < 0 ||
		fsconfig(fd, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0 ||
		mount_setattr(root_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &apart, sizeof(apart)) < 0)
		return -errno;
	return nc_mount_restrict(root_fd, NC_MOUNT_LOCKED_DOWN | MOUNT_ATTR_RDONLY, false);
}

int nc_frame_compose(void)
{
	cleanup_close int root_fd = nc_frame_new_root();
	int r;

	if (root_fd < 0)
		return root_fd;
	r = nc_frame_put(root_fd, true, false);
	if (r == 0)
		r = seal(root_fd);
	return r < 0 ? r : take_fd(root_fd);
}
