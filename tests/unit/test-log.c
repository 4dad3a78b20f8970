/* Log records: both forms, levels, redaction, escaping, and what is dropped. */
#include "unit-files.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "base/log.h"

/* The longest record, its newline included. */
#define RECORD_MAX 32768

static unsigned int writes;
static int write_error; /* an errno that every write() fails with */

ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size);

ssize_t __wrap_write(int fd, const void *data, size_t size)
{
	writes++;
	if (!write_error)
		return __real_write(fd, data, size);
	errno = write_error;
	return -1;
}

/* A pipe that records go to. */
static int ends[2];
static char record[2 * RECORD_MAX];

static int open_pipe(void **state)
{
	unit_fds_note(state);
	writes = 0;
	write_error = 0;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	nc_log_setup(ends[1], NC_LOG_DEBUG, NC_LOG_PLAIN);
	return 0;
}

static int close_pipe(void **state)
{
	write_error = 0;
	close(ends[0]);
	close(ends[1]);
	return unit_fds_check(state);
}

/* All that came out of fd; "" if nothing did. */
static const char *read_from(int fd)
{
	ssize_t n = read(fd, record, sizeof(record) - 1);

	record[n > 0 ? n : 0] = '\0';
	return record;
}

static const char *written(void)
{
	return read_from(ends[0]);
}

/* The same for a JSON record, without its beginning and its stamp, which are checked. */
static const char *written_json(void)
{
	static const char head[] = "{\"time\":\"";
	static const char shape[] = "dddd-dd-ddTdd:dd:dd.dddZ\",";
	const char *at = written();

	assert_memory_equal(at, head, strlen(head));
	at += strlen(head);
	for (const char *s = shape; *s; s++, at++) {
		if (*s == 'd')
			assert_in_range(*at, '0', '9');
		else
			assert_int_equal(*at, *s);
	}
	return at;
}

/* What a child that has not called nc_log_setup() writes to descriptor 2. */
static const char *written_by_default(void)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)dup2(ends[1], 2);
		nc_log(NC_LOG_DEBUG, "below debug");
		nc_log(NC_LOG_INFO, "below info");
		nc_log(NC_LOG_WARNING, "above warning");
		nc_log(NC_LOG_ERROR, "above error");
		_exit(nc_log_wants(NC_LOG_WARNING) && !nc_log_wants(NC_LOG_INFO) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return written();
}

/* Without the setup of open_pipe: these come first. */
static int open_pipe_only(void **state)
{
	unit_fds_note(state);
	return pipe2(ends, O_CLOEXEC | O_NONBLOCK);
}

static void goes_to_descriptor_2_from_warning_at_first(void **state)
{
	const char *text = written_by_default();

	(void)state;
	assert_null(strstr(text, "below"));
	assert_non_null(strstr(text, "above warning"));
	assert_non_null(strstr(text, "above error"));
}

static void is_json_off_a_terminal_also_at_first(void **state)
{
	(void)state;
	assert_int_equal(written_by_default()[0], '{');
}

static void names_are_those_of_configuration_files(void **state)
{
	static const char *const levels[] = {"error", "warning", "info", "debug"};
	static const char *const formats[] = {"auto", "text", "json"};

	(void)state;
	assert_int_equal(NC_LOG_LEVEL_MAX, unit_count(levels));
	assert_int_equal(NC_LOG_FORMAT_MAX, unit_count(formats));
	for (size_t i = 0; i < unit_count(levels); i++)
		assert_string_equal(nc_log_level_names[i], levels[i]);
	for (size_t i = 0; i < unit_count(formats); i++)
		assert_string_equal(nc_log_format_names[i], formats[i]);
	assert_null(nc_log_level_names[NC_LOG_LEVEL_MAX]);
	assert_null(nc_log_format_names[NC_LOG_FORMAT_MAX]);
}

