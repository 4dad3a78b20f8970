/* The threat detector: thresholds, order, and that every signal has its texts. */
#include "unit.h"

#include <string.h>

#include "policy/denial.h"
#include "policy/threat.h"

static void nothing_is_no_threat(void **state)
{
	const struct nc_signals signals = {0};
	struct nc_alert alerts[NC_SIGNAL_MAX];

	(void)state;
	assert_int_equal(nc_threat_judge(&signals, nc_threat_thresholds, alerts), 0);
}

static void thresholds_are_reached_and_not_exceeded(void **state)
{
	struct nc_alert alerts[NC_SIGNAL_MAX];

	(void)state;
	for (enum nc_signal i = 0; i < NC_SIGNAL_MAX; i++) {
		struct nc_signals signals = {0};
		uint64_t never[NC_SIGNAL_MAX] = {0};

		assert_true(nc_threat_thresholds[i] > 0);
		signals.value[i] = nc_threat_thresholds[i] - 1;
		assert_int_equal(nc_threat_judge(&signals, nc_threat_thresholds, alerts), 0);
		signals.value[i]++;
		assert_int_equal(nc_threat_judge(&signals, nc_threat_thresholds, alerts), 1);
		assert_int_equal(alerts[0].signal, i);
		assert_int_equal(alerts[0].value, alerts[0].threshold);
		assert_true(strlen(alerts[0].id) > 0 && strlen(alerts[0].reason) > 20);
		/* whoever switches one off is not told */
		assert_int_equal(nc_threat_judge(&signals, never, alerts), 0);
	}
}

static void the_worst_comes_first(void **state)
{
	struct nc_alert alerts[NC_SIGNAL_MAX];
	struct nc_signals signals;

	(void)state;
	memset(&signals, 0xff, sizeof(signals));
	assert_int_equal(nc_threat_judge(&signals, nc_threat_thresholds, alerts), NC_SIGNAL_MAX);
	assert_string_equal(alerts[0].id, "wall_kinds");
	for (size_t i = 1; i < NC_SIGNAL_MAX; i++)
		assert_true(alerts[i - 1].severity >= alerts[i].severity);
}

static void walls_are_rules_of_denials(void **state)
{
	static const char *const calls[] = {"unshare", "mount", "ptrace", "open_by_handle_at",
		"bpf", "userfaultfd", "io_uring_setup", "keyctl", "init_module", "swapon",
		"fanotify_init", "mknod", "seccomp"};
	static const char *const harmless[] = {
		"sync", "sethostname", "personality", "mbind", "prctl"};
	struct nc_denial denial;

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		nc_denial_of_call(calls[i], NC_DENIAL_IN_CONTAINER, 1, &denial);
		assert_true(nc_threat_is_wall(denial.rule));
	}
	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
		nc_denial_of_call(harmless[i], NC_DENIAL_IN_CONTAINER, 1, &denial);
		assert_false(nc_threat_is_wall(denial.rule));
	}
}

static void a_rate_is_that_of_the_fastest_second(void **state)
{
	const uint64_t second = 1000000000;
	struct nc_rate rate = {0};

	(void)state;
	nc_rate_add(&rate, 5 * second, 100);
	nc_rate_add(&rate, 5 * second + second / 2, 1000);
	assert_int_equal(rate.peak, 0); /* no second is over */
	nc_rate_add(&rate, 6 * second, 1100);
	assert_int_equal(rate.peak, 1000);
	nc_rate_add(&rate, 8 * second, 1200);
	assert_int_equal(rate.peak, 1000);
	nc_rate_add(&rate, 10 * second, 9200);
	assert_int_equal(rate.peak, 4000);
	/* backwards: from there again */
	nc_rate_add(&rate, 9 * second, 9300);
	nc_rate_add(&rate, 10 * second, 100);
	nc_rate_add(&rate, 11 * second, 200);
	assert_int_equal(rate.peak, 4000);
	nc_rate_add(&rate, 12 * second, UINT64_MAX);
	assert_true(rate.peak > 4000);
}

static void forks_are_never_more_than_there_were(void **state)
{
	const uint64_t second = 1000000000, tenth = second / 10;
	struct nc_forks forks = {0};

	(void)state;
	/* 214 a second for 19 s, of whom mostly only the one that makes them is seen */
	nc_forks_add(&forks, 0, 0, 0);
	nc_forks_add(&forks, 0, 0, 0);
	nc_forks_add(&forks, 19 * second, 19 * 214, 0);
	assert_in_range(forks.peak, 213, 214);
	nc_forks_add(&forks, 0, 0, 0);
	nc_forks_add(&forks, 20 * second, 20 * 214, 0);
	assert_in_range(forks.peak, 213, 214);
	/* a burst is what it was, and not what it would have been in a whole second */
	nc_forks_add(&forks, 20 * second + tenth, 20 * 214 + 900, 0);
	assert_int_equal(forks.peak, 900);
	nc_forks_add(&forks, 20 * second + 9 * tenth, 20 * 214 + 1200, 0);
	assert_int_equal(forks.peak, 1200);
	/* numbers that begin again say nothing of how many there were */
	nc_forks_add(&forks, 22 * second, 5, 0);
	nc_forks_add(&forks, 24 * second, 2005, 0);
	assert_int_equal(forks.peak, 1200);
	nc_forks_add(&forks, UINT64_MAX, UINT64_MAX, UINT64_MAX);
	assert_int_equal(forks.peak, 1200);
}

static void forks_of_others_are_not_counted(void **state)
{
	const uint64_t second = 1000000000;
	struct nc_forks forks = {0};

	(void)state;
	nc_forks_add(&forks, second, 10, 0);
	nc_forks_skip(&forks, 2 * second, 9000, 3);
	nc_forks_skip(&forks, 4 * second, 20000, 5);
	assert_int_equal(forks.peak, 10);
	nc_forks_add(&forks, 5 * second, 20050, 5);
	assert_int_equal(forks.peak, 50);
}

static void refused_forks_are_none(void **state)
{
	const uint64_t second = 1000000000;
	struct nc_forks forks = {0};

	(void)state;
	/* the kernel gives each that it refuses a number too */
	nc_forks_add(&forks, second, 5010, 5000);
	assert_int_equal(forks.peak, 10);
	/* how many of those were before the last one is not known: none is the least */
	nc_forks_add(&forks, 2 * second, 25030, 30000);
	assert_int_equal(forks.peak, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rate_is_that_of_the_fastest_second),
		cmocka_unit_test(forks_are_never_more_than_there_were),
		cmocka_unit_test(forks_of_others_are_not_counted),
		cmocka_unit_test(refused_forks_are_none),
		cmocka_unit_test(nothing_is_no_threat),
		cmocka_unit_test(thresholds_are_reached_and_not_exceeded),
		cmocka_unit_test(the_worst_comes_first),
		cmocka_unit_test(walls_are_rules_of_denials),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
