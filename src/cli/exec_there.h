/* nacre --server URL exec: a command in a sandbox of a daemon. */
#ifndef NC_EXEC_THERE_H
#define NC_EXEC_THERE_H

#include <jansson.h>

#include "cli/order.h"

/*
 * In the sandbox with that id; NULL: in a fresh one, which ends with it. json: prints one JSON
 * object in place of the output. Returns the exit code, or -errno with err.
 */
int nc_exec_there(const struct nc_cli *cli, const struct nc_order_args *args, const char *sandbox,
	bool json, char **words, int n_words, struct nacre_err *err);

/* What a command in a sandbox exits with, as a shell would say it. */
int nc_exec_code(const json_t *command);

#endif
