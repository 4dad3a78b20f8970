/* Starting nacre-recorder, and making the history that it writes. */
#include "watch/recorder.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/path.h"
#include "base/pidfd.h"
#include "base/state.h"
#include "base/text.h"
#include "kernel/fence.h"
#include "kernel/filter.h"
#include "kernel/privilege.h"
#include "kernel/program.h"
#include "kernel/tree.h"
#include "recorder/journal.h"

#define HISTORY_NAME "history"
#define KEY_NAME "verify.key"
/* 64 digits and a newline. */
#define KEY_TEXT_SIZE 65U

/* Where nacre-recorder expects things; see src/recorder/main.c. */
#define WORKER_FD 3
#define WITNESS_FD 4
#define HISTORY_FD 5
#define PLACE_FD 6
/* Above all of these: what is moved down must not be overwritten before. */
#define HIGH_FD 64

/* ---- the history ---- */

static int own(int dir_fd, const char *name)
{
	return fchownat(dir_fd, name, NC_RECORDER_ID, NC_RECORDER_ID, AT_SYMLINK_NOFOLLOW) < 0
		       ? -errno
		       : 0;
}

/* Everything in a fresh history becomes the recorder's; the state directory is root's, as is it. */
static int hand_over(int state_fd, int history_fd, const char *fresh)
{
	static const char *const names[] = {"journal", "blobs", "live", "key"};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(names) / sizeof(names[0]); i++)
		r = own(history_fd, names[i]);
	return r < 0 ? r : own(state_fd, fresh);
}

