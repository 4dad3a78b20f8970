/* Files below a directory that somebody hostile may change. */
#include "unit-files.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/path.h"

/* What happens to calls of the code under test, and the order that they came in. */
static struct {
	int open_error; /* an errno that the next opens fail with, open_failures times */
	unsigned int open_failures;
	unsigned int fail_fsync; /* the call, counted from 1, that fails with EIO */
	bool fail_rename;
	char calls[8]; /* f: fsync of a file, r: rename, d: fsync of a directory */
	size_t n_calls;
} kernel;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_renameat(int old_fd, const char *old_path, int new_fd, const char *new_path);
int __wrap_renameat(int old_fd, const char *old_path, int new_fd, const char *new_path);

/* The code under test has but one such call: openat2(). */
long __wrap_syscall(long number, ...)
{
	const char *path;
	va_list arguments;
	size_t size;
	void *how;
	int fd;

	if (kernel.open_failures > 0) {
		kernel.open_failures--;
		errno = kernel.open_error;
		return -1;
	}
	va_start(arguments, number);
	fd = va_arg(arguments, int);
	path = va_arg(arguments, const char *);
	how = va_arg(arguments, void *);
	size = va_arg(arguments, size_t);
	va_end(arguments);
	return __real_syscall(number, fd, path, how, size);
}

static void note_call(char call)
{
	if (kernel.n_calls < sizeof(kernel.calls) - 1)
		kernel.calls[kernel.n_calls++] = call;
}

int __wrap_fsync(int fd)
{
	struct stat status;

	note_call(fstat(fd, &status) == 0 && S_ISDIR(status.st_mode) ? 'd' : 'f');
	if (kernel.n_calls != kernel.fail_fsync)
		return __real_fsync(fd);
	errno = EIO;
	return -1;
}

int __wrap_renameat(int old_fd, const char *old_path, int new_fd, const char *new_path)
{
	note_call('r');
	if (!kernel.fail_rename)
		return __real_renameat(old_fd, old_path, new_fd, new_path);
	errno = EIO;
	return -1;
}

static char dir_path[UNIT_DIR_SIZE];
static int dir;

static int make_dir(void **state)
{
	unit_fds_note(state);
	memset(&kernel, 0, sizeof(kernel));
	umask(022);
	dir = unit_dir_make(dir_path);
	return 0;
}

static int remove_dir(void **state)
{
	memset(&kernel, 0, sizeof(kernel));
	close(dir);
	unit_remove(AT_FDCWD, dir_path);
	return unit_fds_check(state);
}

/* file, sub/file, and every kind of link to them. */
static void make_tree(void)
{
	unit_file_make(dir, "file", "content", 7);
	assert_int_equal(mkdirat(dir, "sub", 0755), 0);
	unit_file_make(dir, "sub/file", "below", 5);
	assert_int_equal(symlinkat("file", dir, "link"), 0);
	assert_int_equal(symlinkat("sub", dir, "sublink"), 0);
	assert_int_equal(symlinkat(".", dir, "self"), 0);
	assert_int_equal(symlinkat("..", dir, "up"), 0);
	assert_int_equal(symlinkat("../file", dir, "sub/uplink"), 0);
	assert_int_equal(symlinkat("/etc/passwd", dir, "absolute"), 0);
	assert_int_equal(symlinkat("missing", dir, "dangling"), 0);
	assert_int_equal(symlinkat("loop", dir, "loop"), 0);
}

/* Names below dir_fd, "." and ".." aside. */
static size_t count_names(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = fd < 0 ? NULL : fdopendir(fd);
	size_t n = 0;

	assert_non_null(names);
	while (readdir(names))
		n++;
	closedir(names);
	return n - 2;
}

static void assert_file(const char *name, const void *data, size_t size)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char back[256];

	assert_true(fd >= 0);
	assert_int_equal(read(fd, back, sizeof(back)), size);
	assert_memory_equal(back, data, size);
	close(fd);
}

