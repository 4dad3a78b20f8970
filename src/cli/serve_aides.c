/* Those who work beside the daemon: how each of them is started. */
#include "cli/serve_aides.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/meeting.h"
#include "cli/recording.h"
#include "egress/client.h"
#include "engine/analyst.h"
#include "server/archive.h"
#include "server/courier.h"
#include "server/exporter.h"
#include "tier/launch.h"

/* What the keeper has of us, for as long as it lives. */
struct context {
	const struct nc_config *config;
	const struct nc_certificate_paths *tls; /* NULL: there is none */
	int serve_fd, witness_fd;
	bool ranges;
};

static int start_recorder(const void *context, int place_fd, int *ret_pidfd, struct nacre_err *err)
{
	const struct context *us = context;
	struct nc_recorder_setup setup = nc_recording_setup(us->config);

	setup.witness_fd = us->witness_fd;
	setup.place_fd = place_fd;
	return nc_recorder_start(&setup, ret_pidfd, err);
}

static int start_egress(const void *context, int place_fd, int *ret_pidfd, struct nacre_err *err)
{
	const struct nc_egress_setup setup = {.place_fd = place_fd};

	(void)context;
	return nc_egress_start(&setup, ret_pidfd, err);
}

static int start_archive(const void *context, int place_fd, int *ret_pidfd, struct nacre_err *err)
{
	const struct context *us = context;

	return nc_archive_start(us->serve_fd, place_fd, ret_pidfd, err);
}

static int start_analyst(const void *context, int place_fd, int *ret_pidfd, struct nacre_err *err)
{
	const struct context *us = context;

	return nc_analyst_start(place_fd, us->ranges, ret_pidfd, err);
}

static int start_courier(const void *context, int place_fd, int *ret_pidfd, struct nacre_err *err)
{
	const struct context *us = context;

	return nc_courier_start(
		&us->config->serve.webhooks, us->serve_fd, place_fd, us->ranges, ret_pidfd, err);
}

static int start_exporter(const void *context, int place_fd, int *ret_pidfd, struct nacre_err *err)
{
	const struct context *us = context;

	return nc_exporter_start(&us->config->serve.tracing, place_fd, us->ranges, ret_pidfd, err);
}

static int start_certifier(const void *context, int place_fd, int *ret_pidfd, struct nacre_err *err)
{
	const struct context *us = context;

	return nc_certifier_start(us->tls, place_fd, us->ranges, ret_pidfd, err);
}

static int start_holder(const void *context, unsigned int number, int place_fd, int *ret_pidfd,
	struct nacre_err *err)
{
	const struct context *us = context;

	return nc_holder_launch(number, place_fd, us->ranges, ret_pidfd, err);
}

static void complain(const char *what, struct nacre_err *err, void (*say)(const char *text))
{
	if (err->code == 0)
		return;
	(void)nc_err_wrap(err, "%s", what);
	say(err->message);
}

int nc_serve_aides_start(const struct nc_config *config, const struct nc_certificate_paths *tls,
	int serve_fd, int guard_fd, bool ranges, void (*say)(const char *text),
	struct nc_keeper *ret_keeper, int *ret_witness_fd, struct nacre_err *err)
{
	struct context context = {
		.config = config, .tls = tls, .serve_fd = serve_fd, .ranges = ranges};
	int witness[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, witness) < 0)
		return nc_err_errno(err, -errno, "Make a socket pair");
	context.witness_fd = witness[1];
	r = nc_keeper_start(
		&(struct nc_keeper_setup){
			.start = {[NC_AIDE_RECORDER] = start_recorder,
				[NC_AIDE_EGRESS] = start_egress,
				[NC_AIDE_ARCHIVE] = start_archive,
				[NC_AIDE_ANALYST] = start_analyst,
				[NC_AIDE_COURIER] =
					config->serve.webhooks.n_list > 0 ? start_courier : NULL,
				[NC_AIDE_EXPORTER] = config->serve.tracing.endpoint.n_list > 0
							     ? start_exporter
							     : NULL,
				[NC_AIDE_CERTIFIER] = tls ? start_certifier : NULL},
			.start_holder = start_holder,
			.context = &context,
			.guard_fd = guard_fd,
			.fds = (const int[]){serve_fd, witness[1]},
			.n_fds = 2},
		ret_keeper, err);
	(void)close(witness[1]);
	*ret_witness_fd = witness[0];
	if (r < 0)
		return r;
	complain("Not recorded", &ret_keeper->err[NC_AIDE_RECORDER], say);
	complain("Boxes have no network", &ret_keeper->err[NC_AIDE_EGRESS], say);
	for (size_t i = NC_AIDE_HOLDER; i < NC_AIDE_MAX; i++)
		complain("Boxes of a tier cannot be had", &ret_keeper->err[i], say);
	for (size_t i = NC_AIDE_ANALYST; i < NC_AIDE_HOLDER; i++)
		if (ret_keeper->err[i].code < 0) {
			*err = ret_keeper->err[i];
			return err->code;
		}
	return 0;
}

int nc_serve_aides_call(const struct nc_keeper *keeper, enum nc_aide which)
{
	const int type = which == NC_AIDE_ARCHIVE ? SOCK_STREAM : SOCK_SEQPACKET;

	return keeper->place_fd[which] < 0 ? -EBADF
					   : nc_meeting_call(keeper->place_fd[which], type);
}
