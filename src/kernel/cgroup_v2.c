/* Version 2: the files of each controller. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernel/cgroup_face.h"

/*
 * The kernel kills to hold a limit below what is charged. So room is made before, with memory.high,
 * which reclaims, also what the CPUs hold in reserve, but never kills.
 */
static int make_room(
	const struct nc_cgroup_setting *setting, const char *limit, struct nacre_err *err)
{
	const struct nc_cgroup_place *place = &setting->place;
	char now[32];
	int r = nc_cgroup_read_file(place, "memory.current", now, sizeof(now));

	if (r == 0 && nc_cgroup_number(now) > setting->value) {
		/* what came of it is read afterwards */
		(void)nc_cgroup_write_file(place, "memory.high", limit);
		r = nc_cgroup_read_file(place, "memory.current", now, sizeof(now));
		if (r == 0)
			r = nc_cgroup_write_file(place, "memory.high", "max");
	}
	if (r < 0)
		return nc_err_errno(err, r, "Make room in group '%s'", place->name);
	return nc_cgroup_number(now) > setting->value
		       ? nc_cgroup_memory_busy(setting, "memory.current", err)
		       : 0;
}

/* No swap at all beside the limit, and one process out of memory ends the whole group. */
static int limit_memory(const struct nc_cgroup_setting *setting, struct nacre_err *err)
{
	enum { MAX, SWAP, OOM_GROUP, ZSWAP }; /* the order of its knobs */
	const char *swap = setting->value ? "0" : "max";
	char text[24] = "max", wanted[24] = "max";
	int r = 0;

	if (setting->value) {
		(void)snprintf(text, sizeof(text), "%" PRIu64, setting->value);
		(void)snprintf(wanted, sizeof(wanted), "%" PRIu64, nc_cgroup_pages(setting->value));
	}
	if (r == 0 && setting->can & NC_CGROUP_CAN_SWAP)
		r = nc_cgroup_put(setting, SWAP, swap, swap, err);
	/* Linux 5.19 */
	if (r == 0 && setting->can & NC_CGROUP_CAN_SWAP &&
		(setting->fd[ZSWAP] >= 0 ||
			nc_cgroup_has_file(&setting->place, setting->file[ZSWAP])))
		r = nc_cgroup_put(setting, ZSWAP, swap, swap, err);
	if (r == 0)
		r = nc_cgroup_put(setting, OOM_GROUP, "1", "1", err);
	/* after swap, or room would be made there */
	if (r == 0 && setting->in_use && setting->value)
		r = make_room(setting, text, err);
	return r < 0 ? r : nc_cgroup_put(setting, MAX, text, wanted, err);
}

static int limit_cpu(const struct nc_cgroup_setting *setting, struct nacre_err *err)
{
	uint64_t quota_us, period_us;
	char text[48] = "max 100000";

	if (setting->value) {
		nc_cgroup_quota(setting->value, &quota_us, &period_us);
		(void)snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64, quota_us, period_us);
	}
	return nc_cgroup_put(setting, 0, text, text, err);
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
		.knob = {"memory.max", "memory.swap.max", "memory.oom.group", "memory.zswap.max"},
		.gauge =
			{
				{"memory.peak", .writable = true, .take = nc_cgroup_take_peak},
				{"memory.current", .rare = true, .take = nc_cgroup_take_now},
				{"memory.events", .take = nc_cgroup_take_oom},
			}},
	[NC_CGROUP_CPU] = {"cpu", "cpu.max", NC_CGROUP_CAN_CPU, limit_cpu, .knob = {"cpu.max"}},
	[NC_CGROUP_PIDS] = {"pids", "pids.max", NC_CGROUP_CAN_PIDS, nc_cgroup_limit_pids,
		.knob = {"pids.max"},
		.gauge =
			{
				{"pids.current", .rare = true, .take = nc_cgroup_take_pids_now},
				{"pids.peak", .take = nc_cgroup_take_pids_peak},
				{"pids.events", .take = nc_cgroup_take_pids_refused},
			}},
	[NC_CGROUP_IO] = {"io", "io.stat", NC_CGROUP_CAN_IO,
		.gauge = {{"io.stat", .rare = true, .take = take_io}}},
};

const struct nc_cgroup_gauge nc_cgroup_v2_time = {"cpu.stat", .time = true, .take = take_time};
