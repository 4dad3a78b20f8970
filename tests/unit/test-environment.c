/* The store of environments, and names of packages for each installer. */
#include "unit-files.h"

#include <sys/file.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/path.h"
#include "engine/environment.h"
#include "engine/installer.h"
#include "kernel/tree.h"

static char dir[] = "/tmp/nacre-environment-XXXXXX";

/* A fresh store for each test, of 1 MiB. */
static int open_store(void **state)
{
	static struct nc_environments all;

	nc_environments_init(&all);
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	if (!mkdtemp(dir))
		return -1;
	all.store_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	all.max_bytes = 1U << 20;
	*state = &all;
	return 0;
}

static int close_store(void **state)
{
	cleanup_close int tmp_fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	nc_environments_close(*state);
	return nc_tree_remove(tmp_fd, dir + 5, UINT64_MAX);
}

static void make_key(const struct nc_environments *all, enum nc_language language,
	const char *words, char key[static NC_KEY_SIZE])
{
	char copy[256], *rest = copy;
	const char *packages[16];
	size_t n = 0;

	(void)snprintf(copy, sizeof(copy), "%s", words);
	while ((packages[n] = strsep(&rest, " ")))
		n++;
	nc_environment_key(all, "", language, packages, n, key);
	assert_int_equal(strlen(key), NC_KEY_SIZE - 1);
}

/* Without packages it is a build cache, of languages that have one. */
static void test_keys_of_build_caches(void **state)
{
	struct nc_environments *all = *state;
	char one[NC_KEY_SIZE], two[NC_KEY_SIZE], python[NC_KEY_SIZE];

	nc_environment_key(all, "", NC_GO, NULL, 0, one);
	nc_environment_key(all, "", NC_GO, NULL, 0, two);
	assert_int_equal(strlen(one), NC_KEY_SIZE - 1);
	assert_string_equal(one, two);
	make_key(all, NC_PYTHON, "a", python);
	assert_string_not_equal(one, python);
	for (enum nc_language i = 0; i < NC_LANGUAGE_MAX; i++) {
		assert_true((nc_warmer_of(i) != NULL) == (i == NC_GO));
		assert_true(!nc_warmer_of(i) || !nc_installer_of(i));
	}
}

static void test_keys(void **state)
{
	static const char *const same[][2] = {{"a b", "b a"}, {"a a b", "a b"},
		{"Mother_Of.Pearl", "mother-of-pearl"}, {"a--b", "a_b"}, {"A[x]>=1", "a[x]>=1"}};
	static const char *const others[][2] = {{"a b", "ab"}, {"a", "a b"}, {"a==1", "a==2"},
		{"a[X]", "a[x]"}, {"a==1_0", "a==1-0"}};
	struct nc_environments *all = *state;
	char one[NC_KEY_SIZE], two[NC_KEY_SIZE];

	for (size_t i = 0; i < unit_count(same); i++) {
		make_key(all, NC_PYTHON, same[i][0], one);
		make_key(all, NC_PYTHON, same[i][1], two);
		assert_string_equal(one, two);
	}
	for (size_t i = 0; i < unit_count(others); i++) {
		make_key(all, NC_PYTHON, others[i][0], one);
		make_key(all, NC_PYTHON, others[i][1], two);
		assert_string_not_equal(one, two);
	}
	/* npm tells these apart */
	make_key(all, NC_JAVASCRIPT, "a_b", one);
	make_key(all, NC_JAVASCRIPT, "a-b", two);
	assert_string_not_equal(one, two);
	make_key(all, NC_PYTHON, "a-b", one);
	assert_string_not_equal(one, two);
	all->source[NC_PYTHON].path = "/srv";
	make_key(all, NC_PYTHON, "a-b", two);
	assert_string_not_equal(one, two);
}

