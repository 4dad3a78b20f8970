/* A command in a sandbox of a daemon, with our standard streams or our terminal. */
#ifndef NC_REMOTE_TERMINAL_H
#define NC_REMOTE_TERMINAL_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"

/*
 * Runs it and waits. path is that of the WebSocket; start what it is to start, to which the size of
 * the terminal is added, NULL: it runs already. With terminal: our standard input is one, and
 * passes on what is typed. Returns its exit status as a shell would, or -errno with what the daemon
 * said.
 */
int nc_remote_terminal(
	const char *url, const char *path, json_t *start, bool terminal, struct nacre_err *err);

#endif
