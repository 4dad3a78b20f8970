/*
 * The resource monitor. A sample is the sum over the processes; where a control group counts
 * better, its counters replace the sums. CPU time and bytes of a tree never go back: what a process
 * used counts for its parent once that has waited for it, and would be lost if it never did.
 */
#include "watch/monitor.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "kernel/cgroup_view.h"
#include "watch/family.h"

/* How long what was killed may take to die. */
#define DEATH_MS 2000U
/* Percent of a limit that is near it. */
#define NEAR 90U

const char *const nc_monitor_limit_names[NC_MONITOR_LIMIT_MAX] = {
	[NC_MONITOR_MEMORY] = "memory",
	[NC_MONITOR_CPU] = "cpu",
	[NC_MONITOR_WALL] = "wall",
	[NC_MONITOR_PROCESSES] = "processes",
	[NC_MONITOR_OPEN_FILES] = "open_files",
	[NC_MONITOR_IO] = "io",
};

struct nc_monitor {
	struct nc_family family;
	struct nc_cgroup_view view; /* without trees: only the family */
	uint64_t started_ns;
	struct nc_monitor_limits limits;
	struct nc_monitor_sample last;
	size_t ring_size;
	size_t taken; /* samples so far; the newest is at (taken - 1) % ring_size */
	struct nc_monitor_sample ring[];
};

static void greatest(uint64_t *value, uint64_t other)
{
	if (*value < other)
		*value = other;
}

static void add_process(struct nc_monitor_sample *sample, const struct nc_process *process)
{
	uint64_t bytes_read, bytes_written;

	sample->cpu_user_us += process->user_us;
	sample->cpu_system_us += process->system_us;
	if (process->dead)
		return;
	sample->processes++;
	sample->threads += process->threads;
	sample->memory_bytes += nc_process_memory(process->pid);
	sample->open_files += nc_process_files(process->pid);
	nc_process_io(process->pid, &bytes_read, &bytes_written);
	sample->io_read_bytes += bytes_read;
	sample->io_written_bytes += bytes_written;
}

static int look_at_family(struct nc_monitor *monitor, struct nc_monitor_sample *sample)
{
	int r = nc_family_update(&monitor->family);

	for (size_t i = 0; r == 0 && i < monitor->family.count; i++)
		add_process(sample, &monitor->family.member[i].process);
	return r;
}

static int look_at_group(struct nc_monitor *monitor, struct nc_monitor_sample *sample)
{
	cleanup_free pid_t *pids = calloc(NC_MONITOR_PROCESSES_MAX, sizeof(*pids));
	struct nc_cgroup_usage usage;
	struct nc_process process;
	unsigned int can = 0;
	int r, n = pids ? nc_cgroup_view_pids(&monitor->view, pids, NC_MONITOR_PROCESSES_MAX)
			: -ENOMEM;

	r = n < 0 ? n : nc_cgroup_view_usage(&monitor->view, &usage, &can);
	if (r < 0) /* the directory is gone */
		return r == -ENODEV || r == -ENOENT ? -ESRCH : r;
	for (int i = 0; i < n; i++)
		if (pids[i] > 0 && nc_process_read(pids[i], &process) == 0)
			add_process(sample, &process);
	if (can & NC_CGROUP_CAN_MEMORY) {
		sample->memory_bytes = usage.memory_now_bytes;
		sample->memory_peak_bytes = usage.memory_peak_bytes;
	}
	if (can & NC_CGROUP_CAN_CPU_TIME) {
		sample->cpu_user_us = usage.cpu_user_us;
		sample->cpu_system_us = usage.cpu_system_us;
	}
	if (can & NC_CGROUP_CAN_PIDS)
		sample->threads = usage.pids_now;
	if (can & NC_CGROUP_CAN_IO) {
		sample->io_read_bytes = usage.io_read_bytes;
		sample->io_written_bytes = usage.io_written_bytes;
	}
	return n == 0 ? -ESRCH : 0;
}

static double cpu_between(
	const struct nc_monitor_sample *first, const struct nc_monitor_sample *second)
{
	uint64_t used_us = second->cpu_user_us + second->cpu_system_us - first->cpu_user_us -
			   first->cpu_system_us;
	uint64_t passed_us = (second->at_ns - first->at_ns) / 1000;

	return passed_us > 0 ? 100.0 * (double)used_us / (double)passed_us : 0;
}

/* What grows only, and what is counted from the sample before. */
static void compare_with_last(const struct nc_monitor *monitor, struct nc_monitor_sample *sample)
{
	const struct nc_monitor_sample *last = &monitor->last;

	greatest(&sample->cpu_user_us, last->cpu_user_us);
	greatest(&sample->cpu_system_us, last->cpu_system_us);
	greatest(&sample->io_read_bytes, last->io_read_bytes);
	greatest(&sample->io_written_bytes, last->io_written_bytes);
	greatest(&sample->memory_peak_bytes, last->memory_peak_bytes);
	greatest(&sample->memory_peak_bytes, sample->memory_bytes);
	if (monitor->taken == 0)
		return; /* there is nothing to compare with */
	sample->cpu_percent = cpu_between(last, sample);
}

