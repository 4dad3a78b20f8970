/* Starting nacre-egress for a verb that executes. */
#include "cli/outlet.h"

#include <errno.h>

#include "base/fd.h"
#include "egress/client.h"

int nc_outlet_start(void (*say)(const char *text))
{
	static const struct nc_egress_setup setup;
	cleanup_close int pidfd = -EBADF;
	struct nacre_err err = {0};
	int fd = nc_egress_start(&setup, &pidfd, &err);

	if (fd < 0) {
		(void)nc_err_wrap(&err, "Boxes have no network");
		say(err.message);
	}
	return fd;
}