static const char *const not_plain[] = {"", "/", "/a", "//a", "a/", "a//b", "a//", ".", "..", "./a",
	"../a", "a/.", "a/..", "a/./b", "a/../b", "/..", "../..", "/etc/passwd"};

static void plain_paths_are_relative_without_dots(void **state)
{
	static const char *const plain[] = {"a", "a/b", "a/b/c", "...", "..a", ".a", "a.", "a..",
		"a/...", "a/..b/c", " ", "a\nb", "\\", "\xff", "-", "~"};

	(void)state;
	for (size_t i = 0; i < unit_count(plain); i++)
		if (!nc_path_is_plain(plain[i]))
			fail_msg("'%s' is not plain", plain[i]);
	for (size_t i = 0; i < unit_count(not_plain); i++)
		if (nc_path_is_plain(not_plain[i]))
			fail_msg("'%s' is plain", not_plain[i]);
}

static void plain_names_have_at_most_255_bytes(void **state)
{
	char path[600];

	(void)state;
	memset(path, 'n', sizeof(path));
	path[255] = '\0';
	assert_true(nc_path_is_plain(path));
	path[255] = 'n';
	path[256] = '\0';
	assert_false(nc_path_is_plain(path));
	path[255] = '/';
	path[256] = 'n';
	path[511] = '\0';
	assert_true(nc_path_is_plain(path));
	path[511] = 'n';
	path[512] = '\0';
	assert_false(nc_path_is_plain(path));
}

/* The longest path: 16 names of 255 bytes and 15 slashes. */
static void fill_longest(char path[static 4097])
{
	for (size_t i = 0; i < 4096; i++)
		path[i] = i % 256 == 255 ? '/' : 'n';
	path[4095] = '\0';
	path[4096] = '\0';
}

static void plain_paths_have_at_most_4095_bytes(void **state)
{
	char path[4097];

	(void)state;
	fill_longest(path);
	assert_int_equal(strlen(path), NC_PATH_MAX);
	assert_true(nc_path_is_plain(path));
	/* short names, so that only the whole is too long */
	for (size_t i = 0; i < 4096; i++)
		path[i] = i % 100 == 99 ? '/' : 'n';
	path[4096] = '\0';
	assert_false(nc_path_is_plain(path));
	path[4095] = '\0';
	assert_true(nc_path_is_plain(path));
}

static void nothing_takes_a_path_that_is_not_plain(void **state)
{
	char untouched[] = "untouched";
	char *data = untouched;
	size_t size = 4711;

	(void)state;
	assert_int_equal(mkdirat(dir, "a", 0755), 0);
	for (size_t i = 0; i < unit_count(not_plain); i++) {
		const char *path = not_plain[i];

		assert_int_equal(nc_path_open(dir, path, O_RDONLY, 0), -EINVAL);
		assert_int_equal(nc_path_read(dir, path, 10, &data, &size), -EINVAL);
		assert_int_equal(nc_path_write(dir, path, "x", 1, 0644), -EINVAL);
		assert_int_equal(nc_path_make_dirs(dir, path, 0755), -EINVAL);
	}
	assert_ptr_equal(data, untouched);
	assert_int_equal(size, 4711);
	assert_int_equal(count_names(dir), 1);
}

static void open_follows_no_link(void **state)
{
	static const struct {
		const char *path;
		int result;
	} cases[] = {
		{"file", 0},
		{"sub", 0},
		{"sub/file", 0},
		{"missing", -ENOENT},
		{"missing/file", -ENOENT},
		{"file/below", -ENOTDIR},
		{"link", -ELOOP},
		{"sublink", -ELOOP},
		{"sublink/file", -ELOOP},
		{"self/file", -ELOOP},
		{"up", -ELOOP},
		{"up/file", -ELOOP},
		{"sub/uplink", -ELOOP},
		{"absolute", -ELOOP},
		{"dangling", -ELOOP},
		{"loop", -ELOOP},
	};

	(void)state;
	make_tree();
	for (size_t i = 0; i < unit_count(cases); i++) {
		int fd = nc_path_open(dir, cases[i].path, O_RDONLY, 0);

		if (fd < 0 ? fd != cases[i].result : cases[i].result != 0)
			fail_msg("%s: %d", cases[i].path, fd);
		(void)nc_fd_close(fd);
	}
	/* nor does it make a file through one */
	assert_int_equal(nc_path_open(dir, "dangling", O_WRONLY | O_CREAT, 0644), -ELOOP);
	assert_int_equal(nc_path_open(dir, "sublink/new", O_WRONLY | O_CREAT, 0644), -ELOOP);
	assert_int_equal(faccessat(dir, "missing", F_OK, 0), -1);
	assert_int_equal(count_names(dir), 9);
}

