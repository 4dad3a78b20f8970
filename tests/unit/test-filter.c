/*
 * The system call filters, tried in children on the running kernel. Every case runs three times:
 * without a filter, under the plain variant, and under the reporting one, whose notifications are
 * answered with an error that no kernel gives here; so a refusal is known to be the filter's, also
 * where the kernel would have refused the call itself.
 */
#include "unit-files.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/pidfd.h"
#include "kernel/filter.h"
#include "kernel/filter_table.h"

#define PATIENCE_NS (30 * NC_NS_PER_S)
#define PATIENCE_MS 30000
#define CALLS_MAX 512

/* What the supervisor here answers to a notification. */
#define REPORTED ENOTUNIQ

/* The whole upper half of a register, which the kernel ignores where it takes an int. */
#define HIGH (0xdeadbeefUL << 32)
#define CALL_CLONE_NEWTIME 0x80UL

enum expected { ALLOWED, REFUSED, ABSENT, UNSUPPORTED };

struct trial {
	enum expected expected;
	long number;
	unsigned long args[6];
};

struct answer {
	long result;
	int error;
	int notified; /* times */
};

/* Shared with the children. */
static struct shared {
	struct answer answers[CALLS_MAX];
} * shared;

/* Whether children have the spawner's filter beneath the one that is tried, as boxes do. */
static bool under_spawner;

static int pipe_fds[2], tcp_fd, udp_fd, dir_fd;
static char dir_path[UNIT_DIR_SIZE];

static int set_up(void **state)
{
	(void)state;
	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(shared != MAP_FAILED);
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	tcp_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	udp_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(tcp_fd >= 0 && udp_fd >= 0);
	dir_fd = unit_dir_make(dir_path);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	close(tcp_fd);
	close(udp_fd);
	close(dir_fd);
	unit_remove(AT_FDCWD, dir_path);
	munmap(shared, sizeof(*shared));
	return 0;
}

/* ---- children ---- */

static long make(long number, const unsigned long args[6])
{
	return syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}

/*
 * Ends a child. Under init's filter without nc_child_exit, which makes more calls in a coverage
 * build; and not _Noreturn, since in front of such functions AddressSanitizer makes some.
 */
static void leave(enum nc_filter which, int status)
{
	if (which == NC_FILTER_INIT)
		syscall(SYS_exit_group, status);
	else
		nc_child_exit(status);
}

static bool send_fd(int socket_fd, int fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec data = {.iov_base = (char[]){'x'}, .iov_len = 1};
	struct msghdr message = {.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};

	control.header = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(sizeof(int))};
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return sendmsg(socket_fd, &message, 0) == 1;
}

static int receive_fd(int socket_fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	char byte;
	struct iovec data = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	int fd;

	assert_int_equal(recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC), 1);
	assert_int_equal(control.header.cmsg_len, CMSG_LEN(sizeof(int)));
	memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	return fd;
}

/* The child's part. Exit status 0: all calls were made. NC_FILTER_MAX: no filter. */
static void try_all(enum nc_filter which, int listener_socket, const struct trial *trials, size_t n)
{
	int listener = -EBADF;

	(void)setsid();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		leave(which, 2);
	if (under_spawner && nc_filter_load(NC_FILTER_SPAWNER, NULL) < 0)
		leave(which, 5);
	if (which < NC_FILTER_MAX &&
		nc_filter_load(which, listener_socket >= 0 ? &listener : NULL) < 0)
		leave(which, 3);
	if (listener_socket >= 0 && !send_fd(listener_socket, listener))
		leave(which, 4);
	if (listener >= 0)
		close(listener);
	for (size_t i = 0; i < n; i++) {
		long result;

		errno = 0;
		result = make(trials[i].number, trials[i].args);
		if (trials[i].number == SYS_clone && result == 0)
			syscall(SYS_exit_group, 0); /* the new child */
		shared->answers[i].result = result;
		shared->answers[i].error = errno;
	}
	leave(which, 0);
}

/* Waits for the child and returns its status, or 128 + the signal that ended it. */
static int status_of(int pidfd)
{
	siginfo_t info = {0};

	assert_int_equal(nc_pidfd_wait(pidfd, nc_clock_ns() + PATIENCE_NS, &info), 0);
	return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

/* Answers the notifications of a child until it is gone. */
static void supervise(int listener, const struct trial *trials, size_t n)
{
	struct pollfd event = {.fd = listener, .events = POLLIN};
	size_t i = 0;

	while (poll(&event, 1, PATIENCE_MS) == 1 && (event.revents & POLLIN)) {
		struct seccomp_notif request = {0};
		struct seccomp_notif_resp answer = {.error = -REPORTED};

		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
			continue;
		/* trials come in order, and each is notified once at most */
		while (i < n && (trials[i].number != request.data.nr ||
					memcmp(trials[i].args, request.data.args,
						sizeof(trials[i].args)) != 0))
			i++;
		assert_true(i < n);
		shared->answers[i].notified++;
		i++;
		answer.id = request.id;
		assert_int_equal(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer), 0);
	}
	assert_true(event.revents & POLLHUP);
}

static int run(enum nc_filter which, enum nc_filter_variant variant, const struct trial *trials,
	size_t n, struct answer *ret_answers)
{
	cleanup_close int pidfd = -EBADF;
	int pair[2] = {-EBADF, -EBADF}, r;

	assert_true(n <= CALLS_MAX);
	memset(shared, 0, sizeof(*shared));
	if (variant == NC_FILTER_REPORTING)
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	r = nc_fork(&pidfd);
	if (r == 0)
		try_all(which, pair[1], trials, n);
	assert_true(r > 0);
	if (variant == NC_FILTER_REPORTING) {
		int listener = receive_fd(pair[0]);

		supervise(listener, trials, n);
		close(listener);
		close(pair[0]);
		close(pair[1]);
	}
	r = status_of(pidfd);
	memcpy(ret_answers, shared->answers, n * sizeof(*ret_answers));
	return r;
}

/* ---- what is expected ---- */

static const char *const profiles[] = {"container", "shared", "process", "alone", "init", "worker",
	"spawner", "recorder", "server", "egress", "courier", "analyst"};

/* Those of boxes come first, then nacre-init's; the rest have no reporting variant. */
#define BOXES NC_FILTER_INIT
#define REPORTERS NC_FILTER_WORKER

/* Builds with more calls than ours load no filters on our own programs, or not all. */
#if defined(__SANITIZE_ADDRESS__) || defined(NACRE_COVERAGE)
#define LOADED REPORTERS
#else
#define LOADED NC_FILTER_MAX
#endif

static void judge(enum nc_filter which, const struct trial *trial, const struct answer *bare,
	const struct answer *plain, const struct answer *reporting)
{
	const char *name = nc_filter_call_name((int)trial->number);
	char what[160];

	snprintf(what, sizeof(what), "%s: %s (%ld: %#lx, %#lx, %#lx, %#lx)", profiles[which],
		name ? name : "?", trial->number, trial->args[0], trial->args[1], trial->args[2],
		trial->args[3]);
	if (trial->expected == REFUSED) {
		if (plain->result != -1 || plain->error != EPERM)
			fail_msg("%s gave %ld, errno %d, not EPERM", what, plain->result,
				plain->error);
		if (reporting->error != REPORTED || reporting->notified != 1)
			fail_msg("%s was not reported: errno %d", what, reporting->error);
	} else if (trial->expected == ABSENT) {
		if (plain->error != ENOSYS || reporting->error != ENOSYS || reporting->notified)
			fail_msg("%s is there: errno %d, %d", what, plain->error, reporting->error);
	} else if (trial->expected == UNSUPPORTED) {
		if (plain->error != EOPNOTSUPP || reporting->error != EOPNOTSUPP ||
			reporting->notified)
			fail_msg("%s gave errno %d, %d", what, plain->error, reporting->error);
	} else if (plain->error != bare->error || reporting->error != bare->error ||
		   reporting->notified) {
		fail_msg("%s: errno %d without a filter, %d with, %d reporting", what, bare->error,
			plain->error, reporting->error);
	}
}

/* Returns for how many of the refusals the kernel alone would have answered otherwise. */
static size_t check(enum nc_filter which, const struct trial *trials, size_t n)
{
	static struct answer bare[CALLS_MAX], plain[CALLS_MAX], reporting[CALLS_MAX];
	size_t controls = 0;

	assert_int_equal(run(NC_FILTER_MAX, NC_FILTER_PLAIN, trials, n, bare), 0);
	assert_int_equal(run(which, NC_FILTER_PLAIN, trials, n, plain), 0);
	assert_int_equal(run(which, NC_FILTER_REPORTING, trials, n, reporting), 0);
	for (size_t i = 0; i < n; i++) {
		judge(which, &trials[i], &bare[i], &plain[i], &reporting[i]);
		controls += trials[i].expected == REFUSED && bare[i].error != EPERM;
	}
	return controls;
}

/* For calls of which the kernel itself would refuse none. */
static void check_all(enum nc_filter which, const struct trial *trials, size_t n)
{
	size_t refused = 0;

	for (size_t i = 0; i < n; i++)
		refused += trials[i].expected == REFUSED;
	assert_int_equal(check(which, trials, n), refused);
}

#define CHECK_ALL(which, trials) check_all(which, trials, unit_count(trials))

static void check_boxes(const struct trial *trials, size_t n)
{
	for (int which = 0; which < BOXES; which++)
		check_all((enum nc_filter)which, trials, n);
}

#define CHECK_BOXES(trials) check_boxes(trials, unit_count(trials))

