/*
 * The file system of a box.
 *
 * Theory of operation: everything of the host that the box will see is first picked up as a
 * detached mount (open_tree), while the host's tree is still in view; then a fresh tmpfs becomes
 * the new root and the pieces are put into it; then pivot_root leaves the old tree behind. No path
 * is resolved twice, nothing that an image controls is followed (its links are copied, and what is
 * put on top of it is found without following any), and every mount is made nosuid and nodev, and
 * read-only unless the caller wants to write there, before it is attached.
 */
#include "inside/root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"

#define LOCKED_DOWN (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/* The tmpfs that is the root itself holds directories, links and a few small files. */
#define ROOT_BYTES "1m"
#define ROOT_INODES "256"

/* Directories and files of the host that are shown read-only where they exist. */
static const char *const shown[] = {
	"usr",
	"bin",
	"sbin",
	"lib",
	"lib32",
	"lib64",
	"libx32",
	"etc/alternatives", /* half of Debian's commands are links through it */
	"etc/ld.so.cache",  /* without it every start searches directories */
	"etc/ssl/certs",
	"etc/localtime",
	"etc/python3.11", /* sitecustomize.py is a link to it */
	"etc/mime.types",
	"etc/protocols",
	"etc/services",
};

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

static const struct {
	const char *path;
	const char *text;
} files[] = {
	{"etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\n"
		       "sandbox:x:1000:1000:sandbox:/workspace:/bin/sh\n"
		       "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
	{"etc/group", "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n"},
	{"etc/hosts", "127.0.0.1 localhost nacre\n::1 localhost nacre\n"},
	{"etc/hostname", "nacre\n"},
	{"etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
	{"etc/resolv.conf", ""},
};

/* Parts of /proc that tell about the host or command it: files become /dev/null, ... */
static const char *const masked_files[] = {"proc/kcore", "proc/kmsg", "proc/keys", "proc/key-users",
	"proc/timer_list", "proc/timer_stats", "proc/sched_debug", "proc/latency_stats",
	"proc/slabinfo", "proc/vmallocinfo", "proc/pagetypeinfo", "proc/kallsyms",
	"proc/kpagecount", "proc/kpageflags", "proc/kpagecgroup", "proc/interrupts", "proc/iomem",
	"proc/ioports", "proc/mtrr", "proc/sysrq-trigger", "proc/cmdline", "proc/modules",
	"proc/config.gz", "proc/diskstats", "proc/partitions", "proc/softirqs", "proc/vmstat",
	"proc/zoneinfo", "proc/buddyinfo", "proc/swaps", "proc/consoles", "proc/bootconfig"};

/* ... directories an empty one. */
static const char *const masked_dirs[] = {"proc/acpi", "proc/asound", "proc/scsi", "proc/bus",
	"proc/irq", "proc/fs", "proc/driver", "proc/tty", "proc/dynamic_debug", "proc/pressure"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What is picked up from the host, by the index in the tables above. */
struct pieces {
	int shown_fd[COUNT(shown)];  /* -EBADF: it does not exist, or is a link */
	char link[COUNT(shown)][64]; /* where it points to; "" if it is no link */
	int device_fd[COUNT(devices)];
};

static int set_attributes(int fd, uint64_t set, bool recursive)
{
	struct mount_attr attributes = {.attr_set = set};
	unsigned int flags = AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0U);

	return mount_setattr(fd, "", flags, &attributes, sizeof(attributes)) < 0 ? -errno : 0;
}

static int attach(int mount_fd, const char *path)
{
	return move_mount(mount_fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}

static int pick_shown(struct pieces *pieces, int host_fd, size_t i)
{
	struct stat status;
	ssize_t size;

	pieces->shown_fd[i] = -EBADF;
	pieces->link[i][0] = '\0';
	if (fstatat(host_fd, shown[i], &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISLNK(status.st_mode)) {
		size = readlinkat(host_fd, shown[i], pieces->link[i], sizeof(pieces->link[i]) - 1);
		if (size < 0)
			return -errno;
		pieces->link[i][size] = '\0';
		return 0;
	}
	pieces->shown_fd[i] = open_tree(host_fd, shown[i],
		OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW);
	if (pieces->shown_fd[i] < 0)
		return -errno;
	return set_attributes(pieces->shown_fd[i], LOCKED_DOWN | MOUNT_ATTR_RDONLY, true);
}

/* A device is taken only if it is the one that its name says. */
static int pick_device(struct pieces *pieces, int host_fd, size_t i)
{
	char path[32];
	struct stat status;
	int fd;

	(void)snprintf(path, sizeof(path), "dev/%s", devices[i].name);
	fd = open_tree(host_fd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	pieces->device_fd[i] = fd < 0 ? -EBADF : fd;
	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISCHR(status.st_mode) ||
		status.st_rdev != makedev(devices[i].major, devices[i].minor))
		return -ENODEV;
	return set_attributes(fd, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, false);
}

static int pick_up(struct pieces *pieces, const struct nc_root_spec *spec)
{
	cleanup_close int host_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = host_fd < 0 ? -errno : 0;

	for (size_t i = 0; r == 0 && spec->image_fd < 0 && i < COUNT(shown); i++)
		r = pick_shown(pieces, host_fd, i);
	for (size_t i = 0; r == 0 && i < COUNT(devices); i++)
		r = pick_device(pieces, host_fd, i);
	return r;
}

/* A file system of its own, detached; options are pairs of name and value. */
static int new_mount(const char *type, const char *const *options, uint64_t attributes)
{
	cleanup_close int context_fd = fsopen(type, FSOPEN_CLOEXEC);
	int fd;

	if (context_fd < 0)
		return -errno;
	for (; *options; options += 2)
		if (fsconfig(context_fd, FSCONFIG_SET_STRING, options[0], options[1], 0) < 0)
			return -errno;
	if (fsconfig(context_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = fsmount(context_fd, FSMOUNT_CLOEXEC, (unsigned int)attributes);
	return fd < 0 ? -errno : fd;
}

/* Makes the fresh root and goes there. It covers /usr of the host, which has been picked up. */
static int make_root(int *ret_fd)
{
	static const char *const options[] = {
		"size", ROOT_BYTES, "nr_inodes", ROOT_INODES, "mode", "0755", NULL};
	int fd = new_mount("tmpfs", options, LOCKED_DOWN);
	int r;

	if (fd < 0)
		return fd;
	*ret_fd = fd;
	r = attach(fd, "/usr");
	if (r == 0 && fchdir(fd) < 0)
		r = -errno;
	return r;
}

static int make_file(const char *path, const char *text)
{
	cleanup_close int fd =
		open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);

	if (fd < 0)
		return -errno;
	return nc_fd_write_all(fd, text, strlen(text));
}

/* What every box has, and what the host's tree needs beside what is shown of it. */
static const char *const dirs[] = {"dev", "dev/shm", "mnt", "proc", "tmp", "workspace"};
static const char *const host_dirs[] = {"etc", "etc/ssl", "root", "var"};
static const char *const links[][2] = {{"/proc/self/fd", "dev/fd"},
	{"/proc/self/fd/0", "dev/stdin"}, {"/proc/self/fd/1", "dev/stdout"},
	{"/proc/self/fd/2", "dev/stderr"}};
static const char *const host_links[][2] = {{"/proc/self/mounts", "etc/mtab"}, {"/tmp", "var/tmp"}};

static int make_dirs(const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (mkdir(names[i], 0755) < 0)
			return -errno;
	return 0;
}

static int make_links(const char *const (*pairs)[2], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (symlink(pairs[i][0], pairs[i][1]) < 0)
			return -errno;
	return 0;
}

static int make_skeleton(const struct nc_root_spec *spec)
{
	int r = make_dirs(dirs, COUNT(dirs));

	if (r == 0)
		r = make_links(links, COUNT(links));
	/* Node finds packages for import in the directories above a program, and nowhere else */
	if (r == 0 && spec->layers &&
		(mkdir("opt", 0755) < 0 ||
			symlink(NC_BOX_LAYER "0/node_modules", "node_modules") < 0))
		r = -errno;
	if (r < 0 || spec->image_fd >= 0)
		return r;
	r = make_dirs(host_dirs, COUNT(host_dirs));
	if (r == 0)
		r = make_links(host_links, COUNT(host_links));
	for (size_t i = 0; r == 0 && i < COUNT(files); i++)
		r = make_file(files[i].path, files[i].text);
	return r;
}

/* A mount needs something of its own kind to stand on. */
static int make_place(int fd, const char *path)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISDIR(status.st_mode))
		return make_file(path, "");
	return mkdir(path, 0755) < 0 ? -errno : 0;
}

static int put_shown(struct pieces *pieces)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < COUNT(shown); i++) {
		if (pieces->link[i][0] && symlink(pieces->link[i], shown[i]) < 0)
			r = -errno;
		if (pieces->shown_fd[i] < 0)
			continue;
		r = make_place(pieces->shown_fd[i], shown[i]);
		if (r == 0)
			r = attach(pieces->shown_fd[i], shown[i]);
	}
	return r;
}

/* One of an image's entries at its top. What we make ourselves stays ours. */
static int put_entry(int image_fd, const char *name)
{
	cleanup_close int fd = -EBADF;
	char target[4096];
	struct stat status;
	ssize_t size;
	int r;

	if (fstatat(AT_FDCWD, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ||
		fstatat(image_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISLNK(status.st_mode)) {
		size = readlinkat(image_fd, name, target, sizeof(target) - 1);
		if (size < 0)
			return -errno;
		target[size] = '\0';
		return symlink(target, name) < 0 ? -errno : 0;
	}
	if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode))
		return 0;
	fd = open_tree(image_fd, name,
		OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW);
	if (fd < 0)
		return -errno;
	r = make_place(fd, name);
	return r < 0 ? r : attach(fd, name);
}

/* Puts a file of ours over one that is there; the mount keeps it when its name is gone. */
static int cover_file(const char *path, const char *text)
{
	static const char name[] = "mnt/file"; /* ours: at the top an image may have anything */
	cleanup_close int fd = -EBADF;
	int r = make_file(name, text);

	if (r < 0)
		return r;
	fd = open_tree(AT_FDCWD, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = set_attributes(fd, LOCKED_DOWN | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC, false);
	if (r == 0)
		r = attach(fd, path);
	return r == 0 && unlink(name) < 0 ? -errno : r;
}

/* The sandbox's user has a name in images too; their own users have no meaning in a box. */
static int name_users(void)
{
	static const char *const named[] = {"etc/passwd", "etc/group"};
	struct stat status;
	int r = 0;

	for (size_t i = 0; r == 0 && i < COUNT(named); i++)
		if (lstat("etc", &status) == 0 && S_ISDIR(status.st_mode) &&
			lstat(named[i], &status) == 0 && !S_ISDIR(status.st_mode) &&
			!S_ISLNK(status.st_mode))
			r = cover_file(named[i], files[i].text);
	return r;
}

/* An image's directories, from its own mount, which is attached for as long as that takes. */
static int put_image(int image_fd)
{
	cleanup_closedir DIR *dir = NULL;
	int fd, r = attach(image_fd, "mnt");

	fd = r < 0 ? r : open("mnt", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return r < 0 ? r : -errno;
	for (struct dirent *entry = readdir(dir); r == 0 && entry; entry = readdir(dir))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = put_entry(fd, entry->d_name);
	if (r == 0 && umount2("mnt", MNT_DETACH) < 0)
		r = -errno;
	return r < 0 ? r : name_users();
}

static int put_pieces(struct pieces *pieces, const struct nc_root_spec *spec)
{
	int r = spec->image_fd >= 0 ? put_image(spec->image_fd) : put_shown(pieces);

	for (size_t i = 0; r == 0 && i < COUNT(devices); i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "dev/%s", devices[i].name);
		r = make_file(path, "");
		if (r == 0)
			r = attach(pieces->device_fd[i], path);
	}
	return r;
}

static int make_scratch_dir(const char *from, const char *to, mode_t mode)
{
	cleanup_close int fd = -EBADF;

	if (mkdir(from, 0700) < 0 || chmod(from, mode) < 0 ||
		chown(from, NC_SANDBOX_ID, NC_SANDBOX_ID) < 0)
		return -errno;
	fd = open_tree(AT_FDCWD, from, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (fd < 0)
		return -errno;
	return attach(fd, to);
}

/* Everything that can be written is on one tmpfs, so that one limit covers all of it. */
static int make_scratch(const struct nc_root_spec *spec)
{
	char bytes[32], inodes[32];
	const char *const options[] = {"size", bytes, "nr_inodes", inodes, "mode", "0755", NULL};
	cleanup_close int fd = -EBADF;
	int r;

	(void)snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)spec->disk_bytes);
	(void)snprintf(inodes, sizeof(inodes), "%llu", (unsigned long long)spec->inodes);
	fd = new_mount("tmpfs", options, LOCKED_DOWN);
	r = fd < 0 ? fd : attach(fd, "mnt");
	if (r == 0)
		r = make_scratch_dir("mnt/workspace", "workspace", 0755);
	if (r == 0)
		r = make_scratch_dir("mnt/tmp", "tmp", 01777);
	if (r == 0)
		r = make_scratch_dir("mnt/shm", "dev/shm", 01777);
	if (r == 0 && umount2("mnt", MNT_DETACH) < 0)
		r = -errno;
	return r;
}

/* Terminals of the box's own; more than a few are of no use to anybody. */
static int make_terminals(void)
{
	static const char *const options[] = {
		"mode", "0620", "ptmxmode", "0666", "max", "64", NULL};
	cleanup_close int fd = new_mount("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);

	if (fd < 0)
		return fd;
	if (mkdir("dev/pts", 0755) < 0 || symlink("pts/ptmx", "dev/ptmx") < 0)
		return -errno;
	return attach(fd, "dev/pts");
}

/*
 * Opens a path below the new root. Links in it are followed as they will be in the box, if they are
 * the host's or ours; an image's could lead anywhere in it.
 */
static int open_place(int root_fd, const char *path, bool is_image)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS |
			   (is_image ? RESOLVE_NO_SYMLINKS : 0U)};
	long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

/* Makes what is missing of the way; what is made in /workspace is the sandbox's own. */
static int make_step(int at_fd, const char *name, bool is_file)
{
	if (is_file) {
		cleanup_close int fd = openat(
			at_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);

		if (fd < 0)
			return -errno;
	} else if (mkdirat(at_fd, name, 0755) < 0) {
		return -errno;
	}
	return fchownat(at_fd, name, NC_SANDBOX_ID, NC_SANDBOX_ID, AT_SYMLINK_NOFOLLOW) < 0 ? -errno
											    : 0;
}

/* Where the bind goes: every part of the way is there, or made in what is ours. */
static int find_target(const char *target, bool is_file, bool is_image)
{
	cleanup_close int root_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_close int at_fd = nc_fd_dup(root_fd);
	char path[NC_BOX_DIR_MAX + 1];
	size_t end = 0;

	if (at_fd < 0)
		return at_fd;
	(void)snprintf(path, sizeof(path), "%s", target + 1);
	while (path[end] || end == 0) {
		size_t begin = end;
		char behind;
		int fd, r = 0;

		end += strcspn(path + end, "/");
		behind = path[end];
		path[end] = '\0';
		fd = open_place(root_fd, path, is_image);
		if (fd == -ENOENT) {
			r = make_step(at_fd, path + begin, is_file && !behind);
			fd = r < 0 ? r : open_place(root_fd, path, is_image);
		}
		if (fd < 0)
			return fd;
		(void)close(at_fd);
		at_fd = fd;
		path[end] = behind;
		end += behind == '/';
	}
	return take_fd(at_fd);
}

static int put_bind(const struct nc_root_bind *bind, bool is_image)
{
	cleanup_close int at_fd = -EBADF;
	struct stat source, target;
	struct statfs fs;

	if (fstat(bind->fd, &source) < 0)
		return -errno;
	at_fd = find_target(bind->target, !S_ISDIR(source.st_mode), is_image);
	if (at_fd < 0)
		return at_fd;
	if (fstat(at_fd, &target) < 0 || fstatfs(at_fd, &fs) < 0)
		return -errno;
	if (fs.f_type == PROC_SUPER_MAGIC) /* through a link */
		return -EPERM;
	if (S_ISDIR(source.st_mode) != S_ISDIR(target.st_mode))
		return S_ISDIR(source.st_mode) ? -ENOTDIR : -EISDIR;
	return move_mount(bind->fd, "", at_fd, "",
		       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
		       ? -errno
		       : 0;
}

static int put_binds(const struct nc_root_spec *spec, const char **ret_step)
{
	static char step[64];
	int r = 0;

	for (size_t i = 0; r == 0 && i < spec->n_binds; i++) {
		(void)snprintf(step, sizeof(step), "put a bind at %s", spec->bind[i].target);
		*ret_step = step;
		r = put_bind(&spec->bind[i], spec->image_fd >= 0);
	}
	return r;
}

/* Covers what is there by the empty file or directory. Our own /proc: no path in it is another's.
 */
static int mask(const char *path, const char *cover)
{
	struct stat status;

	/* only what is not there needs no cover */
	if (stat(path, &status) < 0)
		return errno == ENOENT ? 0 : -errno;
	/* what is root's alone is closed already: no box has the host's root among its ids */
	if (status.st_uid != 0 && !(status.st_mode & (S_IRWXG | S_IRWXO)))
		return 0;
	return mount(cover, path, NULL, MS_BIND, NULL) < 0 ? -errno : 0;
}

/*
 * No program in the box makes namespaces of its own. What is counted per user is counted for the
 * user who made the box too, up to the host's root, so a box gets a small share of it.
 * Mount namespaces stay: each detached mount that we make is one.
 */
static int set_shares(void)
{
	static const struct {
		const char *path;
		const char *value;
		bool optional; /* not in every kernel */
	} shares[] = {
		{"proc/sys/user/max_user_namespaces", "0", false},
		{"proc/sys/user/max_pid_namespaces", "0", false},
		{"proc/sys/user/max_net_namespaces", "0", false},
		{"proc/sys/user/max_ipc_namespaces", "0", false},
		{"proc/sys/user/max_uts_namespaces", "0", false},
		/* one for each command that may run in it at once */
		{"proc/sys/user/max_cgroup_namespaces", "64", false},
		{"proc/sys/user/max_time_namespaces", "0", true},
		{"proc/sys/user/max_inotify_instances", "16", true},
		{"proc/sys/user/max_inotify_watches", "8192", true},
		{"proc/sys/user/max_fanotify_groups", "0", true},
		{"proc/sys/user/max_fanotify_marks", "0", true},
	};

	for (size_t i = 0; i < COUNT(shares); i++) {
		int r = nc_fd_write_control(AT_FDCWD, shares[i].path, shares[i].value);

		if (r < 0 && !(r == -ENOENT && shares[i].optional))
			return r;
	}
	return 0;
}

/* The host is known by its boot id all over; a box has one of its own. */
static int hide_boot_id(void)
{
	char id[NC_UUID_SIZE + 1];
	int r = nc_uuid(id);

	if (r < 0)
		return r;
	id[NC_UUID_SIZE - 1] = '\n';
	id[NC_UUID_SIZE] = '\0';
	return cover_file("proc/sys/kernel/random/boot_id", id);
}

static int close_proc_sys(void)
{
	cleanup_close int fd = -EBADF;
	int r = set_shares();

	if (r < 0)
		return r;
	fd = open_tree(AT_FDCWD, "proc/sys", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (fd < 0)
		return -errno;
	r = set_attributes(fd, LOCKED_DOWN | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY, true);
	if (r == 0)
		r = attach(fd, "proc/sys");
	return r < 0 ? r : hide_boot_id();
}

static int make_proc(void)
{
	static const char *const options[] = {"hidepid", "invisible", NULL};
	cleanup_close int fd = new_mount("proc", options, LOCKED_DOWN | MOUNT_ATTR_NOEXEC);
	cleanup_close int empty_fd = -EBADF;
	int r = fd < 0 ? fd : attach(fd, "proc");

	if (r == 0)
		r = close_proc_sys();
	for (size_t i = 0; r == 0 && i < COUNT(masked_files); i++)
		r = mask(masked_files[i], "dev/null");
	/* an empty directory to cover others with: what is left of /mnt */
	empty_fd = open_tree(AT_FDCWD, "mnt", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (r == 0 && empty_fd < 0)
		r = -errno;
	if (r == 0)
		r = attach(empty_fd, "mnt");
	if (r == 0)
		r = set_attributes(empty_fd, LOCKED_DOWN | MOUNT_ATTR_RDONLY, false);
	for (size_t i = 0; r == 0 && i < COUNT(masked_dirs); i++)
		r = mask(masked_dirs[i], "mnt");
	if (r == 0 && umount2("mnt", MNT_DETACH) < 0)
		r = -errno;
	return r;
}

static int leave_host(int root_fd)
{
	char where[8] = "";
	int r = set_attributes(root_fd, LOCKED_DOWN | MOUNT_ATTR_RDONLY, false);

	if (r < 0)
		return r;
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return -errno;
	/* a working directory outside would read "(unreachable)..." */
	if (!getcwd(where, sizeof(where)) || strcmp(where, "/") != 0)
		return -EXDEV;
	return 0;
}

static int bring_up_loopback(void)
{
	cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

	return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

/* Runs one step, or nothing after the first that failed. */
#define STEP(text, call)                                                                           \
	do {                                                                                       \
		if (r == 0) {                                                                      \
			*ret_step = (text);                                                        \
			r = (call);                                                                \
		}                                                                                  \
	} while (0)

int nc_root_build(const struct nc_root_spec *spec, const char **ret_step)
{
	struct pieces pieces;
	int root_fd = -EBADF;
	int r = 0;

	STEP("make mounts private",
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? -errno : 0);
	STEP("pick up the host's directories", pick_up(&pieces, spec));
	STEP("make a root", make_root(&root_fd));
	STEP("make the skeleton of the root", make_skeleton(spec));
	STEP("put directories into the root", put_pieces(&pieces, spec));
	STEP("make the limited file system", make_scratch(spec));
	STEP("make /dev/pts", spec->terminal ? make_terminals() : 0);
	STEP("make /proc", make_proc());
	STEP("put binds", put_binds(spec, ret_step));
	STEP("leave the host's tree", leave_host(root_fd));
	STEP("set the host name", sethostname("nacre", 5) < 0 ? -errno : 0);
	STEP("bring up loopback", bring_up_loopback());
	return r; /* descriptors close when the process becomes nacre-init */
}