static void open_follows_no_magic_link(void **state)
{
	static const char *const links[] = {
		"exe", "cwd", "root", "cwd/etc", "root/etc/passwd", "fd/0"};
	cleanup_close int self = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	if (self < 0)
		unit_skip("no /proc here");
	for (size_t i = 0; i < unit_count(links); i++)
		assert_int_equal(nc_path_open(self, links[i], O_RDONLY, 0), -ELOOP);
}

static void open_enters_no_other_file_system(void **state)
{
	cleanup_close int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char untouched[] = "untouched";
	char *data = untouched;
	size_t size = 4711;

	(void)state;
	if (access("/proc/version", R_OK) < 0)
		unit_skip("no /proc here");
	assert_int_equal(nc_path_open(root, "proc", O_RDONLY | O_DIRECTORY, 0), -EXDEV);
	assert_int_equal(nc_path_open(root, "proc/version", O_RDONLY, 0), -EXDEV);
	assert_int_equal(nc_path_read(root, "proc/version", 4096, &data, &size), -EXDEV);
	assert_int_equal(nc_path_write(root, "proc/nacre-unit", "x", 1, 0644), -EXDEV);
	assert_int_equal(nc_path_make_dirs(root, "proc/nacre-unit", 0755), -EXDEV);
	assert_ptr_equal(data, untouched);
}

static void open_adds_its_flags(void **state)
{
	int fd;

	(void)state;
	make_tree();
	fd = nc_path_open(dir, "file", O_RDWR, 0);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	close(fd);
}

static void open_makes_files_with_the_mode_asked_for(void **state)
{
	struct stat status;
	int fd;

	(void)state;
	fd = nc_path_open(dir, "new", O_WRONLY | O_CREAT | O_EXCL, 0640);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(status.st_mode, S_IFREG | 0640);
	close(fd);
	assert_int_equal(nc_path_open(dir, "new", O_WRONLY | O_CREAT | O_EXCL, 0640), -EEXIST);
}

/* openat2() refuses O_NOCTTY and O_NONBLOCK next to O_PATH. */
static void open_takes_o_path(void **state)
{
	int fd;

	(void)state;
	make_tree();
	fd = nc_path_open(dir, "file", O_PATH, 0);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
}

