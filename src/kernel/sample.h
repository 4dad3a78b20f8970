/* What processes use, looked up one by one: where no control group counts it for us. */
#ifndef NC_SAMPLE_H
#define NC_SAMPLE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/cgroup_box.h"

/* Processes that one look covers; a box without a group has fewer by its rlimit, or is cut here. */
#define NC_SAMPLE_PROCESSES_MAX 512U

struct nc_sample {
	size_t processes;
	/*
	 * Of their own: what they share with others is nobody's here, but for what forks share,
	 * which counts for each; if that is more than is allowed, as nc_process_memory has it.
	 */
	uint64_t memory_bytes;
	uint64_t cpu_us; /* of the living, and of those that they have waited for */
};

/*
 * Adds up what these processes and all below them use right now. A process that ends meanwhile is
 * passed over, one whose parent ends may be missed once. 0, or -errno if /proc cannot be read.
 */
int nc_sample_take(
	const pid_t *roots, size_t n_roots, uint64_t allowed_bytes, struct nc_sample *ret_sample);

/*
 * How many processes and threads have been numbered behind first, in the innermost pid namespace,
 * up to the newest of the group's, and for how long that one has lived; to the tick. {0, 0} if none
 * of them is newer, or first is gone.
 */
struct nc_made {
	uint64_t count, age_ns;
};

struct nc_made nc_sample_made(pid_t first, const struct nc_cgroup *group);

#endif
