/*
 * What the unprivileged side and the spawner say to each other. The types and the encoding live in
 * one place, so that both sides cannot drift apart; each side still checks everything it reads.
 */
#ifndef NC_BOXWIRE_H
#define NC_BOXWIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/wire.h"

#define NC_BOXWIRE_VERSION 1U

enum nc_box_message {
	/* to the spawner */
	NC_BOX_HELLO = 1, /* u32 version; once, first */
	NC_BOX_RUN,	  /* struct nc_box_order; fds: stdin, stdout, stderr of the payload */
	NC_BOX_KILL,	  /* u64 id, u8 enum nc_box_cause */
	/* from the spawner */
	NC_BOX_WELCOME = 101, /* u32 version, struct nc_box_host */
	NC_BOX_STARTED,	      /* u64 id, u64 nanoseconds that birth took */
	NC_BOX_ENDED,	      /* struct nc_box_end */
	NC_BOX_FAILED,	      /* u64 id, u32 errno, text: which step */
};

/* Maxima of an order; the whole of it must fit into one message. */
#define NC_BOX_ARGS_MAX 4096U
#define NC_BOX_ARG_SIZE_MAX (48U * 1024)
#define NC_BOX_DIR_MAX 255U

/* Limits of a box; the spawner has maxima of its own for each. */
struct nc_box_limits {
	uint64_t memory_bytes;
	uint64_t cpu_milli;
	uint64_t cpu_time_ms; /* 0: none */
	uint64_t wall_ms;
	uint64_t pids;
	uint64_t disk_bytes;
	uint64_t inodes;
	uint64_t open_files;
};

/* Words end to end, each with its NUL. */
struct nc_box_words {
	const char *data;
	size_t size;
	size_t count;
};

struct nc_box_order {
	uint64_t id;
	struct nc_box_limits limits;
	char dir[NC_BOX_DIR_MAX + 1]; /* working directory, absolute */
	struct nc_box_words argv;
	struct nc_box_words env; /* "NAME=value" */
};

/* Why it ended. */
enum nc_box_cause {
	NC_CAUSE_EXIT,	 /* by itself: see code and signal */
	NC_CAUSE_WALL,	 /* wall time was up */
	NC_CAUSE_CPU,	 /* CPU time was up */
	NC_CAUSE_MEMORY, /* the kernel killed it for memory */
	NC_CAUSE_OUTPUT, /* it printed too much */
	NC_CAUSE_CANCEL, /* the caller wanted it */
	NC_CAUSE_MAX,
};

/* What this spawner's boxes are held by, whatever is ordered. */
struct nc_box_host {
	bool ranges;	  /* each box has user ids of its own */
	uint32_t cgroups; /* bits of enum nc_cgroup_can */
};

/* System calls that were refused in a box: as many kinds as are kept, each with its count. */
#define NC_DENIED_MAX 32U

struct nc_box_denied {
	uint32_t call; /* its number */
	uint32_t count;
};

/* What a box used. */
struct nc_box_usage {
	uint64_t wall_ns;
	uint64_t cpu_user_us;
	uint64_t cpu_system_us;
	uint64_t memory_peak_bytes;
	uint64_t pids_peak;
	uint64_t oom_kills;
	uint64_t pids_refused;
	uint64_t disk_bytes;
	uint64_t context_switches;
};

struct nc_box_end {
	uint64_t id;
	enum nc_box_cause cause;
	uint32_t code;	   /* exit status, where signal is 0 */
	uint32_t signal;   /* that ended it, or 0 */
	uint32_t landlock; /* the ABI that it was held by; 0: none */
	bool reported;	   /* refused calls were reported */
	struct nc_box_usage usage;
	uint32_t n_denied;
	struct nc_box_denied denied[NC_DENIED_MAX];
};

void nc_boxwire_put_order(struct nc_wire_out *out, const struct nc_box_order *order);
/* The words borrow from the message. Errors are in->error, as with every getter. */
void nc_boxwire_get_order(struct nc_wire_in *in, struct nc_box_order *ret_order);

void nc_boxwire_put_host(struct nc_wire_out *out, const struct nc_box_host *host);
void nc_boxwire_get_host(struct nc_wire_in *in, struct nc_box_host *ret_host);

void nc_boxwire_put_end(struct nc_wire_out *out, const struct nc_box_end *end);
void nc_boxwire_get_end(struct nc_wire_in *in, struct nc_box_end *ret_end);

#endif
