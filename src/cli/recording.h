/* Starting the recorder for a verb that executes. */
#ifndef NC_CLI_RECORDING_H
#define NC_CLI_RECORDING_H

#include "config/config.h"
#include "watch/recorder.h"

/* As the configuration wants it, without a witness and without a place. */
struct nc_recorder_setup nc_recording_setup(const struct nc_config *config);

/*
 * The worker's end of a socket to it, and in *ret_witness_fd the spawner's end of another; both are
 * the caller's. -errno: then nothing is recorded, and say() was told.
 */
int nc_recording_start(
	const struct nc_config *config, void (*say)(const char *text), int *ret_witness_fd);

#endif
