/* API keys: made, kept as digests, found, revoked; files that are none. */
#include "unit-files.h"

#include <errno.h>

#include "base/path.h"
#include "base/text.h"
#include "server/keys.h"

static char directory[] = "/tmp/nacre-keys-XXXXXX";
static int dir_fd;

static int set_up(void **state)
{
	(void)state;
	(void)memcpy(directory + sizeof(directory) - 7, "XXXXXX", 6);
	if (!mkdtemp(directory))
		return -1;
	dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir_fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	(void)unlinkat(dir_fd, "keys.json", 0);
	(void)close(dir_fd);
	return rmdir(directory);
}

static void a_key_is_found_again(void **state)
{
	cleanup_keys struct nc_keys keys = {0}, read = {0};
	char first[NC_KEY_SIZE_TEXT], second[NC_KEY_SIZE_TEXT], wrong[NC_KEY_SIZE_TEXT];
	struct nacre_err err = {0};
	const struct nc_key *key;

	(void)state;
	assert_int_equal(nc_keys_add(&keys, "acme", NC_ROLE_READ, "", first, &err), 0);
	assert_int_equal(nc_keys_add(&keys, "umbrella", NC_ROLE_ADMIN, "ci", second, &err), 0);
	assert_int_equal(nc_keys_write(dir_fd, &keys, &err), 0);
	assert_int_equal(nc_keys_read(dir_fd, &read, &err), 0);
	assert_int_equal(read.count, 2);
	assert_false(nc_keys_changed(dir_fd, &read));
	key = nc_keys_find(&read, second);
	assert_non_null(key);
	assert_string_equal(key->tenant, "umbrella");
	assert_string_equal(key->name, "ci");
	assert_int_equal(key->role, NC_ROLE_ADMIN);
	for (size_t i = 0; i < sizeof(first) - 1; i++) {
		memcpy(wrong, first, sizeof(wrong));
		wrong[i] = wrong[i] == 'f' ? 'e' : 'f';
		assert_null(nc_keys_find(&read, wrong));
	}
	/* the id of one with the secret of another */
	memcpy(wrong, first, sizeof(wrong));
	memcpy(wrong, second, 3 + NC_KEY_ID_SIZE);
	assert_null(nc_keys_find(&read, wrong));
	assert_null(nc_keys_find(&read, ""));
}

static void what_is_revoked_is_none(void **state)
{
	cleanup_keys struct nc_keys keys = {0}, read = {0};
	char text[NC_KEY_SIZE_TEXT], id[NC_KEY_ID_SIZE];
	struct nacre_err err = {0};

	(void)state;
	assert_int_equal(nc_keys_add(&keys, "acme", NC_ROLE_READ, "", text, &err), 0);
	assert_int_equal(nc_keys_write(dir_fd, &keys, &err), 0);
	assert_int_equal(nc_keys_read(dir_fd, &read, &err), 0);
	memcpy(id, keys.key[0].id, sizeof(id));
	assert_int_equal(nc_keys_revoke(&keys, id, &err), 0);
	assert_null(nc_keys_find(&keys, text));
	assert_int_equal(nc_keys_write(dir_fd, &keys, &err), 0);
	assert_true(nc_keys_changed(dir_fd, &read));
	nc_keys_done(&read);
	assert_int_equal(nc_keys_read(dir_fd, &read, &err), 0);
	assert_int_equal(read.count, 1); /* it stays, so that keys are asked for */
	assert_null(nc_keys_find(&read, text));
	assert_int_equal(nc_keys_revoke(&keys, "none", &err), -ENOENT);
}

static void nothing_secret_is_written(void **state)
{
	cleanup_keys struct nc_keys keys = {0};
	char text[NC_KEY_SIZE_TEXT];
	struct nacre_err err = {0};
	cleanup_free char *file = NULL;
	struct stat status;
	size_t size;

	(void)state;
	assert_int_equal(nc_keys_add(&keys, "acme", NC_ROLE_READ, "", text, &err), 0);
	assert_int_equal(nc_keys_write(dir_fd, &keys, &err), 0);
	assert_int_equal(nc_path_read(dir_fd, "keys.json", 4096, &file, &size), 0);
	assert_null(strstr(file, text + 3 + NC_KEY_ID_SIZE));
	assert_int_equal(fstatat(dir_fd, "keys.json", &status, 0), 0);
	assert_int_equal(status.st_mode & 07777, 0640);
}

static void no_file_has_no_keys(void **state)
{
	cleanup_keys struct nc_keys keys = {0};
	struct nacre_err err = {0};

	(void)state;
	assert_int_equal(nc_keys_read(dir_fd, &keys, &err), 0);
	assert_int_equal(keys.count, 0);
	assert_false(nc_keys_changed(dir_fd, &keys));
}

#define HASH "\"0000000000000000000000000000000000000000000000000000000000000000\""
#define KEY(id, hash, tenant, role)                                                                \
	"{\"keys\":[{\"id\":" id ",\"sha256\":" hash ",\"tenant\":" tenant ",\"role\":" role       \
	",\"created\":\"2026\"}]}"

static void damaged_files_are_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"{\"keys\": 1}",
		"{\"keys\": [1]}",
		"{\"keys\": [{}]}",
		KEY("\"0123456789a\"", HASH, "\"a\"", "\"read\""),
		KEY("\"0123456789ab\"", "\"00\"", "\"a\"", "\"read\""),
		KEY("\"0123456789ab\"", HASH, "\"\"", "\"read\""),
		KEY("\"0123456789ab\"", HASH, "\"../a\"", "\"read\""),
		KEY("\"0123456789ab\"", HASH, "\"a\"", "\"none\""),
		KEY("\"0123456789ab\"", HASH, "\"a\"", "\"root\""),
		KEY("\"0123456789ab\"", HASH, "\"a\"", "\"read\",\"more\":1"),
		KEY("\"0123456789ab\"", HASH, "\"a\"", "1"),
	};
	cleanup_keys struct nc_keys keys = {0};
	struct nacre_err err = {0};
	const char *good = KEY("\"0123456789ab\"", HASH, "\"a\"", "\"read\"");

	(void)state;
	for (size_t i = 0; i < unit_count(bad); i++) {
		assert_int_equal(
			nc_path_write(dir_fd, "keys.json", bad[i], strlen(bad[i]), 0600), 0);
		if (nc_keys_read(dir_fd, &keys, &err) != -EINVAL)
			fail_msg("taken: %s", bad[i]);
		assert_int_equal(keys.count, 0);
	}
	assert_int_equal(nc_path_write(dir_fd, "keys.json", good, strlen(good), 0600), 0);
	assert_int_equal(nc_keys_read(dir_fd, &keys, &err), 0);
	assert_int_equal(keys.count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_key_is_found_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_revoked_is_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_secret_is_written, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_file_has_no_keys, set_up, tear_down),
		cmocka_unit_test_setup_teardown(damaged_files_are_refused, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
