/* What processes use, looked up one by one: where no control group counts it for us. */
#ifndef NC_SAMPLE_H
#define NC_SAMPLE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Processes that one look covers; a box without a group has fewer by its rlimit, or is cut here. */
#define NC_SAMPLE_PROCESSES_MAX 512U

struct nc_sample {
	size_t processes;
	uint64_t memory_bytes; /* of their own: what they share with others is nobody's here */
	uint64_t cpu_us;       /* of the living, and of those that they have waited for */
};

/*
 * Adds up what these processes and all below them use right now. A process that ends meanwhile is
 * passed over, one whose parent ends may be missed once. 0, or -errno if /proc cannot be read.
 */
int nc_sample_take(const pid_t *roots, size_t n_roots, struct nc_sample *ret_sample);

#endif
