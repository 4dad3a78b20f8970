/* What is kept by its digest: found again, found by nobody else, and gone when there is no room. */
#include "unit-files.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/keep.h"

static void make_key(const char *a, const char *b, char key[static NC_KEY_SIZE])
{
	struct nc_digest *digest = nc_digest_new();

	nc_digest_text(digest, a);
	nc_digest_text(digest, b);
	nc_digest_end(digest, key);
}

static void parts_do_not_run_into_each_other(void **state)
{
	char one[NC_KEY_SIZE], other[NC_KEY_SIZE], again[NC_KEY_SIZE];

	(void)state;
	make_key("ab", "c", one);
	make_key("a", "bc", other);
	make_key("ab", "c", again);
	assert_int_equal(strlen(one), 64);
	assert_string_not_equal(one, other);
	assert_string_equal(one, again);
}

static void a_program_is_told_from_another(void **state)
{
	char sh[NC_KEY_SIZE], env[NC_KEY_SIZE], none[NC_KEY_SIZE];
	const char *const names[] = {"sh", "env", "no-such-program"};
	char *const keys[] = {sh, env, none};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct nc_digest *digest = nc_digest_new();

		nc_digest_program(digest, names[i]);
		nc_digest_end(digest, keys[i]);
	}
	assert_string_not_equal(sh, env);
	assert_string_not_equal(sh, none);
}

static void what_is_kept_is_found_again(void **state)
{
	char path[UNIT_DIR_SIZE], key[NC_KEY_SIZE], other[NC_KEY_SIZE];
	cleanup_close int fd = unit_dir_make(path);
	cleanup_free char *data = NULL;
	struct stat status;
	size_t size;

	(void)state;
	make_key("a", "", key);
	make_key("b", "", other);
	assert_int_equal(nc_keep_read(fd, "kind", key, 100, &data, &size), -ENOENT);
	nc_keep_write(fd, "kind", key, "text\0x", 6);
	assert_int_equal(nc_keep_read(fd, "kind", key, 100, &data, &size), 0);
	assert_int_equal(size, 6);
	assert_memory_equal(data, "text\0x", 6);
	free(take_ptr(data));
	assert_int_equal(nc_keep_read(fd, "other", key, 100, &data, &size), -ENOENT);
	assert_int_equal(nc_keep_read(fd, "kind", other, 100, &data, &size), -ENOENT);
	assert_int_equal(nc_keep_read(fd, "kind", "", 100, &data, &size), -ENOENT);
	assert_int_equal(nc_keep_read(fd, "kind", key, 5, &data, &size), -EFBIG);
	assert_int_equal(fstatat(fd, "kind", &status, 0), 0);
	assert_int_equal(status.st_mode & 0777, 0700);
	unit_remove(AT_FDCWD, path);
}

static void without_a_place_nothing_is_kept(void **state)
{
	cleanup_free char *data = NULL;
	size_t size;

	(void)state;
	nc_keep_write(-EBADF, "kind", "key", "x", 1);
	assert_int_equal(nc_keep_read(-EBADF, "kind", "key", 9, &data, &size), -EBADF);
}

