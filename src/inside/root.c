/*
 * The file system of a box.
 *
 * Theory of operation: a fresh tmpfs becomes the new root while the host's tree is still in view,
 * and what the box will see of the host is put into it (frame.c), or the spawner has given us a
 * copy of such a root; then pivot_root leaves the old tree behind. Nothing that an image controls
 * is followed (its links are copied, and what is put on top of it is found without following any),
 * and every mount is nosuid and nodev, and read-only unless the caller wants to write there, before
 * anything of the box runs.
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
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"
#include "base/place.h"
#include "inside/frame.h"
#include "inside/hidden.h"
#include "inside/mounts.h"
#include "inside/told.h"

/* Parts of /proc that tell about the host or command it: files become /dev/null, ... */
static const char *const masked_files[] = {"proc/keys", "proc/key-users", "proc/kallsyms",
	"proc/interrupts", "proc/iomem", "proc/ioports", "proc/mtrr", "proc/cmdline",
	"proc/modules", "proc/config.gz", "proc/diskstats", "proc/partitions", "proc/softirqs",
	"proc/vmstat", "proc/zoneinfo", "proc/buddyinfo", "proc/swaps", "proc/consoles",
	"proc/bootconfig"};

/* ... those that are root's alone on most kernels, where that is not so, ... */
static const char *const closed_files[] = {"proc/kcore", "proc/kmsg", "proc/timer_list",
	"proc/timer_stats", "proc/sched_debug", "proc/latency_stats", "proc/slabinfo",
	"proc/vmallocinfo", "proc/pagetypeinfo", "proc/kpagecount", "proc/kpageflags",
	"proc/kpagecgroup", "proc/sysrq-trigger"};

/* ... and directories become an empty one. */
static const char *const masked_dirs[] = {"proc/acpi", "proc/asound", "proc/scsi", "proc/bus",
	"proc/irq", "proc/fs", "proc/driver", "proc/tty", "proc/dynamic_debug", "proc/pressure"};

/* A directory of every root that is covered in the end. */
#define OVER "tmp"
#define LAYER_NAME_MAX 200 /* the kernel takes 255 bytes with what stands before it */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * What is new is attached here first, in the host's tree that is left behind: a place that every
 * host has, and of which nothing is needed any more.
 */
static const char aside[] = "/proc";

static int enter_root(int root_fd)
{
	int r = nc_mount_attach(root_fd, AT_FDCWD, aside);

	return r == 0 && fchdir(root_fd) < 0 ? -errno : r;
}

/* Node finds packages for import in the directories above a program, and nowhere else. */
static int make_layer_places(void)
{
	if (mkdir("opt", 0755) < 0 || symlink(NC_BOX_LAYER "0/node_modules", "node_modules") < 0)
		return -errno;
	return 0;
}

/*
 * A layer on the limited file system over a directory of "mnt". What is changed is changed there.
 * With attributes that a user namespace may set overlayfs follows no redirections and no names of
 * data elsewhere; in what the box sees nobody can set those, nor make the device that stands for a
 * removed file.
 */
static int put_overlay(const char *name, mode_t mode, bool is_host)
{
	char lower[LAYER_NAME_MAX + 16], upper[LAYER_NAME_MAX + 16];
	char work[LAYER_NAME_MAX + 16];
	const char *const options[] = {"source", "overlay", "lowerdir", lower, "upperdir", upper,
		"workdir", work, "userxattr", NULL, NULL};
	cleanup_close int fd = -EBADF;
	int r;

	(void)snprintf(lower, sizeof(lower), "mnt/%s", name);
	(void)snprintf(upper, sizeof(upper), OVER "/upper/%s", name);
	(void)snprintf(work, sizeof(work), OVER "/work/%s", name);
	if (mkdir(upper, 0700) < 0 || chmod(upper, mode & 07777U) < 0 || mkdir(work, 0700) < 0)
		return -errno;
	r = is_host ? nc_hidden_cover(lower, upper) : 0;
	if (r < 0)
		return r;
	fd = nc_mount_new("overlay", options, NC_MOUNT_LOCKED_DOWN);
	return fd < 0 ? fd : nc_mount_attach(fd, AT_FDCWD, name);
}

