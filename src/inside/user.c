/*
 * Whose a command is in its box.
 *
 * Theory of operation of root: it gets a user namespace of its own below the box's, with the same
 * ids but the last, which is process 1's. What it is allowed there it is allowed for files of the
 * box, by their owners, and for its own processes; for nothing that belongs to the box's user
 * namespace: its mounts, network, host name and process 1, which has another id too. A bounding set
 * says what that is, and a filter that lets nobody make namespaces or mounts is around it.
 */
#include "inside/user.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parse.h"
#include "kernel/caps.h"

/* What is read of /etc/passwd: images have a kilobyte of it. */
#define PASSWD_MAX 65536U

/*
 * What package managers and builds need, each over the ids of the box only:
 * CHOWN: files get their owners. DAC_OVERRIDE: directories of other users are written to. FOWNER:
 * their modes, times and links are set. FSETID: a mode is kept when its file is written; no mount
 * of a box heeds set-user-id. SETUID, SETGID: apt, su and services become other users of the box.
 * KILL: and end what these run.
 *
 * Not DAC_READ_SEARCH, which opens files by handles; not SETFCAP, SETPCAP, MKNOD, SYS_CHROOT,
 * SYS_ADMIN, SYS_PTRACE, NET_*: nothing in a box needs them to install something.
 */
#define ROOT_CAPS                                                                                  \
	(1ULL << CAP_CHOWN | 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_FOWNER | 1ULL << CAP_FSETID |  \
		1ULL << CAP_SETUID | 1ULL << CAP_SETGID | 1ULL << CAP_KILL)

/* The next field of a line, which it is cut off. */
static const char *next_field(char **line)
{
	const char *field = strsep(line, ":");

	return field ? field : "";
}

/* One line of /etc/passwd: whether it is the user's. */
static bool is_line_of(
	char *line, const char *name, bool is_number, uint64_t number, struct nc_user *ret_user)
{
	const char *own = next_field(&line);
	uint64_t uid, gid;

	(void)next_field(&line);
	if (nc_parse_u64(next_field(&line), 0, NC_USER_FIRST_ID - 1, &uid) < 0 ||
		nc_parse_u64(next_field(&line), 0, NC_USER_FIRST_ID - 1, &gid) < 0 ||
		(is_number ? uid != number : strcmp(own, name) != 0))
		return false;
	*ret_user = (struct nc_user){(unsigned int)uid, (unsigned int)gid};
	return true;
}

static int search(
	char *text, const char *name, bool is_number, uint64_t number, struct nc_user *ret_user)
{
	char *line;

	while ((line = strsep(&text, "\n")))
		if (is_line_of(line, name, is_number, number, ret_user))
			return 0;
	return -ENOENT;
}

/* It may be an image's, or what root of the box has made of it: neither followed nor waited for. */
static ssize_t read_passwd(char text[static PASSWD_MAX + 1])
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	cleanup_close int fd =
		(int)syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", &how, sizeof(how));
	struct stat status;
	ssize_t size;

	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -EINVAL;
	size = nc_fd_read_upto(fd, text, PASSWD_MAX);
	if (size >= 0)
		text[size] = '\0';
	return size;
}

int nc_user_find(const char *name, struct nc_user *ret_user)
{
	static char text[PASSWD_MAX + 1];
	uint64_t number = 0;
	const bool is_number = nc_parse_u64(name, 0, NC_USER_FIRST_ID - 1, &number) == 0;
	const bool is_root = strcmp(name, "root") == 0 || (is_number && number == 0);
	ssize_t size;
	int r;

	if (is_root) { /* whatever that file says */
		*ret_user = (struct nc_user){0, 0};
		return 0;
	}
	size = read_passwd(text);
	r = size < 0 ? (int)size : search(text, name, is_number, number, ret_user);
	if (r < 0 && is_number) {
		*ret_user = (struct nc_user){(unsigned int)number, (unsigned int)number};
		r = 0;
	}
	return r;
}

/*
 * In a child that stays in the box's user namespace, where alone its maps can be written: by who
 * may set ids there. It is still the host's root by number, as the owner of the files in proc_fd
 * is, and lives for these lines.
 */
static int write_maps(int proc_fd)
{
	char map[32];
	int r;

	(void)snprintf(map, sizeof(map), "0 0 %u", NC_USER_FIRST_ID);
	r = nc_fd_write_control(proc_fd, "gid_map", map);
	return r < 0 ? r : nc_fd_write_control(proc_fd, "uid_map", map);
}

/* Waits for its end; whoever ends it takes us along, and nothing foreign runs. */
static int take_result(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

/* A user namespace below the box's, with its ids but the last. We have all capabilities over it. */
static int enter_own_world(int proc_fd)
{
	int go[2], r;
	char byte;
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		(void)close(go[1]); /* or it would wait for itself */
		_exit(nc_fd_read_upto(go[0], &byte, 1) == 1 ? -write_maps(proc_fd) : ECANCELED);
	}
	r = pid < 0 ? -errno : 0;
	(void)close(go[0]);
	/* who makes a user namespace has an id in the one above */
	if (r == 0 &&
		(setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0 || unshare(CLONE_NEWUSER) < 0))
		r = -errno;
	if (r == 0)
		r = nc_fd_write_all(go[1], "g", 1);
	(void)close(go[1]);
	if (pid > 0) {
		int result = take_result(pid);

		r = r < 0 ? r : result;
	}
	return r;
}

int nc_user_become_root(int proc_fd, const char **ret_step)
{
	int r;

	*ret_step = "make root's user namespace";
	r = enter_own_world(proc_fd);
	if (r < 0)
		return r;
	*ret_step = "become root of the box";
	if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return -errno;
	*ret_step = "leave root its capabilities";
	r = nc_caps_bound_root(ROOT_CAPS);
	return r < 0 ? r : nc_caps_set(ROOT_CAPS);
}
