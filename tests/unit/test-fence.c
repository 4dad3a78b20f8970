/*
 * The fences, tried in children on the running kernel. What a newer ABI takes away is expected only
 * where the kernel has it.
 */
#include "unit-files.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/pidfd.h"
#include "kernel/fence.h"

#define PATIENCE_NS (30 * NC_NS_PER_S)

/* Below one directory: a scratch directory, which fences leave writable, and one outside of it. */
static char dir_path[UNIT_DIR_SIZE];
static int dir_fd, scratch_fd, outside_fd, listening_fd;
static char scratch[UNIT_DIR_SIZE + 16], single[UNIT_DIR_SIZE + 16];
static int abi;

/* In a child: ends the check, saying where. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition,  \
				errno);                                                            \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

#define MUST_FAIL(error, call) MUST((call) < 0 && errno == (error))

static const char abstract_name[] = "\0nacre-unit-fence";

/* With the pid of the test itself: another may run at the same time. */
static socklen_t abstract_address(struct sockaddr_un *address, pid_t pid)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(address->sun_path, abstract_name, sizeof(abstract_name));
	snprintf(address->sun_path + sizeof(abstract_name), 32, "%d", (int)pid);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(abstract_name) +
			   strlen(address->sun_path + sizeof(abstract_name)));
}

static int listen_at(const struct sockaddr_un *address, socklen_t size)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)address, size), 0);
	assert_int_equal(listen(fd, 16), 0);
	return fd;
}

static void copy_program(int to_fd, const char *name)
{
	static char bytes[1 << 20];
	int from = open("/bin/true", O_RDONLY | O_CLOEXEC);
	ssize_t size = read(from, bytes, sizeof(bytes));

	assert_true(size > 0 && size < (ssize_t)sizeof(bytes));
	unit_file_make(to_fd, name, bytes, (size_t)size);
	assert_int_equal(fchmodat(to_fd, name, 0755, 0), 0);
	close(from);
}

static int open_below(const char *name)
{
	int fd;

	assert_int_equal(mkdirat(dir_fd, name, 0755), 0);
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static int set_up(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	(void)state;
	abi = (int)syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, 1U);
	dir_fd = unit_dir_make(dir_path);
	scratch_fd = open_below("scratch");
	outside_fd = open_below("outside");
	snprintf(scratch, sizeof(scratch), "%s/scratch", dir_path);
	snprintf(single, sizeof(single), "%s/single", dir_path);
	unit_file_make(dir_fd, "single", "alone", 5);
	unit_file_make(outside_fd, "victim", "secret", 6);
	assert_int_equal(mkdirat(outside_fd, "empty", 0755), 0);
	copy_program(scratch_fd, "program");
	copy_program(outside_fd, "program");
	assert_int_equal(fchdir(outside_fd), 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "socket");
	listening_fd = listen_at(&address, sizeof(address));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(listening_fd);
	close(scratch_fd);
	close(outside_fd);
	close(dir_fd);
	assert_int_equal(chdir("/"), 0);
	unit_remove(AT_FDCWD, dir_path);
	return 0;
}

