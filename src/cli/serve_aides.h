/* Those who work beside the daemon: how each of them is started. */
#ifndef NC_CLI_SERVE_AIDES_H
#define NC_CLI_SERVE_AIDES_H

#include "config/config.h"
#include "server/certificate.h"
#include "server/keeper.h"

/*
 * Starts the keeper, and by it all that the configuration asks for, with the caller's rights.
 * tls: the files of its certificate, or NULL; serve_fd is the daemon's directory; guard_fd is the
 * keeper's (server/keeper.h); *ret_witness_fd the spawner's end of a socket to the recorder.
 * Without recorder, egress or archive the daemon goes on, and say() is told; without the others it
 * does not. 0 or -errno with err.
 */
int nc_serve_aides_start(const struct nc_config *config, const struct nc_certificate_paths *tls,
	int serve_fd, int guard_fd, bool ranges, void (*say)(const char *text),
	struct nc_keeper *ret_keeper, int *ret_witness_fd, struct nacre_err *err);

/* Our end of a connection to one of them; -errno: it is not there. */
int nc_serve_aides_call(const struct nc_keeper *keeper, enum nc_aide which);

#endif