/* Where the limited file system is while layers are made on it. */
static int open_over(int scratch_fd)
{
	cleanup_close int fd = nc_mount_copy(scratch_fd, "", false);
	int r = fd < 0 ? fd : nc_mount_attach(fd, AT_FDCWD, OVER);

	if (r == 0 && (mkdir(OVER "/upper", 0700) < 0 || mkdir(OVER "/work", 0700) < 0))
		r = -errno;
	return r;
}

static int close_over(void)
{
	return umount2(OVER, MNT_DETACH) < 0 ? -errno : 0;
}

/* The host's /usr with a layer over it; the rest of its tree that can be written to is our own. */
static int put_usr(int usr_fd, int scratch_fd)
{
	cleanup_close int lower_fd = usr_fd;
	struct stat status;
	int r = fstat(usr_fd, &status) < 0 || mkdir("mnt/usr", 0755) < 0 ? -errno : 0;

	if (r == 0)
		r = nc_mount_attach(usr_fd, AT_FDCWD, "mnt/usr");
	if (r == 0)
		r = open_over(scratch_fd);
	if (r == 0)
		r = put_overlay("usr", status.st_mode, true);
	if (r == 0)
		r = close_over();
	if (r == 0 && (umount2("mnt/usr", MNT_DETACH) < 0 || rmdir("mnt/usr") < 0))
		r = -errno;
	return r;
}

/* As a word of overlayfs's options, in which these divide words; else it is read-only. */
static bool can_be_layered(const char *name)
{
	return !strpbrk(name, ":\\,") && strlen(name) <= LAYER_NAME_MAX;
}

