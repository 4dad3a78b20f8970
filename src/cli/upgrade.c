/* `nacre serve` upgraded in place. */
#include "cli/upgrade.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/pidfd.h"
#include "base/text.h"
#include "kernel/boxwire.h"

/* An executable has so long to say what it speaks, and a worker to be up. */
#define SPEAK_NS (5 * NC_NS_PER_S)
#define UP_S 20U
/* Above the most that draining may take. */
#define ANSWER_NS (3700 * NC_NS_PER_S)
/* From one to the next: each is a worker that ends, or two, of which the spawner allows few. */
#define PAUSE_NS (5 * NC_NS_PER_S)
#define SPOKEN_MAX 256
#define WORD_MAX 200
/* Set for the executable that a worker becomes: "next", or "now". */
#define VARIABLE "NACRE_UPGRADE"
#define NEXT "next"
#define NOW "now"
#define UP "up"

/* ---- descriptors on sockets ---- */

static int send_exe(int socket_fd, int exe_fd)
{
	char byte = 0;
	struct iovec piece = {&byte, 1};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr message = {.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};

	control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(&control.header), &exe_fd, sizeof(int));
	return sendmsg(socket_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* flags: MSG_PEEK leaves it there. A descriptor, or -errno. */
static int receive_exe(int socket_fd, int flags)
{
	char byte;
	struct iovec piece = {&byte, 1};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr message = {.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	const struct cmsghdr *header;
	int fd;

	if (recvmsg(socket_fd, &message, flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
		return -errno;
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
		header->cmsg_len != CMSG_LEN(sizeof(int)))
		return -EBADMSG;
	memcpy(&fd, CMSG_DATA(header), sizeof(int));
	return fd;
}

static void drop_exe(int socket_fd)
{
	(void)nc_fd_close(receive_exe(socket_fd, 0));
}

/* ---- who waits ---- */

static void forget(struct nc_upgrade *upgrade)
{
	upgrade->exe_fd = nc_fd_close(upgrade->exe_fd);
}

int nc_upgrade_init(struct nc_upgrade *upgrade, struct nacre_err *err)
{
	const int type = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;
	ssize_t size;

	*upgrade = (struct nc_upgrade){
		.next = {-EBADF, -EBADF}, .now = {-EBADF, -EBADF}, .exe_fd = -EBADF};
	size = readlink("/proc/self/exe", upgrade->path, sizeof(upgrade->path) - 1);
	if (size < 0)
		return nc_err_errno(err, -errno, "Find our own executable");
	upgrade->path[size] = '\0';
	if (socketpair(AF_UNIX, type, 0, upgrade->next) < 0 ||
		socketpair(AF_UNIX, type, 0, upgrade->now) < 0)
		return nc_err_errno(err, -errno, "Make a socket pair");
	return 0;
}

void nc_upgrade_leave_to_parent(struct nc_upgrade *upgrade)
{
	upgrade->next[0] = nc_fd_close(upgrade->next[0]);
	upgrade->now[0] = nc_fd_close(upgrade->now[0]);
	forget(upgrade);
}

void nc_upgrade_bequeath(const struct nc_upgrade *upgrade, struct nc_heirs *heirs)
{
	nc_heirs_add(heirs, NEXT, upgrade->next[1]);
	nc_heirs_add(heirs, NOW, upgrade->now[1]);
}

int nc_upgrade_speak(void)
{
	printf("boxwire %u %u beside %u version %s\n", NC_BOXWIRE_VERSION, NC_BOXWIRE_OLDEST,
		NC_UPGRADE_BESIDE, NACRE_VERSION);
	return fflush(stdout) == EOF ? -errno : 0;
}

_Noreturn static void ask(int exe_fd, int out_fd)
{
	static char name[] = "nacre", verb[] = "serve", option[] = "--speaks";
	char *const argv[] = {name, verb, option, NULL};
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (null_fd >= 0 && dup2(null_fd, STDIN_FILENO) >= 0 && dup2(null_fd, STDERR_FILENO) >= 0 &&
		dup2(out_fd, STDOUT_FILENO) >= 0)
		(void)syscall(SYS_execveat, exe_fd, "", argv, environ, AT_EMPTY_PATH);
	_exit(126);
}

/* All that it says in its time, as text. */
static int read_spoken(int fd, uint64_t until, char text[static SPOKEN_MAX])
{
	struct pollfd event = {.fd = fd, .events = POLLIN};
	size_t size = 0;
	ssize_t n = 1;

	while (n > 0 && size < SPOKEN_MAX - 1) {
		int ready = poll(&event, 1, nc_clock_left_ms(until));

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return -ETIMEDOUT;
		n = read(fd, text + size, SPOKEN_MAX - 1 - size);
		if (n > 0)
			size += (size_t)n;
	}
	text[size] = '\0';
	return n < 0 ? -errno : n > 0 ? -EFBIG : 0;
}

/* Its answer, as text; it is our own program, or says so, and has our rights. It is not waited for
 * longer than it may take: all signals wait meanwhile, also the one that is to end us. */
static int hear(int exe_fd, char text[static SPOKEN_MAX], struct nacre_err *err)
{
	const uint64_t until = nc_clock_ns() + SPEAK_NS;
	cleanup_close int in_fd = -EBADF;
	cleanup_process int pidfd = -EBADF;
	siginfo_t info = {0};
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return nc_err_errno(err, -errno, "Make a pipe");
	in_fd = ends[0];
	r = nc_fork(&pidfd);
	if (r == 0)
		ask(exe_fd, ends[1]);
	(void)close(ends[1]);
	if (r < 0)
		return nc_err_errno(err, r, "Start it");
	r = read_spoken(in_fd, until, text);
	if (r == 0)
		r = nc_pidfd_wait(pidfd, until, &info);
	if (r < 0)
		return nc_err_errno(err, r, "Ask it what it speaks");
	pidfd = nc_fd_close(pidfd); /* it is reaped */
	if (info.si_code != CLD_EXITED || info.si_status != 0)
		return nc_err_set(err, -EINVAL,
			"It cannot be executed, or does not know --speaks: it may be older");
	return 0;
}

/* The number behind a word at the beginning of *text. */
static bool take_number(char **text, const char *word, uint64_t *ret_number)
{
	const char *found = word ? strsep(text, " ") : "", *number;

	if (!found || (word && !nc_streq(found, word)))
		return false;
	number = strsep(text, " ");
	return number && nc_parse_u64(number, 0, UINT16_MAX, ret_number) == 0;
}

/* Whether its worker can live below our spawner, beside those who work beside us. */
static int check_spoken(char *text, struct nacre_err *err)
{
	const uint64_t ours = NC_BOXWIRE_VERSION;
	uint64_t newest, oldest, beside;

	text[strcspn(text, "\n")] = '\0';
	if (!take_number(&text, "boxwire", &newest) || !take_number(&text, NULL, &oldest) ||
		!take_number(&text, "beside", &beside))
		return nc_err_set(err, -EINVAL, "It does not say what it speaks");
	if (newest > ours + 1 || newest + 1 < ours || oldest > ours || newest < NC_BOXWIRE_OLDEST)
		return nc_err_set(err, -EPROTONOSUPPORT,
			"It speaks version %" PRIu64 " of the box wire, and the spawner %" PRIu64
			": end this daemon and start it",
			newest, ours);
	if (beside != NC_UPGRADE_BESIDE)
		return nc_err_set(err, -EPROTONOSUPPORT,
			"It speaks with recorder and others in another way: end this daemon and "
			"start it");
	return 0;
}

static int open_new(const char *path, struct stat *ret_status, struct nacre_err *err)
{
	cleanup_close int fd = open(path, O_PATH | O_CLOEXEC);
	char text[SPOKEN_MAX];
	int r;

	if (fd < 0 || fstat(fd, ret_status) < 0)
		return nc_err_errno(err, -errno, "Open '%s'", path);
	if (!S_ISREG(ret_status->st_mode))
		return nc_err_set(err, -EINVAL, "'%s' is no file", path);
	r = hear(fd, text, err);
	if (r == 0)
		r = check_spoken(text, err);
	return r < 0 ? r : take_fd(fd);
}

/* What workers have said since is not about this. */
static void drain(const struct nc_upgrade *upgrade)
{
	char word[WORD_MAX];

	while (recv(upgrade->next[0], word, sizeof(word), MSG_DONTWAIT) > 0)
		;
}

static void log_failure(const struct nacre_err *err)
{
	nc_log(NC_LOG_ERROR, "Not upgraded: the old version goes on",
		NC_LOG_TEXT("reason", err->message));
}

/* Hands in the executable that has our name now. */
static void begin(struct nc_upgrade *upgrade)
{
	struct nacre_err err = {0};
	struct stat status;
	int fd = open_new(upgrade->path, &status, &err);
	int r = fd;

	if (r >= 0) {
		drop_exe(upgrade->next[1]); /* one that was handed in before, and nobody took */
		drain(upgrade);
		forget(upgrade);
		upgrade->device = status.st_dev;
		upgrade->inode = status.st_ino;
		r = send_exe(upgrade->next[0], fd);
		if (r < 0)
			nc_err_errno(&err, r, "Hand it over");
	}
	if (r < 0) {
		(void)nc_fd_close(fd);
		log_failure(&err);
		return;
	}
	upgrade->exe_fd = fd;
	nc_log(NC_LOG_INFO, "Upgrading", NC_LOG_TEXT("executable", upgrade->path));
}

void nc_upgrade_want(struct nc_upgrade *upgrade)
{
	upgrade->wanted = true;
}

bool nc_upgrade_is_under_way(const struct nc_upgrade *upgrade)
{
	return upgrade->wanted || upgrade->exe_fd >= 0;
}

/* From now on each worker becomes it. */
static void confirm(struct nc_upgrade *upgrade)
{
	int r = send_exe(upgrade->now[0], upgrade->exe_fd);

	/* the one before goes afterwards: a worker that looks meanwhile finds either */
	if (r == 0 && upgrade->upgraded)
		drop_exe(upgrade->now[1]);
	upgrade->upgraded = upgrade->upgraded || r == 0;
	if (r < 0)
		nc_log(NC_LOG_ERROR, "The new version cannot be kept for the next worker",
			NC_LOG_TEXT("reason", nc_errno_text(r)));
	forget(upgrade);
	nc_log(NC_LOG_INFO, "Upgraded");
}

static void fail(struct nc_upgrade *upgrade, const char *reason)
{
	struct nacre_err err = {0};

	drop_exe(upgrade->next[1]);
	forget(upgrade);
	nc_err_set(&err, -ECANCELED, "%s", reason);
	log_failure(&err);
}

/* What a worker says is foreign. */
static void listen_to(struct nc_upgrade *upgrade)
{
	char word[WORD_MAX + 1], quoted[NC_TEXT_QUOTED_MAX], good[64];
	ssize_t n = recv(upgrade->next[0], word, WORD_MAX, MSG_DONTWAIT);

	if (n <= 0 || upgrade->exe_fd < 0)
		return;
	word[n] = '\0';
	(void)snprintf(
		good, sizeof(good), UP " %" PRIu64 " %" PRIu64, upgrade->device, upgrade->inode);
	if (nc_streq(word, good))
		confirm(upgrade);
	else if (nc_text_after(word, UP " "))
		fail(upgrade, "The new version did not come up");
	else
		fail(upgrade, nc_text_quote(quoted, word));
}

void nc_upgrade_tick(struct nc_upgrade *upgrade)
{
	const uint64_t now = nc_clock_ns();

	listen_to(upgrade);
	if (upgrade->exe_fd >= 0 && now - upgrade->began_ns > ANSWER_NS)
		fail(upgrade, "Nobody has answered");
	if (!upgrade->wanted || (upgrade->began_ns && now - upgrade->began_ns < PAUSE_NS))
		return;
	upgrade->wanted = false;
	upgrade->began_ns = now;
	begin(upgrade);
}

/* ---- workers ---- */

static bool is_self(int exe_fd)
{
	struct stat own, other;

	return stat("/proc/self/exe", &own) < 0 || fstat(exe_fd, &other) < 0 ||
	       (own.st_dev == other.st_dev && own.st_ino == other.st_ino);
}

void nc_upgrade_follow(char **argv)
{
	const int next = nc_heirs_number(NEXT), now = nc_heirs_number(NOW);
	const char *which = NEXT;
	cleanup_close int fd = -EBADF;

	if (next < 0 || now < 0 || getenv(VARIABLE))
		return;
	fd = receive_exe(next, 0);
	if (fd < 0) {
		which = NOW;
		fd = receive_exe(now, MSG_PEEK);
	}
	if (fd < 0 || is_self(fd) || setenv(VARIABLE, which, 1) < 0)
		return;
	if (nc_streq(which, NEXT)) /* it is ignored by who is up */
		(void)alarm(UP_S);
	(void)syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH);
	(void)alarm(0);
	(void)unsetenv(VARIABLE);
}

bool nc_upgrade_is_new(void)
{
	const char *which = getenv(VARIABLE);

	return which && nc_streq(which, NEXT);
}

static void say(const struct nc_upgrade_watch *watch, const char *text)
{
	/* nobody may be listening: then there is no room some time */
	if (watch->fd >= 0)
		(void)send(watch->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void on_next(uv_poll_t *poll, int status, int events)
{
	struct nc_upgrade_watch *watch = poll->data;

	(void)status, (void)events;
	(void)uv_poll_stop(poll); /* it stays there, for the next worker */
	watch->leave(watch->context);
}

void nc_upgrade_watch(struct nc_upgrade_watch *watch, uv_loop_t *loop)
{
	if (watch->fd < 0)
		return;
	watch->poll.data = watch;
	if (uv_poll_init(loop, &watch->poll, watch->fd) < 0 ||
		uv_poll_start(&watch->poll, UV_READABLE, on_next) < 0) {
		watch->fd = -EBADF;
		return;
	}
	uv_unref((uv_handle_t *)&watch->poll);
}

void nc_upgrade_up(const struct nc_upgrade_watch *watch)
{
	struct stat own;
	char text[64];

	(void)signal(SIGALRM, SIG_IGN);
	if (stat("/proc/self/exe", &own) < 0)
		return; /* and it is taken for one that is not up */
	(void)snprintf(text, sizeof(text), UP " %" PRIu64 " %" PRIu64, (uint64_t)own.st_dev,
		(uint64_t)own.st_ino);
	say(watch, text);
}

void nc_upgrade_stay(struct nc_upgrade_watch *watch, const char *reason)
{
	drop_exe(watch->fd);
	say(watch, reason);
	(void)uv_poll_start(&watch->poll, UV_READABLE, on_next);
}
