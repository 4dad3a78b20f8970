/* Staying on a processor, leaving it, and what is left of both. */
#include "unit.h"

#include "kernel/processor.h"

static void test_who_stays_has_one_until_he_roams(void **state)
{
	cpu_set_t before, had, now;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_true(nc_processor_stay(&had));
	assert_true(CPU_EQUAL(&had, &before));
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_int_equal(CPU_COUNT(&now), 1);
	assert_int_equal(nc_processor_roam(&had), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&now, &before));
}

static void test_who_leaves_may_come_back(void **state)
{
	cpu_set_t before, had, now;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	nc_processor_leave();
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&now, &before));
	/* with one alone there is nowhere to go */
	assert_true(nc_processor_stay(&had));
	nc_processor_leave();
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_int_equal(CPU_COUNT(&now), 1);
	assert_int_equal(nc_processor_roam(&before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_stays_has_one_until_he_roams),
		cmocka_unit_test(test_who_leaves_may_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