int nc_monitor_sample(struct nc_monitor *monitor, struct nc_monitor_sample *ret_sample)
{
	struct nc_monitor_sample sample = {0};
	int r = monitor->view.n_trees > 0 ? look_at_group(monitor, &sample)
					  : look_at_family(monitor, &sample);

	if (r < 0)
		return r;
	sample.at_ns = nc_clock_ns() - monitor->started_ns;
	compare_with_last(monitor, &sample);
	monitor->last = monitor->ring[monitor->taken++ % monitor->ring_size] = sample;
	if (ret_sample)
		*ret_sample = sample;
	return 0;
}

static int start(size_t ring_size, struct nc_monitor **ret_monitor, struct nacre_err *err)
{
	struct nc_monitor *monitor;

	if (ring_size == 0 || ring_size > NC_MONITOR_RING_MAX)
		return nc_err_set(err, -EINVAL, "A ring of %zu samples: expected 1 to %u",
			ring_size, NC_MONITOR_RING_MAX);
	monitor = calloc(1, sizeof(*monitor) + ring_size * sizeof(monitor->ring[0]));
	if (!monitor)
		return nc_err_set(err, -ENOMEM, "Out of memory");
	monitor->ring_size = ring_size;
	monitor->started_ns = nc_clock_ns();
	*ret_monitor = monitor;
	return 0;
}

int nc_monitor_start_processes(const pid_t *pids, size_t n_pids, size_t ring_size,
	struct nc_monitor **ret_monitor, struct nacre_err *err)
{
	cleanup_monitor struct nc_monitor *monitor = NULL;
	int r = start(ring_size, &monitor, err);

	if (r < 0)
		return r;
	assert(monitor);
	if (n_pids == 0 || n_pids > NC_MONITOR_PROCESSES_MAX)
		return nc_err_set(err, -EINVAL, "Monitor %zu processes", n_pids);
	for (size_t i = 0; i < n_pids; i++) {
		r = nc_family_add(&monitor->family, pids[i]);
		if (r < 0)
			return nc_err_errno(err, r, "Monitor process %d", (int)pids[i]);
	}
	r = nc_monitor_sample(monitor, NULL);
	if (r < 0)
		return nc_err_errno(err, r, "Monitor process %d", (int)pids[0]);
	*ret_monitor = take_ptr(monitor);
	return 0;
}

int nc_monitor_start_group(const char *const *dirs, size_t n_dirs, size_t ring_size,
	struct nc_monitor **ret_monitor, struct nacre_err *err)
{
	cleanup_monitor struct nc_monitor *monitor = NULL;
	int r = start(ring_size, &monitor, err);

	if (r < 0)
		return r;
	assert(monitor);
	r = nc_cgroup_view_open(&monitor->view, dirs, n_dirs);
	if (r == 0)
		r = nc_monitor_sample(monitor, NULL);
	if (r < 0 && r != -ESRCH) /* one that is empty may fill */
		return nc_err_errno(err, r, "Monitor group %s", n_dirs > 0 ? dirs[0] : "");
	*ret_monitor = take_ptr(monitor);
	return 0;
}

void nc_monitor_free(struct nc_monitor *monitor)
{
	if (!monitor)
		return;
	nc_family_done(&monitor->family);
	nc_cgroup_view_close(&monitor->view);
	free(monitor);
}

static size_t kept(const struct nc_monitor *monitor)
{
	return monitor->taken < monitor->ring_size ? monitor->taken : monitor->ring_size;
}

size_t nc_monitor_history(
	const struct nc_monitor *monitor, struct nc_monitor_sample *ret_samples, size_t max)
{
	size_t count = kept(monitor) < max ? kept(monitor) : max;

	for (size_t i = 0; i < count; i++)
		ret_samples[i] = monitor->ring[(monitor->taken - count + i) % monitor->ring_size];
	return count;
}

void nc_monitor_limit(struct nc_monitor *monitor, const struct nc_monitor_limits *limits)
{
	monitor->limits = *limits;
}

static enum nc_monitor_status judge(uint64_t value, uint64_t limit)
{
	if (limit == 0)
		return NC_MONITOR_OK;
	if (value > limit)
		return NC_MONITOR_EXCEEDED;
	/* without a product that could overflow */
	return value >= limit - limit / 100 * (100 - NEAR) - limit % 100 * (100 - NEAR) / 100
		       ? NC_MONITOR_NEAR
		       : NC_MONITOR_OK;
}

