/* Whether the host runs short of memory. */
#include "engine/pressure.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number behind the name; 0: it is not there. */
static uint64_t field(const char *text, const char *name)
{
	const char *found = strstr(text, name);

	return found ? strtoull(found + strlen(name), NULL, 10) : 0;
}

bool nc_pressure_is_high(int meminfo_fd, bool was_high)
{
	char text[512]; /* what is asked for is in its first lines */
	ssize_t n = meminfo_fd < 0 ? 0 : pread(meminfo_fd, text, sizeof(text) - 1, 0);
	uint64_t total, available;

	if (n <= 0)
		return false;
	text[n] = '\0';
	total = field(text, "MemTotal:");
	available = field(text, "MemAvailable:");
	return strstr(text, "MemAvailable:") && available < total / (was_high ? 8 : 16);
}