/* For profiles that report nothing. Returns how many answers are not those of the kernel alone. */
static size_t check_plain(enum nc_filter which, const struct trial *trials, size_t n)
{
	static struct answer bare[CALLS_MAX], plain[CALLS_MAX];
	size_t differ = 0;

	assert_int_equal(run(NC_FILTER_MAX, NC_FILTER_PLAIN, trials, n, bare), 0);
	assert_int_equal(run(which, NC_FILTER_PLAIN, trials, n, plain), 0);
	for (size_t i = 0; i < n; i++) {
		int expected = trials[i].expected == ALLOWED   ? bare[i].error
			       : trials[i].expected == REFUSED ? EPERM
							       : ENOSYS;

		if (plain[i].error != expected)
			fail_msg("%s: %ld (%#lx, %#lx): errno %d, not %d", profiles[which],
				trials[i].number, trials[i].args[0], trials[i].args[1],
				plain[i].error, expected);
		differ += plain[i].error != bare[i].error;
	}
	return differ;
}

/* ---- numbers ---- */

static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at++)
		if ((at == list || at[-1] == ' ' || at[-1] == '?') &&
			(at[length] == ' ' || at[length] == '\0'))
			return true;
	return false;
}

static const struct nc_filter_group *group_of(const char *name)
{
	for (size_t i = 0; i < unit_count(nc_filter_groups); i++)
		if (has_word(nc_filter_groups[i].calls, name))
			return &nc_filter_groups[i];
	return NULL;
}

static bool has_rule(const char *name)
{
	for (size_t i = 0; i < unit_count(nc_filter_rules); i++)
		if (strcmp(nc_filter_rules[i].call, name) == 0 &&
			(nc_filter_rules[i].profiles & NC_IN_BOXES_AND_INIT))
			return true;
	return false;
}

/* Every call that the tables refuse to boxes, with arguments that no kernel accepts. */
static size_t refused_calls(struct trial *trials)
{
	size_t n = 0;

	for (int number = 0; number < CALLS_MAX; number++) {
		const char *name = nc_filter_call_name(number);
		const struct nc_filter_group *group = name ? group_of(name) : NULL;

		if (!group || group->allowed_in ||
			(group->absent_in & ~(unsigned int)NC_IN_SPAWNER) || has_rule(name))
			continue;
		trials[n] = (struct trial){REFUSED, number, {0}};
		/* vhangup() and sync() take none; the child has no terminal */
		memset(trials[n].args, 0xff, sizeof(trials[n].args));
		n++;
	}
	return n;
}

static void refused_groups_are_refused_in_every_profile(void **state)
{
	static struct trial trials[CALLS_MAX];
	size_t n = refused_calls(trials);

	(void)state;
	assert_true(n >= 70);
	for (int which = 0; which < REPORTERS; which++) {
		size_t controls = check((enum nc_filter)which, trials, n);

		/* root gets other answers from the kernel for most of them */
		assert_true(controls >= (geteuid() == 0 ? n / 2 : n / 4));
	}
}

/* The spawner's filter, which boxes inherit, takes none of the reports away. */
static void refusals_are_reported_under_the_spawners_filter(void **state)
{
	static struct trial trials[CALLS_MAX];
	size_t n = refused_calls(trials);
	static const struct trial absent[] = {
		{ABSENT, SYS_clone3, {0}}, {ABSENT, 600, {0}}, {ALLOWED, SYS_getpid, {0}}};

	(void)state;
	for (int which = 0; which < BOXES; which++) {
		static struct answer plain[CALLS_MAX], reporting[CALLS_MAX];

		under_spawner = true;
		assert_int_equal(run((enum nc_filter)which, NC_FILTER_PLAIN, trials, n, plain), 0);
		assert_int_equal(
			run((enum nc_filter)which, NC_FILTER_REPORTING, trials, n, reporting), 0);
		under_spawner = false;
		for (size_t i = 0; i < n; i++)
			judge((enum nc_filter)which, &trials[i], &plain[i], &plain[i],
				&reporting[i]);
	}
	under_spawner = true;
	(void)check_plain(NC_FILTER_CONTAINER, absent, unit_count(absent));
	under_spawner = false;
}

static void calls_that_matter_are_among_the_refused(void **state)
{
	static const long numbers[] = {
		SYS_mount,
		SYS_umount2,
		SYS_pivot_root,
		SYS_chroot,
		SYS_setns,
		SYS_unshare,
		SYS_open_tree,
		SYS_move_mount,
		SYS_fsopen,
		SYS_fsconfig,
		SYS_fsmount,
		SYS_fspick,
		SYS_mount_setattr,
		SYS_open_by_handle_at,
		SYS_name_to_handle_at,
		SYS_ptrace,
		SYS_process_vm_readv,
		SYS_process_vm_writev,
		SYS_pidfd_getfd,
		SYS_kcmp,
		SYS_process_madvise,
		SYS_bpf,
		SYS_perf_event_open,
		SYS_userfaultfd,
		SYS_io_uring_setup,
		SYS_io_uring_enter,
		SYS_io_uring_register,
		SYS_add_key,
		SYS_request_key,
		SYS_keyctl,
		SYS_init_module,
		SYS_finit_module,
		SYS_delete_module,
		SYS_kexec_load,
		SYS_reboot,
		SYS_swapon,
		SYS_swapoff,
		SYS_acct,
		SYS_quotactl,
		SYS_quotactl_fd,
		SYS_syslog,
		SYS_vhangup,
		SYS_settimeofday,
		SYS_clock_settime,
		SYS_clock_adjtime,
		SYS_adjtimex,
		SYS_sethostname,
		SYS_setdomainname,
		SYS_lookup_dcookie,
		SYS_fanotify_init,
		SYS_memfd_secret,
		SYS_vmsplice,
		SYS_move_pages,
		SYS_mbind,
		SYS_migrate_pages,
#ifdef __x86_64__
		SYS_iopl,
		SYS_ioperm,
		SYS_modify_ldt,
		SYS_uselib,
		SYS_kexec_file_load,
#endif
	};
	static struct trial trials[CALLS_MAX];
	size_t n = refused_calls(trials);

	(void)state;
	for (size_t i = 0; i < unit_count(numbers); i++) {
		size_t at = 0;

		while (at < n && trials[at].number != numbers[i])
			at++;
		if (at == n)
			fail_msg("%ld is not refused", numbers[i]);
	}
}

static void unknown_calls_and_clone3_are_absent(void **state)
{
	static const struct trial trials[] = {
		{ABSENT, 300 + 100, {0}},
		{ABSENT, 423, {0}},
		{ABSENT, 600, {0}},
		{ABSENT, 1000, {0}},
		{ABSENT, 100000, {0}},
		{ABSENT, 0x3fffffff, {0}},
		{ABSENT, SYS_clone3, {0}},
		{ABSENT, -1, {0}},
	};

	(void)state;
	for (int which = 0; which < REPORTERS; which++)
		CHECK_ALL((enum nc_filter)which, trials);
}

/* So that it is the filter who says so: here the kernel has it. */
static void without_a_filter_clone3_is_there(void **state)
{
	static const struct trial trial = {ABSENT, SYS_clone3, {0}};
	struct answer answer;

	(void)state;
	assert_int_equal(run(NC_FILTER_MAX, NC_FILTER_PLAIN, &trial, 1, &answer), 0);
	assert_int_equal(answer.error, EINVAL);
}

#ifdef __x86_64__
/* getpid() of the 32-bit interface */
static long call_i386(void)
{
	long result = 20;

	__asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
	return result;
}

static long call_x32(void)
{
	return syscall(SYS_getpid | 0x40000000L);
}

static long call_x32_of_its_own(void)
{
	return syscall(0x40000000L | 520, 0, 0, 0); /* execve, numbered only there */
}

