/* The worker's side: starts the real nacre-recorder, and talks to it. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/pidfd.h"
#include "kernel/privilege.h"
#include "recorder/verify.h"
#include "unit-files.h"
#include "watch/record.h"
#include "watch/recorder.h"

static char dir[UNIT_DIR_SIZE];
static struct nc_recorder_setup setup;

static int make(void **state)
{
	(void)state;
	close(unit_dir_make(dir));
	setup = (struct nc_recorder_setup){
		.state_dir = dir, .program = NACRE_BUILD "/nacre-recorder", .witness_fd = -EBADF};
	return unit_fds_note(state);
}

static int drop(void **state)
{
	unit_remove(AT_FDCWD, dir);
	return unit_fds_check(state);
}

static void start(struct nc_record *record, int *pidfd)
{
	struct nacre_err err = {0};
	int fd = nc_recorder_start(&setup, pidfd, &err);

	if (fd < 0)
		fail_msg("%s", err.message);
	assert_int_equal(nc_record_start(record, fd, &err), 0);
}

static void end(struct nc_record *record, int pidfd)
{
	siginfo_t info = {0};

	nc_record_done(record);
	assert_int_equal(nc_pidfd_wait(pidfd, nc_clock_ns() + 10 * NC_NS_PER_S, &info), 0);
	assert_int_equal(info.si_code, CLD_EXITED);
	assert_int_equal(info.si_status, 0);
	close(pidfd);
}

static void an_execution_gets_its_receipt(void **state)
{
	struct nc_record record;
	struct nc_record_event event;
	struct nacre_err err = {0};
	int pidfd;

	(void)state;
	start(&record, &pidfd);
	assert_int_equal(nc_record_receive(&record, &event), 0);
	assert_int_equal(event.type, NC_RECORD_WELCOME);
	assert_int_equal(event.lost, 0);
	assert_int_equal(nc_record_open(&record, "ex_1", "{\"language\":\"python\"}"), 0);
	assert_int_equal(nc_record_note(&record, NC_RECORD_SECURITY, "denied", "{}", 0), 0);
	assert_int_equal(
		nc_record_finish_wait(&record, "ex_1", "{\"status\":\"success\"}", &event, &err),
		0);
	assert_int_equal(event.seq, 3);
	assert_int_equal(record.waiting, 0);
	end(&record, pidfd);
}

static void blobs_go_small_and_large(void **state)
{
	const size_t sizes[] = {0, 1, 48 * 1024, 48 * 1024 + 1, 3 << 20};
	char *data = calloc(1, 3 << 20);
	struct nc_record_event event;
	struct nc_record record;
	int pidfd;

	(void)state;
	start(&record, &pidfd);
	for (size_t i = 0; i < unit_count(sizes); i++) {
		unsigned char wanted[NC_SHA256_SIZE];

		nc_sha256(data, sizes[i], wanted);
		assert_int_equal(nc_record_blob(&record, data, sizes[i]), 0);
		assert_int_equal(nc_record_wait(&record, &event), 0);
		assert_int_equal(event.type, NC_RECORD_DIGEST);
		assert_memory_equal(event.hash, wanted, sizeof(wanted));
	}
	end(&record, pidfd);
	free(data);
}

static void what_would_break_the_rules_is_not_sent(void **state)
{
	static char body[70000];
	struct nc_record_event event;
	struct nc_record record;
	int pidfd;

	(void)state;
	start(&record, &pidfd);
	memset(body, ' ', sizeof(body) - 1);
	assert_int_equal(nc_record_open(&record, "a b", "{}"), -EINVAL);
	assert_int_equal(nc_record_open(&record, "", "{}"), -EINVAL);
	assert_int_equal(nc_record_open(&record, "x", body), -EMSGSIZE);
	for (unsigned int i = record.waiting; i < NC_RECORD_WAITING_MAX; i++)
		assert_int_equal(nc_record_blob(&record, "x", 1), 0);
	assert_int_equal(nc_record_blob(&record, "x", 1), -EAGAIN);
	assert_int_equal(nc_record_wait(&record, &event), 0);
	assert_int_equal(nc_record_blob(&record, "x", 1), 0);
	assert_int_equal(nc_record_wait(&record, &event), 0);
	end(&record, pidfd);
}

static void a_recorder_that_is_gone_is_noticed(void **state)
{
	struct nc_record_event event;
	struct nc_record record;
	struct nacre_err err = {0};
	int pidfd;

	(void)state;
	start(&record, &pidfd);
	assert_int_equal(nc_record_wait(&record, &event), 0);
	assert_int_equal(nc_record_open(&record, "ex_1", "{}"), 0);
	assert_int_equal(nc_record_blob(&record, "x", 1), 0);
	assert_int_equal(nc_record_wait(&record, &event), 0); /* so it has heard of the opening */
	(void)nc_pidfd_end(pidfd);
	assert_true(nc_record_finish_wait(&record, "ex_1", "{}", &event, &err) < 0);
	assert_non_null(strstr(err.message, "Record the execution"));
	nc_record_done(&record);
	/* and the next one says what was lost */
	start(&record, &pidfd);
	assert_int_equal(nc_record_receive(&record, &event), 0);
	assert_int_equal(event.lost, 1);
	end(&record, pidfd);
}

