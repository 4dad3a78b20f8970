/* Starting the recorder for a verb that executes. */
#include "cli/recording.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "watch/recorder.h"

struct nc_recorder_setup nc_recording_setup(const struct nc_config *config)
{
	const struct nc_history_config *limits = &config->main.history;

	return (struct nc_recorder_setup){.blob_bytes = limits->blobs_mb.number << 20,
		.journal_bytes = limits->journal_mb.number << 20,
		.days = limits->days.number,
		.witness_fd = -EBADF,
		.place_fd = -EBADF};
}

int nc_recording_start(
	const struct nc_config *config, void (*say)(const char *text), int *ret_witness_fd)
{
	struct nc_recorder_setup setup = nc_recording_setup(config);
	cleanup_close int pidfd = -EBADF;
	struct nacre_err err = {0};
	int ends[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	setup.witness_fd = ends[1];
	r = nc_recorder_start(&setup, &pidfd, &err);
	(void)close(ends[1]);
	if (r < 0) {
		(void)close(ends[0]);
		(void)nc_err_wrap(&err, "Not recorded");
		say(err.message);
		return r;
	}
	*ret_witness_fd = ends[0];
	return r;
}