static int status_of_call(long (*call)(void), enum nc_filter which, bool reporting)
{
	cleanup_close int pidfd = -EBADF;
	int listener, r = nc_fork(&pidfd);

	if (r == 0) {
		(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (which < NC_FILTER_MAX &&
			nc_filter_load(which, reporting ? &listener : NULL) < 0)
			leave(which, 3);
		(void)call();
		leave(which, 0);
	}
	assert_true(r > 0);
	return status_of(pidfd);
}

static void foreign_calls_kill(void **state)
{
	static long (*const calls[])(void) = {call_i386, call_x32, call_x32_of_its_own};

	(void)state;
	for (size_t i = 0; i < unit_count(calls); i++) {
		int bare = status_of_call(calls[i], NC_FILTER_MAX, false);

		/* SIGSEGV: a kernel without the 32-bit interface */
		assert_true(bare == 0 || bare == 128 + SIGSEGV);
		for (int which = 0; bare == 0 && which < (int)LOADED; which++)
			for (int reporting = 0; reporting < (which < REPORTERS ? 2 : 1);
				reporting++)
				assert_int_equal(
					status_of_call(calls[i], (enum nc_filter)which, reporting),
					128 + SIGSYS);
	}
}
#endif

/* ---- arguments ---- */

static void clone_gives_no_namespace(void **state)
{
	static const unsigned long flags[] = {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID,
		CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP, CALL_CLONE_NEWTIME,
		CLONE_PARENT, CLONE_NEWUSER | CLONE_NEWNS, CLONE_NEWUSER | HIGH,
		CLONE_NEWUSER | CLONE_VM};
	struct trial trials[unit_count(flags) + 2] = {
		{ALLOWED, SYS_clone, {SIGCHLD}},
		{ALLOWED, SYS_clone, {SIGCHLD | HIGH}},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(flags); i++)
		/* CLONE_THREAD without CLONE_SIGHAND: EINVAL, should the filter let it through */
		trials[i + 2] =
			(struct trial){REFUSED, SYS_clone, {flags[i] | CLONE_THREAD | SIGCHLD}};
	CHECK_ALL(NC_FILTER_CONTAINER, trials);
	CHECK_ALL(NC_FILTER_PROCESS, trials);
	/* alone: no process either, but threads */
	trials[0].expected = trials[1].expected = REFUSED;
	CHECK_ALL(NC_FILTER_ALONE, trials);
}

static void alone_there_are_no_new_processes(void **state)
{
	static const struct trial trials[] = {
#ifdef __x86_64__
		{REFUSED, SYS_fork, {0}},
#endif
		{REFUSED, SYS_clone, {SIGCHLD}},
		{REFUSED, SYS_clone, {0}},
		{REFUSED, SYS_clone, {CLONE_PARENT_SETTID | SIGCHLD}},
		{REFUSED, SYS_clone, {SIGCHLD | (unsigned long)CLONE_THREAD << 32}},
		{ALLOWED, SYS_clone, {CLONE_THREAD}}, /* EINVAL: without CLONE_SIGHAND */
		{ALLOWED, SYS_clone, {CLONE_THREAD | HIGH}},
		{ABSENT, SYS_clone3, {0}},
		{ALLOWED, SYS_execve, {0}},
		{ALLOWED, SYS_wait4, {~0UL, 0, WNOHANG}},
	};
	static struct answer plain[unit_count(trials)], reporting[unit_count(trials)];

	(void)state;
	/* without a filter they would make processes */
	assert_int_equal(
		run(NC_FILTER_ALONE, NC_FILTER_PLAIN, trials, unit_count(trials), plain), 0);
	assert_int_equal(
		run(NC_FILTER_ALONE, NC_FILTER_REPORTING, trials, unit_count(trials), reporting),
		0);
	for (size_t i = 0; i < unit_count(trials); i++) {
		assert_true(trials[i].expected != ALLOWED || plain[i].error != EPERM);
		judge(NC_FILTER_ALONE, &trials[i], &plain[i], &plain[i], &reporting[i]);
	}
}

static void sockets(void **state)
{
	static const struct trial trials[] = {
		{ALLOWED, SYS_socket, {AF_UNIX, SOCK_STREAM, 0}},
		{ALLOWED, SYS_socket, {AF_UNIX, SOCK_DGRAM, 0}},
		{ALLOWED, SYS_socket, {AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0}},
		{ALLOWED, SYS_socket, {AF_INET, SOCK_STREAM, 0}},
		{ALLOWED, SYS_socket, {AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 6}},
		{ALLOWED, SYS_socket, {AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0}},
		{ALLOWED, SYS_socket, {AF_INET, SOCK_DGRAM, 17}},
		{ALLOWED, SYS_socket, {AF_INET6, SOCK_STREAM, 0}},
		{ALLOWED, SYS_socket, {AF_INET6, SOCK_STREAM, 6}},
		{ALLOWED, SYS_socket, {AF_INET6, SOCK_DGRAM, 0}},
		{ALLOWED, SYS_socket, {AF_INET6, SOCK_DGRAM, 17}},
		{ALLOWED, SYS_socket, {AF_INET | HIGH, SOCK_DGRAM | HIGH, HIGH}},
		{ALLOWED, SYS_socket, {AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0}},
		{ALLOWED, SYS_socket, {AF_NETLINK, SOCK_DGRAM, 0}},
		{REFUSED, SYS_socket, {AF_UNIX, SOCK_RAW, 0}},
		{REFUSED, SYS_socket, {AF_INET, SOCK_STREAM, 262}}, /* MPTCP */
		{REFUSED, SYS_socket, {AF_INET | HIGH, SOCK_STREAM | HIGH, 262 | HIGH}},
		{REFUSED, SYS_socket, {AF_INET6, SOCK_STREAM, 262}},
		{REFUSED, SYS_socket, {AF_INET, SOCK_STREAM, 132}}, /* SCTP */
		{REFUSED, SYS_socket, {AF_INET, SOCK_SEQPACKET, 132}},
		{REFUSED, SYS_socket, {AF_INET, SOCK_DGRAM, 136}}, /* UDP-Lite */
		{REFUSED, SYS_socket, {AF_INET, SOCK_DGRAM, 1}},   /* ICMP */
		{REFUSED, SYS_socket, {AF_INET, SOCK_DCCP, 33}},
		{REFUSED, SYS_socket, {AF_INET, SOCK_RAW, 6}},
		{REFUSED, SYS_socket, {AF_INET, SOCK_RAW | SOCK_CLOEXEC, 1}},
		{REFUSED, SYS_socket, {AF_INET6, SOCK_RAW, 58}},
		{REFUSED, SYS_socket, {AF_INET, SOCK_PACKET, 0}},
		{REFUSED, SYS_socket, {AF_PACKET, SOCK_RAW, 0}},
		{REFUSED, SYS_socket, {AF_PACKET, SOCK_DGRAM, 0}},
		{REFUSED, SYS_socket, {AF_NETLINK, SOCK_RAW, 9}},    /* audit */
		{REFUSED, SYS_socket, {AF_NETLINK, SOCK_RAW, 12}},   /* netfilter */
		{REFUSED, SYS_socket, {AF_NETLINK, SOCK_RAW, 15}},   /* uevents */
		{REFUSED, SYS_socket, {AF_NETLINK, SOCK_DGRAM, 16}}, /* generic */
		{REFUSED, SYS_socket, {AF_ALG, SOCK_SEQPACKET, 0}},
		{REFUSED, SYS_socket, {AF_ALG | HIGH, SOCK_SEQPACKET, 0}},
		{REFUSED, SYS_socket, {AF_VSOCK, SOCK_STREAM, 0}},
		{REFUSED, SYS_socket, {AF_KEY, SOCK_RAW, 2}},
		{REFUSED, SYS_socket, {44 /* AF_XDP */, SOCK_RAW, 0}},
		{REFUSED, SYS_socket, {AF_TIPC, SOCK_STREAM, 0}},
		{REFUSED, SYS_socket, {AF_CAN, SOCK_RAW, 1}},
		{REFUSED, SYS_socket, {AF_BLUETOOTH, SOCK_STREAM, 3}},
		{REFUSED, SYS_socket, {AF_RDS, SOCK_SEQPACKET, 0}},
		{REFUSED, SYS_socket, {AF_KCM, SOCK_DGRAM, 0}},
		{REFUSED, SYS_socket, {43 /* AF_SMC */, SOCK_STREAM, 0}},
		{REFUSED, SYS_socket, {AF_NFC, SOCK_SEQPACKET, 0}},
		{REFUSED, SYS_socket, {42 /* AF_QIPCRTR */, SOCK_DGRAM, 0}},
		{REFUSED, SYS_socket, {0, 0, 0}},
	};
	struct trial none[unit_count(trials)];
	size_t controls = check(NC_FILTER_CONTAINER, trials, unit_count(trials));

	(void)state;
	assert_true(controls >= 12); /* the rest may need a privilege, or a module */
	memcpy(none, trials, sizeof(none));
	for (size_t i = 0; i < unit_count(none); i++)
		none[i].expected = REFUSED;
	assert_true(check(NC_FILTER_PROCESS, none, unit_count(none)) > controls);
	assert_true(check(NC_FILTER_ALONE, none, unit_count(none)) > controls);
}

static void socket_pairs(void **state)
{
	static int pair[2];
	unsigned long at = (unsigned long)pair;
	struct trial trials[] = {
		{ALLOWED, SYS_socketpair, {AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, at}},
		{ALLOWED, SYS_socketpair, {AF_UNIX, SOCK_SEQPACKET, 0, at}},
		{REFUSED, SYS_socketpair, {AF_UNIX, SOCK_RAW, 0, at}},
		{REFUSED, SYS_socketpair, {AF_INET, SOCK_STREAM, 0, at}},
		{REFUSED, SYS_socketpair, {AF_TIPC, SOCK_STREAM, 0, at}},
		{ALLOWED, SYS_socketpair, {AF_UNIX, SOCK_DGRAM, 0, at}},
	};

	(void)state;
	CHECK_ALL(NC_FILTER_CONTAINER, trials);
	/* an end of such a pair could send to any unix socket of the host */
	trials[5].expected = REFUSED;
	CHECK_ALL(NC_FILTER_PROCESS, trials);
	CHECK_ALL(NC_FILTER_ALONE, trials);
}

static void socket_options(void **state)
{
	static int one = 1;
	unsigned long at = (unsigned long)&one, tcp = (unsigned long)tcp_fd,
		      udp = (unsigned long)udp_fd;
	const struct trial trials[] = {
		{ALLOWED, SYS_setsockopt, {tcp, SOL_SOCKET, SO_REUSEADDR, at, sizeof(one)}},
		{ALLOWED, SYS_setsockopt, {tcp, 6, 1 /* TCP_NODELAY */, at, sizeof(one)}},
		{REFUSED, SYS_setsockopt, {tcp, 6, 31 /* TCP_ULP */, at, sizeof(one)}},
		{REFUSED, SYS_setsockopt, {tcp, 6 | HIGH, 31 | HIGH, at, sizeof(one)}},
		{REFUSED, SYS_setsockopt, {udp, 17, 100 /* UDP_ENCAP */, at, sizeof(one)}},
		{REFUSED, SYS_setsockopt, {tcp, SOL_SOCKET, SO_ATTACH_FILTER, at, 1}},
		{REFUSED, SYS_setsockopt, {tcp, SOL_SOCKET, SO_ATTACH_BPF, at, 1}},
	};

	(void)state;
	CHECK_BOXES(trials);
}

static void ioctls(void **state)
{
	unsigned long fd = (unsigned long)pipe_fds[0];
	static int count;
	unsigned long at = (unsigned long)&count;
	const struct trial trials[] = {
		{ALLOWED, SYS_ioctl, {fd, FIONREAD, at}},
		{ALLOWED, SYS_ioctl, {fd, FIONREAD | HIGH, at}},
		{ALLOWED, SYS_ioctl, {fd, TCGETS, 0}},
		{ALLOWED, SYS_ioctl, {fd, TIOCGWINSZ, 0}},
		{ALLOWED, SYS_ioctl, {fd, FIONBIO, at}},
		{ALLOWED, SYS_ioctl, {fd, 0x40049409 /* FICLONE */, 0}},
		{ALLOWED, SYS_ioctl, {fd, 0x80086601 /* FS_IOC_GETFLAGS */, 0}},
		{REFUSED, SYS_ioctl, {fd, TIOCSTI, 0}},
		{REFUSED, SYS_ioctl, {fd, TIOCSTI | 1UL << 32, 0}},
		{REFUSED, SYS_ioctl, {fd, TIOCSTI | HIGH, 0}},
		{REFUSED, SYS_ioctl, {fd, TIOCLINUX, 0}},
		{REFUSED, SYS_ioctl, {fd, TIOCLINUX | HIGH, 0}},
		{REFUSED, SYS_ioctl, {fd, TIOCSETD, 0}},
		{REFUSED, SYS_ioctl, {fd, TIOCCONS, 0}},
		{REFUSED, SYS_ioctl, {fd, 0x40086602 /* FS_IOC_SETFLAGS */, 0}},
		{REFUSED, SYS_ioctl, {fd, 0x40086602 | HIGH, 0}},
		{REFUSED, SYS_ioctl, {fd, 0x40046602 /* FS_IOC32_SETFLAGS */, 0}},
		{REFUSED, SYS_ioctl, {fd, 0x401c5820 /* FS_IOC_FSSETXATTR */, 0}},
		{REFUSED, SYS_ioctl, {fd, 0x40806685 /* FS_IOC_ENABLE_VERITY */, 0}},
		{REFUSED, SYS_ioctl, {fd, 0x50009418 /* BTRFS_IOC_SUBVOL_CREATE_V2 */, 0}},
	};

	(void)state;
	CHECK_BOXES(trials);
}

static void prctls(void **state)
{
	static char name[16] = "pearl";
	unsigned long at = (unsigned long)name;
	const struct trial trials[] = {
		{ALLOWED, SYS_prctl, {PR_SET_NAME, at}},
		{ALLOWED, SYS_prctl, {PR_GET_NAME, at}},
		{ALLOWED, SYS_prctl, {PR_SET_PDEATHSIG, SIGKILL}},
		{ALLOWED, SYS_prctl, {PR_SET_DUMPABLE, 0}},
		{ALLOWED, SYS_prctl, {PR_SET_NO_NEW_PRIVS, 1}},
		{ALLOWED, SYS_prctl, {PR_CAPBSET_READ, 1}},
		{ALLOWED, SYS_prctl, {PR_SET_CHILD_SUBREAPER, 1}},
		{ALLOWED, SYS_prctl, {PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 0}},
		{REFUSED, SYS_prctl, {PR_SET_SECCOMP, 77}},
		{REFUSED, SYS_prctl, {PR_SET_PTRACER, 0}},
		{REFUSED, SYS_prctl, {PR_SET_PTRACER | HIGH, 0}},
		{REFUSED, SYS_prctl, {PR_SET_SPECULATION_CTRL, 77, 0}},
		{REFUSED, SYS_prctl, {PR_MCE_KILL, 77}},
		{REFUSED, SYS_prctl, {62 /* PR_SCHED_CORE */, 77}},
		{REFUSED, SYS_prctl, {0x12345678}},
	};
	static const struct trial privileged[] = {{REFUSED, SYS_prctl, {PR_SET_MM, 77}}};

	(void)state;
	CHECK_BOXES(trials);
	(void)check(NC_FILTER_CONTAINER, privileged, 1); /* the kernel may refuse it as well */
	(void)check(NC_FILTER_PROCESS, privileged, 1);
}

static void other_arguments(void **state)
{
	static char page[4096] __attribute__((aligned(4096)));
	static unsigned long limit[2];
	unsigned long fd = (unsigned long)pipe_fds[0], dir = (unsigned long)dir_fd,
		      here = (unsigned long)page, name = (unsigned long)"name";
	const struct trial trials[] = {
		{ALLOWED, SYS_personality, {0xffffffff}},
		{ALLOWED, SYS_personality, {0xffffffff | HIGH}},
		{ALLOWED, SYS_personality, {0}},
		{REFUSED, SYS_personality, {0x0040000 /* ADDR_NO_RANDOMIZE */}},
		{REFUSED, SYS_personality, {0x0400000 /* READ_IMPLIES_EXEC */}},
		{REFUSED, SYS_personality, {8 /* PER_LINUX32 */}},
		{REFUSED, SYS_personality, {8 | HIGH}},
		{ALLOWED, SYS_prlimit64, {0, 7, 0, (unsigned long)limit}},
		{REFUSED, SYS_prlimit64, {(unsigned long)getpid(), 7, 0, (unsigned long)limit}},
		{REFUSED, SYS_prlimit64, {1UL << 30, 7, 0, 0}},
		/* every limit may be read, and all but that of core files (4) be set */
		{ALLOWED, SYS_prlimit64, {0, 4, 0, (unsigned long)limit}},
		{ALLOWED, SYS_prlimit64, {0, 4 | HIGH, 0, (unsigned long)limit}},
		{REFUSED, SYS_prlimit64, {(unsigned long)getpid(), 4, 0, (unsigned long)limit}},
		{REFUSED, SYS_prlimit64, {0, 4, (unsigned long)limit, 0}},
		{REFUSED, SYS_prlimit64, {0, 4 | HIGH, (unsigned long)limit, 0}},
		{REFUSED, SYS_prlimit64, {0, 4, HIGH, 0}}, /* a pointer whose lower half is 0 */
		{REFUSED, SYS_prlimit64, {0, 4, 1, 0}},
		{ALLOWED, SYS_prlimit64, {0, 0, 1, 0}},
		{ALLOWED, SYS_prlimit64, {0, 1, 1, 0}},
		{ALLOWED, SYS_prlimit64, {0, 2, 1, 0}},
		{ALLOWED, SYS_prlimit64, {0, 3, 1, 0}},
		{ALLOWED, SYS_prlimit64, {0, 5, 1, 0}},
		{ALLOWED, SYS_prlimit64, {0, 6, 1, 0}},
		{ALLOWED, SYS_prlimit64, {0, 7, 1, 0}},
		{ALLOWED, SYS_prlimit64, {0, 8, 1, 0}},
		{ALLOWED, SYS_prlimit64, {0, 9, 1, 0}},
		{ALLOWED, SYS_prlimit64, {0, 12, 1, 0}},
		{ALLOWED, SYS_prlimit64, {0, 15, 1, 0}},
		{ALLOWED, SYS_seccomp, {SECCOMP_GET_NOTIF_SIZES, 0, here}},
		{ALLOWED, SYS_seccomp, {SECCOMP_SET_MODE_FILTER, 0, 0}},
		{ALLOWED, SYS_seccomp, {SECCOMP_SET_MODE_FILTER, 1, 0}},
		{REFUSED, SYS_seccomp, {SECCOMP_SET_MODE_FILTER, 8 /* NEW_LISTENER */, 0}},
		{REFUSED, SYS_seccomp, {SECCOMP_SET_MODE_FILTER | HIGH, 8 | HIGH, 0}},
		{REFUSED, SYS_seccomp, {SECCOMP_SET_MODE_STRICT, 77, 0}},
		{REFUSED, SYS_seccomp, {77, 0, 0}},
		{ALLOWED, SYS_mknodat, {dir, (unsigned long)"", S_IFIFO | 0600, 0}},
		{ALLOWED, SYS_mknodat, {dir, (unsigned long)"", S_IFREG | 0600, 0}},
		{ALLOWED, SYS_mknodat, {dir, (unsigned long)"", 0600, 0}},
		{ALLOWED, SYS_mknodat, {dir, (unsigned long)"", S_IFSOCK | 0600, 0}},
		{REFUSED, SYS_mknodat, {dir, (unsigned long)"", S_IFCHR | 0600, 0}},
		{REFUSED, SYS_mknodat, {dir, (unsigned long)"", S_IFBLK | 0600, 0}},
		{REFUSED, SYS_mknodat, {dir, (unsigned long)"", S_IFCHR | 0600 | HIGH, 0}},
		{ALLOWED, SYS_fcntl, {fd, F_GETFD, 0}},
		{ALLOWED, SYS_fcntl, {fd, F_GETLEASE, 0}},
		{REFUSED, SYS_fcntl, {fd, F_SETLEASE, F_RDLCK}},
		{REFUSED, SYS_fcntl, {fd, F_SETLEASE | HIGH, F_RDLCK}},
		{ALLOWED, SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, ~0UL, 0}},
		{REFUSED, SYS_mmap,
			{0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, ~0UL, 0}},
		{ALLOWED, SYS_memfd_create, {name, MFD_CLOEXEC}},
		{ALLOWED, SYS_madvise, {here, sizeof(page), MADV_WILLNEED}},
		{REFUSED, SYS_madvise, {here, sizeof(page), MADV_MERGEABLE}},
	};
	const struct trial privileged[] = {
		{REFUSED, SYS_memfd_create, {name, MFD_CLOEXEC | MFD_HUGETLB}},
	};

	(void)state;
	CHECK_BOXES(trials);
	(void)check(NC_FILTER_CONTAINER, privileged, 1); /* the kernel may refuse it as well */
	(void)check(NC_FILTER_PROCESS, privileged, 1);
}

