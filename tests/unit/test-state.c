/* The state directory. */
#include <errno.h>

#include "base/fd.h"
#include "base/state.h"
#include "unit-files.h"

static char dir[UNIT_DIR_SIZE];
static int dir_fd;

static int make(void **state)
{
	(void)state;
	dir_fd = unit_dir_make(dir);
	return 0;
}

static int drop(void **state)
{
	(void)state;
	close(dir_fd);
	unit_remove(AT_FDCWD, dir);
	return 0;
}

static void place(const char *given, const char *wanted)
{
	struct nacre_err err = {0};
	char path[4096];

	assert_int_equal(nc_state_path(given, path, sizeof(path), &err), 0);
	assert_string_equal(path, wanted);
}

static void paths(void **state)
{
	struct nacre_err err = {0};
	char small[4];

	(void)state;
	setenv("NACRE_STATE", "/far/away//", 1);
	place(NULL, "/far/away");
	place("here/", "here");
	assert_int_equal(nc_state_path(NULL, small, sizeof(small), &err), -ENAMETOOLONG);
	setenv("NACRE_STATE", "relative", 1);
	setenv("XDG_STATE_HOME", "/x", 1);
	place(NULL, geteuid() == 0 ? "/var/lib/nacre" : "/x/nacre");
	unsetenv("XDG_STATE_HOME");
	setenv("HOME", "/h", 1);
	place(NULL, geteuid() == 0 ? "/var/lib/nacre" : "/h/.local/state/nacre");
	unsetenv("NACRE_STATE");
}

static void is_made_once(void **state)
{
	char path[UNIT_DIR_SIZE + 16];
	struct nacre_err err = {0};
	struct stat status;
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/a/b", dir);
	assert_int_equal(nc_state_open(path, false, &err), -ENOENT);
	assert_non_null(strstr(err.message, "/a/b"));
	for (int i = 0; i < 2; i++) {
		fd = nc_state_open(path, true, &err);
		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &status), 0);
		assert_int_equal(status.st_mode & 022, 0);
		assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		close(fd);
	}
}

static void others_are_refused(void **state)
{
	char path[UNIT_DIR_SIZE + 16];
	struct nacre_err err = {0};

	(void)state;
	assert_int_equal(mkdirat(dir_fd, "open", 0700), 0);
	snprintf(path, sizeof(path), "%s/open", dir);
	assert_int_equal(chmod(path, 0770), 0);
	assert_int_equal(nc_state_open(path, true, &err), -EPERM);
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(symlinkat("open", dir_fd, "link"), 0);
	snprintf(path, sizeof(path), "%s/link", dir);
	assert_int_equal(nc_state_open(path, true, &err), -ENOTDIR);
	unit_file_make(dir_fd, "file", "", 0);
	snprintf(path, sizeof(path), "%s/file", dir);
	assert_int_equal(nc_state_open(path, true, &err), -ENOTDIR);
	if (geteuid() == 0) {
		snprintf(path, sizeof(path), "%s/open", dir);
		assert_int_equal(chown(path, 4242, 4242), 0);
		assert_int_equal(nc_state_open(path, true, &err), -EPERM);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(paths, make, drop),
		cmocka_unit_test_setup_teardown(is_made_once, make, drop),
		cmocka_unit_test_setup_teardown(others_are_refused, make, drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
