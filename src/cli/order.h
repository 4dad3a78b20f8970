/* What a command line says about a box: from options to an order. */
#ifndef NC_ORDER_H
#define NC_ORDER_H

#include "cli/cli.h"
#include "tier/run.h"
#include "tier/settle.h"

/* The options that describe a box, as they were given; NULL: not at all. */
struct nc_order_args {
	const char *cpus, *cpu_time, *disk, *files, *image, *inodes, *memory, *output, *pids, *tier;
	const char *timeout, *user;
	struct nc_words allow, bind, env, floor;
	bool tty, writable_root;
};

/* Rows for the tables of verbs that know these options. */
#define NC_OPTION_CPU_TIME(args)                                                                   \
	{                                                                                          \
		.name = "cpu-time", .value = "TIME",                                               \
		.help = "CPU time, in seconds or with a unit", .text = &(args).cpu_time            \
	}
#define NC_OPTION_CPUS(args)                                                                       \
	{                                                                                          \
		.name = "cpus", .value = "N", .help = "CPU cores, such as 0.5",                    \
		.text = &(args).cpus                                                               \
	}
#define NC_OPTION_DISK(args)                                                                       \
	{                                                                                          \
		.name = "disk", .value = "SIZE", .help = "Disk, in MB or with a unit",             \
		.text = &(args).disk                                                               \
	}
#define NC_OPTION_ENV(args)                                                                        \
	{                                                                                          \
		.name = "env", .value = "K=V", .help = "Set a variable; repeatable",               \
		.words = &(args).env                                                               \
	}
#define NC_OPTION_FILES(args)                                                                      \
	{                                                                                          \
		.name = "files", .value = "N", .help = "Open files of each process",               \
		.text = &(args).files                                                              \
	}
#define NC_OPTION_INODES(args)                                                                     \
	{                                                                                          \
		.name = "inodes", .value = "N", .help = "Files and directories on its disk",       \
		.text = &(args).inodes                                                             \
	}
#define NC_OPTION_MEMORY(args)                                                                     \
	{                                                                                          \
		.name = "memory", .value = "SIZE", .help = "Memory, in MB or with a unit",         \
		.text = &(args).memory                                                             \
	}
#define NC_OPTION_OUTPUT(args)                                                                     \
	{                                                                                          \
		.name = "output", .value = "SIZE", .help = "Most output, in bytes or with a unit", \
		.text = &(args).output                                                             \
	}
#define NC_OPTION_PIDS(args)                                                                       \
	{                                                                                          \
		.name = "pids", .value = "N", .help = "Processes and threads at once",             \
		.text = &(args).pids                                                               \
	}
#define NC_OPTION_TIER(args)                                                                       \
	{                                                                                          \
		.name = "tier", .value = "TIER", .help = "container or process",                   \
		.text = &(args).tier                                                               \
	}
#define NC_OPTION_TIMEOUT(args)                                                                    \
	{                                                                                          \
		.name = "timeout", .value = "TIME",                                                \
		.help = "Wall time, in seconds or with a unit", .text = &(args).timeout            \
	}

/* What was read from them, with what was opened for it. */
struct nc_order {
	struct nc_run run;
	int bind_fd[NC_BOX_BINDS_MAX];
	size_t n_bind_fds;
	bool in_rw_bind; /* something that the disk limit does not cover */
	struct nc_wish wish;
	struct nc_word_list argv, env;
};

/*
 * Reads the options and opens what they name, with the caller's rights. -EINVAL and others with a
 * message that names the option. Free with nc_order_done in any case.
 */
int nc_order_read(const struct nc_order_args *args, const struct nc_config *config, char **words,
	int n_words, struct nc_order *order, struct nacre_err *err);
void nc_order_done(struct nc_order *order);

/* Reads the limits alone, those that are given; the others stay as they are. */
int nc_order_limits(const struct nc_order_args *args, struct nc_box_limits *limits,
	uint64_t *output_max, struct nacre_err *err);

#define cleanup_order nc_cleanup(nc_order_done)

/*
 * With what the spawner can do: completes the order, and refuses it where a limit that was named or
 * the floor cannot be held.
 */
int nc_order_settle(const struct nc_order_args *args, const struct nc_holder *holder,
	struct nc_order *order, struct nacre_err *err);

/* Adds SRC[:DST][:rw], where DST is absolute and SRC may be anything that can be opened. */
int nc_order_bind(const char *text, struct nc_order *order, struct nacre_err *err);

#endif
