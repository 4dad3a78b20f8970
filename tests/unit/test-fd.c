/* Descriptors and the ownership of locals. */
#include "unit-files.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>

#include "base/fd.h"
#include "base/limits.h"

/* How read(), write() and free() behave while a test holds them. */
static struct {
	size_t at_most;	      /* bytes per call; 0: as many as the kernel gives */
	bool interrupts;      /* every other call is interrupted */
	unsigned int fail_at; /* the call, counted from 1, that fails with error */
	int error;
	bool free_sets_errno;
	unsigned int calls;
	unsigned int bytes_asked; /* by the last call */
	int fd_flags;		  /* F_GETFD of the last descriptor */
} kernel;

ssize_t __real_read(int fd, void *data, size_t size);
ssize_t __wrap_read(int fd, void *data, size_t size);
ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size);
void __real_free(void *memory);
void __wrap_free(void *memory);

/* Counts a call and says whether it goes on to the kernel. */
static bool passes(int fd, size_t *size)
{
	kernel.calls++;
	kernel.bytes_asked = (unsigned int)*size;
	kernel.fd_flags = fcntl(fd, F_GETFD);
	if (kernel.calls == kernel.fail_at || (kernel.interrupts && kernel.calls % 2 == 1)) {
		errno = kernel.calls == kernel.fail_at ? kernel.error : EINTR;
		return false;
	}
	if (kernel.at_most && *size > kernel.at_most)
		*size = kernel.at_most;
	return true;
}

ssize_t __wrap_read(int fd, void *data, size_t size)
{
	return passes(fd, &size) ? __real_read(fd, data, size) : -1;
}

ssize_t __wrap_write(int fd, const void *data, size_t size)
{
	return passes(fd, &size) ? __real_write(fd, data, size) : -1;
}

void __wrap_free(void *memory)
{
	__real_free(memory);
	if (kernel.free_sets_errno)
		errno = ENOTTY;
}

static int note(void **state)
{
	memset(&kernel, 0, sizeof(kernel));
	return unit_fds_note(state);
}