void nc_monitor_check(const struct nc_monitor *monitor, struct nc_monitor_check *ret_check)
{
	const struct nc_monitor_sample *last = &monitor->last;
	const uint64_t value[NC_MONITOR_LIMIT_MAX] = {
		[NC_MONITOR_MEMORY] = last->memory_bytes,
		[NC_MONITOR_CPU] = last->cpu_user_us + last->cpu_system_us,
		[NC_MONITOR_WALL] = last->at_ns,
		[NC_MONITOR_PROCESSES] = last->threads,
		[NC_MONITOR_OPEN_FILES] = last->open_files,
		[NC_MONITOR_IO] = last->io_read_bytes + last->io_written_bytes,
	};

	*ret_check = (struct nc_monitor_check){0};
	for (size_t i = 0; i < NC_MONITOR_LIMIT_MAX; i++) {
		ret_check->status[i] = judge(value[i], monitor->limits.value[i]);
		if (ret_check->worst < ret_check->status[i])
			ret_check->worst = ret_check->status[i];
	}
}

/* Waits until the group has nobody left; zombies are nobody. */
static int wait_for_group(struct nc_monitor *monitor, uint64_t deadline_ns)
{
	struct nc_monitor_sample sample;
	int r;

	do {
		sample = (struct nc_monitor_sample){0};
		r = look_at_group(monitor, &sample);
		if (r == 0 && sample.processes == 0)
			return 0;
		if (r == 0 && nc_clock_ns() >= deadline_ns)
			r = -ETIMEDOUT;
	} while (r == 0);
	return r == -ESRCH ? 0 : r;
}

int nc_monitor_terminate(struct nc_monitor *monitor, struct nacre_err *err)
{
	uint64_t deadline_ns = nc_clock_ns() + DEATH_MS * NC_NS_PER_MS;
	int r;

	if (monitor->view.n_trees == 0) {
		r = nc_family_kill(&monitor->family, deadline_ns);
	} else {
		r = nc_cgroup_view_kill(&monitor->view);
		if (r == 0)
			r = wait_for_group(monitor, deadline_ns);
	}
	if (r == -ENODEV || r == -ENOENT)
		r = 0; /* the group is gone */
	return r < 0 ? nc_err_errno(err, r, "Terminate what is monitored") : 0;
}

int nc_monitor_terminate_if_exceeded(struct nc_monitor *monitor, struct nacre_err *err)
{
	struct nc_monitor_check check;
	int r = nc_monitor_sample(monitor, NULL);

	if (r == -ESRCH)
		return 0;
	if (r < 0)
		return nc_err_errno(err, r, "Sample what is monitored");
	nc_monitor_check(monitor, &check);
	if (check.worst != NC_MONITOR_EXCEEDED)
		return 0;
	r = nc_monitor_terminate(monitor, err);
	return r < 0 ? r : 1;
}

static int by_cpu(const void *a, const void *b)
{
	double first = ((const struct nc_monitor_sample *)a)->cpu_percent;
	double second = ((const struct nc_monitor_sample *)b)->cpu_percent;

	return first < second ? -1 : first > second;
}

static int by_memory(const void *a, const void *b)
{
	uint64_t first = ((const struct nc_monitor_sample *)a)->memory_bytes;
	uint64_t second = ((const struct nc_monitor_sample *)b)->memory_bytes;

	return first < second ? -1 : first > second;
}

/* The place of the least value that 95 of 100 do not exceed (nearest rank). */
static size_t rank_95(size_t count)
{
	return (count * 95 + 99) / 100 - 1;
}

int nc_monitor_metrics(const struct nc_monitor *monitor, struct nc_monitor_metrics *ret_metrics)
{
	struct nc_monitor_metrics metrics = {.samples = kept(monitor)};
	cleanup_free struct nc_monitor_sample *samples =
		calloc(metrics.samples + 1, sizeof(*samples));
	size_t n = metrics.samples;
	double memory = 0;

	if (!samples)
		return -ENOMEM;
	if (n == 0) {
		*ret_metrics = metrics;
		return 0;
	}
	(void)nc_monitor_history(monitor, samples, n);
	metrics.duration_ns = monitor->last.at_ns;
	for (size_t i = 0; i < n; i++) {
		memory += (double)samples[i].memory_bytes;
		greatest(&metrics.threads_max, samples[i].threads);
		greatest(&metrics.open_files_max, samples[i].open_files);
	}
	metrics.cpu_percent_average = cpu_between(&samples[0], &samples[n - 1]);
	metrics.memory_average_bytes = (uint64_t)(memory / (double)n);
	qsort(samples, n, sizeof(*samples), by_cpu);
	metrics.cpu_percent_max = samples[n - 1].cpu_percent;
	metrics.cpu_percent_p95 = samples[rank_95(n)].cpu_percent;
	qsort(samples, n, sizeof(*samples), by_memory);
	metrics.memory_max_bytes = samples[n - 1].memory_bytes;
	metrics.memory_p95_bytes = samples[rank_95(n)].memory_bytes;
	*ret_metrics = metrics;
	return 0;
}

uint64_t nc_monitor_memory_limit(const struct nc_monitor *monitor)
{
	return nc_cgroup_view_memory_limit(&monitor->view);
}