/* ---- the profiles ---- */

/* Runs a check in a child, and fails with its number. */
static void in_child(int (*function)(void))
{
	cleanup_close int pidfd = -EBADF;
	int r = nc_fork(&pidfd);

	if (r == 0)
		nc_child_exit(function());
	assert_true(r > 0);
	assert_int_equal(status_of(pidfd), 0);
}

static void what_differs_where_there_may_be_no_namespace(void **state)
{
	static char bytes[512];
	unsigned long at = (unsigned long)bytes, no = ~0UL, dir = (unsigned long)dir_fd,
		      name = (unsigned long)"name";
	struct trial trials[] = {
		{REFUSED, SYS_shmget, {no, 0, 077}},
		{REFUSED, SYS_shmat, {no, 0, 0}},
		{REFUSED, SYS_shmctl, {no, 77, 0}},
		{REFUSED, SYS_semget, {no, no, 0}},
		{REFUSED, SYS_semop, {no, 0, 0}},
		{REFUSED, SYS_semctl, {no, 0, 77}},
		{REFUSED, SYS_msgget, {77, 0}},
		{REFUSED, SYS_msgsnd, {no, at, no}},
		{REFUSED, SYS_msgrcv, {no, at, no}},
		{REFUSED, SYS_msgctl, {no, 77}},
		{REFUSED, SYS_mq_open, {0, 0}},
		{REFUSED, SYS_mq_unlink, {0}},
		{REFUSED, SYS_mq_timedsend, {no}},
		{REFUSED, SYS_mq_timedreceive, {no}},
		{REFUSED, SYS_mq_notify, {no}},
		{REFUSED, SYS_mq_getsetattr, {no}},
		{REFUSED, SYS_connect, {no}},
		{REFUSED, SYS_bind, {no}},
		{REFUSED, SYS_listen, {no}},
		{REFUSED, SYS_accept, {no}},
		{REFUSED, SYS_accept4, {no}},
		{REFUSED, SYS_kill, {no, 4711}}, /* no signal has this number: nothing is sent */
		{REFUSED, SYS_sched_setaffinity, {1UL << 30, 0, 0}},
		{REFUSED, SYS_sched_setscheduler, {1UL << 30, 77, at}},
		{REFUSED, SYS_sched_setparam, {1UL << 30, at}},
		{REFUSED, SYS_sched_setattr, {1UL << 30, 0, 0}},
		{REFUSED, SYS_setpriority, {77, 0, 0}},
		{REFUSED, SYS_ioprio_set, {77, 0, 0}},
		{REFUSED, SYS_fchmod, {no, 04755}},
		{REFUSED, SYS_fchmod, {no, 02755}},
		/* modes, owners, times and attributes by path: files of the host's user */
		{REFUSED, SYS_fchmodat, {no, name, 04755}},
		{REFUSED, SYS_fchmodat, {no, name, 0600 | HIGH}},
		{REFUSED, 452 /* fchmodat2 */, {no, name, 0600, 0}},
		{REFUSED, SYS_fchownat, {no, name, no, no, 0}},
		{REFUSED, SYS_truncate, {0, 0}},
		{REFUSED, SYS_utimensat, {no, name, 0, 0}},
		{REFUSED, SYS_utimensat, {no, 1UL << 32, 0, 0}},
		{ALLOWED, SYS_utimensat, {no, 0, 0, 0}},
		{REFUSED, SYS_setxattr, {0}},
		{REFUSED, SYS_lsetxattr, {0}},
		{REFUSED, SYS_removexattr, {0}},
		{REFUSED, SYS_lremovexattr, {0}},
		{UNSUPPORTED, SYS_getxattr, {0}},
		{UNSUPPORTED, SYS_lgetxattr, {0}},
		{UNSUPPORTED, SYS_listxattr, {0}},
		{UNSUPPORTED, SYS_llistxattr, {0}},
		{ALLOWED, SYS_fsetxattr, {no}},
		{ALLOWED, SYS_fgetxattr, {no}},
		{ALLOWED, SYS_fchown, {no, no, no}},
		{ALLOWED, SYS_ftruncate, {no, 0}},
#ifdef __x86_64__
		{REFUSED, SYS_chmod, {0, 0600}},
		{REFUSED, SYS_chown, {0, no, no}},
		{REFUSED, SYS_lchown, {0, no, no}},
		{REFUSED, SYS_utime, {0, 1}},
		{REFUSED, SYS_utimes, {0, 1}},
		{REFUSED, SYS_futimesat, {no, name, 0}},
#endif
		/* what others do with their files */
		{REFUSED, SYS_inotify_init1, {no}},
		{REFUSED, SYS_inotify_add_watch, {no, 0, 1}},
		/* signals and facts by way of descriptors */
		{REFUSED, SYS_fcntl, {no, F_SETOWN, 1}},
		{REFUSED, SYS_fcntl, {no, F_SETOWN | HIGH, 1}},
		{REFUSED, SYS_fcntl, {no, F_SETOWN_EX, 0}},
		{REFUSED, SYS_fcntl, {no, F_SETFL, O_ASYNC}},
		{REFUSED, SYS_fcntl, {no, F_SETFL, O_ASYNC | O_NONBLOCK | HIGH}},
		{ALLOWED, SYS_fcntl, {no, F_SETFL, O_NONBLOCK}},
		{ALLOWED, SYS_fcntl, {no, F_GETOWN, 0}},
		{REFUSED, SYS_ioctl, {no, FIOASYNC, 0}},
		{REFUSED, SYS_ioctl, {no, 0x8901 /* FIOSETOWN */, 0}},
		{REFUSED, SYS_ioctl, {no, 0x8902 /* SIOCSPGRP */, 0}},
		{REFUSED, SYS_ioctl, {no, 0x8927 /* SIOCGIFHWADDR */ | HIGH, 0}},
		{REFUSED, SYS_ioctl, {no, 0x89ff, 0}},
		{ALLOWED, SYS_ioctl, {no, 0x8a00, 0}},
		{ALLOWED, SYS_ioctl, {no, 0x88ff, 0}},
		{REFUSED, SYS_openat, {no, name, O_CREAT, 04755}},
		{REFUSED, SYS_openat, {no, name, O_CREAT | O_EXCL | O_RDWR, 02755}},
		{REFUSED, SYS_openat, {no, name, O_TMPFILE | O_RDWR, 04755}},
		{REFUSED, SYS_mknodat, {no, name, S_IFREG | 04755, 0}},
		{ALLOWED, SYS_openat, {dir, name, O_CREAT | O_RDWR, 0644}},
		{ALLOWED, SYS_openat, {dir, name, O_RDONLY, no}}, /* the mode is not looked at */
		{ALLOWED, SYS_fchmod, {no, 0755}},
		{ALLOWED, SYS_kill, {(unsigned long)getpid(), 0}},
		{ALLOWED, SYS_sched_setaffinity, {0, 0, 0}},
		{ALLOWED, SYS_setpriority, {0, 0, 0}},
		{ABSENT, SYS_openat2, {dir, name, 0, 0}},
	};

	(void)state;
	CHECK_ALL(NC_FILTER_PROCESS, trials);
	CHECK_ALL(NC_FILTER_ALONE, trials);
	for (size_t i = 0; i < unit_count(trials); i++)
		trials[i].expected = ALLOWED;
	CHECK_ALL(NC_FILTER_CONTAINER, trials);
}