static int check(void **state)
{
	memset(&kernel, 0, sizeof(kernel));
	return unit_fds_check(state);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* A descriptor of an unnamed file with size bytes that count up, at its beginning. */
static int file_of(size_t size)
{
	FILE *file = tmpfile();
	int fd;

	assert_non_null(file);
	for (size_t i = 0; i < size; i++)
		fputc((int)(i % 251), file);
	assert_int_equal(fflush(file), 0);
	fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, 3);
	assert_true(fd >= 0);
	fclose(file);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void assert_counts_up(const char *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		assert_int_equal((unsigned char)data[i], i % 251);
}

static void close_accepts_what_is_none(void **state)
{
	static const int none[] = {-EBADF, -1, -ENOENT, INT_MIN};

	(void)state;
	for (size_t i = 0; i < unit_count(none); i++) {
		errno = EXDEV;
		assert_int_equal(nc_fd_close(none[i]), -EBADF);
		assert_int_equal(errno, EXDEV);
	}
}

static void close_closes_and_keeps_errno(void **state)
{
	int fd = file_of(0);

	(void)state;
	errno = EXDEV;
	assert_int_equal(nc_fd_close(fd), -EBADF);
	assert_int_equal(errno, EXDEV);
	assert_false(is_open(fd));
	/* errno also stays when close() fails */
	errno = EXDEV;
	assert_int_equal(nc_fd_close(fd), -EBADF);
	assert_int_equal(errno, EXDEV);
}

static void zero_is_a_descriptor(void **state)
{
	int saved = fcntl(0, F_DUPFD_CLOEXEC, 3);
	bool closed;

	(void)state;
	if (saved < 0)
		unit_skip("standard input is closed");
	(void)nc_fd_close(0);
	closed = !is_open(0);
	assert_int_equal(dup2(saved, 0), 0);
	close(saved);
	assert_true(closed);
}

static void leaving_the_scope_closes(void **state)
{
	int seen;

	(void)state;
	{
		cleanup_close int fd = file_of(0);
		cleanup_close int empty = -EBADF;

		seen = fd;
		assert_true(is_open(seen));
		(void)empty;
		errno = EXDEV;
	}
	assert_int_equal(errno, EXDEV);
	assert_false(is_open(seen));
}

static void closep_leaves_an_empty_descriptor(void **state)
{
	int fd = file_of(0);

	(void)state;
	nc_fd_closep(&fd);
	assert_int_equal(fd, -EBADF);
	nc_fd_closep(&fd);
	assert_int_equal(fd, -EBADF);
}

static void take_hands_over_and_leaves_empty(void **state)
{
	char text[] = "text";
	char *pointer = text;
	int numbers[] = {7, 8};
	int *at = numbers;

	(void)state;
	assert_ptr_equal(take_ptr(pointer), text);
	assert_null(pointer);
	assert_null(take_ptr(pointer));
	assert_int_equal(take_fd(*at++), 7); /* evaluates its argument once */
	assert_int_equal(numbers[0], -EBADF);
	assert_int_equal(numbers[1], 8);
	assert_ptr_equal(at, numbers + 1);
	assert_int_equal(take_fd(numbers[0]), -EBADF);
}

static void cleanups_accept_empty_values(void **state)
{
	void *memory = NULL;
	FILE *file = NULL;
	DIR *dir = NULL;

	(void)state;
	kernel.free_sets_errno = true;
	errno = EXDEV;
	nc_freep(&memory);
	nc_fclosep(&file);
	nc_closedirp(&dir);
	assert_int_equal(errno, EXDEV);
}

static void cleanups_keep_errno(void **state)
{
	void *memory = malloc(10);
	FILE *file = fopen("/dev/full", "w");
	DIR *dir = opendir("/");
	int file_fd, dir_fd;

	(void)state;
	assert_true(memory && file && dir);
	assert_true(fputs("text that cannot be flushed", file) >= 0);
	file_fd = fileno(file);
	dir_fd = dirfd(dir);
	errno = EXDEV;
	kernel.free_sets_errno = true;
	nc_freep(&memory);
	kernel.free_sets_errno = false;
	assert_int_equal(errno, EXDEV);
	assert_null(memory);
	nc_fclosep(&file);
	assert_int_equal(errno, EXDEV);
	assert_false(is_open(file_fd));
	close(dir_fd); /* so that closedir() fails */
	errno = EXDEV;
	nc_closedirp(&dir);
	assert_int_equal(errno, EXDEV);
}

static void leaving_the_scope_cleans_up(void **state)
{
	int file_fd, dir_fd;

	(void)state;
	{
		cleanup_free char *memory = malloc(10); /* the sanitizer would see it leak */
		cleanup_fclose FILE *file = fopen("/dev/null", "r");
		cleanup_closedir DIR *dir = opendir("/");

		assert_true(memory && file && dir);
		file_fd = fileno(file);
		dir_fd = dirfd(dir);
	}
	assert_false(is_open(file_fd));
	assert_false(is_open(dir_fd));
}

static void dup_gives_another_descriptor_of_the_same_file(void **state)
{
	cleanup_close int fd = file_of(5);
	cleanup_close int copy = nc_fd_dup(fd);

	(void)state;
	assert_true(copy > 2);
	assert_int_not_equal(copy, fd);
	assert_int_equal(fcntl(copy, F_GETFD), FD_CLOEXEC);
	assert_int_equal(lseek(fd, 3, SEEK_SET), 3);
	assert_int_equal(lseek(copy, 0, SEEK_CUR), 3);
}

static void dup_never_gives_a_standard_stream(void **state)
{
	cleanup_close int fd = file_of(0);
	int saved = fcntl(0, F_DUPFD_CLOEXEC, 3), copy;

	(void)state;
	if (saved >= 0)
		close(0);
	copy = nc_fd_dup(fd);
	if (saved >= 0) {
		assert_int_equal(dup2(saved, 0), 0);
		close(saved);
	}
	assert_true(copy > 2);
	close(copy);
}

static void dup_returns_the_error(void **state)
{
	(void)state;
	assert_int_equal(nc_fd_dup(-EBADF), -EBADF);
	assert_int_equal(nc_fd_dup(INT_MAX), -EBADF);
}

static void write_all_writes_all(void **state)
{
	cleanup_close int fd = file_of(0);
	char back[11] = "";

	(void)state;
	assert_int_equal(nc_fd_write_all(fd, "0123456789", 10), 0);
	assert_int_equal(pread(fd, back, sizeof(back), 0), 10);
	assert_memory_equal(back, "0123456789", 10);
	assert_int_equal(nc_fd_write_all(fd, NULL, 0), 0);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 10);
}

