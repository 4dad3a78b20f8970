/* On which processor we run. */
#include "kernel/processor.h"

#include <errno.h>

/* The one that we are on, and those that we may be on. Less than 0: it is not known. */
static int find(cpu_set_t *ret_had)
{
	int cpu = sched_getcpu();

	if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(*ret_had), ret_had) < 0)
		return -1;
	return cpu;
}

void nc_processor_leave(void)
{
	cpu_set_t had, others;
	int cpu = find(&had);

	if (cpu < 0)
		return;
	others = had;
	CPU_CLR((size_t)cpu, &others);
	/* it fails where there is no other one */
	if (sched_setaffinity(0, sizeof(others), &others) == 0)
		(void)nc_processor_roam(&had); /* what we had cannot be refused */
}

bool nc_processor_stay(cpu_set_t *ret_had)
{
	cpu_set_t here;
	int cpu = find(ret_had);

	if (cpu < 0)
		return false;
	CPU_ZERO(&here);
	CPU_SET((size_t)cpu, &here);
	return sched_setaffinity(0, sizeof(here), &here) == 0;
}

int nc_processor_roam(const cpu_set_t *had)
{
	return sched_setaffinity(0, sizeof(*had), had) < 0 ? -errno : 0;
}
