/* Questions to programs of the host: answers, failures, bounds, and without privilege. */
#include "unit.h"

#include <string.h>
#include <unistd.h>

#include "base/ask.h"
#include "base/clock.h"
#include "base/limits.h"

static void ask(struct nc_ask *question, const char *const *argv, uint64_t patience_ns)
{
	question->argv = argv;
	nc_ask_start(question);
	nc_ask_finish(question, 1, nc_clock_ns() + patience_ns);
}

static void test_answer(void **state)
{
	static const char *const argv[] = {"sh", "-c", "echo out; echo err >&2; exit 3", NULL};
	struct nc_ask question = {0};

	(void)state;
	ask(&question, argv, 10 * NC_NS_PER_S);
	assert_int_equal(question.status, 3);
	assert_false(nc_ask_ok(&question));
	assert_string_equal(nc_buf_text(&question.output), "out\nerr\n");
	assert_string_equal(strrchr(question.program, '/'), "/sh");
	nc_ask_done(&question);
}

static void test_input_reaches_the_program(void **state)
{
	static const char *const argv[] = {"cat", NULL};
	struct nc_ask question = {.input = "a\0b", .input_size = 3};

	(void)state;
	ask(&question, argv, 10 * NC_NS_PER_S);
	assert_true(nc_ask_ok(&question));
	assert_int_equal(question.output.size, 3);
	assert_memory_equal(question.output.data, "a\0b", 3);
	nc_ask_done(&question);
}

static void test_no_input_is_an_empty_one(void **state)
{
	static const char *const argv[] = {"cat", NULL};
	struct nc_ask question = {0};

	(void)state;
	ask(&question, argv, 10 * NC_NS_PER_S);
	assert_true(nc_ask_ok(&question));
	assert_int_equal(question.output.size, 0);
	nc_ask_done(&question);
}

static void test_missing_program(void **state)
{
	static const char *const argv[] = {"nacre-no-such-program", NULL};
	struct nc_ask question = {0};

	(void)state;
	ask(&question, argv, NC_NS_PER_S);
	assert_int_equal(question.status, -ENOENT);
	assert_string_equal(question.program, "");
	nc_ask_done(&question);
}

static void test_signal(void **state)
{
	static const char *const argv[] = {"sh", "-c", "kill -KILL $$", NULL};
	struct nc_ask question = {0};

	(void)state;
	ask(&question, argv, 10 * NC_NS_PER_S);
	assert_int_equal(question.status, 128 + 9);
	nc_ask_done(&question);
}

/* One that never ends, and one that ends but whose child keeps the pipe open. */
static void test_deadline(void **state)
{
	static const char *const endless[] = {"sleep", "1000", NULL};
	static const char *const holder[] = {"sh", "-c", "sleep 1000 & exit 0", NULL};
	struct nc_ask questions[2] = {{.argv = endless}, {.argv = holder}};
	uint64_t started = nc_clock_ns();

	(void)state;
	nc_ask_start(&questions[0]);
	nc_ask_start(&questions[1]);
	nc_ask_finish(questions, 2, started + 50 * NC_NS_PER_MS);
	assert_int_equal(questions[0].status, -ETIMEDOUT);
	assert_int_equal(questions[1].status, -ETIMEDOUT);
	assert_true(nc_clock_ns() - started < 30 * NC_NS_PER_S);
	nc_ask_done(&questions[0]);
	nc_ask_done(&questions[1]);
}

static void test_endless_output_is_bounded(void **state)
{
	static const char *const argv[] = {"head", "-c", "1000000", "/dev/zero", NULL};
	struct nc_ask question = {0};

	(void)state;
	ask(&question, argv, 10 * NC_NS_PER_S);
	assert_int_equal(question.status, 0);
	assert_false(nc_ask_ok(&question)); /* an answer that was cut is none */
	assert_true(question.output.size <= NC_PROBE_OUTPUT_MAX);
	nc_ask_done(&question);
}

static void test_environment_is_made_from_scratch(void **state)
{
	static const char *const argv[] = {"env", NULL};
	struct nc_ask question = {0};

	(void)state;
	assert_int_equal(setenv("NACRE_SECRET", "hush", 1), 0);
	ask(&question, argv, 10 * NC_NS_PER_S);
	assert_null(strstr(nc_buf_text(&question.output), "hush"));
	assert_non_null(strstr(nc_buf_text(&question.output), "PATH=" NC_ASK_PATH "\n"));
	nc_ask_done(&question);
}

static void test_root_asks_as_nobody(void **state)
{
	static const char *const argv[] = {"id", "-u", NULL};
	struct nc_ask question = {0};

	(void)state;
	if (geteuid() != 0)
		unit_skip("needs root");
	ask(&question, argv, 10 * NC_NS_PER_S);
	assert_string_equal(nc_buf_text(&question.output), "65534\n");
	nc_ask_done(&question);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answer),
		cmocka_unit_test(test_input_reaches_the_program),
		cmocka_unit_test(test_no_input_is_an_empty_one),
		cmocka_unit_test(test_missing_program),
		cmocka_unit_test(test_signal),
		cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_endless_output_is_bounded),
		cmocka_unit_test(test_environment_is_made_from_scratch),
		cmocka_unit_test(test_root_asks_as_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