/* One of an image's entries at its top. What we make ourselves stays ours. */
static int put_entry(int image_fd, const char *name, bool writable)
{
	cleanup_close int fd = -EBADF;
	char target[4096];
	struct stat status;
	ssize_t size;
	int r;

	if (fstatat(AT_FDCWD, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (errno != ENOENT || fstatat(image_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISLNK(status.st_mode)) {
		size = readlinkat(image_fd, name, target, sizeof(target) - 1);
		if (size < 0)
			return -errno;
		target[size] = '\0';
		return symlink(target, name) < 0 ? -errno : 0;
	}
	if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode))
		return 0;
	if (writable && S_ISDIR(status.st_mode) && can_be_layered(name))
		return mkdir(name, 0755) < 0 ? -errno : put_overlay(name, status.st_mode, false);
	fd = nc_mount_copy(image_fd, name, true);
	r = fd < 0 ? fd : nc_frame_make_place(status.st_mode, AT_FDCWD, name);
	return r < 0 ? r : nc_mount_attach(fd, AT_FDCWD, name);
}

/* Puts a file of ours over one that is there; the mount keeps it when its name is gone. */
static int cover_file(const char *path, const char *text)
{
	static const char name[] = "mnt/file"; /* ours: at the top an image may have anything */
	cleanup_close int fd = -EBADF;
	int r = nc_frame_make_file(AT_FDCWD, name, text);

	if (r < 0)
		return r;
	fd = nc_mount_copy(AT_FDCWD, name, false);
	if (fd < 0)
		return fd;
	r = nc_mount_restrict(
		fd, NC_MOUNT_LOCKED_DOWN | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC, false);
	if (r == 0)
		r = nc_mount_attach(fd, AT_FDCWD, path);
	return r == 0 && unlink(name) < 0 ? -errno : r;
}

/* The sandbox's user has a name in images too; their own users have no meaning in a box. */
static int name_users(void)
{
	static const char *const named[][2] = {
		{"etc/passwd", nc_frame_passwd}, {"etc/group", nc_frame_group}};
	struct stat status;
	int r = 0;

	for (size_t i = 0; r == 0 && i < COUNT(named); i++)
		if (lstat("etc", &status) == 0 && S_ISDIR(status.st_mode) &&
			lstat(named[i][0], &status) == 0 && !S_ISDIR(status.st_mode) &&
			!S_ISLNK(status.st_mode))
			r = cover_file(named[i][0], named[i][1]);
	return r;
}

/* An image's directories, from its own mount, which is attached for as long as that takes. */
static int put_image(int image_fd, bool writable, bool own_users)
{
	cleanup_closedir DIR *dir = NULL;
	const struct dirent *entry;
	int fd, r = nc_mount_attach(image_fd, AT_FDCWD, "mnt");

	fd = r < 0 ? r : open("mnt", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return r < 0 ? r : -errno;
	errno = 0;
	while (r == 0 && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = put_entry(fd, entry->d_name, writable);
		errno = 0;
	}
	if (r == 0)
		r = -errno;
	if (r == 0 && umount2("mnt", MNT_DETACH) < 0)
		r = -errno;
	/* where it has users of its own, they are meant */
	return r < 0 || own_users ? r : name_users();
}

/*
 * Where our own steps of later commands go before these are locked in: limits are told in /sys.
 * As mounts of their own they can be neither renamed nor replaced, nor written to.
 */
static int fix_ways(void)
{
	static const char *const ways[] = {"dev", "sys"};
	int r = 0;

	for (size_t i = 0; r == 0 && i < COUNT(ways); i++) {
		cleanup_close int fd = nc_mount_copy(AT_FDCWD, ways[i], true);

		r = fd < 0 ? fd
			   : nc_mount_restrict(fd, NC_MOUNT_LOCKED_DOWN | MOUNT_ATTR_RDONLY, false);
		if (r == 0)
			r = nc_mount_attach(fd, AT_FDCWD, ways[i]);
	}
	return r;
}

/* A root that can be written to is a part of the limited file system itself. */
static int take_scratch_root(int scratch_fd)
{
	return mkdirat(scratch_fd, "root", 0755) < 0 ? -errno
						     : nc_mount_copy(scratch_fd, "root", false);
}

/* The place of nacre-sudo, and of the socket that it asks at. */
static int make_sudo_places(void)
{
	static const char *const dirs[] = {NC_BOX_SUDO_DIR, NC_BOX_SUDO_BIN, NC_BOX_SUDO_RUN};

	for (size_t i = 0; i < COUNT(dirs); i++)
		if (mkdir(dirs[i] + 1, 0755) < 0)
			return -errno;
	return nc_frame_make_place(S_IFREG, AT_FDCWD, NC_BOX_SUDO_PROGRAM + 1);
}

/* A root of the box's own, for what one copy for all does not do for. */
static int make_root(const struct nc_root_spec *spec, int scratch_fd, int *ret_fd)
{
	const bool host = spec->image_fd < 0 || spec->over_usr;
	int r = *ret_fd = spec->writable ? take_scratch_root(scratch_fd) : nc_frame_new_root();

	if (r >= 0)
		r = enter_root(*ret_fd);
	if (r == 0)
		r = nc_frame_put(*ret_fd, host, true);
	if (r == 0 && spec->users)
		r = make_sudo_places();
	if (r == 0 && spec->writable)
		r = fix_ways();
	if (r == 0 && spec->layers)
		r = make_layer_places();
	if (r < 0 || spec->image_fd < 0)
		return r;
	if (spec->over_usr)
		return put_usr(spec->image_fd, scratch_fd);
	if (spec->writable)
		r = open_over(scratch_fd);
	if (r == 0)
		r = put_image(spec->image_fd, spec->writable, spec->writable || spec->users);
	return r == 0 && spec->writable ? close_over() : r;
}

/*
 * Everything that can be written is on one tmpfs, so that one limit covers all of it. Its top is
 * put into the host's tree, beneath the root that comes, and goes with that.
 */
static int make_scratch(const struct nc_root_spec *spec, int *ret_fd)
{
	char bytes[32], inodes[32];
	const char *const options[] = {"size", bytes, "nr_inodes", inodes, "mode", "0755", NULL};
	int fd;

	(void)snprintf(bytes, sizeof(bytes), "%llu", spec->disk_bytes + NC_TOLD_BYTES);
	(void)snprintf(inodes, sizeof(inodes), "%llu", (unsigned long long)spec->inodes);
	fd = nc_mount_new("tmpfs", options, NC_MOUNT_LOCKED_DOWN);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return nc_mount_attach(fd, AT_FDCWD, aside);
}

static int put_scratch_dir(
	int scratch_fd, const char *name, const char *to, mode_t mode, unsigned int id)
{
	cleanup_close int fd = -EBADF;

	if (mkdirat(scratch_fd, name, 0700) < 0 || fchmodat(scratch_fd, name, mode, 0) < 0 ||
		fchownat(scratch_fd, name, id, id, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	fd = nc_mount_copy(scratch_fd, name, false);
	return fd < 0 ? fd : nc_mount_attach(fd, AT_FDCWD, to);
}

static int put_scratch(int scratch_fd, bool users)
{
	int r = put_scratch_dir(scratch_fd, "workspace", "workspace", 0755, NC_SANDBOX_ID);

	if (r == 0)
		r = put_scratch_dir(scratch_fd, "tmp", "tmp", 01777, NC_SANDBOX_ID);
	if (r == 0)
		r = put_scratch_dir(scratch_fd, "shm", "dev/shm", 01777, NC_SANDBOX_ID);
	/* root's: who asks there cannot be who answers */
	if (r == 0 && users)
		r = put_scratch_dir(scratch_fd, "sudo", NC_BOX_SUDO_RUN + 1, 0755, 0);
	return r;
}

/* Terminals of the box's own; more than a few are of no use to anybody. */
static int make_terminals(void)
{
	/* one call, where the newer ones would be seven */
	return mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		       "mode=0620,ptmxmode=0666,max=64") < 0
		       ? -errno
		       : 0;
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

	if (mount(cover, path, NULL, MS_BIND, NULL) == 0)
		return 0;
	if (errno != ENOENT)
		return -errno;
	/* only what is not there needs no cover */
	return stat(path, &status) < 0 && errno == ENOENT ? 0 : -ENOENT;
}

/* The same where it is not closed already: no box has the host's root among its ids. */
static int mask_open(const char *path, const char *cover)
{
	struct stat status;

	if (stat(path, &status) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (status.st_uid != 0 && !(status.st_mode & (S_IRWXG | S_IRWXO)))
		return 0;
	return mask(path, cover);
}

/*
 * No program in the box makes namespaces of its own. What is counted per user is counted for the
 * user who made the box too, up to the host's root, so a box gets a small share of it.
 * Mount namespaces stay: each detached mount that we make is one.
 */
static int set_shares(bool users)
{
	const struct {
		const char *name;
		const char *value;
		bool optional; /* not in every kernel */
	} shares[] = {
		/* one for each command that runs as root, from before it runs anything */
		{"max_user_namespaces", users ? "64" : "0", false},
		{"max_pid_namespaces", "0", false},
		{"max_net_namespaces", "0", false},
		{"max_ipc_namespaces", "0", false},
		{"max_uts_namespaces", "0", false},
		/* one for each command that may run in it at once */
		{"max_cgroup_namespaces", "64", false},
		{"max_time_namespaces", "0", true},
		{"max_inotify_instances", "16", true},
		{"max_inotify_watches", "8192", true},
		{"max_fanotify_groups", "0", true},
		{"max_fanotify_marks", "0", true},
	};

	cleanup_close int fd = open("proc/sys/user", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < COUNT(shares); i++) {
		int r = nc_fd_write_control(fd, shares[i].name, shares[i].value);

		if (r < 0 && !(r == -ENOENT && shares[i].optional))
			return r;
	}
	return 0;
}

/*
 * The host is known by its boot id all over; a box has one of its own. The one file that each box
 * has for itself without a file system to hold it is the domain name, which nobody uses.
 */
static int hide_boot_id(void)
{
	char id[NC_UUID_SIZE];
	int r = nc_uuid(id);

	if (r < 0)
		return r;
	if (setdomainname(id, sizeof(id) - 1) < 0 ||
		mount("proc/sys/kernel/domainname", "proc/sys/kernel/random/boot_id", NULL, MS_BIND,
			NULL) < 0)
		return -errno;
	return 0;
}

static int close_proc_sys(bool users)
{
	cleanup_close int fd = -EBADF;
	int r = set_shares(users);

	if (r < 0)
		return r;
	fd = nc_mount_copy(AT_FDCWD, "proc/sys", true);
	if (fd < 0)
		return fd;
	r = nc_mount_restrict(
		fd, NC_MOUNT_LOCKED_DOWN | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY, true);
	if (r == 0)
		r = nc_mount_attach(fd, AT_FDCWD, "proc/sys");
	return r < 0 ? r : hide_boot_id();
}

/* /mnt is the empty directory to cover others with, by a mount that cannot be written to. */
static int mask_dirs(bool writable_root)
{
	cleanup_close int fd = -EBADF;
	int r = 0;

	if (writable_root) {
		r = fd = nc_mount_copy(AT_FDCWD, "mnt", false);
		if (r >= 0)
			r = nc_mount_restrict(fd, NC_MOUNT_LOCKED_DOWN | MOUNT_ATTR_RDONLY, false);
		if (r == 0)
			r = nc_mount_attach(fd, AT_FDCWD, "mnt");
	}
	for (size_t i = 0; r == 0 && i < COUNT(masked_dirs); i++)
		r = mask(masked_dirs[i], "mnt");
	if (r == 0 && writable_root && umount2("mnt", MNT_DETACH) < 0)
		r = -errno;
	return r;
}

static int make_proc(const struct nc_root_spec *spec, bool writable_root)
{
	static const char *const options[] = {"hidepid", "invisible", NULL};
	cleanup_close int fd =
		nc_mount_new("proc", options, NC_MOUNT_LOCKED_DOWN | MOUNT_ATTR_NOEXEC);
	int r = fd < 0 ? fd : nc_mount_attach(fd, AT_FDCWD, "proc");

	if (r == 0)
		r = close_proc_sys(spec->users);
	for (size_t i = 0; r == 0 && i < COUNT(masked_files); i++)
		r = mask(masked_files[i], "dev/null");
	for (size_t i = 0; r == 0 && i < COUNT(closed_files); i++)
		r = mask_open(closed_files[i], "dev/null");
	if (r == 0)
		r = mask_dirs(writable_root);
	/* Landlock lets commands write anywhere in a root that is written to; and root owns more */
	return r == 0 && (spec->writable || spec->users)
		       ? nc_mount_restrict(fd,
				 NC_MOUNT_LOCKED_DOWN | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY,
				 false)
		       : r;
}

static int close_root(int root_fd)
{
	return nc_mount_restrict(root_fd, NC_MOUNT_LOCKED_DOWN | MOUNT_ATTR_RDONLY, false);
}

static int leave_host(void)
{
	char where[8] = "";

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
	int scratch_fd = -EBADF, root_fd = spec->frame_fd;
	/* places for binds are made in it */
	const bool writable = spec->n_binds > 0 || spec->writable;
	int r = 0;

	STEP("make mounts private",
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? -errno : 0);
	STEP("make the limited file system", make_scratch(spec, &scratch_fd));
	if (root_fd < 0)
		STEP(spec->writable ? "make a root to write to (overlayfs in a user namespace)"
				    : "make a root",
			make_root(spec, scratch_fd, &root_fd));
	else
		STEP("take the root", enter_root(root_fd));
	STEP("put the limited file system", put_scratch(scratch_fd, spec->users));
	STEP("make /dev/pts", make_terminals());
	STEP("close the root", writable ? 0 : close_root(root_fd));
	STEP("tell the limits", nc_told_make(scratch_fd));
	STEP("make /proc", make_proc(spec, writable));
	STEP("cover /proc/meminfo", nc_told_cover());
	STEP("put binds", put_binds(spec, ret_step));
	STEP("close the root", writable && !spec->writable ? close_root(root_fd) : 0);
	STEP("leave the host's tree", leave_host());
	STEP("bring up loopback", bring_up_loopback());
	return r; /* descriptors close when the process becomes nacre-init */
}
