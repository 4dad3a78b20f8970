/* Removing trees as a hostile program leaves them behind. */
#include "unit-files.h"

#include <errno.h>
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/pidfd.h"
#include "kernel/tree.h"

#define NO_DEADLINE UINT64_MAX
#define PATIENCE_NS (60 * NC_NS_PER_S)
#define NOBODY 65534

/* In a child: ends the check, saying where. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition,  \
				errno);                                                            \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static char dir_path[UNIT_DIR_SIZE];
static int dir;

/* Somebody who is at work in the tree: moves "tree/sub" out of it when "trigger" is removed. */
static bool intruder;

int __real_unlinkat(int dir_fd, const char *name, int flags);
int __wrap_unlinkat(int dir_fd, const char *name, int flags);

int __wrap_unlinkat(int dir_fd, const char *name, int flags)
{
	if (intruder && strcmp(name, "trigger") == 0)
		assert_int_equal(renameat(dir, "tree/sub", dir, "outside/sub"), 0);
	return __real_unlinkat(dir_fd, name, flags);
}

static int make_dir(void **state)
{
	unit_fds_note(state);
	umask(022);
	intruder = false;
	dir = unit_dir_make(dir_path);
	assert_int_equal(mkdirat(dir, "outside", 0755), 0);
	unit_file_make(dir, "outside/victim", "precious", 8);
	assert_int_equal(mkdirat(dir, "tree", 0755), 0);
	return 0;
}

static int remove_dir(void **state)
{
	/* whatever a test has done, this is to be alive */
	assert_int_equal(faccessat(dir, "outside/victim", F_OK, 0), 0);
	close(dir);
	assert_int_equal(nc_tree_remove(AT_FDCWD, "nowhere-at-all", NO_DEADLINE), 0);
	unit_remove(AT_FDCWD, dir_path);
	return unit_fds_check(state);
}