static void write_all_goes_through_interruptions_and_short_writes(void **state)
{
	cleanup_close int fd = file_of(0);
	char back[11] = "";

	(void)state;
	kernel.at_most = 3;
	kernel.interrupts = true;
	assert_int_equal(nc_fd_write_all(fd, "0123456789", 10), 0);
	assert_int_equal(kernel.calls, 8); /* 3, 3, 3, 1, each interrupted once */
	assert_int_equal(pread(fd, back, sizeof(back), 0), 10);
	assert_memory_equal(back, "0123456789", 10);
}

static void write_all_returns_the_error(void **state)
{
	cleanup_close int fd = file_of(0);
	cleanup_close int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	assert_true(full >= 0);
	assert_int_equal(nc_fd_write_all(-EBADF, "x", 1), -EBADF);
	assert_int_equal(nc_fd_write_all(full, "x", 1), -ENOSPC);
	memset(&kernel, 0, sizeof(kernel));
	kernel.at_most = 3;
	kernel.fail_at = 3;
	kernel.error = EIO;
	assert_int_equal(nc_fd_write_all(fd, "0123456789", 10), -EIO);
	assert_int_equal(kernel.calls, 3);
}

static void read_upto_stops_at_size_or_at_the_end(void **state)
{
	static const struct {
		size_t file, size;
	} cases[] = {{0, 0}, {0, 10}, {10, 0}, {10, 9}, {10, 10}, {10, 11}, {10, 100}};

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++) {
		cleanup_close int fd = file_of(cases[i].file);
		size_t want = cases[i].file < cases[i].size ? cases[i].file : cases[i].size;
		char data[100];

		memset(data, 0x7f, sizeof(data));
		assert_int_equal(nc_fd_read_upto(fd, data, cases[i].size), want);
		assert_counts_up(data, want);
		for (size_t j = want; j < sizeof(data); j++)
			assert_int_equal(data[j], 0x7f);
		assert_int_equal(lseek(fd, 0, SEEK_CUR), want);
	}
}

static void read_upto_goes_through_interruptions_and_short_reads(void **state)
{
	cleanup_close int fd = file_of(10);
	char data[20];

	(void)state;
	kernel.at_most = 3;
	kernel.interrupts = true;
	assert_int_equal(nc_fd_read_upto(fd, data, sizeof(data)), 10);
	assert_counts_up(data, 10);
}

static void read_upto_waits_for_all_of_a_pipe(void **state)
{
	char data[4];
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], "ab", 2), 2);
	assert_int_equal(write(ends[1], "cdef", 4), 4);
	assert_int_equal(nc_fd_read_upto(ends[0], data, 4), 4);
	assert_memory_equal(data, "abcd", 4);
	close(ends[1]);
	assert_int_equal(nc_fd_read_upto(ends[0], data, 4), 2);
	assert_memory_equal(data, "ef", 2);
	close(ends[0]);
}

static void read_upto_returns_the_error(void **state)
{
	cleanup_close int fd = file_of(10);
	cleanup_close int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char data[10];

	(void)state;
	assert_int_equal(nc_fd_read_upto(-EBADF, data, 1), -EBADF);
	assert_int_equal(nc_fd_read_upto(dir, data, 1), -EISDIR);
	memset(&kernel, 0, sizeof(kernel));
	kernel.at_most = 3;
	kernel.fail_at = 2;
	kernel.error = EIO;
	assert_int_equal(nc_fd_read_upto(fd, data, sizeof(data)), -EIO);
}