/* Runs a check in a child, which prints what failed. */
static void in_child(int (*check)(void))
{
	cleanup_close int pidfd = -EBADF;
	siginfo_t info = {0};
	int r;

	if (abi <= 0)
		unit_skip("no Landlock here");
	r = nc_fork(&pidfd);
	if (r == 0) {
		(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		nc_child_exit(check());
	}
	assert_true(r > 0);
	assert_int_equal(nc_pidfd_wait(pidfd, nc_clock_ns() + PATIENCE_NS, &info), 0);
	assert_int_equal(info.si_code, CLD_EXITED);
	assert_int_equal(info.si_status, 0);
}

/* ---- what children try ---- */

/* 0 or -1 and errno, as the calls that make a file say it. */
static int open_close(int at_fd, const char *path, int flags)
{
	int fd = openat(at_fd, path, flags | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? -1 : 0;
}

/* The status of a program that is run; 127 and errno: it cannot be. */
static int status_of(int at_fd, const char *path)
{
	char *const argv[] = {(char[]){"program"}, NULL};
	int status = -1;
	pid_t pid = vfork();

	if (pid == 0) {
		syscall(SYS_execveat, at_fd, path, argv, argv + 1, 0);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
									       : -1;
}

static int fence_process(void)
{
	const struct nc_fence_path extra[] = {
		{scratch, NC_FENCE_WRITE},
		{single, NC_FENCE_WRITE},
		{"/nonexistent/nacre", NC_FENCE_WRITE},
	};

	return nc_fence_payload(&nc_fence_process, extra, unit_count(extra));
}

static int files_of_the_host(void)
{
	static const char *const closed[] = {
		"/",
		"/etc",
		"/etc/passwd",
		"/etc/hostname",
		"/proc",
		"/proc/self/status",
		"/proc/self/mem",
		"/sys",
		"/home",
		"/root",
		"/tmp",
		"/dev",
		"/dev/shm",
		"/run",
	};

	MUST(fence_process() == abi);
	for (size_t i = 0; i < unit_count(closed); i++)
		if (open_close(AT_FDCWD, closed[i], O_RDONLY) == 0 ||
			(errno != EACCES && errno != ENOENT)) {
			fprintf(stderr, "%s: errno %d\n", closed[i], errno);
			return 1;
		}
	MUST(open_close(AT_FDCWD, "/usr", O_RDONLY | O_DIRECTORY) == 0);
	MUST(open_close(AT_FDCWD, "/usr/bin/env", O_RDONLY) == 0);
	MUST(open_close(AT_FDCWD, "/bin", O_RDONLY | O_DIRECTORY) == 0);
	MUST(status_of(AT_FDCWD, "/bin/true") == 0);
	MUST_FAIL(EACCES, open_close(AT_FDCWD, "/usr/nacre-unit", O_WRONLY | O_CREAT));
	MUST_FAIL(EACCES, open_close(AT_FDCWD, "/usr/bin/env", O_WRONLY));
	MUST_FAIL(EACCES, mkdir("/usr/nacre-unit", 0700));
	return 0;
}

static int outside(void)
{
	MUST(fence_process() == abi);
	/* neither a descriptor of the directory nor the working directory opens the way */
	MUST_FAIL(EACCES, open_close(outside_fd, "victim", O_RDONLY));
	MUST_FAIL(EACCES, open_close(outside_fd, "victim", O_WRONLY));
	MUST_FAIL(EACCES, open_close(outside_fd, "victim", O_RDONLY | O_TRUNC));
	MUST_FAIL(EACCES, open_close(AT_FDCWD, "victim", O_RDONLY));
	MUST_FAIL(EACCES, open_close(outside_fd, ".", O_RDONLY));
	MUST_FAIL(EACCES, open_close(outside_fd, "new", O_WRONLY | O_CREAT | O_EXCL));
	MUST_FAIL(EACCES, open_close(outside_fd, ".", O_WRONLY | O_TMPFILE));
	MUST_FAIL(EACCES, mkdirat(outside_fd, "new", 0700));
	MUST_FAIL(EACCES, symlinkat("/", outside_fd, "new"));
	MUST_FAIL(EACCES, mknodat(outside_fd, "new", S_IFIFO | 0600, 0));
	MUST_FAIL(EACCES, unlinkat(outside_fd, "victim", 0));
	MUST_FAIL(EACCES, unlinkat(outside_fd, "empty", AT_REMOVEDIR));
	MUST_FAIL(EACCES, renameat(outside_fd, "victim", outside_fd, "new"));
	if (abi >= 3)
		MUST_FAIL(EACCES, truncate("victim", 0));
	MUST(status_of(outside_fd, "program") == 127);
	return 0;
}

/* Files neither come in nor go out under another name. */
static int across(void)
{
	MUST(fence_process() == abi);
	MUST(open_close(scratch_fd, "mine", O_WRONLY | O_CREAT) == 0);
	MUST(renameat(scratch_fd, "mine", outside_fd, "new") < 0);
	MUST(errno == EXDEV || errno == EACCES);
	MUST(renameat(outside_fd, "victim", scratch_fd, "taken") < 0);
	MUST(errno == EXDEV || errno == EACCES);
	MUST(syscall(SYS_renameat2, scratch_fd, "mine", outside_fd, "victim", 2U) < 0);
	MUST(errno == EXDEV || errno == EACCES);
	MUST(linkat(outside_fd, "victim", scratch_fd, "taken", 0) < 0);
	MUST(errno == EXDEV || errno == EACCES);
	MUST(linkat(scratch_fd, "mine", outside_fd, "new", 0) < 0);
	MUST(errno == EXDEV || errno == EACCES);
	/* a link to the outside may be made, and leads nowhere */
	MUST(symlinkat("../outside/victim", scratch_fd, "way") == 0);
	MUST_FAIL(EACCES, open_close(scratch_fd, "way", O_RDONLY));
	MUST_FAIL(EACCES, open_close(scratch_fd, "../outside/victim", O_RDONLY));
	MUST(unlinkat(scratch_fd, "way", 0) == 0 && unlinkat(scratch_fd, "mine", 0) == 0);
	return 0;
}

static int in_scratch(void)
{
	int fd;

	MUST(fence_process() == abi);
	fd = openat(scratch_fd, "mine", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	MUST(fd >= 0 && write(fd, "mine", 4) == 4 && ftruncate(fd, 2) == 0);
	MUST(fchdir(scratch_fd) == 0 && truncate("mine", 1) == 0);
	MUST(open_close(scratch_fd, "mine", O_WRONLY | O_TRUNC) == 0);
	MUST(open_close(scratch_fd, ".", O_RDONLY | O_DIRECTORY) == 0);
	MUST(mkdirat(scratch_fd, "sub", 0700) == 0);
	if (abi >= 2) {
		MUST(renameat(scratch_fd, "mine", scratch_fd, "sub/mine") == 0);
		MUST(linkat(scratch_fd, "sub/mine", scratch_fd, "mine", 0) == 0);
		MUST(unlinkat(scratch_fd, "sub/mine", 0) == 0);
	}
	MUST(mknodat(scratch_fd, "fifo", S_IFIFO | 0600, 0) == 0);
	MUST(unlinkat(scratch_fd, "fifo", 0) == 0 && unlinkat(scratch_fd, "mine", 0) == 0);
	MUST(unlinkat(scratch_fd, "sub", AT_REMOVEDIR) == 0);
	MUST(status_of(scratch_fd, "program") == 0);
	/* a rule for one file */
	MUST(open_close(AT_FDCWD, single, O_RDWR) == 0);
	MUST_FAIL(EACCES, unlink(single));
	return 0;
}

static int devices(void)
{
	static const char *const open_ones[] = {
		"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};
	int fd;

	MUST(fence_process() == abi);
	for (size_t i = 0; i < unit_count(open_ones); i++) {
		fd = open(open_ones[i], O_RDWR | O_CLOEXEC);
		MUST(fd >= 0);
		/* the device answers, not the fence */
		MUST(ioctl(fd, TCGETS, NULL) < 0 && errno != EACCES);
		close(fd);
	}
	MUST(open("/dev/tty", O_RDWR | O_CLOEXEC) >= 0 || errno == ENXIO);
	MUST(open("/dev/kmsg", O_RDONLY | O_CLOEXEC) < 0);
	MUST(open("/dev/ptmx", O_RDWR | O_CLOEXEC) < 0);
	return 0;
}

/* The right to write a directory is none to talk to the drivers of devices in it. */
static int device_rights(void)
{
	static const struct nc_fence_path paths[] = {{"/dev", NC_FENCE_WRITE}};
	const struct nc_fence fence = {.paths = paths, .n_paths = 1};
	int fd;

	MUST(nc_fence_payload(&fence, NULL, 0) == abi);
	fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
	MUST(fd >= 0);
	if (abi >= 5)
		MUST_FAIL(EACCES, ioctl(fd, TCGETS, NULL));
	return 0;
}

static int try_tcp(int (*call)(int, const struct sockaddr *, socklen_t))
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r;

	address.sin_port = htons(call == bind ? 0 : 1);
	r = fd < 0 ? -1 : call(fd, (const struct sockaddr *)&address, sizeof(address));
	(void)nc_fd_close(fd);
	return r;
}

static int tcp_in_a_process_box(void)
{
	MUST(fence_process() == abi);
	if (abi < 4)
		return 0;
	MUST_FAIL(EACCES, try_tcp(bind));
	MUST_FAIL(EACCES, try_tcp(connect));
	return 0;
}

static int tcp_in_a_container_box(void)
{
	MUST(nc_fence_payload(&nc_fence_container, NULL, 0) == abi);
	MUST(try_tcp(bind) == 0);
	MUST(try_tcp(connect) == 0 || errno != EACCES);
	return 0;
}

/* Why NC_FILTER_PROCESS refuses socket(): here Landlock is no wall before ABI 9. */
static int unix_sockets(void)
{
	struct sockaddr_un path = {.sun_family = AF_UNIX, .sun_path = "socket"}, name;
	socklen_t size = abstract_address(&name, getppid());
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	MUST(fd >= 0 && other >= 0 && fence_process() == abi);
	if (abi < 9)
		MUST(connect(fd, (const struct sockaddr *)&path, sizeof(path)) == 0);
	if (abi >= 6)
		MUST_FAIL(EPERM, connect(other, (const struct sockaddr *)&name, size));
	return 0;
}

static int signals(void)
{
	MUST(kill(getppid(), 0) == 0);
	MUST(fence_process() == abi);
	MUST(kill(getpid(), 0) == 0);
	if (abi >= 6)
		MUST_FAIL(EPERM, kill(getppid(), 0));
	return 0;
}

static int container(void)
{
	MUST(nc_fence_payload(&nc_fence_container, NULL, 0) == abi);
	MUST(open_close(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY) == 0);
	MUST(open_close(AT_FDCWD, "/etc/passwd", O_RDONLY) == 0);
	MUST(open_close(AT_FDCWD, "/tmp", O_RDWR | O_TMPFILE) == 0);
	MUST(open_close(AT_FDCWD, "/proc/self/comm", O_RDONLY) == 0);
	MUST_FAIL(EACCES, open_close(AT_FDCWD, "/proc/self/comm", O_RDWR));
	MUST_FAIL(EACCES, open_close(AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY));
	MUST(open_close(AT_FDCWD, "/dev/null", O_RDWR) == 0);
	MUST(status_of(AT_FDCWD, "/bin/true") == 0);
	MUST_FAIL(EACCES, open_close(AT_FDCWD, "/var/tmp", O_RDWR | O_TMPFILE));
	MUST_FAIL(EACCES, open_close(AT_FDCWD, "/dev", O_RDWR | O_TMPFILE));
	MUST_FAIL(EACCES, open_close(AT_FDCWD, "/usr", O_RDWR | O_TMPFILE));
	return 0;
}

/* An error is the caller's to see, and leaves everything as it was. */
static int failures(void)
{
	const struct nc_fence_path through_a_file[] = {{"/etc/passwd/x", NC_FENCE_READ}};
	int before = open("/dev/null", O_RDONLY | O_CLOEXEC), after;

	close(before);
	MUST(nc_fence_payload(&nc_fence_process, through_a_file, 1) == -ENOTDIR);
	MUST(nc_fence_worker("/nonexistent/nacre") == -ENOENT);
	MUST(open_close(AT_FDCWD, "/etc/passwd", O_RDONLY) == 0);
	MUST(open_close(outside_fd, "victim", O_RDWR) == 0);
	after = open("/dev/null", O_RDONLY | O_CLOEXEC);
	MUST(before == after); /* all descriptors are closed again */
	MUST(fence_process() == abi);
	MUST(open("/dev/null", O_RDONLY | O_CLOEXEC) == after + 1);
	return 0;
}

/* Fences stack: nothing comes back. */
static int twice(void)
{
	const struct nc_fence_path everything[] = {{"/", NC_FENCE_WRITE}};
	const struct nc_fence fence = {.paths = everything, .n_paths = 1};

	MUST(fence_process() == abi);
	MUST(nc_fence_payload(&fence, NULL, 0) == abi);
	MUST_FAIL(EACCES, open_close(outside_fd, "victim", O_RDONLY));
	return 0;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(NACRE_COVERAGE)
/* Those builds leave the worker its files. */
static int worker_without_files(void)
{
	int fd = openat(outside_fd, "victim", O_RDONLY | O_CLOEXEC);
	char byte;

	MUST(nc_fence_all() == abi);
	MUST(read(fd, &byte, 1) == 1);
	MUST_FAIL(EACCES, open_close(AT_FDCWD, "/usr/bin/env", O_RDONLY));
	MUST_FAIL(EACCES, open_close(AT_FDCWD, "/dev/null", O_RDWR));
	MUST_FAIL(EACCES, open_close(scratch_fd, "program", O_RDONLY));
	MUST(status_of(AT_FDCWD, "/bin/true") == 127);
	if (abi >= 4)
		MUST_FAIL(EACCES, try_tcp(connect));
	if (abi >= 6)
		MUST_FAIL(EPERM, kill(getppid(), 0));
	return 0;
}

static int worker_with_a_store(void)
{
	MUST(nc_fence_worker(scratch) == abi);
	MUST(open_close(scratch_fd, "layer", O_RDWR | O_CREAT | O_EXCL) == 0);
	MUST(mkdirat(scratch_fd, "sub", 0700) == 0);
	MUST(symlinkat("layer", scratch_fd, "sub/link") == 0);
	MUST(unlinkat(scratch_fd, "sub/link", 0) == 0);
	if (abi >= 2)
		MUST(renameat(scratch_fd, "layer", scratch_fd, "sub/layer") == 0 &&
			renameat(scratch_fd, "sub/layer", scratch_fd, "layer") == 0);
	MUST(unlinkat(scratch_fd, "layer", 0) == 0);
	MUST(unlinkat(scratch_fd, "sub", AT_REMOVEDIR) == 0);
	MUST_FAIL(EACCES, mknodat(scratch_fd, "fifo", S_IFIFO | 0600, 0));
	MUST_FAIL(EACCES, mknodat(scratch_fd, "socket", S_IFSOCK | 0600, 0));
	MUST_FAIL(EACCES, open_close(outside_fd, "victim", O_RDONLY));
	MUST_FAIL(EACCES, open_close(AT_FDCWD, "/usr/bin/env", O_RDONLY));
	MUST(status_of(scratch_fd, "program") == 127);
	return 0;
}

static int reader(void)
{
	MUST(nc_fence_reader(scratch) == abi);
	MUST(open_close(scratch_fd, "program", O_RDONLY) == 0);
	MUST(open_close(scratch_fd, ".", O_RDONLY | O_DIRECTORY) == 0);
	MUST_FAIL(EACCES, open_close(scratch_fd, "program", O_RDWR));
	MUST_FAIL(EACCES, open_close(scratch_fd, "fresh", O_RDWR | O_CREAT | O_EXCL));
	MUST_FAIL(EACCES, mkdirat(scratch_fd, "sub", 0700));
	MUST_FAIL(EACCES, unlinkat(scratch_fd, "program", 0));
	MUST_FAIL(EACCES, open_close(outside_fd, "victim", O_RDONLY));
	MUST(status_of(scratch_fd, "program") == 127);
	return 0;
}

static void worker(void **state)
{
	(void)state;
	in_child(reader);
	in_child(worker_without_files);
	in_child(worker_with_a_store);
}
#endif

/* ---- the tests ---- */

static void the_host_is_closed_to_a_process_box(void **state)
{
	(void)state;
	in_child(files_of_the_host);
	in_child(outside);
	in_child(across);
	in_child(devices);
	in_child(device_rights);
	assert_int_equal(faccessat(outside_fd, "victim", F_OK, 0), 0);
	assert_int_equal(faccessat(outside_fd, "empty", F_OK, 0), 0);
}

static void the_scratch_directory_is_open(void **state)
{
	(void)state;
	in_child(in_scratch);
}

static void others_are_out_of_reach(void **state)
{
	struct sockaddr_un address;
	socklen_t size = abstract_address(&address, getpid());
	int abstract_fd = listen_at(&address, size);

	(void)state;
	in_child(tcp_in_a_process_box);
	in_child(tcp_in_a_container_box);
	in_child(unix_sockets);
	in_child(signals);
	close(abstract_fd);
}

static void a_container_box_is_as_it_was(void **state)
{
	(void)state;
	in_child(container);
}

static void errors_and_layers(void **state)
{
	(void)state;
	in_child(failures);
	in_child(twice);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		unit_test_fds(the_host_is_closed_to_a_process_box),
		unit_test_fds(the_scratch_directory_is_open),
		unit_test_fds(others_are_out_of_reach),
		unit_test_fds(a_container_box_is_as_it_was),
		unit_test_fds(errors_and_layers),
#if !defined(__SANITIZE_ADDRESS__) && !defined(NACRE_COVERAGE)
		unit_test_fds(worker),
#endif
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