static bool exists(const char *path)
{
	struct stat status;

	return fstatat(dir, path, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static void removes_tree(void)
{
	assert_int_equal(nc_tree_remove(dir, "tree", NO_DEADLINE), 0);
	assert_false(exists("tree"));
}

static int open_dir(const char *path)
{
	int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static size_t entries_of(const char *path)
{
	DIR *stream = fdopendir(open_dir(path));
	size_t n = 0;

	assert_non_null(stream);
	while (readdir(stream))
		n++;
	closedir(stream);
	return n - 2;
}

/* Runs a check in a child, which prints what failed. */
static void in_child(int (*check)(void))
{
	cleanup_close int pidfd = -EBADF;
	siginfo_t info = {0};
	int r = nc_fork(&pidfd);

	if (r == 0)
		nc_child_exit(check());
	assert_true(r > 0);
	assert_int_equal(nc_pidfd_wait(pidfd, nc_clock_ns() + PATIENCE_NS, &info), 0);
	assert_int_equal(info.si_code, CLD_EXITED);
	assert_int_equal(info.si_status, 0);
}

/* ---- what is in trees ---- */

static void things_that_are_no_trees(void **state)
{
	(void)state;
	unit_file_make(dir, "file", "x", 1);
	assert_int_equal(symlinkat("outside", dir, "link"), 0);
	assert_int_equal(nc_tree_remove(dir, "file", NO_DEADLINE), 0);
	assert_int_equal(nc_tree_remove(dir, "link", NO_DEADLINE), 0);
	assert_int_equal(nc_tree_remove(dir, "missing", NO_DEADLINE), 0);
	assert_false(exists("file") || exists("link"));
	removes_tree(); /* empty */
	removes_tree(); /* gone */
}

static void bad_names(void **state)
{
	char longest[NC_NAME_MAX + 2];

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(nc_tree_remove(dir, "", NO_DEADLINE), -EINVAL);
	assert_int_equal(nc_tree_remove(dir, ".", NO_DEADLINE), -EINVAL);
	assert_int_equal(nc_tree_remove(dir, "..", NO_DEADLINE), -EINVAL);
	assert_int_equal(nc_tree_remove(dir, "/", NO_DEADLINE), -EINVAL);
	assert_int_equal(nc_tree_remove(dir, "tree/", NO_DEADLINE), -EINVAL);
	assert_int_equal(nc_tree_remove(dir, "outside/victim", NO_DEADLINE), -EINVAL);
	assert_int_equal(nc_tree_remove(dir, "tree/../outside", NO_DEADLINE), -EINVAL);
	assert_int_equal(nc_tree_remove(dir, longest, NO_DEADLINE), -EINVAL);
	assert_int_equal(nc_tree_remove(-EBADF, "tree", NO_DEADLINE), -EBADF);
	assert_true(exists("tree"));
}

static void links_are_removed_and_not_followed(void **state)
{
	(void)state;
	assert_int_equal(mkdirat(dir, "tree/sub", 0755), 0);
	assert_int_equal(symlinkat("../outside", dir, "tree/relative"), 0);
	assert_int_equal(symlinkat("../../outside", dir, "tree/sub/deeper"), 0);
	assert_int_equal(symlinkat(dir_path, dir, "tree/absolute"), 0);
	assert_int_equal(symlinkat("..", dir, "tree/sub/up"), 0);
	assert_int_equal(symlinkat("self", dir, "tree/self"), 0);
	assert_int_equal(symlinkat("/", dir, "tree/root"), 0);
	assert_int_equal(linkat(dir, "outside/victim", dir, "tree/second", 0), 0);
	removes_tree();
	assert_int_equal(entries_of("outside"), 1);
}

static void special_files(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/tree/socket", dir);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(mknodat(dir, "tree/fifo", S_IFIFO | 0600, 0), 0);
	if (geteuid() == 0)
		assert_int_equal(mknodat(dir, "tree/null", S_IFCHR | 0600, 0), 0);
	removes_tree();
}

static void names_of_all_bytes(void **state)
{
	cleanup_close int tree = open_dir("tree");
	char name[NC_NAME_MAX + 1];

	(void)state;
	for (int i = 0; i < 20; i++) {
		for (size_t k = 0; k < NC_NAME_MAX; k++) {
			name[k] = (char)((k + (size_t)i * 13) % 255 + 1);
			if (name[k] == '/')
				name[k] = '\n';
		}
		name[NC_NAME_MAX] = '\0';
		assert_int_equal(mkdirat(tree, name, 0755), 0);
		name[0] = '-';
		name[1] = '\n';
		unit_file_make(tree, name, "x", 1);
	}
	assert_int_equal(mkdirat(tree, "...", 0755), 0);
	assert_int_equal(mkdirat(tree, ".../..a", 0755), 0);
	removes_tree();
}

/* ---- how much ---- */

static void make_chain(const char *name, size_t depth)
{
	int fd = open_dir("tree");

	for (size_t i = 0; i < depth; i++) {
		int next;

		assert_int_equal(mkdirat(fd, name, 0755), 0);
		next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		if (i % 100 == 0)
			unit_file_make(next, "file", "x", 1);
		close(fd);
		fd = next;
	}
	close(fd);
}

/* Deeper than any path, than the levels that are remembered, and than there are descriptors. */
static void ten_thousand_levels(void **state)
{
	struct rlimit before, few;
	char name[NC_NAME_MAX + 1];

	(void)state;
	memset(name, 'n', NC_NAME_MAX);
	name[NC_NAME_MAX] = '\0';
	make_chain("d", 10000);
	make_chain(name, 600);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 64;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	removes_tree();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* With what it says that it needs, and not one descriptor more. */
static int three_descriptors(void)
{
	struct rlimit few = {0};
	int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(lowest);
	few.rlim_cur = few.rlim_max = (rlim_t)lowest + 3;
	MUST(setrlimit(RLIMIT_NOFILE, &few) == 0);
	MUST(nc_tree_remove(dir, "tree", NO_DEADLINE) == 0);
	return 0;
}

static void few_descriptors(void **state)
{
	(void)state;
	make_chain("d", 20);
	in_child(three_descriptors);
	assert_false(exists("tree"));
}

/* Most are second names of others, which are made ten times as fast. */
static void make_files(const char *path, size_t n)
{
	cleanup_close int fd = open_dir(path);
	char name[32], first[32];

	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "f%zu", i);
		if (i % 10000 == 0) {
			memcpy(first, name, sizeof(first));
			assert_int_equal(mknodat(fd, name, S_IFREG | 0600, 0), 0);
		} else {
			assert_int_equal(linkat(fd, first, fd, name, 0), 0);
		}
	}
}

static void a_hundred_thousand_files(void **state)
{
	(void)state;
	make_files("tree", 100000);
	removes_tree();
}

static void many_full_directories(void **state)
{
	char name[32];

	(void)state;
	for (size_t i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "tree/d%zu", i);
		assert_int_equal(mkdirat(dir, name, 0755), 0);
		snprintf(name, sizeof(name), "tree/d%zu/e", i);
		assert_int_equal(mkdirat(dir, name, 0755), 0);
		snprintf(name, sizeof(name), "tree/d%zu/e/f", i);
		unit_file_make(dir, name, "x", 1);
	}
	removes_tree();
}

static void the_deadline(void **state)
{
	uint64_t start;
	int r = 0, calls = 0, late = 0;
	size_t left;

	(void)state;
	make_files("tree", 10000);
	make_chain("d", 1000);
	assert_int_equal(nc_tree_remove(dir, "tree", 0), -ETIMEDOUT);
	assert_int_equal(nc_tree_remove(dir, "tree", nc_clock_ns()), -ETIMEDOUT);
	left = entries_of("tree");
	assert_int_equal(left, 10001);
	do {
		start = nc_clock_ns();
		r = nc_tree_remove(dir, "tree", start + 5 * NC_NS_PER_MS);
		late += nc_clock_ns() - start > NC_NS_PER_S;
		calls++;
	} while (r == -ETIMEDOUT && calls < 10000);
	assert_int_equal(r, 0);
	assert_true(calls > 1);
	assert_true(late * 2 < calls); /* a machine that does other things keeps some waiting */
	assert_false(exists("tree"));
}

/* ---- what resists ---- */

/* The tests' directory becomes that of an ordinary user, and so does the child. */
static int become_ordinary(void)
{
	if (geteuid() != 0)
		return 0;
	return fchown(dir, NOBODY, NOBODY) < 0 || fchownat(dir, "tree", NOBODY, NOBODY, 0) < 0 ||
			       setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
			       setresuid(NOBODY, NOBODY, NOBODY) < 0
		       ? -1
		       : 0;
}

static int closed_directories(void)
{
	MUST(become_ordinary() == 0);
	MUST(mkdirat(dir, "tree/none", 0700) == 0 && mkdirat(dir, "tree/none/none", 0700) == 0);
	MUST(mkdirat(dir, "tree/none/none/full", 0700) == 0);
	MUST(mkdirat(dir, "tree/none/none/full/x", 0) == 0);
	MUST(mkdirat(dir, "tree/read", 0700) == 0 && mkdirat(dir, "tree/read/x", 0700) == 0);
	MUST(mkdirat(dir, "tree/run", 0700) == 0 && mkdirat(dir, "tree/run/x", 0700) == 0);
	MUST(fchmodat(dir, "tree/none/none/full", 0, 0) == 0);
	MUST(fchmodat(dir, "tree/none/none", 0, 0) == 0);
	MUST(fchmodat(dir, "tree/none", 0, 0) == 0);
	MUST(fchmodat(dir, "tree/read", 0444, 0) == 0);
	MUST(fchmodat(dir, "tree/run", 0111, 0) == 0);
	MUST(fchmodat(dir, "tree", 0, 0) == 0);
	MUST(nc_tree_remove(dir, "tree", NO_DEADLINE) == 0);
	return 0;
}

static void directories_without_rights(void **state)
{
	(void)state;
	in_child(closed_directories);
	assert_false(exists("tree"));
}

static int anothers_directory(void)
{
	MUST(become_ordinary() == 0);
	MUST(nc_tree_remove(dir, "tree", NO_DEADLINE) == -EACCES);
	MUST(entries_of("tree") == 1);
	MUST(exists("tree/mine") && exists("tree/mine/roots/file"));
	return 0;
}

/* What cannot be removed stays with the directories above it, and everything else goes. */
static void the_first_error_after_all_that_can_go(void **state)
{
	(void)state;
	if (geteuid() != 0)
		unit_skip("needs root");
	assert_int_equal(mkdirat(dir, "tree/mine", 0755), 0);
	assert_int_equal(mkdirat(dir, "tree/mine/roots", 0755), 0);
	unit_file_make(dir, "tree/mine/roots/file", "x", 1);
	make_files("tree", 500);
	make_files("tree/mine", 500);
	make_chain("d", 600);
	assert_int_equal(fchownat(dir, "tree/mine", NOBODY, NOBODY, 0), 0);
	{
		cleanup_close int fd = open_dir("tree");
		int at = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		while (at >= 0) {
			int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

			assert_int_equal(fchown(at, NOBODY, NOBODY), 0);
			close(at);
			at = next;
		}
	}
	in_child(anothers_directory);
	removes_tree();
}

static void set_flag(const char *path, int flag)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC), flags = 0, r;

	assert_true(fd >= 0);
	r = ioctl(fd, FS_IOC_GETFLAGS, &flags);
	flags |= flag;
	if (r == 0)
		r = ioctl(fd, FS_IOC_SETFLAGS, &flags);
	close(fd);
	if (r < 0)
		unit_skip("no such flags here");
}

