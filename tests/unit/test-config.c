/* The configuration as the library sees it: precedence, origins, what stays on failure. */
#include "unit.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "config/config.h"
#include "config/scalar.h"

static char dir[] = "/tmp/nacre-config-XXXXXX";

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < NC_CONFIG_FILE_COUNT; i++) {
		char path[128];

		(void)snprintf(path, sizeof(path), "%s/%s", dir, nc_config_file_names[i]);
		(void)unlink(path);
	}
	return 0;
}

static int remove_dir(void **state)
{
	(void)remove_files(state);
	return rmdir(dir);
}

static void put_file(enum nc_config_file file, const char *text)
{
	cleanup_close int fd = -EBADF;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, nc_config_file_names[file]);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(nc_fd_write_all(fd, text, strlen(text)), 0);
}

static void test_built_in_values(void **state)
{
	cleanup_config struct nc_config config = {0};
	struct nacre_err err = {0};

	(void)state;
	assert_int_equal(nc_config_load(&config, dir, &err), 0);
	assert_int_equal(config.main.log.level.number, NC_LOG_WARNING);
	assert_int_equal(config.main.color.number, NC_COLOR_AUTO);
	assert_int_equal(config.limits.default_limits.memory_mb.number, 512);
	assert_int_equal(config.limits.default_limits.cpu_cores.number, 1000);
	assert_int_equal(config.limits.language[NC_SHELL].memory_mb.number, 128);
	assert_int_equal(config.limits.language[NC_JAVASCRIPT].execution_time_seconds.number, 15);
	assert_int_equal(config.limits.language[NC_GO].memory_mb.number, 512);
	assert_true(config.limits.language[NC_GO].memory_mb.inherited);
	assert_false(config.limits.language[NC_SHELL].memory_mb.inherited);
	assert_int_equal(config.policies.all.language[NC_PYTHON].forbidden_imports.n_list, 0);
	for (size_t i = 0; i < NC_CONFIG_FILE_COUNT; i++)
		assert_false(config.found[i]);
}

/* file's language > file's default > built-in language > built-in default */
static void test_precedence_of_limits(void **state)
{
	cleanup_config struct nc_config config = {0};
	struct nacre_err err = {0};
	const struct nc_limit_values *shell, *python;

	(void)state;
	put_file(NC_CONFIG_LIMITS, "default_limits:\n"
				   "  memory_mb: 300\n"
				   "language_specific:\n"
				   "  python:\n"
				   "    memory_mb: 77\n");
	assert_int_equal(nc_config_load(&config, dir, &err), 0);
	python = &config.limits.language[NC_PYTHON];
	shell = &config.limits.language[NC_SHELL];
	assert_int_equal(python->memory_mb.number, 77);
	assert_int_equal(python->memory_mb.line, 5);
	assert_false(python->memory_mb.inherited);
	assert_int_equal(shell->memory_mb.number, 300);
	assert_int_equal(shell->memory_mb.line, 2);
	assert_true(shell->memory_mb.inherited);
	assert_int_equal(shell->execution_time_seconds.number, 10);
	assert_int_equal(shell->execution_time_seconds.line, 0);
	assert_int_equal(shell->disk_mb.number, 100);
	assert_true(config.found[NC_CONFIG_LIMITS]);
}

static void test_lists(void **state)
{
	cleanup_config struct nc_config config = {0};
	struct nacre_err err = {0};
	const struct nc_value *value;

	(void)state;
	put_file(NC_CONFIG_POLICIES, "shell:\n"
				     "  forbidden_commands: [rm, 'a b']\n"
				     "  forbidden_patterns: []\n");
	assert_int_equal(nc_config_load(&config, dir, &err), 0);
	value = &config.policies.all.language[NC_SHELL].forbidden_commands;
	assert_int_equal(value->n_list, 2);
	assert_string_equal(value->list[0], "rm");
	assert_string_equal(value->list[1], "a b");
	assert_null(value->list[2]);
	value = &config.policies.all.language[NC_SHELL].forbidden_patterns;
	assert_true(value->given);
	assert_int_equal(value->n_list, 0);
}

static void test_failure_leaves_nothing(void **state)
{
	struct nc_config config = {0};
	struct nacre_err err = {0};

	(void)state;
	put_file(NC_CONFIG_POLICIES, "python:\n  forbidden_imports: [a, b]\nruby: {}\n");
	assert_int_equal(nc_config_load(&config, dir, &err), -EINVAL);
	assert_int_equal(err.code, -EINVAL);
	assert_non_null(strstr(err.message, "security_policies.yaml:3: found unknown key 'ruby'"));
	assert_null(config.dir);
	assert_null(config.policies.all.language[NC_PYTHON].forbidden_imports.list);
}

static void test_missing_directory(void **state)
{
	struct nc_config config = {0};
	struct nacre_err err = {0};

	(void)state;
	assert_int_equal(nc_config_load(&config, "/nonexistent/nacre", &err), -ENOTDIR);
	assert_string_equal(
		err.message, "Configuration directory '/nonexistent/nacre': no such directory");
}

static void test_scalars_written_as_read(void **state)
{
	static const struct {
		const char *text;
		uint64_t number;
	} cases[] = {{"1", 1000}, {"0.5", 500}, {"0.05", 50}, {"1.125", 1125}, {"12", 12000}};
	static const struct nc_field field = {
		.name = "x", .type = NC_FIELD_MILLI, .min = 10, .max = 100000};

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++) {
		nc_buf_cleanup struct nc_buf text = NC_BUF(64);
		uint64_t number = 0;

		assert_int_equal(nc_scalar_read(&field, cases[i].text, &number), 0);
		assert_int_equal(number, cases[i].number);
		nc_scalar_write(&field, number, &text);
		assert_string_equal(nc_buf_text(&text), cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_built_in_values, remove_files),
		cmocka_unit_test_teardown(test_precedence_of_limits, remove_files),
		cmocka_unit_test_teardown(test_lists, remove_files),
		cmocka_unit_test_teardown(test_failure_leaves_nothing, remove_files),
		cmocka_unit_test_teardown(test_missing_directory, remove_files),
		cmocka_unit_test(test_scalars_written_as_read),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
