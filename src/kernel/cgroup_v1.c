/* Version 1: the files of each controller. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernel/cgroup_face.h"

/*
 * Memory and swap together may never be less than memory alone: a group that has limits already is
 * opened upwards first. "-1" reads back as the greatest number of pages that can be counted.
 */
static int limit_memory(const struct nc_cgroup_setting *setting, struct nacre_err *err)
{
	enum { ALONE, BOTH }; /* the order of its knobs */
	char text[24] = "-1", wanted[24], most[24];
	bool swap = setting->can & NC_CGROUP_CAN_SWAP;
	int r = 0;

	(void)snprintf(most, sizeof(most), "%" PRIu64, nc_cgroup_pages_max());
	(void)snprintf(wanted, sizeof(wanted), "%s", most);
	if (setting->value) {
		(void)snprintf(text, sizeof(text), "%" PRIu64, setting->value);
		(void)snprintf(wanted, sizeof(wanted), "%" PRIu64, nc_cgroup_pages(setting->value));
	}
	if (swap && !setting->fresh)
		r = nc_cgroup_put(setting, BOTH, "-1", most, err);
	if (r == 0)
		r = nc_cgroup_put(setting, ALONE, text, wanted, err);
	if (r == 0 && swap && setting->value)
		r = nc_cgroup_put(setting, BOTH, text, wanted, err);
	/* the kernel has reclaimed what it could */
	return r == -EBUSY ? nc_cgroup_memory_busy(setting, "memory.usage_in_bytes", err) : r;
}

static int limit_cpu(const struct nc_cgroup_setting *setting, struct nacre_err *err)
{
	enum { QUOTA, PERIOD };
	uint64_t quota_us = 0, period_us = NC_CGROUP_PERIOD_US;
	char quota[24], period[24];
	int r = 0;

	if (setting->value)
		nc_cgroup_quota(setting->value, &quota_us, &period_us);
	(void)snprintf(quota, sizeof(quota), "%" PRIu64, quota_us);
	(void)snprintf(period, sizeof(period), "%" PRIu64, period_us);
	if (!setting->fresh)
		r = nc_cgroup_put(setting, QUOTA, "-1", "-1", err);
	/* what a group without a limit has need not be written, nor opened */
	if (r == 0 && (!setting->fresh || period_us != NC_CGROUP_PERIOD_US))
		r = nc_cgroup_put(setting, PERIOD, period, period, err);
	return r < 0 || !setting->value ? r : nc_cgroup_put(setting, QUOTA, quota, quota, err);
}

static void take_throttled(const char *text, struct nc_cgroup_usage *usage)
{
	uint64_t ns = 0;

	nc_cgroup_field(text, "throttled_time", &ns);
	usage->throttled_us = ns / 1000;
}

static void take_system(const char *text, struct nc_cgroup_usage *usage)
{
	usage->cpu_system_us = nc_cgroup_number(text) / 1000;
}

/* Only the whole is counted exactly: where the kernel was is known by the tick, if at all. */
static void take_whole(const char *text, struct nc_cgroup_usage *usage)
{
	uint64_t whole_us = nc_cgroup_number(text) / 1000;

	if (usage->cpu_system_us > whole_us)
		usage->cpu_system_us = whole_us;
	usage->cpu_user_us = whole_us - usage->cpu_system_us;
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
		.knob = {"memory.limit_in_bytes", "memory.memsw.limit_in_bytes"},
		.gauge =
			{
				{"memory.max_usage_in_bytes", .writable = true,
					.take = nc_cgroup_take_peak},
				{"memory.usage_in_bytes", .rare = true, .take = nc_cgroup_take_now},
				{"memory.oom_control", .take = nc_cgroup_take_oom},
			}},
	[NC_CGROUP_CPU] = {"cpu", "cpu.cfs_quota_us", NC_CGROUP_CAN_CPU, limit_cpu,
		.knob = {"cpu.cfs_quota_us", "cpu.cfs_period_us"}, .rare_from = 1,
		.gauge = {{"cpu.stat", .rare = true, .take = take_throttled}}},
	[NC_CGROUP_PIDS] = {"pids", "pids.max", NC_CGROUP_CAN_PIDS, nc_cgroup_limit_pids,
		.knob = {"pids.max"},
		.gauge =
			{
				{"pids.current", .rare = true, .take = nc_cgroup_take_pids_now},
				{"pids.peak", .take = nc_cgroup_take_pids_peak},
				{"pids.events", .take = nc_cgroup_take_pids_refused},
			}},
	[NC_CGROUP_IO] = {"blkio", "blkio.throttle.io_service_bytes_recursive", NC_CGROUP_CAN_IO,
		.gauge = {{"blkio.throttle.io_service_bytes_recursive", .rare = true,
			.take = take_io}}},
	[NC_CGROUP_FREEZER] = {"freezer", "freezer.state", NC_CGROUP_CAN_FREEZE},
	[NC_CGROUP_CPUACCT] = {"cpuacct", "cpuacct.usage", NC_CGROUP_CAN_CPU_TIME,
		.gauge =
			{
				{"cpuacct.usage_sys", .time = true, .take = take_system},
				{"cpuacct.usage", .time = true, .take = take_whole},
			}},
};