static void test_names_for_each_installer(void **state)
{
	static const struct {
		const char *package;
		bool python, javascript;
	} cases[] = {{"a", true, true}, {"a==1", true, false}, {"a>=1,<2", true, false},
		{"a[x]", true, false}, {"a~=1", true, false}, {"a@1", false, true},
		{"a@^1", false, true}, {"a@>=1", false, true}, {"@s/a", false, true},
		{"@s/a@~1", false, true}, {"a.b-c_d", true, true}};

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++) {
		assert_int_equal(nc_installer_takes(NC_PYTHON, cases[i].package), cases[i].python);
		assert_int_equal(
			nc_installer_takes(NC_JAVASCRIPT, cases[i].package), cases[i].javascript);
	}
	assert_null(nc_installer_of(NC_RUST));
}

/* Keeps an environment of some kilobytes under a key of one letter. */
static int keep(const struct nc_environments *all, char letter, size_t kilobytes, char *key)
{
	static char data[1U << 20];
	struct nc_staging stage = {.dir_fd = -EBADF};
	struct nacre_err err = {0};
	cleanup_json json_t *lock = json_pack("{s:s}", "language", "python");
	cleanup_close int root_fd = -EBADF, layer_fd = -EBADF;
	int r;

	memset(key, letter, NC_KEY_SIZE - 1);
	key[NC_KEY_SIZE - 1] = '\0';
	assert_int_equal(nc_staging_open(all->store_fd, false, &stage, &err), 0);
	root_fd = nc_staging_root(&stage, false, &err);
	assert_int_equal(mkdirat(root_fd, "layer", 0755), 0);
	layer_fd = openat(root_fd, "layer", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(nc_path_write(layer_fd, "file", data, kilobytes << 10, 0444), 0);
	r = nc_environment_keep(all, &stage, key, lock, &err);
	assert_int_equal(nc_staging_close(all->store_fd, false, &stage), 0);
	assert_int_equal(r, err.code);
	return r;
}

static void test_kept_and_opened(void **state)
{
	struct nc_environments *all = *state;
	struct nc_environment environment;
	char key[NC_KEY_SIZE];
	struct stat status;

	nc_environment_init(&environment);
	assert_int_equal(keep(all, 'a', 100, key), 0);
	assert_int_equal(keep(all, 'a', 100, key), -EEXIST);
	assert_int_equal(nc_environment_open(all, key, &environment), 0);
	assert_string_equal(environment.key, key);
	assert_true(json_integer_value(json_object_get(environment.lock, "size")) >= 100 << 10);
	assert_int_equal(fstatat(environment.layer_fd, "file", &status, 0), 0);
	nc_environment_close(&environment);
	assert_int_equal(nc_environment_open(all, "../x", &environment), -ENOENT);
	key[0] = 'b';
	assert_int_equal(nc_environment_open(all, key, &environment), -ENOENT);
}

static void test_room_is_made_but_not_by_what_is_in_use(void **state)
{
	struct nc_environments *all = *state;
	struct nc_environment first, again;
	char a[NC_KEY_SIZE], b[NC_KEY_SIZE], c[NC_KEY_SIZE];

	assert_int_equal(keep(all, 'a', 400, a), 0);
	assert_int_equal(keep(all, 'b', 400, b), 0);
	assert_int_equal(nc_environment_open(all, a, &first), 0);
	assert_int_equal(keep(all, 'c', 400, c), 0);
	assert_int_equal(nc_environment_open(all, b, &again), -ENOENT);
	assert_int_equal(nc_environment_open(all, a, &again), 0);
	nc_environment_close(&again);
	assert_int_equal(keep(all, 'd', 900, b), -ENOSPC); /* beside the first */
	nc_environment_close(&first);
	assert_int_equal(keep(all, 'd', 900, b), 0);
	assert_int_equal(nc_environment_open(all, a, &first), -ENOENT);
	assert_int_equal(keep(all, 'e', 1024, b), -EFBIG);
}

/* The key of an owner's, who is told by its first digits. */
static void keep_own(const struct nc_environments *all, char owner, char letter, size_t kilobytes,
	char key[static NC_KEY_SIZE])
{
	char other[NC_KEY_SIZE];

	assert_int_equal(keep(all, letter, kilobytes, key), 0);
	memcpy(other, key, NC_KEY_SIZE);
	memset(other, owner, NC_KEY_OWNER);
	assert_int_equal(renameat(all->store_fd, key, all->store_fd, other), 0);
	memcpy(key, other, NC_KEY_SIZE);
}

static bool is_there(const struct nc_environments *all, const char *key)
{
	return faccessat(all->store_fd, key, F_OK, 0) == 0;
}

/* Who has more than a quarter makes room among its own, though others' were not used for longer. */
static void test_an_owner_has_its_share(void **state)
{
	struct nc_environments *all = *state;
	char modest[NC_KEY_SIZE], operators[NC_KEY_SIZE], first[NC_KEY_SIZE], second[NC_KEY_SIZE];
	struct nacre_err err = {0};

	keep_own(all, 'c', 'a', 100, modest);
	assert_int_equal(keep(all, 'b', 100, operators), 0);
	keep_own(all, 'd', '1', 100, first);
	keep_own(all, 'd', '2', 100, second);
	assert_int_equal(nc_environment_make_room(all, first, 100 << 10, &err), 0);
	assert_false(is_there(all, first));
	assert_true(is_there(all, second) && is_there(all, modest) && is_there(all, operators));
	/* one that is larger than its share has its own place alone */
	assert_int_equal(nc_environment_make_room(all, first, 500 << 10, &err), 0);
	assert_false(is_there(all, second));
	assert_true(is_there(all, modest) && is_there(all, operators));
}

/* Whoever makes room looks at all of them: of tiny ones, too, an owner has only so many. */
static void test_there_is_an_end_to_tiny_ones(void **state)
{
	struct nc_environments *all = *state;
	char key[NC_KEY_SIZE];
	struct nacre_err err = {0};
	size_t left = 0;

	for (size_t i = 0; i < 1100; i++) {
		(void)snprintf(key, sizeof(key), "dddddddddddddddd%048zx", i);
		assert_int_equal(mkdirat(all->store_fd, key, 0700), 0);
	}
	assert_int_equal(nc_environment_make_room(all, key, 1, &err), 0);
	for (size_t i = 0; i < 1100; i++) {
		(void)snprintf(key, sizeof(key), "dddddddddddddddd%048zx", i);
		left += is_there(all, key);
	}
	assert_int_equal(left, 1023);
}

static void test_one_builds(void **state)
{
	struct nc_environments *all = *state;
	char key[NC_KEY_SIZE];
	struct nacre_err err = {0};
	struct nc_staging stage;
	int first, second;

	memset(key, 'f', NC_KEY_SIZE - 1);
	key[NC_KEY_SIZE - 1] = '\0';
	first = nc_environment_lock(all, key);
	assert_true(first >= 0);
	assert_int_equal(nc_environment_lock(all, key), -EAGAIN);
	nc_environment_sweep(all); /* leaves what is locked */
	assert_int_equal(nc_environment_lock(all, key), -EAGAIN);
	nc_environment_unlock(all, key, first);
	second = nc_environment_lock(all, key);
	assert_true(second >= 0);
	(void)nc_fd_close(second); /* as one that was killed */
	assert_int_equal(nc_staging_open(all->store_fd, false, &stage, &err), 0);
	(void)nc_fd_close(stage.dir_fd);
	nc_environment_sweep(all);
	assert_int_equal(faccessat(all->store_fd, stage.name, F_OK, 0), -1);
	nc_environments_close(all);
	assert_int_equal(rmdir(dir), 0); /* nothing is left */
	assert_int_equal(mkdir(dir, 0700), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_keys, open_store, close_store),
		cmocka_unit_test_setup_teardown(test_keys_of_build_caches, open_store, close_store),
		cmocka_unit_test(test_names_for_each_installer),
		cmocka_unit_test_setup_teardown(test_kept_and_opened, open_store, close_store),
		cmocka_unit_test_setup_teardown(
			test_room_is_made_but_not_by_what_is_in_use, open_store, close_store),
		cmocka_unit_test_setup_teardown(
			test_an_owner_has_its_share, open_store, close_store),
		cmocka_unit_test_setup_teardown(
			test_there_is_an_end_to_tiny_ones, open_store, close_store),
		cmocka_unit_test_setup_teardown(test_one_builds, open_store, close_store),
	};

	return cmocka_run_group_tests(tests, unit_fds_note, unit_fds_check);
}