static void init_has_its_few_calls_and_no_others(void **state)
{
	static const char few[] =
		"exit exit_group wait4 waitid rt_sigaction rt_sigprocmask "
		"rt_sigreturn rt_sigtimedwait rt_sigsuspend rt_sigpending kill getpid "
		"restart_syscall read write close poll ppoll sendmsg recvmsg";
	static const struct trial allowed[] = {
		{ALLOWED, SYS_wait4, {~0UL, 0, 1}},
		{ALLOWED, SYS_waitid, {0, 0, 0, 5}},
		{ALLOWED, SYS_read, {~0UL}},
		{ALLOWED, SYS_write, {~0UL}},
		{ALLOWED, SYS_close, {~0UL}},
		{ALLOWED, SYS_ppoll, {0, 0, ~0UL}},
		{ALLOWED, SYS_rt_sigaction, {77}},
		{ALLOWED, SYS_rt_sigprocmask, {77}},
		{ALLOWED, SYS_rt_sigtimedwait, {~0UL}},
		{ALLOWED, SYS_kill, {1UL << 30, 0}},
		{ALLOWED, SYS_getpid, {0}},
		{ALLOWED, SYS_sendmsg, {~0UL}},
		{ALLOWED, SYS_recvmsg, {~0UL}},
	};
	static struct trial trials[CALLS_MAX];
	static struct answer plain[CALLS_MAX], reporting[CALLS_MAX];
	size_t n = 0;

	(void)state;
	CHECK_ALL(NC_FILTER_INIT, allowed);
	for (int number = 0; number < CALLS_MAX; number++) {
		const char *name = nc_filter_call_name(number);

		if (name && number != SYS_clone3 && !has_word(few, name))
			trials[n++] = (struct trial){REFUSED, number, {~0UL, ~0UL, ~0UL, ~0UL}};
	}
	assert_true(n > 250);
	/* without a filter nobody wants to make all of them: the reports are the control */
	assert_int_equal(run(NC_FILTER_INIT, NC_FILTER_PLAIN, trials, n, plain), 0);
	assert_int_equal(run(NC_FILTER_INIT, NC_FILTER_REPORTING, trials, n, reporting), 0);
	for (size_t i = 0; i < n; i++)
		judge(NC_FILTER_INIT, &trials[i], &plain[i], &plain[i], &reporting[i]);
}

static void *answer_of_a_thread(void *data)
{
	return data;
}