/* A file that only says that it is large, and was used so long ago. */
static void make_large(int fd, const char *name, time_t seconds_ago)
{
	struct timespec times[2] = {
		{.tv_sec = time(NULL) - seconds_ago}, {.tv_sec = time(NULL) - seconds_ago}};
	cleanup_close int file_fd = openat(fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(ftruncate(file_fd, 500 << 20), 0);
	assert_int_equal(futimens(file_fd, times), 0);
}

static void the_longest_unused_makes_room(void **state)
{
	char path[UNIT_DIR_SIZE];
	cleanup_close int fd = unit_dir_make(path);

	(void)state;
	assert_int_equal(mkdirat(fd, "kind", 0700), 0);
	assert_int_equal(mkdirat(fd, "kind/no-file", 0700), 0);
	make_large(fd, "kind/young", 10);
	make_large(fd, "kind/old", 1000);
	/* there is room for a little beside the two */
	nc_keep_write(fd, "kind", "little", "x", 1);
	assert_int_equal(faccessat(fd, "kind/old", F_OK, 0), 0);
	make_large(fd, "kind/third", 5);
	nc_keep_write(fd, "kind", "more", "x", 1);
	assert_int_equal(faccessat(fd, "kind/old", F_OK, 0), -1);
	assert_int_equal(faccessat(fd, "kind/young", F_OK, 0), 0);
	assert_int_equal(faccessat(fd, "kind/third", F_OK, 0), 0);
	assert_int_equal(faccessat(fd, "kind/more", F_OK, 0), 0);
	assert_int_equal(faccessat(fd, "kind/no-file", F_OK, 0), 0);
	unit_remove(AT_FDCWD, path);
}

/* The key of something that is somebody's, as the name of a file in the directory of its kind. */
static void owned_key(const char *owner, const char *what, char name[static NC_KEY_SIZE + 5])
{
	struct nc_digest *digest = nc_digest_new();
	char key[NC_KEY_SIZE];

	nc_digest_text(digest, owner);
	nc_digest_own(digest);
	nc_digest_text(digest, what);
	nc_digest_end(digest, key);
	(void)snprintf(name, NC_KEY_SIZE + 5, "kind/%s", key);
}

static void who_has_more_than_a_share_makes_room_himself(void **state)
{
	char path[UNIT_DIR_SIZE], mine[NC_KEY_SIZE + 5], more[NC_KEY_SIZE + 5];
	char other[NC_KEY_SIZE + 5];
	cleanup_close int fd = unit_dir_make(path);

	(void)state;
	owned_key("greedy", "a", mine);
	owned_key("greedy", "b", more);
	owned_key("modest", "a", other);
	assert_string_not_equal(mine, more);
	assert_memory_equal(mine, more, strlen("kind/") + 16);
	assert_memory_not_equal(mine, other, strlen("kind/") + 16);
	assert_int_equal(mkdirat(fd, "kind", 0700), 0);
	make_large(fd, mine, 10);
	make_large(fd, other, 1000); /* which was not used for longer */
	nc_keep_write(fd, "kind", more + strlen("kind/"), "x", 1);
	assert_int_equal(faccessat(fd, mine, F_OK, 0), -1);
	assert_int_equal(faccessat(fd, other, F_OK, 0), 0);
	assert_int_equal(faccessat(fd, more, F_OK, 0), 0);
	unit_remove(AT_FDCWD, path);
}

/* Each is looked at whenever one is written: of small ones, too, an owner has only so many. */
static void there_is_an_end_to_small_ones(void **state)
{
	char path[UNIT_DIR_SIZE], name[NC_KEY_SIZE + 5], what[16];
	cleanup_close int fd = unit_dir_make(path);
	struct stat status;
	size_t left = 0;

	(void)state;
	assert_int_equal(mkdirat(fd, "kind", 0700), 0);
	for (size_t i = 0; i < 5000; i++) {
		(void)snprintf(what, sizeof(what), "%zu", i);
		owned_key("greedy", what, name);
		assert_int_equal(nc_fd_close(openat(fd, name, O_CREAT | O_CLOEXEC, 0600)), -EBADF);
	}
	owned_key("greedy", "one more", name);
	nc_keep_write(fd, "kind", name + strlen("kind/"), "x", 1);
	for (size_t i = 0; i < 5000; i++) {
		(void)snprintf(what, sizeof(what), "%zu", i);
		owned_key("greedy", what, name);
		left += fstatat(fd, name, &status, 0) == 0;
	}
	assert_int_equal(left, 4095);
	unit_remove(AT_FDCWD, path);
}

static void a_place_that_is_no_directory_keeps_nothing(void **state)
{
	cleanup_close int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	cleanup_free char *data = NULL;
	size_t size;

	(void)state;
	nc_keep_write(fd, "kind", "key", "x", 1);
	assert_int_equal(nc_keep_read(fd, "kind", "key", 9, &data, &size), -ENOTDIR);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
static bool no_memory;

void *__wrap_calloc(size_t count, size_t size)
{
	return no_memory ? NULL : __real_calloc(count, size);
}

/* Two that cannot be told apart must not be found for each other: there is no key, and no find. */
static void without_memory_there_is_no_key(void **state)
{
	char path[UNIT_DIR_SIZE], key[NC_KEY_SIZE] = "old";
	cleanup_close int fd = unit_dir_make(path);
	cleanup_free char *data = NULL;
	struct nc_digest *digest;
	size_t size;

	(void)state;
	no_memory = true;
	digest = nc_digest_new();
	no_memory = false;
	assert_null(digest);
	nc_digest_text(digest, "a");
	nc_digest_program(digest, "sh");
	nc_digest_end(digest, key);
	assert_string_equal(key, "");
	nc_keep_write(fd, "kind", key, "x", 1);
	assert_int_equal(nc_keep_read(fd, "kind", key, 9, &data, &size), -ENOENT);
	unit_remove(AT_FDCWD, path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_do_not_run_into_each_other),
		cmocka_unit_test(a_program_is_told_from_another),
		cmocka_unit_test(what_is_kept_is_found_again),
		cmocka_unit_test(without_a_place_nothing_is_kept),
		cmocka_unit_test(there_is_an_end_to_small_ones),
		cmocka_unit_test(a_place_that_is_no_directory_keeps_nothing),
		cmocka_unit_test(the_longest_unused_makes_room),
		cmocka_unit_test(who_has_more_than_a_share_makes_room_himself),
		cmocka_unit_test(without_memory_there_is_no_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