static void open_does_not_take_a_controlling_terminal(void **state)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), status;
	const char *name = master < 0 ? NULL : ptsname(master);
	pid_t pid;

	(void)state;
	if (!name || strncmp(name, "/dev/pts/", 9) != 0)
		unit_skip("no pseudo terminals here");
	assert_int_equal(unlockpt(master), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int pts = open("/dev/pts", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		/* a session leader without one takes the first that it opens */
		if (setsid() < 0 || nc_path_open(pts, name + 9, O_RDWR, 0) < 0)
			_exit(1);
		_exit(open("/dev/tty", O_RDWR) >= 0 ? 2 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	close(master);
}

static void open_waits_on_no_fifo(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(mkfifoat(dir, "fifo", 0644), 0);
	fd = nc_path_open(dir, "fifo", O_RDONLY, 0);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(nc_path_open(dir, "fifo", O_WRONLY, 0), -ENXIO);
}

static void open_goes_on_when_the_kernel_is_uncertain(void **state)
{
	static const int errors[] = {EAGAIN, EINTR};

	(void)state;
	make_tree();
	for (size_t i = 0; i < unit_count(errors); i++) {
		int fd;

		kernel.open_error = errors[i];
		kernel.open_failures = 3;
		fd = nc_path_open(dir, "file", O_RDONLY, 0);
		assert_int_equal(kernel.open_failures, 0);
		assert_true(fd >= 0);
		close(fd);
		/* but not for ever: the other side can go on renaming */
		kernel.open_failures = 10000;
		assert_int_equal(nc_path_open(dir, "file", O_RDONLY, 0), -errors[i]);
		kernel.open_failures = 0;
	}
}

static void open_returns_the_error(void **state)
{
	cleanup_close int file = -EBADF;

	(void)state;
	make_tree();
	file = openat(dir, "file", O_RDONLY | O_CLOEXEC);
	assert_int_equal(nc_path_open(-EBADF, "file", O_RDONLY, 0), -EBADF);
	assert_int_equal(nc_path_open(file, "file", O_RDONLY, 0), -ENOTDIR);
	assert_int_equal(nc_path_open(dir, "sub", O_WRONLY, 0), -EISDIR);
	assert_int_equal(nc_path_open(dir, "file", O_RDONLY | O_DIRECTORY, 0), -ENOTDIR);
}

static void read_gives_the_file_with_a_nul_behind(void **state)
{
	static const char bytes[] = {'a', '\0', 'b'};
	cleanup_free char *plain = NULL;
	cleanup_free char *empty = NULL;
	cleanup_free char *binary = NULL;
	size_t size = 4711;

	(void)state;
	make_tree();
	unit_file_make(dir, "empty", "", 0);
	unit_file_make(dir, "binary", bytes, sizeof(bytes));
	assert_int_equal(nc_path_read(dir, "sub/file", 100, &plain, &size), 0);
	assert_int_equal(size, 5);
	assert_memory_equal(plain, "below", 6);
	assert_int_equal(nc_path_read(dir, "empty", 0, &empty, &size), 0);
	assert_int_equal(size, 0);
	assert_string_equal(empty, "");
	assert_int_equal(nc_path_read(dir, "binary", 3, &binary, &size), 0);
	assert_int_equal(size, 3);
	assert_memory_equal(binary, "a\0b", 4);
}

static void assert_not_read(const char *path, size_t max, int result)
{
	char untouched[] = "untouched";
	char *data = untouched;
	size_t size = 4711;
	int r = nc_path_read(dir, path, max, &data, &size);

	if (r != result)
		fail_msg("%s: %d instead of %d", path, r, result);
	assert_ptr_equal(data, untouched);
	assert_int_equal(size, 4711);
}

static void read_takes_max_bytes_and_not_one_more(void **state)
{
	cleanup_free char *data = NULL;
	size_t size;

	(void)state;
	make_tree();
	assert_int_equal(nc_path_read(dir, "file", 7, &data, &size), 0);
	assert_int_equal(size, 7);
	assert_not_read("file", 6, -EFBIG);
	assert_not_read("file", 0, -EFBIG);
}

static void read_follows_no_link(void **state)
{
	static const char *const links[] = {"link", "sublink/file", "self/file", "up", "sub/uplink",
		"absolute", "dangling", "loop"};

	(void)state;
	make_tree();
	for (size_t i = 0; i < unit_count(links); i++)
		assert_not_read(links[i], 100000, -ELOOP);
	assert_not_read("missing", 100, -ENOENT);
}

static void read_refuses_a_file_with_a_second_name(void **state)
{
	cleanup_free char *data = NULL;
	size_t size;

	(void)state;
	make_tree();
	assert_int_equal(linkat(dir, "file", dir, "second", 0), 0);
	assert_not_read("file", 100, -EMLINK);
	assert_not_read("second", 100, -EMLINK);
	assert_int_equal(unlinkat(dir, "second", 0), 0);
	assert_int_equal(nc_path_read(dir, "file", 100, &data, &size), 0);
}

static void read_takes_regular_files_only(void **state)
{
	(void)state;
	make_tree();
	assert_int_equal(mkfifoat(dir, "fifo", 0644), 0);
	assert_not_read("sub", 100, -EINVAL);
	assert_not_read("fifo", 100, -EINVAL);
}

static void read_takes_no_device(void **state)
{
	struct statvfs system;

	(void)state;
	assert_int_equal(fstatvfs(dir, &system), 0);
	if (system.f_flag & ST_NODEV)
		unit_skip("the temporary directory takes no devices");
	if (mknodat(dir, "null", S_IFCHR | 0666, makedev(1, 3)) < 0)
		unit_skip("may not make devices");
	assert_not_read("null", 100, -EINVAL);
	assert_int_equal(mknodat(dir, "zero", S_IFCHR | 0666, makedev(1, 5)), 0);
	assert_not_read("zero", 100, -EINVAL);
}

static void read_takes_no_socket(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	(void)state;
	assert_true(fd >= 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/socket", dir);
	r = bind(fd, (const struct sockaddr *)&address, sizeof(address));
	close(fd); /* its name stays */
	if (r < 0)
		unit_skip("may not make sockets");
	assert_not_read("socket", 100, -EINVAL);
}

static void write_makes_and_replaces_files(void **state)
{
	struct stat status;

	(void)state;
	make_tree();
	assert_int_equal(nc_path_write(dir, "new", "first", 5, 0600), 0);
	assert_file("new", "first", 5);
	assert_int_equal(fstatat(dir, "new", &status, 0), 0);
	assert_int_equal(status.st_mode, S_IFREG | 0600);
	assert_int_equal(status.st_nlink, 1);
	assert_int_equal(nc_path_write(dir, "new", "2", 1, 0640), 0);
	assert_file("new", "2", 1);
	assert_int_equal(fstatat(dir, "new", &status, 0), 0);
	assert_int_equal(status.st_mode, S_IFREG | 0640);
	assert_int_equal(nc_path_write(dir, "new", NULL, 0, 0644), 0);
	assert_file("new", "", 0);
	assert_int_equal(nc_path_write(dir, "sub/new", "a\0b", 3, 0644), 0);
	assert_file("sub/new", "a\0b", 3);
	assert_int_equal(count_names(dir), 10); /* make_tree's nine and "new" */
}

static void write_replaces_links_and_does_not_follow_them(void **state)
{
	(void)state;
	make_tree();
	assert_int_equal(linkat(dir, "file", dir, "second", 0), 0);
	assert_int_equal(nc_path_write(dir, "link", "new", 3, 0644), 0);
	assert_file("link", "new", 3);
	assert_file("file", "content", 7);
	assert_int_equal(nc_path_write(dir, "second", "new", 3, 0644), 0);
	assert_file("second", "new", 3);
	assert_file("file", "content", 7);
	assert_int_equal(nc_path_write(dir, "dangling", "new", 3, 0644), 0);
	assert_int_equal(faccessat(dir, "missing", F_OK, 0), -1);
	assert_int_equal(nc_path_write(dir, "sublink/new", "new", 3, 0644), -ELOOP);
	assert_int_equal(nc_path_write(dir, "up/new", "new", 3, 0644), -ELOOP);
	assert_int_equal(faccessat(dir, "sub/new", F_OK, 0), -1);
}

static void write_waits_on_no_fifo(void **state)
{
	(void)state;
	assert_int_equal(mkfifoat(dir, "fifo", 0644), 0);
	assert_int_equal(nc_path_write(dir, "fifo", "new", 3, 0644), 0);
	assert_file("fifo", "new", 3);
}

static void write_syncs_renames_and_syncs(void **state)
{
	(void)state;
	assert_int_equal(nc_path_write(dir, "new", "x", 1, 0644), 0);
	assert_string_equal(kernel.calls, "frd");
}

static void write_returns_the_error_and_leaves_nothing(void **state)
{
	cleanup_close int file = -EBADF;

	(void)state;
	make_tree();
	file = openat(dir, "file", O_RDONLY | O_CLOEXEC);
	assert_int_equal(nc_path_write(dir, "missing/new", "x", 1, 0644), -ENOENT);
	assert_int_equal(nc_path_write(dir, "file/new", "x", 1, 0644), -ENOTDIR);
	assert_int_equal(nc_path_write(dir, "sub", "x", 1, 0644), -EISDIR);
	assert_int_equal(nc_path_write(-EBADF, "new", "x", 1, 0644), -EBADF);
	assert_int_equal(nc_path_write(file, "new", "x", 1, 0644), -ENOTDIR);
	assert_int_equal(count_names(dir), 9);
	assert_file("sub/file", "below", 5);
}

/* The file "file" is as make_tree made it, and nothing is beside it that was not. */
static void assert_not_written(void)
{
	assert_file("file", "content", 7);
	assert_int_equal(count_names(dir), 9);
}

static void write_keeps_the_old_file_when_the_disk_is_full(void **state)
{
	static const char large[8192];
	const struct rlimit tight = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
	struct rlimit old;
	int r;

	(void)state;
	make_tree();
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	if (old.rlim_max != RLIM_INFINITY)
		unit_skip("the size of files is limited");
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	r = nc_path_write(dir, "file", large, sizeof(large), 0644);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(r, -EFBIG);
	assert_not_written();
	assert_string_equal(kernel.calls, "");
}

static void write_keeps_the_old_file_when_a_step_fails(void **state)
{
	(void)state;
	make_tree();
	kernel.fail_fsync = 1;
	assert_int_equal(nc_path_write(dir, "file", "new", 3, 0644), -EIO);
	assert_string_equal(kernel.calls, "f");
	assert_not_written();

	memset(&kernel, 0, sizeof(kernel));
	kernel.fail_rename = true;
	assert_int_equal(nc_path_write(dir, "file", "new", 3, 0644), -EIO);
	assert_string_equal(kernel.calls, "fr");
	assert_not_written();
}

static void write_tells_that_the_directory_was_not_synced(void **state)
{
	(void)state;
	make_tree();
	kernel.fail_fsync = 3;
	assert_int_equal(nc_path_write(dir, "file", "new", 3, 0644), -EIO);
	assert_string_equal(kernel.calls, "frd");
	assert_file("file", "new", 3); /* whole, if perhaps not for long */
	assert_int_equal(count_names(dir), 9);
}

static void make_dirs_makes_what_is_missing(void **state)
{
	static const char *const made[] = {"a", "a/b", "a/b/c"};

	(void)state;
	make_tree();
	umask(0);
	assert_int_equal(nc_path_make_dirs(dir, "a/b/c", 0751), 0);
	for (size_t i = 0; i < unit_count(made); i++) {
		struct stat status;

		assert_int_equal(fstatat(dir, made[i], &status, AT_SYMLINK_NOFOLLOW), 0);
		assert_int_equal(status.st_mode, S_IFDIR | 0751);
	}
	assert_int_equal(nc_path_make_dirs(dir, "a/b/c", 0700), 0);
	assert_int_equal(nc_path_make_dirs(dir, "a/b/c/d", 0700), 0);
	assert_int_equal(nc_path_make_dirs(dir, "sub", 0700), 0);
	for (size_t i = 0; i < unit_count(made); i++) {
		struct stat status;

		/* those that were there stay as they were */
		assert_int_equal(fstatat(dir, made[i], &status, AT_SYMLINK_NOFOLLOW), 0);
		assert_int_equal(status.st_mode, S_IFDIR | 0751);
	}
	assert_file("sub/file", "below", 5);
}

static void make_dirs_follows_no_link(void **state)
{
	(void)state;
	make_tree();
	assert_int_equal(nc_path_make_dirs(dir, "sublink", 0755), -ELOOP);
	assert_int_equal(nc_path_make_dirs(dir, "sublink/new", 0755), -ELOOP);
	assert_int_equal(nc_path_make_dirs(dir, "up/new", 0755), -ELOOP);
	assert_int_equal(nc_path_make_dirs(dir, "absolute/new", 0755), -ELOOP);
	assert_int_equal(nc_path_make_dirs(dir, "dangling/new", 0755), -ELOOP);
	assert_int_equal(faccessat(dir, "sub/new", F_OK, 0), -1);
	assert_int_equal(faccessat(dir, "missing", F_OK, 0), -1);
	assert_int_equal(count_names(dir), 9);
}

static void make_dirs_returns_the_error(void **state)
{
	cleanup_close int file = -EBADF;

	(void)state;
	make_tree();
	file = openat(dir, "file", O_RDONLY | O_CLOEXEC);
	assert_int_equal(mkfifoat(dir, "fifo", 0644), 0);
	assert_int_equal(nc_path_make_dirs(dir, "file", 0755), -ENOTDIR);
	assert_int_equal(nc_path_make_dirs(dir, "file/new", 0755), -ENOTDIR);
	assert_int_equal(nc_path_make_dirs(dir, "fifo/new", 0755), -ENOTDIR);
	assert_int_equal(nc_path_make_dirs(-EBADF, "new", 0755), -EBADF);
	assert_int_equal(nc_path_make_dirs(file, "new", 0755), -ENOTDIR);
}

static void the_longest_path_can_be_used(void **state)
{
	cleanup_free char *data = NULL;
	char path[4097];
	size_t size;

	(void)state;
	fill_longest(path);
	path[4095 - 256] = '\0';
	assert_int_equal(nc_path_make_dirs(dir, path, 0755), 0);
	path[4095 - 256] = '/';
	assert_int_equal(nc_path_write(dir, path, "deep", 4, 0644), 0);
	assert_int_equal(nc_path_read(dir, path, 4, &data, &size), 0);
	assert_string_equal(data, "deep");
	assert_int_equal(unlinkat(dir, path, 0), 0);
	assert_int_equal(nc_path_make_dirs(dir, path, 0755), 0);
}

#define path_test(function) cmocka_unit_test_setup_teardown(function, make_dir, remove_dir)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_paths_are_relative_without_dots),
		cmocka_unit_test(plain_names_have_at_most_255_bytes),
		cmocka_unit_test(plain_paths_have_at_most_4095_bytes),
		path_test(nothing_takes_a_path_that_is_not_plain),
		path_test(open_follows_no_link),
		path_test(open_follows_no_magic_link),
		path_test(open_enters_no_other_file_system),
		path_test(open_adds_its_flags),
		path_test(open_makes_files_with_the_mode_asked_for),
		path_test(open_takes_o_path),
		path_test(open_does_not_take_a_controlling_terminal),
		path_test(open_waits_on_no_fifo),
		path_test(open_goes_on_when_the_kernel_is_uncertain),
		path_test(open_returns_the_error),
		path_test(read_gives_the_file_with_a_nul_behind),
		path_test(read_takes_max_bytes_and_not_one_more),
		path_test(read_follows_no_link),
		path_test(read_refuses_a_file_with_a_second_name),
		path_test(read_takes_regular_files_only),
		path_test(read_takes_no_device),
		path_test(read_takes_no_socket),
		path_test(write_makes_and_replaces_files),
		path_test(write_replaces_links_and_does_not_follow_them),
		path_test(write_waits_on_no_fifo),
		path_test(write_syncs_renames_and_syncs),
		path_test(write_returns_the_error_and_leaves_nothing),
		path_test(write_keeps_the_old_file_when_the_disk_is_full),
		path_test(write_keeps_the_old_file_when_a_step_fails),
		path_test(write_tells_that_the_directory_was_not_synced),
		path_test(make_dirs_makes_what_is_missing),
		path_test(make_dirs_follows_no_link),
		path_test(make_dirs_returns_the_error),
		path_test(the_longest_path_can_be_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