#if !defined(__SANITIZE_ADDRESS__)
/* The spawner's filter: not loaded in such a build. */
static void the_spawner_keeps_what_it_needs(void **state)
{
	static struct trial trials[CALLS_MAX];
	const unsigned long no = ~0UL;
	const struct trial kept[] = {
		{ALLOWED, SYS_mount, {no, no, no}},
		{ALLOWED, SYS_umount2, {no, 0}},
		{ALLOWED, SYS_pivot_root, {no, no}},
		{ALLOWED, SYS_open_tree, {no, no, no}},
		{ALLOWED, SYS_setns, {no, 0}},
		{ALLOWED, SYS_unshare, {no}},
		{ALLOWED, SYS_clone3, {0}},
		{ALLOWED, SYS_sethostname, {no, no}},
		{ALLOWED, SYS_openat2, {no}},
		{ALLOWED, SYS_seccomp, {77, 0, 0}},
		{ALLOWED, SYS_socket, {no}},
		{ALLOWED, 600, {0}}, /* newer than the tables: the kernel's answer */
		{ALLOWED, SYS_keyctl, {1, no}},
		{ALLOWED, SYS_keyctl, {1 | HIGH, no}},
		{ABSENT, SYS_keyctl, {0, no}},
		{ABSENT, SYS_keyctl, {3, no}},
		{ABSENT, SYS_keyctl, {2 | HIGH, no}},
		{ABSENT, SYS_keyctl, {0xffffffff, no}},
	};
	size_t n = 0;

	(void)state;
	for (int number = 0; number < CALLS_MAX; number++) {
		const char *name = nc_filter_call_name(number);
		const struct nc_filter_group *group = name ? group_of(name) : NULL;

		if (group && (group->absent_in & NC_IN_SPAWNER)) {
			trials[n] = (struct trial){ABSENT, number, {0}};
			memset(trials[n++].args, 0xff, sizeof(trials[0].args));
		}
	}
	assert_true(n >= 50);
	/* for the others the kernel has nothing behind the number */
	assert_true(check_plain(NC_FILTER_SPAWNER, trials, n) >= n / 2);
	assert_int_equal(check_plain(NC_FILTER_SPAWNER, kept, unit_count(kept)), 4);
}

static void calls_that_the_spawner_does_without(void **state)
{
	static const long numbers[] = {
		SYS_init_module,
		SYS_finit_module,
		SYS_delete_module,
		SYS_kexec_load,
		SYS_reboot,
		SYS_bpf,
		SYS_perf_event_open,
		SYS_open_by_handle_at,
		SYS_io_uring_setup,
		SYS_io_uring_enter,
		SYS_io_uring_register,
		SYS_userfaultfd,
		SYS_swapon,
		SYS_swapoff,
		SYS_acct,
		SYS_quotactl,
		SYS_quotactl_fd,
		SYS_add_key,
		SYS_request_key,
		SYS_settimeofday,
		SYS_clock_settime,
		SYS_clock_adjtime,
		SYS_adjtimex,
		SYS_ptrace,
		SYS_process_vm_readv,
		SYS_process_vm_writev,
		SYS_pidfd_getfd,
		SYS_kcmp,
		SYS_fanotify_init,
		SYS_io_setup,
		SYS_io_submit,
		SYS_lookup_dcookie,
#ifdef __x86_64__
		SYS_iopl,
		SYS_ioperm,
		SYS_uselib,
		SYS_modify_ldt,
#endif
	};

	(void)state;
	for (size_t i = 0; i < unit_count(numbers); i++) {
		const char *name = nc_filter_call_name((int)numbers[i]);

		assert_non_null(name);
		if (!(group_of(name)->absent_in & NC_IN_SPAWNER))
			fail_msg("the spawner has %s", name);
	}
}

/* A filter that asks its listener about one call. */
static int load_listener(long number)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = unit_count(code), .filter = code};

	return (int)syscall(
		SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static int call_with_own_listener(int socket_fd)
{
	void *head;
	size_t size;
	int listener;

	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (nc_filter_load(NC_FILTER_SPAWNER, NULL) < 0)
		return 2;
	if (syscall(SYS_get_robust_list, 0, &head, &size) == 0 || errno != ENOSYS)
		return 3;
	listener = load_listener(SYS_get_robust_list);
	if (listener < 0 || !send_fd(socket_fd, listener))
		return 4;
	close(listener);
	return syscall(SYS_get_robust_list, 0, &head, &size) == 0 ? 0 : 5;
}

/* Why the spawner's filter holds no spawner that runs foreign code; see filter_table.h. */
static void a_listener_of_its_own_wins_over_the_spawners_filter(void **state)
{
	cleanup_close int pidfd = -EBADF;
	struct seccomp_notif request = {0};
	struct seccomp_notif_resp answer = {.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
	int pair[2], listener, r;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	r = nc_fork(&pidfd);
	if (r == 0)
		nc_child_exit(call_with_own_listener(pair[1]));
	assert_true(r > 0);
	close(pair[1]);
	listener = receive_fd(pair[0]);
	assert_int_equal(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request), 0);
	answer.id = request.id;
	assert_int_equal(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer), 0);
	assert_int_equal(status_of(pidfd), 0);
	close(listener);
	close(pair[0]);
}
#endif

#if !defined(__SANITIZE_ADDRESS__) && !defined(NACRE_COVERAGE)
/* The worker's filter: not loaded in such builds. */
static void has_its_calls_and_no_others(enum nc_filter which, size_t least, size_t most)
{
	static struct trial trials[CALLS_MAX];
	static struct answer answers[CALLS_MAX];
	size_t n = 0, granted = 0;

	for (int number = 0; number < CALLS_MAX; number++) {
		const char *name = nc_filter_call_name(number);
		bool has = false;

		for (size_t i = 0; name && i < unit_count(nc_filter_grants); i++)
			has = has || (nc_filter_grants[i].allowed_in & 1U << which &&
					     has_word(nc_filter_grants[i].calls, name));
		granted += has;
		if (name && !has && number != SYS_clone3)
			trials[n++] = (struct trial){REFUSED, number, {~0UL, ~0UL, ~0UL, ~0UL}};
	}
	assert_in_range(granted, least, most);
	/* without a filter nobody wants to make all of them */
	assert_int_equal(run(which, NC_FILTER_PLAIN, trials, n, answers), 0);
	for (size_t i = 0; i < n; i++)
		/* what is in no group is absent */
		if (answers[i].error != EPERM &&
			(answers[i].error != ENOSYS ||
				group_of(nc_filter_call_name((int)trials[i].number))))
			fail_msg("profile %s may %s: errno %d", profiles[which],
				nc_filter_call_name((int)trials[i].number), answers[i].error);
}

static void the_worker_has_its_calls_and_no_others(void **state)
{
	(void)state;
	has_its_calls_and_no_others(NC_FILTER_WORKER, 60, 100);
}

static void the_recorder_has_its_calls_and_no_others(void **state)
{
	(void)state;
	has_its_calls_and_no_others(NC_FILTER_RECORDER, 30, 50);
}

static void the_server_has_its_calls_and_no_others(void **state)
{
	(void)state;
	has_its_calls_and_no_others(NC_FILTER_SERVER, 70, 110);
}

static void what_the_server_may(void **state)
{
	const unsigned long no = ~0UL;
	const struct trial trials[] = {
		{ALLOWED, SYS_accept4, {no}}, {ALLOWED, SYS_sendto, {no}},
		{ALLOWED, SYS_recvfrom, {no}}, {REFUSED, SYS_accept, {no}},
		{REFUSED, SYS_socket, {AF_INET, SOCK_STREAM, 0}}, {REFUSED, SYS_connect, {no}},
		{REFUSED, SYS_bind, {no}}, {REFUSED, SYS_listen, {no}},
		{REFUSED, SYS_socketpair, {AF_INET, SOCK_STREAM, 0, 0}}, {REFUSED, SYS_execve, {0}},
		{REFUSED, SYS_clone, {SIGCHLD}}, /* a process */
	};

	(void)state;
	assert_true(check_plain(NC_FILTER_SERVER, trials, unit_count(trials)) > 0);
}

static void the_egress_has_its_calls_and_no_others(void **state)
{
	(void)state;
	has_its_calls_and_no_others(NC_FILTER_EGRESS, 25, 42);
}

static void what_the_egress_may(void **state)
{
	const unsigned long no = ~0UL;
	const struct trial trials[] = {
		{ALLOWED, SYS_socket, {AF_INET, SOCK_STREAM, 0}},
		{ALLOWED, SYS_socket, {AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0}},
		{REFUSED, SYS_socket, {AF_INET, SOCK_STREAM, 262}}, /* MPTCP */
		{REFUSED, SYS_socket, {AF_INET, SOCK_RAW, 1}},
		{REFUSED, SYS_socket, {AF_UNIX, SOCK_STREAM, 0}},
		{REFUSED, SYS_socket, {AF_NETLINK, SOCK_RAW, 0}},
		{ALLOWED, SYS_connect, {no}},
		{ALLOWED, SYS_accept4, {no}},
		{ALLOWED, SYS_splice, {no}},
		{REFUSED, SYS_bind, {no}},
		{REFUSED, SYS_listen, {no}},
		{ALLOWED, SYS_setsockopt, {no, 6, 1}},
		{REFUSED, SYS_setsockopt, {no, 1, 26}},
		{REFUSED, SYS_openat, {no}},
		{REFUSED, SYS_openat2, {no}},
		{REFUSED, SYS_newfstatat, {no}},
		{REFUSED, SYS_unlinkat, {no}},
		{REFUSED, SYS_fcntl, {no, F_SETOWN, 1}},
		{REFUSED, SYS_mprotect, {0, 0, PROT_EXEC}},
		{REFUSED, SYS_clone, {CLONE_THREAD}},
		{REFUSED, SYS_execve, {0}},
		{REFUSED, SYS_ptrace, {no}},
		{REFUSED, SYS_kill, {1UL << 30, 0}},
	};

	(void)state;
	assert_true(check_plain(NC_FILTER_EGRESS, trials, unit_count(trials)) > 0);
}