/* Reads a file of size bytes with each maximum around it. */
static void check_read_all(size_t size)
{
	for (size_t max = size > 1 ? size - 2 : 0; max < size + 3; max++) {
		cleanup_close int fd = file_of(size);
		char *const untouched = (char *)&max;
		char *data = untouched;
		size_t got = 4711;
		int r = nc_fd_read_all(fd, max, &data, &got);

		if (max < size) {
			assert_int_equal(r, -EFBIG);
			assert_ptr_equal(data, untouched);
			assert_int_equal(got, 4711);
			continue;
		}
		assert_int_equal(r, 0);
		assert_int_equal(got, size);
		assert_counts_up(data, size);
		assert_int_equal(data[size], '\0');
		free(data);
	}
}

static void read_all_takes_max_bytes_and_not_one_more(void **state)
{
	static const size_t sizes[] = {
		0, 1, 2, 100, 4094, 4095, 4096, 4097, 8191, 8192, 8193, 16384, 50000};

	(void)state;
	for (size_t i = 0; i < unit_count(sizes); i++)
		check_read_all(sizes[i]);
}

static void read_all_begins_where_the_file_stands(void **state)
{
	cleanup_close int fd = file_of(10);
	cleanup_free char *data = NULL;
	size_t size;

	(void)state;
	assert_int_equal(lseek(fd, 4, SEEK_SET), 4);
	assert_int_equal(nc_fd_read_all(fd, 6, &data, &size), 0);
	assert_int_equal(size, 6);
	assert_int_equal(data[0], 4);
}

static void read_all_returns_the_error(void **state)
{
	cleanup_close int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char untouched[] = "untouched";
	char *data = untouched;
	size_t size = 4711;

	(void)state;
	assert_int_equal(nc_fd_read_all(-EBADF, 10, &data, &size), -EBADF);
	assert_int_equal(nc_fd_read_all(dir, 10, &data, &size), -EISDIR);
	assert_ptr_equal(data, untouched);
	assert_int_equal(size, 4711);
}

static void read_proc_reads_a_file_of_the_kernel(void **state)
{
	cleanup_free char *comm = NULL;
	cleanup_free char *stat = NULL;
	char name[17] = "", want[20];

	(void)state;
	assert_int_equal(prctl(PR_GET_NAME, name), 0);
	snprintf(want, sizeof(want), "%s\n", name);
	assert_int_equal(nc_fd_read_proc("/proc/self/comm", &comm), 0);
	assert_string_equal(comm, want);
	assert_int_equal(nc_fd_read_proc("/proc/self/stat", &stat), 0);
	assert_non_null(strstr(stat, name));
}

static void read_proc_returns_the_error(void **state)
{
	char untouched[] = "untouched";
	char *data = untouched;

	(void)state;
	assert_int_equal(nc_fd_read_proc("/proc/self/no-such-file", &data), -ENOENT);
	assert_int_equal(nc_fd_read_proc("/proc/self", &data), -EISDIR);
	assert_ptr_equal(data, untouched);
}

static void read_proc_has_a_maximum(void **state)
{
	cleanup_close int fd = file_of(0);
	cleanup_free char *fits = NULL;
	char untouched[] = "untouched";
	char *data = untouched, path[64];

	(void)state;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(ftruncate(fd, NC_PROC_FILE_MAX), 0);
	assert_int_equal(nc_fd_read_proc(path, &fits), 0);
	assert_int_equal(ftruncate(fd, NC_PROC_FILE_MAX + 1), 0);
	assert_int_equal(nc_fd_read_proc(path, &data), -EFBIG);
	assert_ptr_equal(data, untouched);
}

