/* The properties that a box is held by, and the grades of each: what a strength vector is made of.
 */
#ifndef NC_GRADE_H
#define NC_GRADE_H

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

#endif