static void what_the_courier_may(void **state)
{
	const unsigned long no = ~0UL;
	const struct trial trials[] = {
		{ALLOWED, SYS_socket, {AF_INET, no, 0}},
		{ALLOWED, SYS_socket, {AF_INET6, no, 0}},
		{ALLOWED, SYS_connect, {no}},
		{REFUSED, SYS_socket, {AF_UNIX, SOCK_STREAM, 0}},
		{REFUSED, SYS_socket, {AF_PACKET, SOCK_RAW, 0}},
		{REFUSED, SYS_bind, {no}},
		{REFUSED, SYS_accept4, {no}},
		{REFUSED, SYS_execve, {0}},
		{REFUSED, SYS_clone, {SIGCHLD}},
	};

	(void)state;
	has_its_calls_and_no_others(NC_FILTER_COURIER, 35, 60);
	assert_true(check_plain(NC_FILTER_COURIER, trials, unit_count(trials)) > 0);
}

static void what_the_analyst_may(void **state)
{
	const unsigned long no = ~0UL;
	const struct trial trials[] = {
		{ALLOWED, SYS_recvmsg, {no}},
		{ALLOWED, SYS_sendmsg, {no}},
		{ALLOWED, SYS_setpriority, {0, 0, 0}},
		{REFUSED, SYS_setpriority, {0, 1, 0}},
		{REFUSED, SYS_openat, {no}},
		{REFUSED, SYS_newfstatat, {no}},
		{REFUSED, SYS_socket, {AF_UNIX, SOCK_STREAM, 0}},
		{REFUSED, SYS_socketpair, {AF_UNIX, SOCK_STREAM, 0}},
		{REFUSED, SYS_connect, {no}},
		{REFUSED, SYS_mprotect, {0, 0, PROT_EXEC}},
		{REFUSED, SYS_memfd_create, {0}},
		{REFUSED, SYS_execve, {0}},
		{REFUSED, SYS_clone, {SIGCHLD}},
		{REFUSED, SYS_clone, {CLONE_THREAD}},
		{REFUSED, SYS_prlimit64, {0, 0, 1}},
		{REFUSED, SYS_kill, {1UL << 30, 0}},
		{REFUSED, SYS_ptrace, {no}},
	};

	(void)state;
	has_its_calls_and_no_others(NC_FILTER_ANALYST, 20, 32);
	assert_true(check_plain(NC_FILTER_ANALYST, trials, unit_count(trials)) > 0);
}

static void what_the_relay_may(void **state)
{
	const unsigned long no = ~0UL;
	const struct trial trials[] = {
		{ALLOWED, SYS_recvmsg, {no}},
		{ALLOWED, SYS_sendmsg, {no}},
		{ALLOWED, SYS_splice, {no}},
		{ALLOWED, SYS_fstat, {no}},
		{ALLOWED, SYS_pipe2, {0, no}},
		{REFUSED, SYS_fcntl, {no, F_SETOWN, 1}},
		{REFUSED, SYS_socketpair, {AF_UNIX, SOCK_DGRAM, 0}},
		{REFUSED, SYS_socketpair, {AF_INET, SOCK_STREAM, 0}},
		{REFUSED, SYS_socket, {AF_UNIX, SOCK_STREAM, 0}},
		{REFUSED, SYS_connect, {no}},
		{REFUSED, SYS_accept4, {no}},
		{REFUSED, SYS_openat, {no}},
		{REFUSED, SYS_newfstatat, {no}},
		{REFUSED, SYS_ioctl, {no, 0x5412}},
		{REFUSED, SYS_mprotect, {0, 0, PROT_EXEC}},
		{REFUSED, SYS_memfd_create, {0}},
		{REFUSED, SYS_execve, {0}},
		{REFUSED, SYS_clone, {SIGCHLD}},
		{REFUSED, SYS_clone, {CLONE_THREAD}},
		{REFUSED, SYS_prlimit64, {0, 0, 1}},
		{REFUSED, SYS_kill, {1UL << 30, 0}},
		{REFUSED, SYS_ptrace, {no}},
	};

	(void)state;
	has_its_calls_and_no_others(NC_FILTER_RELAY, 20, 40);
	assert_true(check_plain(NC_FILTER_RELAY, trials, unit_count(trials)) > 0);
}

static void what_the_recorder_may(void **state)
{
	static char bytes[64];
	const unsigned long at = (unsigned long)bytes, no = ~0UL, fd = (unsigned long)pipe_fds[0];
	const unsigned long anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
	const struct trial trials[] = {
		{ALLOWED, SYS_pwrite64, {no, at, 1, 0}},
		{ALLOWED, SYS_fdatasync, {no}},
		{ALLOWED, SYS_openat2, {no, at, 0, 0}},
		{ALLOWED, SYS_utimensat, {no, 0, 0, 0}}, /* of what it has open, not by a path */
		{REFUSED, SYS_utimensat, {no, at, 0, 0}},
		{ALLOWED, SYS_fcntl, {fd, F_GETFL}},
		{REFUSED, SYS_fcntl, {no, F_SETOWN, 1}},
		{REFUSED, SYS_mmap, {0, 4096, PROT_READ | PROT_EXEC, anonymous, no, 0}},
		{REFUSED, SYS_mprotect, {0, 0, PROT_EXEC}},
		{REFUSED, SYS_clone, {CLONE_THREAD}},
		{REFUSED, SYS_socket, {no}},
		{REFUSED, SYS_execve, {0}},
		{REFUSED, SYS_ptrace, {no}},
		{REFUSED, SYS_kill, {1UL << 30, 0}},
		{REFUSED, SYS_prctl, {PR_SET_NAME, at}},
	};

	(void)state;
	assert_true(check_plain(NC_FILTER_RECORDER, trials, unit_count(trials)) > 0);
}

static void what_the_worker_may(void **state)
{
	static char bytes[512];
	const unsigned long at = (unsigned long)bytes, no = ~0UL, fd = (unsigned long)pipe_fds[0];
	const unsigned long anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
	const struct trial trials[] = {
		{ALLOWED, SYS_read, {no}},
		{ALLOWED, SYS_sendmsg, {no}},
		{ALLOWED, SYS_recvmsg, {no}},
		{ALLOWED, SYS_openat, {no, at, 0, 0}},
		{ALLOWED, SYS_openat2, {no, at, 0, 0}},
		{ALLOWED, SYS_unlinkat, {no, at, 0}},
		{ALLOWED, SYS_mmap, {0, 4096, PROT_READ | PROT_WRITE, anonymous, no, 0}},
		{REFUSED, SYS_mmap, {0, 4096, PROT_READ | PROT_EXEC, anonymous, no, 0}},
		{REFUSED, SYS_mprotect, {0, 0, PROT_EXEC}},
		{REFUSED, SYS_mprotect, {0, 0, PROT_EXEC | PROT_READ | HIGH}},
		{ALLOWED, SYS_clone, {CLONE_THREAD}}, /* EINVAL: without CLONE_SIGHAND */
		{REFUSED, SYS_clone, {CLONE_THREAD | CLONE_NEWUSER}},
		{REFUSED, SYS_clone, {CLONE_THREAD | CLONE_PARENT}},
		{ABSENT, SYS_clone3, {0}},
		{ABSENT, 600, {0}},
		{REFUSED, SYS_execve, {0}},
		{REFUSED, SYS_execveat, {no}},
		{REFUSED, SYS_socket, {no}},
		{REFUSED, SYS_connect, {no}},
		{REFUSED, SYS_kill, {1UL << 30, 0}},
		{REFUSED, SYS_ptrace, {no}},
		{REFUSED, SYS_seccomp, {SECCOMP_GET_NOTIF_SIZES, 0, at}},
		{ALLOWED, SYS_prctl, {PR_SET_NAME, at}},
		{REFUSED, SYS_prctl, {PR_GET_NAME, at}},
		{REFUSED, SYS_prctl, {PR_SET_DUMPABLE, 1}},
		{ALLOWED, SYS_prlimit64, {0, 7, 0, at}},
		{REFUSED, SYS_prlimit64, {0, 7, at, 0}},
		{REFUSED, SYS_prlimit64, {1, 7, 0, at}},
		{ALLOWED, SYS_fcntl, {fd, F_GETFL}},
		{REFUSED, SYS_fcntl, {no, F_SETOWN, 1}},
		{REFUSED, SYS_fcntl, {no, F_SETLEASE, 1}},
		{ALLOWED, SYS_ioctl, {fd, TCGETS, 0}},
		{ALLOWED, SYS_ioctl, {fd, TCSETSW | HIGH, 0}},
		{ALLOWED, SYS_ioctl, {fd, TIOCGWINSZ, 0}},
		{ALLOWED, SYS_ioctl, {fd, FIONREAD, at}},
		{REFUSED, SYS_ioctl, {fd, TIOCSTI, at}},
		{REFUSED, SYS_ioctl, {no, 0x40086602 /* FS_IOC_SETFLAGS */, at}},
		{REFUSED, SYS_ioctl, {no, 0xc0182101 /* a listener's answer */, at}},
	};

	(void)state;
	assert_true(check_plain(NC_FILTER_WORKER, trials, unit_count(trials)) > 0);
}

static int work(void)
{
	char byte = 'x';
	pthread_t thread;
	void *answer = NULL;

	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (nc_filter_load(NC_FILTER_WORKER, NULL) < 0)
		return 3;
	if (pthread_create(&thread, NULL, answer_of_a_thread, &byte) != 0 ||
		pthread_join(thread, &answer) != 0 || answer != &byte)
		return 10;
	if (fork() >= 0 || errno != EPERM)
		return 11;
	free(malloc(10U << 20));
	return raise(0);
}

