/*
 * nacre-plain: who calls at descriptor 3 is served until another calls or nobody can any more.
 *
 * The worker that called last is served, once all that the one before brought has been heard; what
 * that one had not ordered as kept ends with it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/meeting.h"
#include "base/text.h"
#include "kernel/program.h"
#include "kernel/tree.h"
#include "plain.h"
#include "tier/launch.h"

#define TEMPORARY "/tmp"
#define PREFIX "plain-holder."

const int plain_ignored[PLAIN_IGNORED] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM};

struct plain plain = {.place_fd = NC_HOLDER_PLACE_FD, .client_fd = -EBADF, .files_fd = -EBADF};

void plain_hang_up(const char *why)
{
	if (why)
		fprintf(stderr, "nacre-plain: ending the worker: %s\n", why);
	plain.client_fd = nc_fd_close(plain.client_fd);
	plain.greeted = false;
	nc_mail_done(&plain.mail);
	(void)plain_orphan(false);
}

void plain_send(struct nc_wire_out *out, const int *fds, size_t n_fds)
{
	int r = plain.greeted ? nc_mail_send(&plain.mail, plain.client_fd, out, fds, n_fds) : 0;

	nc_wire_out_done(out);
	/* one that is gone has been heard out first: its end is read */
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		plain_hang_up("it does not read its messages");
}

static void on_mail(void *context)
{
	(void)context; /* seen in the list */
}

/* The next worker; or nobody can call any more. */
static void answer_call(void)
{
	int r = nc_meeting_take(plain.place_fd);

	if (r == -ECONNRESET)
		plain.place_fd = nc_fd_close(plain.place_fd);
	if (r < 0)
		return;
	if (plain.client_fd >= 0)
		plain_hang_up(NULL);
	plain.client_fd = r;
	if (fcntl(r, F_SETFL, O_NONBLOCK) < 0)
		plain_hang_up("its socket is none");
}

static bool is_pending(int fd)
{
	struct pollfd event = {.fd = fd, .events = POLLIN};

	return fd >= 0 && poll(&event, 1, 0) == 1;
}

/* Orphans of a reaper that was killed: nothing of theirs is ours to keep. */
static void reap(void)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) > 0)
		for (size_t i = 0; i < PLAIN_BOXES_MAX; i++)
			if (plain.box[i].reaper == pid)
				plain.box[i].reaper = 0;
}

static void turn(void)
{
	struct pollfd events[PLAIN_BOXES_MAX + 2];
	const uint64_t next = plain_check();

	events[0] = (struct pollfd){.fd = plain.client_fd,
		.events = (short)(POLLIN | (plain.mail.first ? POLLOUT : 0))};
	events[1] = (struct pollfd){.fd = plain.place_fd, .events = POLLIN};
	for (size_t i = 0; i < PLAIN_BOXES_MAX; i++)
		events[i + 2] = (struct pollfd){.fd = plain.box[i].line_fd, .events = POLLIN};
	if (poll(events, PLAIN_BOXES_MAX + 2, next == UINT64_MAX ? -1 : nc_clock_left_ms(next)) < 0)
		return;
	for (size_t i = 0; i < PLAIN_BOXES_MAX; i++)
		if (events[i + 2].revents && plain.box[i].line_fd == events[i + 2].fd)
			plain_hear(&plain.box[i]);
	if (events[0].revents & POLLOUT && plain.client_fd >= 0)
		(void)nc_mail_flush(&plain.mail, plain.client_fd);
	if (events[0].revents & ~POLLOUT && plain.client_fd >= 0)
		plain_receive();
	/* what the one before has said is heard out first */
	else if (events[1].revents && !is_pending(plain.client_fd))
		answer_call();
	reap();
}

/* Directories of those that were killed: whose process is there no more. */
static void sweep(void)
{
	DIR *dir = opendir(TEMPORARY);
	const struct dirent *entry;
	struct stat status;

	while (dir && (entry = readdir(dir))) {
		const char *pid = nc_text_after(entry->d_name, PREFIX);

		if (pid && strtol(pid, NULL, 10) > 1 && kill((pid_t)strtol(pid, NULL, 10), 0) < 0 &&
			errno == ESRCH &&
			fstatat(dirfd(dir), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
			status.st_uid == geteuid())
			(void)nc_tree_remove(
				dirfd(dir), entry->d_name, nc_clock_ns() + NC_NS_PER_S);
	}
	if (dir)
		(void)closedir(dir);
}

static int begin(struct nacre_err *err)
{
	char path[NC_PROGRAM_PATH_SIZE];
	struct nacre_err ignored = {0};

	for (size_t i = 0; i < PLAIN_IGNORED; i++) /* it ends when nobody can call any more */
		(void)signal(plain_ignored[i], SIG_IGN);
	for (size_t i = 0; i < PLAIN_BOXES_MAX; i++)
		plain.box[i] =
			(struct plain_box){.line_fd = -EBADF, .own_fd = {-EBADF, -EBADF, -EBADF}};
	plain.mail.max = NC_HOLDER_MAIL_MAX;
	plain.mail.waits = on_mail;
	plain_make_terms(&plain.terms);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return nc_err_errno(err, -errno, "Take in orphans");
	sweep();
	(void)snprintf(plain.scratch, sizeof(plain.scratch), TEMPORARY "/" PREFIX "%d.XXXXXX",
		(int)getpid());
	if (!mkdtemp(plain.scratch))
		return nc_err_errno(err, -errno, "Make %s", plain.scratch);
	/* without it there are no files in and out */
	if (nc_program_find("nacre-files", path, &ignored) == 0)
		plain.files_fd = open(path, O_PATH | O_CLOEXEC);
	return fcntl(plain.place_fd, F_SETFD, FD_CLOEXEC) < 0
		       ? nc_err_errno(err, -errno, "Find the place")
		       : 0;
}

int main(void)
{
	struct nacre_err err = {0};

	if (begin(&err) < 0) {
		fprintf(stderr, "nacre-plain: %s\n", err.message);
		return 125;
	}
	while (plain.client_fd >= 0 || plain.place_fd >= 0)
		turn();
	while (plain_orphan(true))
		turn();
	(void)rmdir(plain.scratch);
	return 0;
}
