/* Version 1: the files of each controller. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernel/cgroup_face.h"

/*
 * Memory and swap together may never be less than memory alone: a group that has limits already is
 * opened upwards first. "-1" reads back as the greatest number of pages that can be counted.
 */
static int limit_memory(const struct nc_cgroup_place *place, uint64_t value, bool fresh,
	unsigned int can, struct nacre_err *err)
{
	static const char both[] = "memory.memsw.limit_in_bytes";
	char text[24] = "-1", wanted[24], most[24];
	bool swap = can & NC_CGROUP_CAN_SWAP;
	int r = 0;

	(void)snprintf(most, sizeof(most), "%" PRIu64, nc_cgroup_pages_max());
	(void)snprintf(wanted, sizeof(wanted), "%s", most);
	if (value) {
		(void)snprintf(text, sizeof(text), "%" PRIu64, value);
		(void)snprintf(wanted, sizeof(wanted), "%" PRIu64, nc_cgroup_pages(value));
	}
	if (swap && !fresh)
		r = nc_cgroup_put(place, both, "-1", most, err);
	if (r == 0)
		r = nc_cgroup_put(place, "memory.limit_in_bytes", text, wanted, err);
	if (r == 0 && swap && value)
		r = nc_cgroup_put(place, both, text, wanted, err);
	return r;
}

static int limit_cpu(const struct nc_cgroup_place *place, uint64_t value, bool fresh,
	unsigned int can, struct nacre_err *err)
{
	uint64_t quota_us, period_us;
	char quota[24], period[24];
	int r = 0;

	(void)can;
	if (!fresh)
		r = nc_cgroup_put(place, "cpu.cfs_quota_us", "-1", "-1", err);
	if (r < 0 || !value)
		return r;
	nc_cgroup_quota(value, &quota_us, &period_us);
	(void)snprintf(quota, sizeof(quota), "%" PRIu64, quota_us);
	(void)snprintf(period, sizeof(period), "%" PRIu64, period_us);
	r = nc_cgroup_put(place, "cpu.cfs_period_us", period, period, err);
	return r < 0 ? r : nc_cgroup_put(place, "cpu.cfs_quota_us", quota, quota, err);
}

static void take_throttled(const char *text, struct nc_cgroup_usage *usage)
{
	uint64_t ns = 0;

	nc_cgroup_field(text, "throttled_time", &ns);
	usage->throttled_us = ns / 1000;
}

static void take_user(const char *text, struct nc_cgroup_usage *usage)
{
	usage->cpu_user_us = nc_cgroup_number(text) / 1000;
}

static void take_system(const char *text, struct nc_cgroup_usage *usage)
{
	usage->cpu_system_us = nc_cgroup_number(text) / 1000;
}

/* "8:0 Read 4096" and other operations, for each disk. */
static void take_io(const char *text, struct nc_cgroup_usage *usage)
{
	for (const char *line = text; *line; line += line[0] == '\n') {
		const char *operation;

		line += strcspn(line, " \n");
		operation = line;
		if (strncmp(operation, " Read ", 6) == 0)
			usage->io_read_bytes += nc_cgroup_number(operation + 6);
		else if (strncmp(operation, " Write ", 7) == 0)
			usage->io_written_bytes += nc_cgroup_number(operation + 7);
		line += strcspn(line, "\n");
	}
}

const struct nc_cgroup_face nc_cgroup_v1[NC_CGROUP_CONTROLLER_MAX] = {
	[NC_CGROUP_MEMORY] = {"memory", "memory.limit_in_bytes", NC_CGROUP_CAN_MEMORY, limit_memory,
		{
			{"memory.max_usage_in_bytes", true, nc_cgroup_take_peak},
			{"memory.usage_in_bytes", false, nc_cgroup_take_now},
			{"memory.oom_control", false, nc_cgroup_take_oom},
		}},
	[NC_CGROUP_CPU] = {"cpu", "cpu.cfs_quota_us", NC_CGROUP_CAN_CPU, limit_cpu,
		{
			{"cpu.stat", false, take_throttled},
		}},
	[NC_CGROUP_PIDS] = {"pids", "pids.max", NC_CGROUP_CAN_PIDS, nc_cgroup_limit_pids,
		{
			{"pids.current", false, nc_cgroup_take_pids_now},
			{"pids.peak", false, nc_cgroup_take_pids_peak},
			{"pids.events", false, nc_cgroup_take_pids_refused},
		}},
	[NC_CGROUP_IO] = {"blkio", "blkio.throttle.io_service_bytes_recursive", NC_CGROUP_CAN_IO,
		NULL,
		{
			{"blkio.throttle.io_service_bytes_recursive", false, take_io},
		}},
	[NC_CGROUP_FREEZER] = {"freezer", "freezer.state", NC_CGROUP_CAN_FREEZE, NULL, {{0}}},
};

const struct nc_cgroup_gauge nc_cgroup_v1_time[2] = {
	{"cpuacct.usage_user", false, take_user},
	{"cpuacct.usage_sys", false, take_system},
};
