/* What a box used, as it is billed. */
#include "kernel/bill.h"

#include <unistd.h>

void nc_bill_take(struct nc_box_end *end, const struct nc_cgroup *group,
	const struct nc_cgroup_usage *usage, bool shade)
{
	struct nc_box_usage *bill = &end->usage;

	if (group->parent->can & NC_CGROUP_CAN_CPU_TIME) {
		bill->cpu_user_us = usage->cpu_user_us;
		bill->cpu_system_us = usage->cpu_system_us;
	}
	if (group->parent->can & NC_CGROUP_CAN_MEMORY)
		bill->memory_peak_bytes = usage->memory_peak_bytes;
	bill->pids_peak = usage->pids_peak - (usage->pids_peak > 1 && shade);
	bill->pids_refused = usage->pids_refused;
	bill->oom_kills = usage->oom_kills;
	end->hit |= usage->oom_kills > 0 ? NC_HIT_MEMORY : 0;
	end->hit |= usage->pids_refused > 0 ? NC_HIT_PIDS : 0;
}

void nc_bill_close(struct nc_box_usage *bill)
{
	uint64_t cpu_ns = (bill->cpu_user_us + bill->cpu_system_us) * 1000, least;

	/* mostly it is that plain, and nothing is asked */
	if (bill->wall_ns == 0 || cpu_ns <= bill->wall_ns)
		return;
	least = cpu_ns / (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	if (bill->wall_ns < least)
		bill->wall_ns = least;
}

static void raise_to(uint64_t *peak, uint64_t other)
{
	if (*peak < other)
		*peak = other;
}

void nc_bill_add(struct nc_box_usage *bill, const struct nc_box_usage *more)
{
	bill->cpu_user_us += more->cpu_user_us;
	bill->cpu_system_us += more->cpu_system_us;
	bill->context_switches += more->context_switches;
	bill->io_read_bytes += more->io_read_bytes;
	bill->io_written_bytes += more->io_written_bytes;
	raise_to(&bill->memory_peak_bytes, more->memory_peak_bytes);
	raise_to(&bill->pids_peak, more->pids_peak);
}
