/* Open descriptors and temporary trees, for tests that must leave neither behind. */
#ifndef NC_UNIT_FILES_H
#define NC_UNIT_FILES_H

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

static inline size_t unit_fd_count(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static size_t unit_fds_before;

static inline int unit_fds_note(void **state)
{
	(void)state;
	unit_fds_before = unit_fd_count();
	return 0;
}

static inline int unit_fds_check(void **state)
{
	size_t now = unit_fd_count();

	(void)state;
	if (now == unit_fds_before)
		return 0;
	print_error("%zu descriptors before the test, %zu behind it\n", unit_fds_before, now);
	return -1;
}

/* A test that is to leave as many descriptors open as it found. */
#define unit_test_fds(function)                                                                    \
	cmocka_unit_test_setup_teardown(function, unit_fds_note, unit_fds_check)

#define UNIT_DIR_SIZE 4096

/* Makes a directory of its own, writes its path and returns a descriptor of it. */
static inline int unit_dir_make(char path[static UNIT_DIR_SIZE])
{
	const char *above = getenv("TMPDIR");
	int fd;

	snprintf(path, UNIT_DIR_SIZE, "%s/nacre-unit-XXXXXX", above && *above ? above : "/tmp");
	assert_non_null(mkdtemp(path));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* Removes a file or a tree; by descriptors, since its paths may be longer than PATH_MAX. */
static inline void unit_remove(int dir_fd, const char *name)
{
	struct dirent *entry;
	DIR *dir;
	int fd;

	if (unlinkat(dir_fd, name, 0) == 0)
		return;
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			unit_remove(fd, entry->d_name);
	closedir(dir);
	(void)unlinkat(dir_fd, name, AT_REMOVEDIR);
}

static inline void unit_file_make(int dir_fd, const char *name, const void *data, size_t size)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	assert_int_equal(close(fd), 0);
}

#endif