static void threads_of_the_worker_work(void **state)
{
	(void)state;
	in_child(work);
}
#endif

/* ---- signals ---- */

/* Numbers of this process and its parent, which is of the same user. 4711 is no signal: none is
 * ever sent. */
static int signal_others(void)
{
	const pid_t pid = getpid(), above = getppid();
	siginfo_t info = {.si_code = SI_QUEUE};
	int status = -1;
	pid_t child;

	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (setsid() < 0 || kill(above, 0) < 0)
		return 1;
	if (nc_filter_load_own_signals() < 0)
		return 2;
	if (kill(pid, 0) < 0 || kill(0, 0) < 0 || kill(-pid, 0) < 0 ||
		syscall(SYS_kill, (unsigned long)pid | HIGH, 0) < 0 || raise(0) < 0 ||
		syscall(SYS_tkill, pid, 0) < 0)
		return 3;
#define REFUSES(call) (syscall call < 0 && errno == EPERM)
	if (!REFUSES((SYS_kill, above, 0)) || !REFUSES((SYS_kill, -1, 4711)) ||
		!REFUSES((SYS_kill, -above, 4711)) ||
		!REFUSES((SYS_kill, (unsigned long)above | HIGH, 0)) ||
		!REFUSES((SYS_tkill, above, 0)) || !REFUSES((SYS_tgkill, above, above, 0)) ||
		!REFUSES((SYS_rt_sigqueueinfo, above, 4711, &info)) ||
		!REFUSES((SYS_rt_tgsigqueueinfo, above, above, 4711, &info)) ||
		!REFUSES((SYS_pidfd_send_signal, -1, 0, 0, 0)) || !REFUSES((SYS_setsid)))
		return 4;
	child = fork();
	if (child == 0)
		_exit(kill(pid, 0) == 0 && kill(0, 0) == 0 && kill(above, 0) < 0 &&
					kill(getpid(), 0) < 0
				? 0
				: 1);
	/* inherited, and with the same numbers */
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		return 5;
	return syscall(SYS_getpid) == pid ? 0 : 6;
}

static void signals_to_itself_only(void **state)
{
	(void)state;
	in_child(signal_others);
}

/* What programs do all day. Returns the step that failed, or 0. */
static int live(void)
{
	char byte = 'x', *const argv[] = {(char[]){"true"}, NULL};
	pthread_t thread;
	void *answer = NULL;
	int fds[2], status = -1;
	pid_t pid;

	if (pthread_create(&thread, NULL, answer_of_a_thread, &byte) != 0 ||
		pthread_join(thread, &answer) != 0 || answer != &byte)
		return 10;
	if (pipe2(fds, O_CLOEXEC) < 0 || write(fds[1], &byte, 1) != 1 ||
		read(fds[0], &byte, 1) != 1)
		return 11;
	pid = fork();
	if (pid == 0) {
		execv("/bin/true", argv);
		_exit(1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		return 12;
	pid = vfork();
	if (pid == 0)
		_exit(7);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 7)
		return 13;
	return 0;
}

static void processes_and_threads_work(void **state)
{
	(void)state;
	for (int which = 0; which <= NC_FILTER_PROCESS; which++) {
		cleanup_close int pidfd = -EBADF;
		int r = nc_fork(&pidfd);

		if (r == 0) {
			(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
			if (nc_filter_load((enum nc_filter)which, NULL) < 0)
				nc_child_exit(3);
			nc_child_exit(live());
		}
		assert_true(r > 0);
		assert_int_equal(status_of(pidfd), 0);
	}
}

/* ---- loading ---- */

static int load_without_no_new_privs(void)
{
	int listener = 4711;

	/* an ordinary user: root may do it */
	if (geteuid() == 0 &&
		(setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0))
		return 1;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return 0; /* the whole test runs so */
	if (nc_filter_load(NC_FILTER_CONTAINER, NULL) != -EACCES)
		return 2;
	if (nc_filter_load(NC_FILTER_CONTAINER, &listener) != -EACCES || listener != 4711)
		return 3;
	return prctl(PR_GET_SECCOMP) == 0 ? 0 : 4;
}

static int load_is_seen_in_proc(void)
{
	cleanup_fclose FILE *file = NULL;
	char line[256];
	int seen = 0, listener = -EBADF;

	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (nc_filter_load(NC_FILTER_CONTAINER, &listener) != 0)
		return 1;
	if (listener < 0 || fcntl(listener, F_GETFD) != FD_CLOEXEC)
		return 2;
	file = fopen("/proc/self/status", "re");
	while (file && fgets(line, sizeof(line), file))
		seen += strcmp(line, "Seccomp:\t2\n") == 0 || strcmp(line, "NoNewPrivs:\t1\n") == 0;
	return seen == 2 ? 0 : 3;
}

/* Filters stack, but there is one listener; and from inside none can be had at all. */
static int load_twice(void)
{
	int listener = 4711;

	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (nc_filter_load(NC_FILTER_CONTAINER, NULL) != 0 ||
		nc_filter_load(NC_FILTER_PROCESS, NULL) != 0)
		return 1;
	if (nc_filter_load(NC_FILTER_CONTAINER, &listener) != -EPERM || listener != 4711)
		return 2;
	/* the stricter one counts */
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0 && errno == EPERM ? 0 : 3;
}

static void loading(void **state)
{
	(void)state;
	in_child(load_without_no_new_privs);
	in_child(load_is_seen_in_proc);
	in_child(load_twice);
}

static void names(void **state)
{
	(void)state;
	assert_string_equal(nc_filter_call_name(SYS_read), "read");
	assert_string_equal(nc_filter_call_name(SYS_openat), "openat");
	assert_string_equal(nc_filter_call_name(SYS_clone3), "clone3");
	assert_string_equal(nc_filter_call_name(SYS_io_uring_setup), "io_uring_setup");
	assert_null(nc_filter_call_name(-1));
	assert_null(nc_filter_call_name(400));
	assert_null(nc_filter_call_name(1000));
	assert_null(nc_filter_call_name(INT32_MAX));
}

/* The variants differ in what they do with a refusal and in nothing else. */
static void programs(void **state)
{
	(void)state;
	for (int which = REPORTERS; which < NC_FILTER_MAX; which++) {
		int listener = 4711;
		size_t n;

		assert_null(nc_filter_program((enum nc_filter)which, NC_FILTER_REPORTING, &n));
		assert_int_equal(n, 0);
		assert_int_equal(nc_filter_load((enum nc_filter)which, &listener), -EINVAL);
		assert_int_equal(listener, 4711);
	}
	for (int which = 0; which < REPORTERS; which++) {
		size_t n, m, differ = 0;
		const struct sock_filter *plain =
			nc_filter_program((enum nc_filter)which, NC_FILTER_PLAIN, &n);
		const struct sock_filter *reporting =
			nc_filter_program((enum nc_filter)which, NC_FILTER_REPORTING, &m);

		assert_int_equal(n, m);
		assert_in_range(n, 20, BPF_MAXINSNS);
		/* the architecture comes first */
		assert_int_equal(plain[0].code, BPF_LD | BPF_W | BPF_ABS);
		assert_int_equal(plain[0].k, offsetof(struct seccomp_data, arch));
		for (size_t i = 0; i < n; i++) {
			if (memcmp(&plain[i], &reporting[i], sizeof(plain[i])) == 0)
				continue;
			assert_int_equal(plain[i].k, SECCOMP_RET_ERRNO | EPERM);
			assert_int_equal(reporting[i].k, SECCOMP_RET_USER_NOTIF);
			differ++;
		}
		assert_true(differ > 0);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		unit_test_fds(refused_groups_are_refused_in_every_profile),
		unit_test_fds(refusals_are_reported_under_the_spawners_filter),
		unit_test_fds(calls_that_matter_are_among_the_refused),
		unit_test_fds(unknown_calls_and_clone3_are_absent),
		unit_test_fds(without_a_filter_clone3_is_there),
#ifdef __x86_64__
		unit_test_fds(foreign_calls_kill),
#endif
		unit_test_fds(clone_gives_no_namespace),
		unit_test_fds(alone_there_are_no_new_processes),
		unit_test_fds(sockets),
		unit_test_fds(socket_pairs),
		unit_test_fds(socket_options),
		unit_test_fds(ioctls),
		unit_test_fds(prctls),
		unit_test_fds(other_arguments),
		unit_test_fds(what_differs_where_there_may_be_no_namespace),
		unit_test_fds(init_has_its_few_calls_and_no_others),
		unit_test_fds(processes_and_threads_work),
#if !defined(__SANITIZE_ADDRESS__)
		unit_test_fds(the_spawner_keeps_what_it_needs),
		unit_test_fds(calls_that_the_spawner_does_without),
		unit_test_fds(a_listener_of_its_own_wins_over_the_spawners_filter),
#endif
#if !defined(__SANITIZE_ADDRESS__) && !defined(NACRE_COVERAGE)
		unit_test_fds(the_worker_has_its_calls_and_no_others),
		unit_test_fds(what_the_worker_may),
		unit_test_fds(the_recorder_has_its_calls_and_no_others),
		unit_test_fds(what_the_recorder_may),
		unit_test_fds(the_server_has_its_calls_and_no_others),
		unit_test_fds(what_the_server_may),
		unit_test_fds(the_egress_has_its_calls_and_no_others),
		unit_test_fds(what_the_egress_may),
		unit_test_fds(what_the_courier_may),
		unit_test_fds(what_the_analyst_may),
		unit_test_fds(what_the_relay_may),
		unit_test_fds(threads_of_the_worker_work),
#endif
		unit_test_fds(signals_to_itself_only),
		unit_test_fds(loading),
		unit_test_fds(names),
		unit_test_fds(programs),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
