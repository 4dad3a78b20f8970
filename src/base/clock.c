/* Time. */
#include "base/clock.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <time.h>

uint64_t nc_clock_ns(void)
{
	struct timespec now;
	int r = clock_gettime(CLOCK_MONOTONIC, &now);

	assert(r == 0);
	return (uint64_t)now.tv_sec * NC_NS_PER_S + (uint64_t)now.tv_nsec;
}

int nc_clock_left_ms(uint64_t deadline_ns)
{
	uint64_t now = nc_clock_ns(), left;

	if (deadline_ns <= now)
		return 0;
	left = (deadline_ns - now - 1) / NC_NS_PER_MS + 1;
	return left > INT_MAX ? INT_MAX : (int)left;
}

void nc_clock_stamp(char out[static NC_CLOCK_STAMP_SIZE])
{
	struct timespec now;
	struct tm parts;
	int r = clock_gettime(CLOCK_REALTIME, &now);
	const struct tm *filled = gmtime_r(&now.tv_sec, &parts);
	size_t size;

	assert(r == 0 && filled);
	size = strftime(out, NC_CLOCK_STAMP_SIZE, "%Y-%m-%dT%H:%M:%S", &parts);
	(void)snprintf(out + size, NC_CLOCK_STAMP_SIZE - size, ".%03uZ",
		(unsigned int)(now.tv_nsec / 1000000) % 1000);
}
