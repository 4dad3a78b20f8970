/* What the verbs that execute for others begin with: stores, policies, recorder, spawner. */
#ifndef NC_START_H
#define NC_START_H

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/heirs.h"
#include "engine/engine.h"
#include "engine/environment.h"
#include "policy/book.h"
#include "tier/holder.h"
#include "watch/record.h"

/* The options that both have, as they were given; NULL: not at all. */
struct nc_start_args {
	const char *running, *queued, *memory, *cpus;
	bool no_cache;
};

#define NC_OPTION_MAX_QUEUED(args)                                                                 \
	{                                                                                          \
		.name = "max-queued", .value = "N",                                                \
		.help = "Executions that wait; more are refused", .text = &(args).queued           \
	}
#define NC_OPTION_MAX_RUNNING(args)                                                                \
	{                                                                                          \
		.name = "max-running", .value = "N", .help = "Executions that run at once",        \
		.text = &(args).running                                                            \
	}
#define NC_OPTION_ALL_MEMORY(args)                                                                 \
	{                                                                                          \
		.name = "memory", .value = "SIZE",                                                 \
		.help = "Memory that they may be allowed together", .text = &(args).memory         \
	}
#define NC_OPTION_ALL_CPUS(args)                                                                   \
	{                                                                                          \
		.name = "cpus", .value = "N",                                                      \
		.help = "CPU cores that they may be allowed together", .text = &(args).cpus        \
	}
#define NC_OPTION_NO_CACHE(args)                                                                   \
	{                                                                                          \
		.name = "no-cache", .help = "Keep no compiled programs", .flag = &(args).no_cache  \
	}

struct nc_start {
	uint64_t running, queued, memory_bytes, cpu_milli; /* the bounds */
	bool ranges;
	struct nc_holder holder;
	int cache_fd;  /* or -EBADF */
	int record_fd; /* of the recorder, until nc_start_split() */
	struct nc_record record;
	int state_fd;  /* of what it records; or -EBADF */
	int egress_fd; /* of nacre-egress, until nc_start_network() */
	/* set before nc_start_open(): both are somebody else's to start, and to start again */
	bool kept;
	struct nc_network *network; /* or NULL */
	struct nc_environments environments;
	struct nc_book *policies;
	struct nc_holder_setup setup;
	void (*say)(const char *text);
};

/* Empty; may be closed. */
void nc_start_init(struct nc_start *start, void (*say)(const char *text));
void nc_start_done(struct nc_start *start);

#define cleanup_start nc_cleanup(nc_start_done)

/* Reads the bounds, opens everything with the caller's rights, and starts the recorder. */
int nc_start_open(struct nc_start *start, const struct nc_start_args *args,
	const struct nc_config *config, struct nacre_err *err);

/* What the next worker will need of it, beside its arguments and the configuration. */
void nc_start_bequeath(const struct nc_start *start, struct nc_heirs *heirs);

/* In a worker that was started again, instead of nc_start_open() and nc_start_split(). */
int nc_start_resume(struct nc_start *start, const struct nc_start_args *args,
	const struct nc_config *config, struct nc_heirs *heirs, struct nacre_err *err);

/* Splits off the spawner: see nc_holder_start(). What returns has no privilege any more. */
int nc_start_split(struct nc_start *start, struct nacre_err *err);

/* Greets the recorder of record_fd, if there is one; nc_start_split() does so too. */
void nc_start_recording(struct nc_start *start);

/* Takes up nacre-egress on the loop; without it boxes have no network. */
void nc_start_network(struct nc_start *start, uv_loop_t *loop);
/* After the engine, before the loop. */
void nc_start_end_network(struct nc_start *start);

/* What an engine on it is set up with; loop is the caller's to fill in. */
struct nc_engine_setup nc_start_engine(struct nc_start *start, const struct nc_config *config);

#endif
