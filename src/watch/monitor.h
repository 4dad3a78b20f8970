/*
 * The resource monitor (seed 002): what a tree of processes or a control group uses, sampled when
 * it is asked, kept in a ring, held against limits.
 *
 *	nc_monitor_start_processes(&pid, 1, 600, &monitor, &err);
 *	nc_monitor_limit(monitor, &limits);
 *	for (;;) {
 *		r = nc_monitor_sample(monitor, &sample);	-ESRCH: all of it has ended
 *		if (nc_monitor_terminate_if_exceeded(monitor, &err) == 1)
 *			...
 *	}
 *
 * For one thread at a time.
 */
#ifndef NC_MONITOR_H
#define NC_MONITOR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"

struct nc_monitor;

/* What is used at one moment. What is not counted here, or not ours to know, is 0. */
struct nc_monitor_sample {
	uint64_t at_ns;	    /* since the monitor was started */
	double cpu_percent; /* since the sample before; 100 is one CPU */
	uint64_t cpu_user_us;
	uint64_t cpu_system_us;
	uint64_t memory_bytes;
	uint64_t memory_peak_bytes; /* of a tree: the greatest that was sampled */
	uint64_t processes;
	uint64_t threads;
	uint64_t io_read_bytes;
	uint64_t io_written_bytes;
	uint64_t open_files;
};

enum nc_monitor_limit {
	NC_MONITOR_MEMORY,     /* bytes */
	NC_MONITOR_CPU,	       /* microseconds of CPU time */
	NC_MONITOR_WALL,       /* nanoseconds since the start of the monitor */
	NC_MONITOR_PROCESSES,  /* threads count */
	NC_MONITOR_OPEN_FILES, /* of all processes together */
	NC_MONITOR_IO,	       /* bytes read and written */
	NC_MONITOR_LIMIT_MAX,
};

extern const char *const nc_monitor_limit_names[NC_MONITOR_LIMIT_MAX];

struct nc_monitor_limits {
	uint64_t value[NC_MONITOR_LIMIT_MAX]; /* 0: no limit */
};

enum nc_monitor_status {
	NC_MONITOR_OK,
	NC_MONITOR_NEAR, /* at 90 % */
	NC_MONITOR_EXCEEDED,
	NC_MONITOR_STATUS_MAX,
};

struct nc_monitor_check {
	enum nc_monitor_status worst;
	enum nc_monitor_status status[NC_MONITOR_LIMIT_MAX];
};

/* Over the samples in the ring. The first sample of all has no CPU percentage: there it is 0. */
struct nc_monitor_metrics {
	size_t samples;
	uint64_t duration_ns; /* from the start of the monitor to the last sample */
	double cpu_percent_average, cpu_percent_max, cpu_percent_p95;
	uint64_t memory_average_bytes, memory_max_bytes, memory_p95_bytes;
	uint64_t threads_max;
	uint64_t open_files_max;
};

/*
 * Starts on processes and all below them, taking a first sample. A process that was once seen stays
 * one of them when its parent ends. Keeps the last ring_size samples, at most NC_MONITOR_RING_MAX.
 * -EINVAL: a pid of 1 or less, or our own, or no pid, or a bad size; -ESRCH: there is none.
 */
int nc_monitor_start_processes(const pid_t *pids, size_t n_pids, size_t ring_size,
	struct nc_monitor **ret_monitor, struct nacre_err *err);

/* Starts on a control group: its directory in version 2, or in each hierarchy of version 1. */
int nc_monitor_start_group(const char *const *dirs, size_t n_dirs, size_t ring_size,
	struct nc_monitor **ret_monitor, struct nacre_err *err);

void nc_monitor_free(struct nc_monitor *monitor);

static inline void nc_monitor_freep(struct nc_monitor **place)
{
	nc_monitor_free(*place);
}

#define cleanup_monitor nc_cleanup(nc_monitor_freep)

/* Takes a sample into the ring. ret_sample may be NULL. -ESRCH: all has ended; or another -errno.
 */
int nc_monitor_sample(struct nc_monitor *monitor, struct nc_monitor_sample *ret_sample);

/* The samples in the ring, the oldest first: copies at most max of the newest. Returns how many. */
size_t nc_monitor_history(
	const struct nc_monitor *monitor, struct nc_monitor_sample *ret_samples, size_t max);

void nc_monitor_limit(struct nc_monitor *monitor, const struct nc_monitor_limits *limits);

/* Holds the last sample against the limits; a value that is equal does not exceed. */
void nc_monitor_check(const struct nc_monitor *monitor, struct nc_monitor_check *ret_check);

/*
 * Samples, and if a limit is exceeded kills it all: a group as a whole; a tree stopped first, so
 * that nothing forks away, until nothing new is found, then killed. 1: it was exceeded and all is
 * dead; 0: nothing is exceeded, or all has ended by itself. -ETIMEDOUT: something still lives after
 * 2 s; -EDEADLK: we are one of them; nothing is killed then.
 */
int nc_monitor_terminate_if_exceeded(struct nc_monitor *monitor, struct nacre_err *err);

/* The same without asking for limits. 0 or -errno. */
int nc_monitor_terminate(struct nc_monitor *monitor, struct nacre_err *err);

/* 0 or -ENOMEM. */
int nc_monitor_metrics(const struct nc_monitor *monitor, struct nc_monitor_metrics *ret_metrics);

/* The group's memory limit; 0: none, or not a group. */
uint64_t nc_monitor_memory_limit(const struct nc_monitor *monitor);

#endif
