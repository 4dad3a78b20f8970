/* Version 2: the files of each controller. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernel/cgroup_face.h"

/* No swap at all beside the limit, and one process out of memory ends the whole group. */
static int limit_memory(const struct nc_cgroup_place *place, uint64_t value, bool fresh,
	unsigned int can, struct nacre_err *err)
{
	char text[24] = "max", wanted[24] = "max";
	int r = 0;

	(void)fresh;
	if (value) {
		(void)snprintf(text, sizeof(text), "%" PRIu64, value);
		(void)snprintf(wanted, sizeof(wanted), "%" PRIu64, nc_cgroup_pages(value));
	}
	if (can & NC_CGROUP_CAN_SWAP) {
		const char *swap = value ? "0" : "max";

		r = nc_cgroup_put(place, "memory.swap.max", swap, swap, err);
		if (r == 0 && nc_cgroup_has_file(place, "memory.zswap.max")) /* Linux 5.19 */
			r = nc_cgroup_put(place, "memory.zswap.max", swap, swap, err);
	}
	if (r == 0)
		r = nc_cgroup_put(place, "memory.oom.group", "1", "1", err);
	return r < 0 ? r : nc_cgroup_put(place, "memory.max", text, wanted, err);
}

static int limit_cpu(const struct nc_cgroup_place *place, uint64_t value, bool fresh,
	unsigned int can, struct nacre_err *err)
{
	uint64_t quota_us, period_us;
	char text[48] = "max 100000";

	(void)can;
	(void)fresh;
	if (value) {
		nc_cgroup_quota(value, &quota_us, &period_us);
		(void)snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64, quota_us, period_us);
	}
	return nc_cgroup_put(place, "cpu.max", text, text, err);
}

static void take_time(const char *text, struct nc_cgroup_usage *usage)
{
	nc_cgroup_field(text, "user_usec", &usage->cpu_user_us);
	nc_cgroup_field(text, "system_usec", &usage->cpu_system_us);
	/* only with the controller; otherwise version 1 has it, and it must stay */
	nc_cgroup_field(text, "throttled_usec", &usage->throttled_us);
}

/* "8:0 rbytes=4096 wbytes=0 rios=1 ..." for each disk. */
static void take_io(const char *text, struct nc_cgroup_usage *usage)
{
	static const char read_key[] = " rbytes=", write_key[] = " wbytes=";

	for (const char *at = text; (at = strstr(at, read_key)); at++)
		usage->io_read_bytes += nc_cgroup_number(at + sizeof(read_key) - 1);
	for (const char *at = text; (at = strstr(at, write_key)); at++)
		usage->io_written_bytes += nc_cgroup_number(at + sizeof(write_key) - 1);
}

const struct nc_cgroup_face nc_cgroup_v2[NC_CGROUP_CONTROLLER_MAX] = {
	[NC_CGROUP_MEMORY] = {"memory", "memory.max", NC_CGROUP_CAN_MEMORY, limit_memory,
		{
			{"memory.peak", true, nc_cgroup_take_peak},
			{"memory.current", false, nc_cgroup_take_now},
			{"memory.events", false, nc_cgroup_take_oom},
		}},
	[NC_CGROUP_CPU] = {"cpu", "cpu.max", NC_CGROUP_CAN_CPU, limit_cpu, {{0}}},
	[NC_CGROUP_PIDS] = {"pids", "pids.max", NC_CGROUP_CAN_PIDS, nc_cgroup_limit_pids,
		{
			{"pids.current", false, nc_cgroup_take_pids_now},
			{"pids.peak", false, nc_cgroup_take_pids_peak},
			{"pids.events", false, nc_cgroup_take_pids_refused},
		}},
	[NC_CGROUP_IO] = {"io", "io.stat", NC_CGROUP_CAN_IO, NULL,
		{
			{"io.stat", false, take_io},
		}},
};

const struct nc_cgroup_gauge nc_cgroup_v2_time = {"cpu.stat", false, take_time};
