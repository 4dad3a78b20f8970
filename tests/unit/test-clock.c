/* The two clocks, real and standing still. */
#include "unit.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

static bool standing;
static struct timespec monotonic, realtime;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	if (!standing)
		return __real_clock_gettime(clock, now);
	*now = clock == CLOCK_MONOTONIC ? monotonic : realtime;
	return 0;
}

static int stop_the_clocks(void **state)
{
	(void)state;
	standing = true;
	monotonic = (struct timespec){.tv_sec = 1000, .tv_nsec = 500};
	realtime = (struct timespec){0};
	return 0;
}

static int let_the_clocks_run(void **state)
{
	(void)state;
	standing = false;
	return 0;
}

static void never_goes_back(void **state)
{
	uint64_t last = nc_clock_ns();

	(void)state;
	for (int i = 0; i < 10000; i++) {
		uint64_t now = nc_clock_ns();

		assert_true(now >= last);
		last = now;
	}
}

static void goes_on(void **state)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	uint64_t before = nc_clock_ns();

	(void)state;
	nanosleep(&pause, NULL);
	assert_true(nc_clock_ns() >= before + 2 * NC_NS_PER_MS);
}

static void counts_nanoseconds_of_the_monotonic_clock(void **state)
{
	(void)state;
	realtime.tv_sec = 77;
	assert_int_equal(nc_clock_ns(), 1000000000500);
	monotonic = (struct timespec){.tv_sec = 5000000000, .tv_nsec = 999999999};
	assert_int_equal(nc_clock_ns(), 5000000000999999999);
}

static void left_rounds_up_and_is_never_negative(void **state)
{
	static const struct {
		int64_t ahead;
		int ms;
	} cases[] = {
		{0, 0}, {-1, 0}, {-1000000000000, 0}, {1, 1}, {999999, 1}, {1000000, 1},
		{1000001, 2}, {2000000, 2}, {1500000000, 1500},
		{(INT_MAX - 1) * 1000000LL, INT_MAX - 1}, {(INT_MAX - 1) * 1000000LL + 1, INT_MAX},
		{INT_MAX * 1000000LL, INT_MAX}, {INT_MAX * 1000000LL + 1, INT_MAX},
		{(1LL << 32) * 1000000LL, INT_MAX}, /* 0 if it were only narrowed */
	};
	uint64_t now = nc_clock_ns();

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++)
		assert_int_equal(nc_clock_left_ms(now + (uint64_t)cases[i].ahead), cases[i].ms);
	assert_int_equal(nc_clock_left_ms(0), 0);
	assert_int_equal(nc_clock_left_ms(UINT64_MAX), INT_MAX);
}

static void left_does_not_overflow_right_after_boot(void **state)
{
	(void)state;
	monotonic = (struct timespec){0};
	assert_int_equal(nc_clock_left_ms(UINT64_MAX), INT_MAX);
}

static void stamp_is_utc_with_milliseconds(void **state)
{
	static const struct {
		struct timespec time;
		const char *stamp;
	} cases[] = {
		{{0, 0}, "1970-01-01T00:00:00.000Z"},
		{{0, 999999}, "1970-01-01T00:00:00.000Z"},
		{{0, 1000000}, "1970-01-01T00:00:00.001Z"},
		{{1, 999999999}, "1970-01-01T00:00:01.999Z"},
		{{951782400, 50000000}, "2000-02-29T00:00:00.050Z"},
		{{1794779759, 123456789}, "2026-11-15T21:55:59.123Z"},
		{{4102444799, 0}, "2099-12-31T23:59:59.000Z"},
		{{253402300799, 999000000}, "9999-12-31T23:59:59.999Z"},
	};
	char stamp[NC_CLOCK_STAMP_SIZE];

	(void)state;
	/* the zone of the machine must not matter */
	setenv("TZ", "Pacific/Kiritimati", 1);
	tzset();
	for (size_t i = 0; i < unit_count(cases); i++) {
		realtime = cases[i].time;
		memset(stamp, '#', sizeof(stamp));
		nc_clock_stamp(stamp);
		assert_memory_equal(stamp, cases[i].stamp, sizeof(stamp));
	}
	unsetenv("TZ");
	tzset();
}

static void stamp_is_the_time_of_day(void **state)
{
	char before[NC_CLOCK_STAMP_SIZE], after[NC_CLOCK_STAMP_SIZE], date[NC_CLOCK_STAMP_SIZE];
	time_t now = time(NULL);
	struct tm parts;

	(void)state;
	nc_clock_stamp(before);
	nc_clock_stamp(after);
	assert_true(strcmp(before, after) <= 0);
	assert_non_null(gmtime_r(&now, &parts));
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &parts);
	assert_true(strncmp(date, before, strlen(date)) <= 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(never_goes_back),
		cmocka_unit_test(goes_on),
		cmocka_unit_test_setup_teardown(counts_nanoseconds_of_the_monotonic_clock,
			stop_the_clocks, let_the_clocks_run),
		cmocka_unit_test_setup_teardown(
			left_rounds_up_and_is_never_negative, stop_the_clocks, let_the_clocks_run),
		cmocka_unit_test_setup_teardown(left_does_not_overflow_right_after_boot,
			stop_the_clocks, let_the_clocks_run),
		cmocka_unit_test_setup_teardown(
			stamp_is_utc_with_milliseconds, stop_the_clocks, let_the_clocks_run),
		cmocka_unit_test(stamp_is_the_time_of_day),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
