/* What is written down of sandboxes: durable before it is told, whole or not there, and tried again
 * when the disk was full. */
#include "engine/registry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "unit.h"

#define ID "sb_0123456789abcdef0123456789abcde"

struct place {
	char path[64];
	int fd;
	uv_loop_t loop;
	struct nc_registry *registry;
	size_t n_told, n_said;
	int error;
};

static struct place place;

static void say(const char *text)
{
	(void)text;
	place.n_said++;
}

static int set_up(void **state)
{
	(void)state;
	place = (struct place){.path = "/tmp/nacre-registry-XXXXXX"};
	assert_non_null(mkdtemp(place.path));
	place.fd = open(place.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(uv_loop_init(&place.loop), 0);
	assert_int_equal(nc_registry_new(&place.loop, place.fd, say, &place.registry), 0);
	return 0;
}

static int tear_down(void **state)
{
	DIR *dir;
	struct dirent *entry;

	(void)state;
	nc_registry_free(place.registry);
	while (uv_run(&place.loop, UV_RUN_DEFAULT))
		;
	assert_int_equal(uv_loop_close(&place.loop), 0);
	dir = fdopendir(place.fd);
	while (dir && (entry = readdir(dir)))
		(void)unlinkat(place.fd, entry->d_name, 0);
	(void)closedir(dir);
	(void)rmdir(place.path);
	return 0;
}

static json_t *record_of(char last, const char *tenant, const char *padding)
{
	char id[NC_ID_SIZE];

	(void)snprintf(id, sizeof(id), ID "%c", last);
	return json_pack("{s:i, s:s, s:s, s:s, s:i, s:s, s:i, s:i, s:b, s:b, s:b, s:{s:s}, s:n}",
		"version", 1, "id", id, "tenant", tenant, "created", "2026-11-19T21:55:08.054Z",
		"expires", 1, "tier", "container", "holder", 0, "box", 7, "paused", 0, "filling", 0,
		"trusted", 0, "spec", "padding", padding, "network");
}

static void on_written(void *context, int error)
{
	(void)context;
	place.n_told++;
	place.error = error;
}

static int put(char last, const char *tenant, const char *padding, bool waits)
{
	cleanup_json json_t *record = record_of(last, tenant, padding);
	struct nacre_err err = {0};

	return nc_registry_put(place.registry, record, waits ? on_written : NULL, &place, &err);
}

static void run(void)
{
	while (uv_run(&place.loop, UV_RUN_DEFAULT))
		;
}

/* 0: there is no such file */
static off_t size_of(const char *name)
{
	struct stat status;

	return fstatat(place.fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : status.st_size;
}

static void test_it_is_there_when_it_is_told(void **state)
{
	(void)state;
	assert_int_equal(put('0', "one", "a", true), 0);
	assert_int_equal(place.n_told, 0); /* not from within */
	run();
	assert_int_equal(place.n_told, 1);
	assert_int_equal(place.error, 0);
	assert_true(size_of(ID "0") > 100);
	assert_int_equal(size_of("fresh_" ID "0"), 0);
	nc_registry_remove(place.registry, ID "0");
	assert_int_equal(size_of(ID "0"), 0);
	assert_false(nc_registry_has(place.registry, ID "0"));
}

static void test_the_last_of_several_holds(void **state)
{
	(void)state;
	assert_int_equal(put('0', "one", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa", true), 0);
	assert_int_equal(put('0', "one", "a", false), 0); /* the thread has the first */
	run();
	assert_int_equal(place.n_told, 1);
	assert_int_equal(put('1', "one", "a", true), 0);
	run();
	assert_int_equal(size_of(ID "0"), size_of(ID "1"));
}

static void test_what_is_removed_meanwhile_does_not_come_back(void **state)
{
	(void)state;
	assert_int_equal(put('0', "one", "a", true), 0);
	nc_registry_remove(place.registry, ID "0");
	run();
	assert_int_equal(place.n_told, 0);
	assert_int_equal(size_of(ID "0"), 0);
	assert_false(nc_registry_has(place.registry, ID "0"));
}

/* Nobody can write there: the directory is gone. */
static void test_a_disk_that_fails(void **state)
{
	(void)state;
	assert_int_equal(put('0', "one", "a", true), 0);
	run();
	nc_registry_remove(place.registry, ID "0");
	assert_int_equal(rmdir(place.path), 0);
	assert_int_equal(put('1', "one", "a", true), 0);
	run();
	assert_int_equal(place.n_told, 2);
	assert_int_equal(place.error, -ENOENT);
	assert_int_equal(place.n_said, 0); /* who waited was told */
	assert_int_equal(put('1', "one", "b", false), 0);
	run();
	nc_registry_tick(place.registry);
	run();
	assert_int_equal(place.n_said, 1); /* and not at each try */
}

static void test_so_many_bytes_of_a_tenant(void **state)
{
	static char padding[900 * 1024];
	struct nacre_err err = {0};
	cleanup_json json_t *long_one = NULL;
	char last = 'a';

	(void)state;
	memset(padding, 'x', sizeof(padding) - 1);
	for (; last < 'j'; last++)
		assert_int_equal(put(last, "one", padding, false), 0);
	assert_int_equal(put(last, "one", padding, false), -ENOSPC);
	assert_int_equal(put('a', "one", padding, false), 0); /* in place of the one before */
	assert_int_equal(put(last, "two", padding, false), 0);
	nc_registry_remove(place.registry, ID "a");
	assert_int_equal(put('k', "one", padding, false), 0);
	long_one = record_of('z', "", padding);
	assert_int_equal(json_object_set_new(
				 json_object_get(long_one, "spec"), "more", json_string(padding)),
		0);
	assert_int_equal(nc_registry_put(place.registry, long_one, NULL, NULL, &err), -ENOSPC);
}

static void count(void *context, const json_t *record)
{
	++*(size_t *)context;
	assert_non_null(json_object_get(record, "spec"));
}

static void test_what_the_next_one_finds(void **state)
{
	size_t found = 0;
	int fd;

	(void)state;
	for (char last = '0'; last <= '9'; last++)
		assert_int_equal(put(last, "one", "a", false), 0);
	nc_registry_free(place.registry); /* writes what waits */
	fd = openat(place.fd, "fresh_" ID "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "{", 1), 1);
	(void)close(fd);
	assert_int_equal(nc_registry_new(&place.loop, place.fd, say, &place.registry), 0);
	nc_registry_visit(place.registry, count, &found);
	assert_int_equal(found, 10);
	assert_true(nc_registry_has(place.registry, ID "9"));
	assert_int_equal(size_of("fresh_" ID "f"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_it_is_there_when_it_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_last_of_several_holds, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_what_is_removed_meanwhile_does_not_come_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_disk_that_fails, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_so_many_bytes_of_a_tenant, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_the_next_one_finds, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
