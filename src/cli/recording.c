/* Starting the recorder for a verb that executes. */
#include "cli/recording.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "watch/recorder.h"

int nc_recording_start(const struct nc_config *config, void (*say)(const char *text), int place_fd,
	int *ret_witness_fd)
{
	const struct nc_history_config *limits = &config->main.history;
	struct nc_recorder_setup setup = {.blob_bytes = limits->blobs_mb.number << 20,
		.journal_bytes = limits->journal_mb.number << 20,
		.days = limits->days.number,
		.place_fd = place_fd};
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
