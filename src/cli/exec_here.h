/* A command in a fresh box of this machine, with the caller's own streams. */
#ifndef NC_EXEC_HERE_H
#define NC_EXEC_HERE_H

#include "cli/order.h"

struct nc_exec {
	const struct nc_order_args *args;
	const struct nc_config *config;
	bool collects; /* output is kept for the answer, and not passed on */
	/* as in struct nc_holder_setup */
	int begun_fd;
	pid_t begun_parent;
	/* what else the order needs, in the worker; or NULL */
	int (*prepare)(struct nc_run *run, struct nacre_err *err);
	/* Tells how it ended. The exit code, or -errno with err filled. */
	int (*answer)(const struct nc_run *task, const char *command, struct nacre_err *err);
};

/*
 * Never returns in the calling process, unless the spawner was begun before: that becomes the
 * spawner, and its child, the worker, returns the exit code.
 */
int nc_exec_here(const struct nc_exec *exec, char **words, int n_words, struct nacre_err *err);

#endif
