/* Blobs: kept whole, proved by their names, retired by age and number. */
#include <errno.h>

#include "base/fd.h"
#include "base/limits.h"
#include "recorder/blob.h"
#include "recorder/journal.h"
#include "unit-files.h"

static char dir[UNIT_DIR_SIZE];
static int dir_fd;
static struct nc_blobs blobs;

static int make(void **state)
{
	unsigned char key[NC_SHA256_SIZE];

	unit_fds_note(state);
	dir_fd = unit_dir_make(dir);
	assert_int_equal(nc_journal_create(dir_fd, key), 0);
	return nc_blobs_open(&blobs, dir_fd, 0);
}

static int drop(void **state)
{
	nc_blobs_done(&blobs);
	close(dir_fd);
	unit_remove(AT_FDCWD, dir);
	return unit_fds_check(state);
}

static void path_of(const unsigned char *digest, char path[static 128])
{
	char hex[NC_SHA256_HEX_SIZE];

	nc_sha256_hex(digest, hex);
	snprintf(path, 128, "blobs/%.2s/%s", hex, hex + 2);
}

static void put(const void *data, size_t size, unsigned char *digest)
{
	assert_int_equal(nc_blobs_put(&blobs, data, size, digest), 0);
}

static void is_kept(const unsigned char *digest, const void *data, size_t size)
{
	cleanup_free char *found = NULL;
	size_t found_size;

	assert_int_equal(nc_blob_read(dir_fd, digest, &found, &found_size), 0);
	assert_int_equal(found_size, size);
	assert_memory_equal(found, data, size);
}

static void what_is_put_is_kept_once(void **state)
{
	unsigned char one[NC_SHA256_SIZE], two[NC_SHA256_SIZE];
	char path[128];
	struct stat before, after;

	(void)state;
	put("text", 4, one);
	path_of(one, path);
	assert_int_equal(fstatat(dir_fd, path, &before, 0), 0);
	assert_int_equal(before.st_mode & 0777, 0600);
	put("text", 4, two);
	assert_memory_equal(one, two, sizeof(one));
	assert_int_equal(fstatat(dir_fd, path, &after, 0), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	is_kept(one, "text", 4);
	put("", 0, two);
	is_kept(two, "", 0);
}

static void what_was_changed_is_not_given_out(void **state)
{
	unsigned char digest[NC_SHA256_SIZE];
	char path[128], *data = NULL;
	size_t size;

	(void)state;
	put("text", 4, digest);
	path_of(digest, path);
	unit_file_make(dir_fd, path, "tent", 4);
	assert_int_equal(nc_blob_read(dir_fd, digest, &data, &size), -EBADMSG);
	assert_int_equal(unlinkat(dir_fd, path, 0), 0);
	assert_int_equal(nc_blob_read(dir_fd, digest, &data, &size), -ENOENT);
	assert_int_equal(symlinkat("/etc/passwd", dir_fd, path), 0);
	assert_int_equal(nc_blob_read(dir_fd, digest, &data, &size), -ELOOP);
	assert_null(data);
	/* torn: the length tells, and it is written again */
	assert_int_equal(unlinkat(dir_fd, path, 0), 0);
	unit_file_make(dir_fd, path, "te", 2);
	put("text", 4, digest);
	is_kept(digest, "text", 4);
}

static void the_oldest_go_when_there_are_too_many(void **state)
{
	unsigned char digests[12][NC_SHA256_SIZE];
	char data[100] = "", path[128];

	(void)state;
	blobs.max_bytes = 1000;
	for (int i = 0; i < 12; i++) {
		struct timespec times[2] = {{.tv_sec = 1000 + i}, {.tv_sec = 1000 + i}};

		data[0] = (char)i;
		put(data, sizeof(data), digests[i]);
		path_of(digests[i], path);
		assert_int_equal(utimensat(dir_fd, path, times, 0), 0);
		if (i == 5) {
			data[0] = 0; /* used again: it is the youngest now */
			put(data, sizeof(data), digests[0]);
		}
	}
	data[0] = 11;
	is_kept(digests[11], data, sizeof(data));
	data[0] = 0;
	is_kept(digests[0], data, sizeof(data));
	path_of(digests[1], path);
	assert_int_equal(faccessat(dir_fd, path, F_OK, 0), -1);
	assert_int_equal(nc_blobs_put(&blobs, data, 1001, digests[0]), -EFBIG);
}

static void what_is_old_goes_and_what_a_crash_left(void **state)
{
	const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	unsigned char one[NC_SHA256_SIZE], two[NC_SHA256_SIZE];
	char path[128], left[160], *data;
	size_t size;

	(void)state;
	put("one", 3, one);
	put("two", 3, two);
	path_of(one, path);
	assert_int_equal(utimensat(dir_fd, path, old, 0), 0);
	snprintf(left, sizeof(left), "%.9s.b_left", path);
	unit_file_make(dir_fd, left, "x", 1);
	assert_int_equal(utimensat(dir_fd, left, old, 0), 0);
	assert_int_equal(nc_blobs_sweep(&blobs, 0), 0);
	is_kept(one, "one", 3);
	assert_int_equal(faccessat(dir_fd, left, F_OK, 0), -1);
	assert_int_equal(nc_blobs_sweep(&blobs, 86400), 0);
	assert_int_equal(nc_blob_read(dir_fd, one, &data, &size), -ENOENT);
	is_kept(two, "two", 3);
}

#define with_blobs(function) cmocka_unit_test_setup_teardown(function, make, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_blobs(what_is_put_is_kept_once),
		with_blobs(what_was_changed_is_not_given_out),
		with_blobs(the_oldest_go_when_there_are_too_many),
		with_blobs(what_is_old_goes_and_what_a_crash_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