/* Makes a history under a fresh name; it gets its own when it is whole. */
static int make_history(int state_fd, bool ranges)
{
	cleanup_close int fd = -EBADF;
	unsigned char key[NC_SHA256_SIZE];
	char fresh[NC_ID_SIZE];
	int r = nc_id_new("hs", fresh);

	if (r < 0)
		return r;
	if (mkdirat(state_fd, fresh, 0700) < 0)
		return -errno;
	r = fd = nc_path_open(state_fd, fresh, O_RDONLY | O_DIRECTORY, 0);
	if (r >= 0)
		r = nc_journal_create(fd, key);
	if (r == 0 && ranges)
		r = hand_over(state_fd, fd, fresh);
	if (r == 0 && renameat2(state_fd, fresh, state_fd, HISTORY_NAME, RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r < 0)
		(void)nc_tree_remove(state_fd, fresh, nc_clock_ns() + NC_NS_PER_S);
	explicit_bzero(key, sizeof(key));
	return r;
}

/* Puts the key down that verifies the journal, while no line is made with it and it is still there.
 */
static int keep_key(int state_fd, int history_fd)
{
	unsigned char key[NC_SHA256_SIZE];
	char text[NC_SHA256_HEX_SIZE];
	int r = nc_journal_first_key(history_fd, key);

	if (r == -ESTALE || (r == 0 && faccessat(state_fd, KEY_NAME, F_OK, 0) == 0))
		r = 1;
	if (r == 0) {
		nc_sha256_hex(key, text);
		text[KEY_TEXT_SIZE - 1] = '\n';
		r = nc_path_write(state_fd, KEY_NAME, text, KEY_TEXT_SIZE, 0400);
	}
	explicit_bzero(key, sizeof(key));
	explicit_bzero(text, sizeof(text));
	return r < 0 ? r : 0;
}

/* The history's descriptor; it is made if it was never there, and nobody else is making it now. */
static int open_or_make(int state_fd, bool ranges, struct nacre_err *err)
{
	int r = nc_path_open(state_fd, HISTORY_NAME, O_RDONLY | O_DIRECTORY, 0);

	if (r == -ENOENT) {
		if (faccessat(state_fd, KEY_NAME, F_OK, 0) == 0)
			return nc_err_set(err, -ENOENT,
				"The history is gone, but its verify.key is there: somebody "
				"removed it. "
				"To begin a new one, move verify.key away");
		r = make_history(state_fd, ranges);
		if (r == 0)
			r = nc_path_open(state_fd, HISTORY_NAME, O_RDONLY | O_DIRECTORY, 0);
	}
	return r < 0 ? nc_err_errno(err, r, "Open the history") : r;
}

static int check_owner(int history_fd, bool ranges, struct nacre_err *err)
{
	const uid_t wanted = ranges ? NC_RECORDER_ID : geteuid();
	struct stat status;

	if (fstat(history_fd, &status) < 0)
		return nc_err_errno(err, -errno, "Look at the history");
	if (status.st_uid != wanted || (status.st_mode & (S_IWGRP | S_IWOTH)))
		return nc_err_set(err, -EPERM,
			"The history must belong to user %u and to nobody else", wanted);
	return 0;
}

static int prepare(const char *state_dir, bool ranges, struct nacre_err *err)
{
	cleanup_close int state_fd = nc_state_open(state_dir, true, err);
	cleanup_close int history_fd = -EBADF;
	int r;

	if (state_fd < 0)
		return state_fd;
	/* several may be started at once, and only one makes it */
	if (flock(state_fd, LOCK_EX) < 0)
		return nc_err_errno(err, -errno, "Lock the state directory");
	history_fd = open_or_make(state_fd, ranges, err);
	if (history_fd < 0)
		return history_fd;
	r = check_owner(history_fd, ranges, err);
	if (r < 0)
		return r;
	r = keep_key(state_fd, history_fd);
	if (r < 0)
		return nc_err_errno(err, r, "Keep the key of the journal");
	return take_fd(history_fd);
}

/* ---- the process ---- */

static int move_fd(int fd, int to)
{
	return dup2(fd, to) < 0 ? -errno : 0;
}

_Noreturn static void become_recorder(const struct nc_recorder_setup *setup, int program_fd,
	int socket_fd, int history_fd, bool ranges, char **argv)
{
	int witness_fd = setup->witness_fd, place_fd = setup->place_fd;
	char *environment[] = {NULL};
	int null_fd, r;

	program_fd = fcntl(program_fd, F_DUPFD_CLOEXEC, HIGH_FD);
	socket_fd = fcntl(socket_fd, F_DUPFD_CLOEXEC, HIGH_FD);
	history_fd = fcntl(history_fd, F_DUPFD_CLOEXEC, HIGH_FD);
	if (witness_fd >= 0)
		witness_fd = fcntl(witness_fd, F_DUPFD_CLOEXEC, HIGH_FD);
	if (place_fd > 0)
		place_fd = fcntl(place_fd, F_DUPFD_CLOEXEC, HIGH_FD);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (program_fd < 0 || socket_fd < 0 || history_fd < 0 || null_fd < 0)
		_exit(125);
	r = move_fd(null_fd, STDIN_FILENO);
	if (r == 0)
		r = move_fd(null_fd, STDOUT_FILENO);
	if (r == 0)
		r = move_fd(socket_fd, WORKER_FD);
	if (r == 0 && witness_fd >= 0)
		r = move_fd(witness_fd, WITNESS_FD);
	if (r == 0)
		r = move_fd(history_fd, HISTORY_FD);
	if (r == 0 && place_fd > 0)
		r = move_fd(place_fd, PLACE_FD);
	if (r == 0)
		r = nc_privilege_become_recorder(ranges);
	if (r == 0)
		r = nc_become(program_fd, argv, environment);
	(void)dprintf(STDERR_FILENO, "nacre: Start nacre-recorder: %s\n", nc_errno_text(r));
	_exit(125);
}

static int launch(const struct nc_recorder_setup *setup, int program_fd, int history_fd,
	bool ranges, int *ret_pidfd)
{
	static char name[] = "nacre-recorder", none[] = "0", one[] = "1";
	char blob_bytes[24], journal_bytes[24], days[24];
	char *argv[] = {name, blob_bytes, journal_bytes, days, setup->witness_fd >= 0 ? one : none,
		setup->place_fd > 0 ? one : none, NULL};
	cleanup_close int ours = -EBADF, theirs = -EBADF;
	int ends[2];
	pid_t pid;

	(void)snprintf(blob_bytes, sizeof(blob_bytes), "%" PRIu64, setup->blob_bytes);
	(void)snprintf(journal_bytes, sizeof(journal_bytes), "%" PRIu64, setup->journal_bytes);
	(void)snprintf(days, sizeof(days), "%" PRIu64, setup->days);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	ours = ends[0];
	theirs = ends[1];
	pid = fork(); /* not nc_fork: it must outlive us */
	if (pid < 0)
		return -errno;
	if (pid == 0)
		become_recorder(setup, program_fd, theirs, history_fd, ranges, argv);
	*ret_pidfd = nc_pidfd_open(pid);
	return *ret_pidfd < 0 ? *ret_pidfd : take_fd(ours);
}

int nc_recorder_start(const struct nc_recorder_setup *setup, int *ret_pidfd, struct nacre_err *err)
{
	char path[NC_PROGRAM_PATH_SIZE];
	cleanup_close int history_fd = -EBADF, program_fd = -EBADF;
	bool ranges;
	int r = nc_privilege_ranges(&ranges, err);

	if (r == 0 && setup->program)
		(void)snprintf(path, sizeof(path), "%s", setup->program);
	else if (r == 0)
		r = nc_program_find("nacre-recorder", path, err);
	if (r == 0)
		r = history_fd = prepare(setup->state_dir, ranges, err);
	if (r < 0)
		return r;
	/* opened with our rights: its own user may not walk the way there */
	program_fd = open(path, O_PATH | O_CLOEXEC);
	r = program_fd < 0 ? -errno : launch(setup, program_fd, history_fd, ranges, ret_pidfd);
	return r < 0 ? nc_err_errno(err, r, "Start %s", path) : r;
}

/* ---- reading ---- */

int nc_history_dir(const char *state_dir, int *ret_state_fd, struct nacre_err *err)
{
	cleanup_close int state_fd = nc_state_open(state_dir, false, err);
	cleanup_close int fd = -EBADF;
	bool ranges = false;
	int r;

	if (state_fd == -ENOENT)
		return nc_err_set(err, -ENOENT, "Nothing has been recorded yet");
	if (state_fd < 0)
		return state_fd;
	fd = nc_path_open(state_fd, HISTORY_NAME, O_RDONLY | O_DIRECTORY, 0);
	if (fd == -ENOENT)
		return nc_err_set(err, -ENOENT, "Nothing has been recorded yet");
	if (fd < 0)
		return nc_err_errno(err, fd, "Open the history");
	r = nc_privilege_ranges(&ranges, err);
	if (r == 0 || r == -EPERM)
		r = check_owner(fd, ranges, err);
	if (r < 0)
		return r;
	*ret_state_fd = take_fd(state_fd);
	return take_fd(fd);
}

int nc_history_key(int state_fd, const char *path, unsigned char ret_key[static NC_SHA256_SIZE],
	struct nacre_err *err)
{
	cleanup_close int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
				    : nc_path_open(state_fd, KEY_NAME, O_RDONLY, 0);
	char text[KEY_TEXT_SIZE + 1] = "", quoted[NC_TEXT_QUOTED_MAX];
	ssize_t n;
	int r;

	if (fd < 0 && !path)
		return nc_err_set(err, fd,
			"The key of the journal is not in the state directory: name the file that "
			"it "
			"was moved to with --key");
	n = fd < 0 ? -errno : nc_fd_read_upto(fd, text, KEY_TEXT_SIZE);
	if (n < 0)
		return nc_err_errno(err, (int)n, "Read the key %s",
			nc_text_quote(quoted, path ? path : KEY_NAME));
	r = nc_sha256_parse(text, ret_key);
	explicit_bzero(text, sizeof(text));
	return r < 0 ? nc_err_set(err, r, "%s is not the key of a journal: 64 digits",
			       nc_text_quote(quoted, path ? path : KEY_NAME))
		     : 0;
}

int nc_history_lock_in(int history_fd, struct nacre_err *err)
{
	bool ranges = false;
	int r = nc_privilege_ranges(&ranges, err);

	if (r == -EPERM)
		r = 0; /* the host's root under another number has nothing that it could become */
	if (r < 0)
		return r;
	if (fchdir(history_fd) < 0)
		return nc_err_errno(err, -errno, "Enter the history");
	r = nc_privilege_become_recorder(ranges);
	if (r == 0)
		r = nc_fence_reader(".");
	if (r >= 0)
		r = nc_filter_load(NC_FILTER_WORKER, NULL);
	return r < 0 ? nc_err_errno(err, r, "Give up rights") : 0;
}
