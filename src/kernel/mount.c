/* The probes of mounts: what a box's file system is built from. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/pidfd.h"
#include "kernel/probe.h"
#include "kernel/userns.h"

/* Where the probe's tmpfs goes in its own mount namespace. */
#define PLACE "/tmp"

#define TMPFS_BYTES "65536"
#define TMPFS_INODES "16"

static int make_tmpfs(void)
{
	cleanup_close int context_fd = fsopen("tmpfs", FSOPEN_CLOEXEC);
	cleanup_close int mount_fd = -EBADF;

	if (context_fd < 0 ||
		fsconfig(context_fd, FSCONFIG_SET_STRING, "size", TMPFS_BYTES, 0) < 0 ||
		fsconfig(context_fd, FSCONFIG_SET_STRING, "nr_inodes", TMPFS_INODES, 0) < 0 ||
		fsconfig(context_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	mount_fd = fsmount(context_fd, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (mount_fd < 0 || move_mount(mount_fd, "", AT_FDCWD, PLACE, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

/* Fills the tmpfs with bytes, then with files: both must end in ENOSPC, and early. */
static int fill_tmpfs(void)
{
	cleanup_close int fd = open(PLACE "/big", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	char block[4096] = {0};
	int written = 0, made = 0;

	if (fd < 0)
		return -errno;
	while (written < 64 && write(fd, block, sizeof(block)) == (ssize_t)sizeof(block))
		written++;
	if (written >= 64 || errno != ENOSPC || unlink(PLACE "/big") < 0)
		return -EPROTO;
	for (; made < 64; made++) {
		char path[32];

		(void)snprintf(path, sizeof(path), PLACE "/f%d", made);
		if (mknod(path, S_IFREG | 0600, 0) < 0)
			break;
	}
	if (made >= 64 || errno != ENOSPC)
		return -EPROTO;
	while (made-- > 0) {
		char path[32];

		(void)snprintf(path, sizeof(path), PLACE "/f%d", made);
		(void)unlink(path); /* the next probe notices if one stayed */
	}
	return 0;
}

/* A recursive, read-only view of /usr, in which a file must not be made. */
static int check_read_only(void)
{
	struct mount_attr attributes = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
	cleanup_close int tree_fd =
		open_tree(AT_FDCWD, "/usr", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	cleanup_close int file_fd = -EBADF;

	if (tree_fd < 0 || mkdir(PLACE "/usr", 0700) < 0)
		return -errno;
	if (mount_setattr(tree_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes,
		    sizeof(attributes)) < 0 ||
		move_mount(tree_fd, "", AT_FDCWD, PLACE "/usr", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	file_fd = open(PLACE "/usr/.nacre-probe", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file_fd >= 0) {
		(void)unlink(PLACE "/usr/.nacre-probe");
		return -EPROTO;
	}
	return errno == EROFS ? 0 : -errno;
}

static int check_overlay(void)
{
	static const char options[] = "lowerdir=" PLACE "/lower,upperdir=" PLACE
				      "/upper,workdir=" PLACE "/work,userxattr";
	cleanup_close int fd = -EBADF;

	if (mkdir(PLACE "/lower", 0700) < 0 || mkdir(PLACE "/upper", 0700) < 0 ||
		mkdir(PLACE "/work", 0700) < 0 || mkdir(PLACE "/merged", 0700) < 0 ||
		mount("overlay", PLACE "/merged", "overlay", MS_NOSUID | MS_NODEV, options) < 0)
		return -errno;
	fd = open(PLACE "/merged/file", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	return access(PLACE "/upper/file", F_OK) < 0 ? -EPROTO : 0;
}

/* In the first process of a new pid namespace: its own /proc, where it is number 1. */
static int check_proc(void)
{
	char link[8] = "";

	if (mkdir(PLACE "/proc", 0700) < 0 ||
		mount("proc", PLACE "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return -errno;
	if (readlink(PLACE "/proc/self", link, sizeof(link) - 1) < 0)
		return -errno;
	return strcmp(link, "1") == 0 ? 0 : -EPROTO;
}

static int check_pivot_root(void)
{
	char where[8] = "";

	/* in a mount namespace of its own: pivot_root moves every process whose root was the old
	 * one */
	if (unshare(CLONE_NEWNS) < 0 || chdir(PLACE) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
		umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return -errno;
	/* our tmpfs has no /etc: if there is one, the old root still shows */
	if (!getcwd(where, sizeof(where)) || strcmp(where, "/") != 0 || access("/etc", F_OK) == 0)
		return -EPROTO;
	return 0;
}

static void probe_as_first(struct nc_probes *probes)
{
	nc_probe_judge(probes, NC_PROBE_PROC, check_proc(), "a /proc of its own");
	nc_probe_judge(probes, NC_PROBE_PIVOT_ROOT, check_pivot_root(),
		"pivot_root into a root of its own");
}

void nc_probe_mounts(struct nc_probes *probes)
{
	static const enum nc_probe_id ids[] = {NC_PROBE_MOUNT_API, NC_PROBE_READ_ONLY,
		NC_PROBE_OVERLAYFS, NC_PROBE_PROC, NC_PROBE_PIVOT_ROOT};
	cleanup_process int pidfd = -EBADF;
	siginfo_t info;
	int r = nc_userns_enter_self();
	pid_t pid;

	if (r == 0 && (unshare(CLONE_NEWNS | CLONE_NEWPID) < 0 ||
			      mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
		r = -errno;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]) && r < 0; i++)
		nc_probe_fail(probes, ids[i], r, "no mount namespace of our own");
	if (r < 0)
		return;
	r = make_tmpfs();
	nc_probe_judge(probes, NC_PROBE_MOUNT_API, r == 0 ? fill_tmpfs() : r,
		"a tmpfs made by fsopen and fsmount, limited in bytes and files");
	/* without a place of our own nothing below may touch the tree */
	if (r < 0)
		return;
	nc_probe_judge(probes, NC_PROBE_READ_ONLY, check_read_only(),
		"/usr by open_tree, read-only by a recursive mount_setattr");
	nc_probe_judge(probes, NC_PROBE_OVERLAYFS, check_overlay(), "overlayfs with a tmpfs above");
	pid = fork();
	if (pid == 0) {
		probe_as_first(probes);
		nc_child_exit(0);
	}
	pidfd = pid < 0 ? -errno : nc_pidfd_open(pid);
	if (pidfd >= 0 && nc_pidfd_wait(pidfd, nc_clock_ns() + NC_NS_PER_S, &info) == 0)
		pidfd = nc_fd_close(pidfd);
}