static void immutable_files(void **state)
{
	(void)state;
	assert_int_equal(mkdirat(dir, "tree/sub", 0755), 0);
	unit_file_make(dir, "tree/sub/file", "x", 1);
	unit_file_make(dir, "tree/append", "x", 1);
	assert_int_equal(mkdirat(dir, "tree/empty", 0755), 0);
	set_flag("tree/sub/file", FS_IMMUTABLE_FL);
	set_flag("tree/sub", FS_APPEND_FL);
	set_flag("tree/append", FS_APPEND_FL);
	set_flag("tree/empty", FS_IMMUTABLE_FL);
	set_flag("tree", FS_IMMUTABLE_FL);
	assert_int_not_equal(unlinkat(dir, "tree/append", 0), 0);
	removes_tree();
}

static int mounted(void)
{
	char path[UNIT_DIR_SIZE + 64];

	MUST(unshare(CLONE_NEWNS) == 0);
	MUST(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	/* a descriptor from before sees the mounts of before */
	dir = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%s/tree/sub/mount", dir_path);
	MUST(mount("tmpfs", path, "tmpfs", 0, NULL) == 0);
	unit_file_make(dir, "tree/sub/mount/precious", "x", 1);
	snprintf(path, sizeof(path), "%s/tree/sub/bound", dir_path);
	MUST(chdir(dir_path) == 0);
	MUST(mount("outside", path, NULL, MS_BIND, NULL) == 0);
	snprintf(path, sizeof(path), "%s/tree/sub/file", dir_path);
	MUST(mount("outside/victim", path, NULL, MS_BIND, NULL) == 0);
	MUST(nc_tree_remove(dir, "tree", NO_DEADLINE) == -EBUSY);
	MUST(exists("tree/sub/mount/precious") && exists("tree/sub/bound/victim"));
	MUST(exists("tree/sub/file") && exists("outside/victim"));
	MUST(entries_of("tree") == 1 && entries_of("tree/sub") == 3);
	return 0;
}

static void mount_points_are_not_entered(void **state)
{
	(void)state;
	if (geteuid() != 0)
		unit_skip("needs root");
	assert_int_equal(mkdirat(dir, "tree/sub", 0755), 0);
	assert_int_equal(mkdirat(dir, "tree/sub/mount", 0755), 0);
	assert_int_equal(mkdirat(dir, "tree/sub/bound", 0755), 0);
	assert_int_equal(mkdirat(dir, "tree/other", 0755), 0);
	unit_file_make(dir, "tree/sub/file", "x", 1);
	unit_file_make(dir, "tree/sub/other", "x", 1);
	unit_file_make(dir, "tree/other/file", "x", 1);
	in_child(mounted);
	removes_tree(); /* the mounts are gone with their namespace */
}

/* The directory that the walk is in leaves the tree: ".." would be the way to the victims. */
static void a_directory_that_is_moved_away(void **state)
{
	(void)state;
	assert_int_equal(mkdirat(dir, "tree/sub", 0755), 0);
	unit_file_make(dir, "tree/sub/trigger", "x", 1);
	intruder = true;
	assert_int_equal(nc_tree_remove(dir, "tree", NO_DEADLINE), -ESTALE);
	intruder = false;
	assert_true(exists("outside/sub") && exists("outside/victim"));
	removes_tree();
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)
	static const struct CMUnitTest tests[] = {
		IN_DIR(things_that_are_no_trees),
		IN_DIR(bad_names),
		IN_DIR(links_are_removed_and_not_followed),
		IN_DIR(special_files),
		IN_DIR(names_of_all_bytes),
		IN_DIR(ten_thousand_levels),
		IN_DIR(few_descriptors),
		IN_DIR(a_hundred_thousand_files),
		IN_DIR(many_full_directories),
		IN_DIR(the_deadline),
		IN_DIR(directories_without_rights),
		IN_DIR(the_first_error_after_all_that_can_go),
		IN_DIR(immutable_files),
		IN_DIR(mount_points_are_not_entered),
		IN_DIR(a_directory_that_is_moved_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