static void levels_filter(void **state)
{
	(void)state;
	for (unsigned int least = 0; least < NC_LOG_LEVEL_MAX; least++) {
		nc_log_setup(ends[1], (enum nc_log_level)least, NC_LOG_PLAIN);
		for (unsigned int i = 0; i < NC_LOG_LEVEL_MAX; i++) {
			enum nc_log_level level = (enum nc_log_level)i;
			char want[32] = "";

			if (level <= least)
				snprintf(want, sizeof(want), "%s: m\n", nc_log_level_names[i]);
			assert_int_equal(nc_log_wants(level), level <= least);
			nc_log(level, "m");
			assert_string_equal(written(), want);
		}
	}
}

static void text_is_one_line(void **state)
{
	(void)state;
	nc_log(NC_LOG_INFO, "Box started", NC_LOG_TEXT("box", "bx_1"), NC_LOG_INT("pid", 42),
		NC_LOG_TEXT("empty", ""));
	assert_string_equal(written(), "info: Box started box=\"bx_1\" pid=42 empty=\"\"\n");
}

static void json_is_one_object_per_line(void **state)
{
	(void)state;
	nc_log_setup(ends[1], NC_LOG_DEBUG, NC_LOG_JSON);
	nc_log(NC_LOG_INFO, "Box started", NC_LOG_TEXT("box", "bx_1"), NC_LOG_INT("pid", 42),
		NC_LOG_TEXT("empty", ""));
	assert_string_equal(written_json(), "\"level\":\"info\",\"message\":\"Box started\","
					    "\"box\":\"bx_1\",\"pid\":42,\"empty\":\"\"}\n");
	nc_log(NC_LOG_ERROR, "Nothing else");
	assert_string_equal(written_json(), "\"level\":\"error\",\"message\":\"Nothing else\"}\n");
}

static void a_record_is_one_write(void **state)
{
	static const enum nc_log_format formats[] = {NC_LOG_PLAIN, NC_LOG_JSON};

	(void)state;
	for (size_t i = 0; i < unit_count(formats); i++) {
		nc_log_setup(ends[1], NC_LOG_INFO, formats[i]);
		writes = 0;
		nc_log(NC_LOG_INFO, "m", NC_LOG_TEXT("a", "b"), NC_LOG_INT("c", 1));
		assert_int_equal(writes, 1);
		nc_log(NC_LOG_DEBUG, "m");
		assert_int_equal(writes, 1);
	}
}

static void numbers_are_whole_and_signed(void **state)
{
	(void)state;
	nc_log(NC_LOG_INFO, "m", NC_LOG_INT("z", 0), NC_LOG_INT("n", -1),
		NC_LOG_INT("min", INT64_MIN), NC_LOG_INT("max", INT64_MAX));
	assert_string_equal(
		written(), "info: m z=0 n=-1 min=-9223372036854775808 max=9223372036854775807\n");
}

static const char *const secret_keys[] = {
	"token",
	"secret",
	"password",
	"authorization",
	"cookie",
	"credential",
	"api_key", /* plain */
	"TOKEN",
	"Secret",
	"PassWord",
	"AUTHORIZATION",
	"Cookie",
	"cREDENTIAL",
	"API_KEY",
	"access_token",
	"token_id",
	"my-secrets",
	"db_password_old",
	"Proxy-Authorization",
	"Set-Cookie",
	"credentials",
	"X_API_KEY_1",
};

static void secrets_are_redacted(void **state)
{
	(void)state;
	for (size_t i = 0; i < unit_count(secret_keys); i++) {
		char text[128], json[128];

		snprintf(text, sizeof(text), "info: m %s=\"[redacted]\" %s=\"[redacted]\" end=1\n",
			secret_keys[i], secret_keys[i]);
		snprintf(json, sizeof(json),
			"\"level\":\"info\",\"message\":\"m\",\"%s\":\"[redacted]\"}\n",
			secret_keys[i]);
		nc_log_setup(ends[1], NC_LOG_DEBUG, NC_LOG_PLAIN);
		nc_log(NC_LOG_INFO, "m", NC_LOG_TEXT(secret_keys[i], "hunter2"),
			NC_LOG_INT(secret_keys[i], 4711), NC_LOG_INT("end", 1));
		assert_string_equal(written(), text);
		nc_log_setup(ends[1], NC_LOG_DEBUG, NC_LOG_JSON);
		nc_log(NC_LOG_INFO, "m", NC_LOG_TEXT(secret_keys[i], "hunter2"));
		assert_string_equal(written_json(), json);
	}
}