static void write_control_writes_once_below_the_directory(void **state)
{
	cleanup_close int fd = file_of(10);
	cleanup_close int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char path[UNIT_DIR_SIZE], back[11] = "";
	int temporary = unit_dir_make(path);

	(void)state;
	assert_true(dir >= 0);
	unit_file_make(temporary, "control", "abcdefghij", 10);
	memset(&kernel, 0, sizeof(kernel));
	assert_int_equal(nc_fd_write_control(temporary, "control", "max"), 0);
	assert_int_equal(kernel.calls, 1);
	assert_int_equal(kernel.bytes_asked, 3);
	assert_int_equal(kernel.fd_flags, FD_CLOEXEC);
	(void)nc_fd_close(fd);
	fd = openat(temporary, "control", O_RDONLY | O_CLOEXEC);
	assert_int_equal(nc_fd_read_upto(fd, back, sizeof(back)), 10);
	assert_memory_equal(back, "maxdefghij", 10); /* kernel files are not truncated */
	close(temporary);
	unit_remove(AT_FDCWD, path);
}

static void write_control_reaches_the_kernel(void **state)
{
	char before[17] = "", name[17] = "";

	(void)state;
	assert_int_equal(prctl(PR_GET_NAME, before), 0);
	assert_int_equal(nc_fd_write_control(AT_FDCWD, "/proc/self/comm", "nacre-unit"), 0);
	assert_int_equal(prctl(PR_GET_NAME, name), 0);
	assert_string_equal(name, "nacre-unit");
	assert_int_equal(prctl(PR_SET_NAME, before), 0);
}

static void write_control_returns_the_error(void **state)
{
	char path[UNIT_DIR_SIZE];
	int dir = unit_dir_make(path);

	(void)state;
	unit_file_make(dir, "control", "", 0);
	assert_int_equal(nc_fd_write_control(dir, "missing", "1"), -ENOENT);
	assert_int_equal(faccessat(dir, "missing", F_OK, 0), -1); /* nor did it make one */
	assert_int_equal(nc_fd_write_control(dir, ".", "1"), -EISDIR);
	assert_int_equal(nc_fd_write_control(AT_FDCWD, "/dev/full", "1"), -ENOSPC);
	/* half a value must not pass for the value */
	kernel.at_most = 2;
	assert_true(nc_fd_write_control(dir, "control", "max") < 0);
	memset(&kernel, 0, sizeof(kernel));
	kernel.fail_at = 1;
	kernel.error = EINVAL;
	assert_int_equal(nc_fd_write_control(dir, "control", "max"), -EINVAL);
	assert_int_equal(kernel.calls, 1);
	close(dir);
	unit_remove(AT_FDCWD, path);
}

#define fd_test(function) cmocka_unit_test_setup_teardown(function, note, check)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		fd_test(close_accepts_what_is_none),
		fd_test(close_closes_and_keeps_errno),
		fd_test(zero_is_a_descriptor),
		fd_test(leaving_the_scope_closes),
		fd_test(closep_leaves_an_empty_descriptor),
		fd_test(take_hands_over_and_leaves_empty),
		fd_test(cleanups_accept_empty_values),
		fd_test(cleanups_keep_errno),
		fd_test(leaving_the_scope_cleans_up),
		fd_test(dup_gives_another_descriptor_of_the_same_file),
		fd_test(dup_never_gives_a_standard_stream),
		fd_test(dup_returns_the_error),
		fd_test(write_all_writes_all),
		fd_test(write_all_goes_through_interruptions_and_short_writes),
		fd_test(write_all_returns_the_error),
		fd_test(read_upto_stops_at_size_or_at_the_end),
		fd_test(read_upto_goes_through_interruptions_and_short_reads),
		fd_test(read_upto_waits_for_all_of_a_pipe),
		fd_test(read_upto_returns_the_error),
		fd_test(read_all_takes_max_bytes_and_not_one_more),
		fd_test(read_all_begins_where_the_file_stands),
		fd_test(read_all_returns_the_error),
		fd_test(read_proc_reads_a_file_of_the_kernel),
		fd_test(read_proc_returns_the_error),
		fd_test(read_proc_has_a_maximum),
		fd_test(write_control_writes_once_below_the_directory),
		fd_test(write_control_reaches_the_kernel),
		fd_test(write_control_returns_the_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
