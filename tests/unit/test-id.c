/* Random bytes and names, with the kernel's generator and with one that is known. */
#include "unit.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>

#include "base/id.h"

/* What getrandom() does: the real thing, or bytes that count up from first. */
static struct {
	bool fake;
	unsigned char first, step;
	size_t at_most;	 /* bytes per call */
	bool interrupts; /* every other call is interrupted */
	int error;	 /* an errno that every call fails with */
	unsigned int calls;
	unsigned int flags;
} kernel;

ssize_t __real_getrandom(void *data, size_t size, unsigned int flags);
ssize_t __wrap_getrandom(void *data, size_t size, unsigned int flags);

ssize_t __wrap_getrandom(void *data, size_t size, unsigned int flags)
{
	unsigned char *bytes = data;

	kernel.calls++;
	kernel.flags |= flags;
	if (!kernel.fake)
		return __real_getrandom(data, size, flags);
	if (kernel.error || (kernel.interrupts && kernel.calls % 2 == 1)) {
		errno = kernel.error ? kernel.error : EINTR;
		return -1;
	}
	if (kernel.at_most && size > kernel.at_most)
		size = kernel.at_most;
	for (size_t i = 0; i < size; i++) {
		bytes[i] = kernel.first;
		kernel.first = (unsigned char)(kernel.first + kernel.step);
	}
	return (ssize_t)size;
}

static int real_kernel(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	return 0;
}

static void random_fills_all_of_it_and_no_more(void **state)
{
	static const size_t sizes[] = {1, 16, 255, 256, 257, 1000};
	static unsigned char data[1002];

	(void)state;
	kernel.fake = true;
	kernel.first = 0xaa;
	for (size_t i = 0; i < unit_count(sizes); i++) {
		memset(data, 0, sizeof(data));
		assert_int_equal(nc_random(data + 1, sizes[i]), 0);
		assert_int_equal(data[0], 0);
		for (size_t j = 1; j <= sizes[i]; j++)
			assert_int_equal(data[j], 0xaa);
		assert_int_equal(data[sizes[i] + 1], 0);
	}
	/* GRND_INSECURE and GRND_NONBLOCK would weaken it */
	assert_int_equal(kernel.flags & ~(unsigned int)GRND_RANDOM, 0);
}

static void random_of_nothing_asks_for_nothing(void **state)
{
	(void)state;
	kernel.fake = true;
	kernel.error = EIO;
	assert_int_equal(nc_random(NULL, 0), 0);
	assert_int_equal(kernel.calls, 0);
}

static void random_goes_on_through_interruptions_and_short_answers(void **state)
{
	unsigned char data[100];

	(void)state;
	kernel.fake = true;
	kernel.step = 1;
	kernel.at_most = 7;
	kernel.interrupts = true;
	assert_int_equal(nc_random(data, sizeof(data)), 0);
	for (size_t i = 0; i < sizeof(data); i++)
		assert_int_equal(data[i], i);
}

static void random_differs_each_time(void **state)
{
	unsigned char first[32] = {0}, second[32] = {0};

	(void)state;
	assert_int_equal(nc_random(first, sizeof(first)), 0);
	assert_int_equal(nc_random(second, sizeof(second)), 0);
	assert_memory_not_equal(first, second, sizeof(first));
}

static void errors_come_through_and_names_stay_untouched(void **state)
{
	char uuid[NC_UUID_SIZE] = "untouched", id[NC_ID_SIZE] = "untouched";
	char data[1];

	(void)state;
	kernel.fake = true;
	kernel.error = ENOSYS;
	assert_int_equal(nc_random(data, sizeof(data)), -ENOSYS);
	assert_int_equal(nc_uuid(uuid), -ENOSYS);
	assert_string_equal(uuid, "untouched");
	assert_int_equal(nc_id_new("bx", id), -ENOSYS);
	assert_string_equal(id, "untouched");
}

static const struct {
	unsigned char first, step;
	const char *uuid, *id;
} known[] = {
	{0x00, 0, "00000000-0000-4000-8000-000000000000", "bx_00000000000000000000000000000000"},
	{0xff, 0, "ffffffff-ffff-4fff-bfff-ffffffffffff", "bx_ffffffffffffffffffffffffffffffff"},
	{0x00, 1, "00010203-0405-4607-8809-0a0b0c0d0e0f", "bx_000102030405060708090a0b0c0d0e0f"},
	{0xf0, 1, "f0f1f2f3-f4f5-46f7-b8f9-fafbfcfdfeff", "bx_f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"},
};

static void names_are_made_of_all_the_bits(void **state)
{
	char uuid[NC_UUID_SIZE], id[NC_ID_SIZE];

	(void)state;
	kernel.fake = true;
	for (size_t i = 0; i < unit_count(known); i++) {
		memset(uuid, '#', sizeof(uuid));
		memset(id, '#', sizeof(id));
		kernel.first = known[i].first;
		kernel.step = known[i].step;
		assert_int_equal(nc_uuid(uuid), 0);
		assert_memory_equal(uuid, known[i].uuid, sizeof(uuid));
		kernel.first = known[i].first;
		assert_int_equal(nc_id_new("bx", id), 0);
		assert_memory_equal(id, known[i].id, sizeof(id));
	}
}

static void id_begins_with_its_kind(void **state)
{
	char id[NC_ID_SIZE];

	(void)state;
	assert_int_equal(nc_id_new("fl", id), 0);
	assert_memory_equal(id, "fl_", 3);
	assert_int_equal(strspn(id + 3, "0123456789abcdef"), 32);
	assert_int_equal(strlen(id), NC_ID_SIZE - 1);
}

static void names_differ_each_time(void **state)
{
	char first[NC_UUID_SIZE], second[NC_UUID_SIZE];

	(void)state;
	assert_int_equal(nc_uuid(first), 0);
	assert_int_equal(nc_uuid(second), 0);
	assert_string_not_equal(first, second);
	assert_int_equal(nc_id_new("bx", first), 0);
	assert_int_equal(nc_id_new("bx", second), 0);
	assert_string_not_equal(first, second);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(random_fills_all_of_it_and_no_more, real_kernel),
		cmocka_unit_test_setup(random_of_nothing_asks_for_nothing, real_kernel),
		cmocka_unit_test_setup(
			random_goes_on_through_interruptions_and_short_answers, real_kernel),
		cmocka_unit_test_setup(random_differs_each_time, real_kernel),
		cmocka_unit_test_setup(errors_come_through_and_names_stay_untouched, real_kernel),
		cmocka_unit_test_setup(names_are_made_of_all_the_bits, real_kernel),
		cmocka_unit_test_setup(id_begins_with_its_kind, real_kernel),
		cmocka_unit_test_setup(names_differ_each_time, real_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
