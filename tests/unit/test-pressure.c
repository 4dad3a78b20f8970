/* Whether the host runs short of memory, by what /proc/meminfo says. */
#include "engine/pressure.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

static bool is_high(const char *text, bool was_high)
{
	int fd = memfd_create("meminfo", MFD_CLOEXEC);
	bool high;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	high = nc_pressure_is_high(fd, was_high);
	(void)close(fd);
	return high;
}

static void test_bounds(void **state)
{
	(void)state;
	assert_false(is_high("MemTotal: 1600 kB\nMemFree: 1 kB\nMemAvailable: 100 kB\n", false));
	assert_true(is_high("MemTotal: 1600 kB\nMemFree: 1 kB\nMemAvailable: 99 kB\n", false));
	/* it takes more to end than to begin */
	assert_true(is_high("MemTotal: 1600 kB\nMemFree: 1 kB\nMemAvailable: 199 kB\n", true));
	assert_false(is_high("MemTotal: 1600 kB\nMemFree: 1 kB\nMemAvailable: 200 kB\n", true));
	assert_true(is_high("MemTotal: 1600 kB\nMemAvailable: 0 kB\n", false));
}

static void test_unknown(void **state)
{
	(void)state;
	assert_false(nc_pressure_is_high(-EBADF, true));
	assert_false(is_high("", true));
	assert_false(is_high("MemTotal: 1600 kB\nMemFree: 0 kB\n", true));
	assert_false(is_high("nonsense", false));
}

static void test_this_host(void **state)
{
	int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	assert_false(nc_pressure_is_high(fd, false)); /* or nothing else would run either */
	(void)close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_this_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