static void what_is_no_secret_is_not_redacted(void **state)
{
	static const char *const keys[] = {"tok", "pass", "key", "api", "auth", "box", "path", ""};

	(void)state;
	for (size_t i = 0; i < unit_count(keys); i++) {
		char want[64];

		snprintf(want, sizeof(want), "info: m %s=\"token\"\n", keys[i]);
		nc_log(NC_LOG_INFO, "m", NC_LOG_TEXT(keys[i], "token"));
		assert_string_equal(written(), want);
	}
}

static const struct {
	const char *value, *escaped;
} escapes[] = {
	{"a\nb", "a\\nb"},
	{"\r\t", "\\r\\t"},
	{"\"\\", "\\\"\\\\"},
	{"\x1b[2J\x01\x7f", "\\u001b[2J\\u0001\\u007f"},
	{"\xc3\xa9", "\xc3\xa9"},
	{"\xff\xe2\x82", "\\ufffd\\ufffd\\ufffd"},
	{"\",\"level\":\"x", "\\\",\\\"level\\\":\\\"x"},
	{"%s%n", "%s%n"},
};

static void values_are_escaped_in_both_forms(void **state)
{
	(void)state;
	for (size_t i = 0; i < unit_count(escapes); i++) {
		char text[128], json[128];

		snprintf(text, sizeof(text), "info: m k=\"%s\"\n", escapes[i].escaped);
		snprintf(json, sizeof(json), "\"level\":\"info\",\"message\":\"m\",\"k\":\"%s\"}\n",
			escapes[i].escaped);
		nc_log_setup(ends[1], NC_LOG_DEBUG, NC_LOG_PLAIN);
		nc_log(NC_LOG_INFO, "m", NC_LOG_TEXT("k", escapes[i].value));
		assert_string_equal(written(), text);
		nc_log_setup(ends[1], NC_LOG_DEBUG, NC_LOG_JSON);
		nc_log(NC_LOG_INFO, "m", NC_LOG_TEXT("k", escapes[i].value));
		assert_string_equal(written_json(), json);
	}
}

static void json_escapes_message_and_key_too(void **state)
{
	(void)state;
	nc_log_setup(ends[1], NC_LOG_DEBUG, NC_LOG_JSON);
	nc_log(NC_LOG_INFO, "a\"\n\xff", NC_LOG_INT("k\"\\", 1));
	assert_string_equal(written_json(),
		"\"level\":\"info\",\"message\":\"a\\\"\\n\\ufffd\",\"k\\\"\\\\\":1}\n");
}

static void auto_is_json_off_a_terminal(void **state)
{
	(void)state;
	nc_log_setup(ends[1], NC_LOG_DEBUG, NC_LOG_AUTO);
	nc_log(NC_LOG_INFO, "m");
	assert_string_equal(written_json(), "\"level\":\"info\",\"message\":\"m\"}\n");
}

static void on_a_terminal_auto_is_text_and_json_stays_json(void **state)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), terminal;

	(void)state;
	if (master < 0)
		unit_skip("no pseudo terminals here");
	assert_int_equal(grantpt(master) | unlockpt(master), 0);
	terminal = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(terminal >= 0);
	nc_log_setup(terminal, NC_LOG_DEBUG, NC_LOG_AUTO);
	nc_log(NC_LOG_INFO, "m", NC_LOG_INT("k", 1));
	assert_string_equal(read_from(master), "info: m k=1\r\n");
	nc_log_setup(terminal, NC_LOG_DEBUG, NC_LOG_JSON);
	nc_log(NC_LOG_INFO, "m");
	assert_int_equal(read_from(master)[0], '{');
	close(terminal);
	close(master);
}

