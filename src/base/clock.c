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

uint64_t nc_clock_real_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail with this clock */
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

/* Writes the seconds and returns their length; the caller adds the fraction. */
static size_t stamp_seconds(char *out, size_t size, time_t seconds)
{
	struct tm parts;
	const struct tm *filled = gmtime_r(&seconds, &parts);

	assert(filled);
	return strftime(out, size, "%Y-%m-%dT%H:%M:%S", &parts);
}

void nc_clock_stamp(char out[static NC_CLOCK_STAMP_SIZE])
{
	struct timespec now;
	int r = clock_gettime(CLOCK_REALTIME, &now);
	size_t size;

	assert(r == 0);
	size = stamp_seconds(out, NC_CLOCK_STAMP_SIZE, now.tv_sec);
	(void)snprintf(out + size, NC_CLOCK_STAMP_SIZE - size, ".%03uZ",
		(unsigned int)(now.tv_nsec / 1000000) % 1000);
}

void nc_clock_stamp_ns(char out[static NC_CLOCK_STAMP_NS_SIZE])
{
	nc_clock_stamp_at(nc_clock_real_ns(), out);
}

void nc_clock_stamp_at(uint64_t real_ns, char out[static NC_CLOCK_STAMP_NS_SIZE])
{
	size_t size = stamp_seconds(out, NC_CLOCK_STAMP_NS_SIZE, (time_t)(real_ns / NC_NS_PER_S));

	(void)snprintf(out + size, NC_CLOCK_STAMP_NS_SIZE - size, ".%09uZ",
		(unsigned int)(real_ns % NC_NS_PER_S));
}