/* The history is the recorder's and nobody else's; the key to it is not. */
static void owners_and_modes(void **state)
{
	struct nc_record record;
	struct nc_record_event event;
	struct stat history, key, verify;
	char path[UNIT_DIR_SIZE + 32];
	int pidfd;

	(void)state;
	start(&record, &pidfd);
	assert_int_equal(nc_record_wait(&record, &event), 0);
	snprintf(path, sizeof(path), "%s/history", dir);
	assert_int_equal(stat(path, &history), 0);
	snprintf(path, sizeof(path), "%s/history/key", dir);
	assert_int_equal(stat(path, &key), 0);
	snprintf(path, sizeof(path), "%s/verify.key", dir);
	assert_int_equal(stat(path, &verify), 0);
	assert_int_equal(history.st_mode & 07777, 0700);
	assert_int_equal(key.st_mode & 07777, 0600);
	assert_int_equal(verify.st_mode & 07777, 0400);
	assert_int_equal(verify.st_uid, geteuid());
	assert_int_equal(history.st_uid, geteuid() == 0 ? NC_RECORDER_ID : geteuid());
	assert_int_equal(key.st_uid, history.st_uid);
	end(&record, pidfd);
}

static void a_history_that_was_removed_is_not_made_again(void **state)
{
	char path[UNIT_DIR_SIZE + 32];
	struct nc_record record;
	struct nacre_err err = {0};
	int pidfd;

	(void)state;
	start(&record, &pidfd);
	end(&record, pidfd);
	snprintf(path, sizeof(path), "%s/history", dir);
	unit_remove(AT_FDCWD, path);
	assert_int_equal(nc_recorder_start(&setup, &pidfd, &err), -ENOENT);
	assert_non_null(strstr(err.message, "verify.key"));
	snprintf(path, sizeof(path), "%s/verify.key", dir);
	assert_int_equal(unlink(path), 0);
	start(&record, &pidfd);
	end(&record, pidfd);
}

static void news(void **state)
{
	struct nc_record_event welcome = {.type = NC_RECORD_WELCOME};
	char text[NC_RECORD_NEWS_SIZE];

	(void)state;
	assert_string_equal(nc_record_news(&welcome, text), "");
	welcome.lost = 1;
	assert_string_equal(nc_record_news(&welcome, text),
		"1 execution of a run that died is recorded as lost");
	welcome.lost = UINT32_MAX;
	welcome.cut_bytes = 1;
	welcome.missing_bytes = UINT64_MAX;
	assert_string_equal(nc_record_news(&welcome, text),
		"4294967295 executions of a run that died are recorded as lost; "
		"a record that was never finished was cut off; "
		"18446744073709551615 bytes of the journal are missing: run nacre audit verify");
}

static void count_damage(void *context, const struct nc_damage *damage)
{
	(void)damage;
	++*(unsigned int *)context;
}

/* The first start of several at once makes the history, and the rest share it. */
static void many_begin_at_once(void **state)
{
	unsigned char key[NC_SHA256_SIZE];
	struct nc_verdict verdict;
	struct nacre_err err = {0};
	unsigned int damages = 0;
	int state_fd, history_fd, status;

	(void)state;
	for (int i = 0; i < 6; i++)
		if (fork() == 0) {
			struct nc_record_event event;
			struct nc_record record;
			int pidfd, fd = nc_recorder_start(&setup, &pidfd, &err);

			_exit(fd < 0 || nc_record_start(&record, fd, &err) < 0 ||
				nc_record_open(&record, "ex_1", "{}") < 0 ||
				nc_record_finish_wait(&record, "ex_1", "{}", &event, &err) < 0);
		}
	for (int i = 0; i < 6; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	history_fd = nc_history_dir(dir, &state_fd, &err);
	assert_true(history_fd >= 0);
	assert_int_equal(nc_history_key(state_fd, NULL, key, &err), 0);
	assert_int_equal(nc_verify(history_fd, key, NULL, count_damage, &damages, &verdict), 0);
	assert_int_equal(damages, 0);
	assert_int_equal(verdict.lines, 12);
	close(state_fd);
	close(history_fd);
}

/* Nobody who waits for the end of our pipes waits for the recorder. */
static void it_holds_no_pipe_of_its_starter(void **state)
{
	struct nc_record record;
	struct nc_record_event event;
	int ends[2], pidfd, fd;
	char byte;

	(void)state;
	assert_int_equal(pipe(ends), 0); /* without CLOEXEC, as a shell hands them down */
	fd = nc_fd_dup(STDOUT_FILENO);
	assert_true(fd >= 0 && dup2(ends[1], STDOUT_FILENO) >= 0);
	start(&record, &pidfd);
	assert_true(dup2(fd, STDOUT_FILENO) >= 0);
	close(fd);
	close(ends[1]);
	assert_int_equal(nc_record_wait(&record, &event), 0);
	assert_int_equal(read(ends[0], &byte, 1), 0);
	close(ends[0]);
	end(&record, pidfd);
}

#define with_state(function) cmocka_unit_test_setup_teardown(function, make, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_state(an_execution_gets_its_receipt),
		with_state(blobs_go_small_and_large),
		with_state(what_would_break_the_rules_is_not_sent),
		with_state(a_recorder_that_is_gone_is_noticed),
		with_state(owners_and_modes),
		cmocka_unit_test(news),
		with_state(many_begin_at_once),
		with_state(it_holds_no_pipe_of_its_starter),
		with_state(a_history_that_was_removed_is_not_made_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