static void text_goes_where_it_is_asked_for(void **state)
{
	(void)state;
	nc_log_setup(ends[1], NC_LOG_DEBUG, NC_LOG_PLAIN);
	nc_log(NC_LOG_INFO, "m");
	assert_string_equal(written(), "info: m\n");
}

static void a_record_that_is_too_long_is_dropped_whole(void **state)
{
	static const char frame[] = "info: m k=\"\"\n";
	const size_t fits = RECORD_MAX - strlen(frame);
	static char value[RECORD_MAX + 1];

	(void)state;
	memset(value, 'x', sizeof(value) - 1);
	value[fits] = '\0';
	nc_log(NC_LOG_INFO, "m", NC_LOG_TEXT("k", value));
	assert_int_equal(strlen(written()), RECORD_MAX);
	assert_int_equal(record[RECORD_MAX - 1], '\n');
	value[fits] = 'x';
	value[fits + 1] = '\0';
	nc_log(NC_LOG_INFO, "m", NC_LOG_TEXT("k", value));
	assert_string_equal(written(), "");
	nc_log_setup(ends[1], NC_LOG_DEBUG, NC_LOG_JSON);
	nc_log(NC_LOG_INFO, "m", NC_LOG_TEXT("k", value));
	assert_string_equal(written(), "");
	/* and the one behind it is not */
	nc_log(NC_LOG_INFO, "m");
	assert_string_equal(written_json(), "\"level\":\"info\",\"message\":\"m\"}\n");
}

static void a_record_that_cannot_be_written_is_dropped(void **state)
{
	static const int errors[] = {EINTR, EAGAIN, EIO, ENOSPC, EBADF};

	(void)state;
	for (size_t i = 0; i < unit_count(errors); i++) {
		write_error = errors[i];
		writes = 0;
		nc_log(NC_LOG_INFO, "lost");
		write_error = 0;
		assert_int_equal(writes, 1); /* nor is it tried for ever */
		assert_string_equal(written(), "");
	}
	nc_log_setup(-EBADF, NC_LOG_DEBUG, NC_LOG_AUTO);
	nc_log(NC_LOG_INFO, "lost");
	nc_log_setup(ends[1], NC_LOG_DEBUG, NC_LOG_PLAIN);
	nc_log(NC_LOG_INFO, "m");
	assert_string_equal(written(), "info: m\n");
}

/* With SIGPIPE as a fresh process has it. */
static void a_reader_that_is_gone_does_not_end_the_caller(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	close(ends[0]);
	ends[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		signal(SIGPIPE, SIG_DFL);
		nc_log(NC_LOG_INFO, "lost");
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define log_test(function) cmocka_unit_test_setup_teardown(function, open_pipe, close_pipe)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			goes_to_descriptor_2_from_warning_at_first, open_pipe_only, close_pipe),
		cmocka_unit_test_setup_teardown(
			is_json_off_a_terminal_also_at_first, open_pipe_only, close_pipe),
		log_test(names_are_those_of_configuration_files),
		log_test(levels_filter),
		log_test(text_is_one_line),
		log_test(json_is_one_object_per_line),
		log_test(a_record_is_one_write),
		log_test(numbers_are_whole_and_signed),
		log_test(secrets_are_redacted),
		log_test(what_is_no_secret_is_not_redacted),
		log_test(values_are_escaped_in_both_forms),
		log_test(json_escapes_message_and_key_too),
		log_test(auto_is_json_off_a_terminal),
		log_test(on_a_terminal_auto_is_text_and_json_stays_json),
		log_test(text_goes_where_it_is_asked_for),
		log_test(a_record_that_is_too_long_is_dropped_whole),
		log_test(a_record_that_cannot_be_written_is_dropped),
		log_test(a_reader_that_is_gone_does_not_end_the_caller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
