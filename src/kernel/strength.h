/*
 * The strength vector: what a box on this host can be held by, as a fixed set of named properties.
 * It goes with every result, so that nothing is dropped silently.
 */
#ifndef NC_STRENGTH_H
#define NC_STRENGTH_H

#include <stdbool.h>

#include "kernel/probe.h"

enum nc_grade {
	NC_GRADE_NONE,
	NC_GRADE_REDUCED,
	NC_GRADE_FULL,
	NC_GRADE_MAX,
};

enum nc_property {
	NC_STRENGTH_FILESYSTEM, /* a root of its own, read-only but for what is granted */
	NC_STRENGTH_IDENTITY,	/* user ids that nobody else has */
	NC_STRENGTH_PROCESSES,	/* sees and signals no process outside */
	NC_STRENGTH_NETWORK,	/* reaches no network */
	NC_STRENGTH_IPC,	/* shares no System V or POSIX IPC */
	NC_STRENGTH_SYSCALLS,	/* makes only allowed system calls, and refusals are reported */
	NC_STRENGTH_ACCESS,	/* Landlock as a second wall around files, sockets and signals */
	NC_STRENGTH_MEMORY,	/* memory limit */
	NC_STRENGTH_CPU,	/* CPU limit */
	NC_STRENGTH_PIDS,	/* limit of processes and threads */
	NC_STRENGTH_DISK,	/* limit of bytes and files */
	NC_STRENGTH_IO,		/* limit of disk bandwidth */
	NC_STRENGTH_KILL,	/* nothing survives its end */
	NC_STRENGTH_HYPERVISOR, /* a kernel of its own */
	NC_STRENGTH_MAX,
};

extern const char *const nc_grade_names[NC_GRADE_MAX];
extern const char *const nc_property_names[NC_STRENGTH_MAX];

struct nc_strength {
	struct {
		enum nc_grade grade;
		char reason[200];
		const char *fix; /* a command or advice; NULL when there is nothing to fix */
	} property[NC_STRENGTH_MAX];
};

/* Judges the probes. is_root says whether they were made as root, of the host and not of a
 * namespace. */
void nc_strength_judge(
	const struct nc_probes *probes, bool is_root, struct nc_strength *ret_strength);

/* Where no box is made at all. fix is borrowed. */
void nc_strength_nothing(const char *why, const char *fix, struct nc_strength *ret_strength);

/* What a box was really held by. */
struct nc_box_host;
struct nc_box_end;
void nc_strength_of_box(const struct nc_box_host *host, const struct nc_box_end *end,
	enum nc_grade ret_grades[static NC_STRENGTH_MAX]);

/* Below this nothing runs: what an ordinary user on a stock distribution can get. */
extern const enum nc_grade nc_strength_floor[NC_STRENGTH_MAX];

#endif
