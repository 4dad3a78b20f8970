/* Starting the recorder for a verb that executes. */
#ifndef NC_CLI_RECORDING_H
#define NC_CLI_RECORDING_H

#include "config/config.h"

/*
 * The worker's end of a socket to it, and in *ret_witness_fd the spawner's end of another; both are
 * the caller's. place_fd: the recorder's end of where it meets the next worker (base/meeting.h), or
 * -EBADF. -errno: then nothing is recorded, and say() was told.
 */
int nc_recording_start(const struct nc_config *config, void (*say)(const char *text), int place_fd,
	int *ret_witness_fd);

#endif
