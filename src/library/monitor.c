/* The public resource monitor. */
#include "watch/monitor.h"

#include <errno.h>
#include <stdlib.h>

#include "base/limits.h"
#include "library/execute.h"

/* The public name; the inner one is never shown. */
struct nacre_monitor {
	struct nc_monitor *inner;
};

int nacre_monitor_start(pid_t pid, struct nacre_monitor **ret_monitor, struct nacre_err *err)
{
	struct nacre_monitor *monitor;
	int r;

	if (!ret_monitor)
		return nc_null_pointer(err);
	monitor = calloc(1, sizeof(*monitor));
	if (!monitor)
		return nc_err_errno(err, -ENOMEM, "Start a monitor");
	r = nc_monitor_start_processes(&pid, 1, NC_MONITOR_RING_MAX, &monitor->inner, err);
	if (r < 0) {
		free(monitor);
		return r;
	}
	*ret_monitor = monitor;
	return 0;
}

void nacre_monitor_free(struct nacre_monitor *monitor)
{
	if (!monitor)
		return;
	nc_monitor_free(monitor->inner);
	free(monitor);
}

int nacre_monitor_usage(
	struct nacre_monitor *monitor, struct nacre_usage *ret_usage, struct nacre_err *err)
{
	struct nc_monitor_sample sample = {0};
	struct nacre_usage usage;
	int r;

	if (!monitor || !ret_usage)
		return nc_null_pointer(err);
	r = nc_monitor_sample(monitor->inner, &sample);
	if (r < 0)
		return nc_err_errno(err, r, "Look at the processes");
	usage = (struct nacre_usage){.at_ns = sample.at_ns,
		.cpu_percent = sample.cpu_percent,
		.cpu_user_us = sample.cpu_user_us,
		.cpu_system_us = sample.cpu_system_us,
		.memory_bytes = sample.memory_bytes,
		.memory_peak_bytes = sample.memory_peak_bytes,
		.processes = sample.processes,
		.threads = sample.threads,
		.io_read_bytes = sample.io_read_bytes,
		.io_written_bytes = sample.io_written_bytes,
		.open_files = sample.open_files};
	return nc_copy_out(ret_usage, &usage, sizeof(usage), err);
}

int nacre_monitor_set_limits(
	struct nacre_monitor *monitor, const struct nacre_limits *limits, struct nacre_err *err)
{
	struct nacre_limits known = {0};
	struct nc_monitor_limits inner;
	int r;

	if (!monitor || !limits)
		return nc_null_pointer(err);
	r = nc_copy_in(&known, sizeof(known), limits, err);
	if (r < 0)
		return r;
	inner = (struct nc_monitor_limits){.value = {[NC_MONITOR_MEMORY] = known.memory_bytes,
						   [NC_MONITOR_CPU] = known.cpu_us,
						   [NC_MONITOR_WALL] = known.wall_ns,
						   [NC_MONITOR_PROCESSES] = known.threads,
						   [NC_MONITOR_OPEN_FILES] = known.open_files,
						   [NC_MONITOR_IO] = known.io_bytes}};
	nc_monitor_limit(monitor->inner, &inner);
	return 0;
}

static enum nacre_limit_status status_of(enum nc_monitor_status status)
{
	return status == NC_MONITOR_EXCEEDED ? NACRE_LIMIT_EXCEEDED
	       : status == NC_MONITOR_NEAR   ? NACRE_LIMIT_NEAR
					     : NACRE_LIMIT_OK;
}

int nacre_monitor_check_limits(
	struct nacre_monitor *monitor, struct nacre_limit_check *ret_check, struct nacre_err *err)
{
	struct nc_monitor_check inner = {0};
	struct nacre_limit_check check;

	if (!monitor || !ret_check)
		return nc_null_pointer(err);
	nc_monitor_check(monitor->inner, &inner);
	check = (struct nacre_limit_check){.worst = status_of(inner.worst),
		.memory = status_of(inner.status[NC_MONITOR_MEMORY]),
		.cpu = status_of(inner.status[NC_MONITOR_CPU]),
		.wall = status_of(inner.status[NC_MONITOR_WALL]),
		.threads = status_of(inner.status[NC_MONITOR_PROCESSES]),
		.open_files = status_of(inner.status[NC_MONITOR_OPEN_FILES]),
		.io = status_of(inner.status[NC_MONITOR_IO])};
	return nc_copy_out(ret_check, &check, sizeof(check), err);
}

int nacre_monitor_terminate_if_exceeded(struct nacre_monitor *monitor, struct nacre_err *err)
{
	return monitor ? nc_monitor_terminate_if_exceeded(monitor->inner, err)
		       : nc_null_pointer(err);
}

int nacre_monitor_metrics(
	struct nacre_monitor *monitor, struct nacre_metrics *ret_metrics, struct nacre_err *err)
{
	struct nc_monitor_metrics inner = {0};
	struct nacre_metrics metrics;
	int r;

	if (!monitor || !ret_metrics)
		return nc_null_pointer(err);
	r = nc_monitor_metrics(monitor->inner, &inner);
	if (r < 0)
		return nc_err_errno(err, r, "Add up the samples");
	metrics = (struct nacre_metrics){.samples = inner.samples,
		.duration_ns = inner.duration_ns,
		.cpu_percent_average = inner.cpu_percent_average,
		.cpu_percent_max = inner.cpu_percent_max,
		.cpu_percent_p95 = inner.cpu_percent_p95,
		.memory_average_bytes = inner.memory_average_bytes,
		.memory_max_bytes = inner.memory_max_bytes,
		.memory_p95_bytes = inner.memory_p95_bytes,
		.threads_max = inner.threads_max,
		.open_files_max = inner.open_files_max};
	return nc_copy_out(ret_metrics, &metrics, sizeof(metrics), err);
}
