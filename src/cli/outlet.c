/* Starting nacre-egress for a verb that executes. */
#include "cli/outlet.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fd.h"
#include "base/limits.h"
#include "egress/client.h"

#define TRUSTED "/etc/ssl/certs/ca-certificates.crt"

static char *trusted;

const char *nc_outlet_trusted(void)
{
	return trusted ? trusted : "";
}

void nc_outlet_read_trusted(void)
{
	cleanup_close int fd = trusted ? -EBADF : open(TRUSTED, O_RDONLY | O_CLOEXEC);
	size_t size;

	if (fd >= 0)
		(void)nc_fd_read_all(fd, NC_TRUSTED_MAX / 2, &trusted, &size);
}

int nc_outlet_start(void (*say)(const char *text))
{
	const struct nc_egress_setup setup = {.place_fd = -EBADF};
	cleanup_close int pidfd = -EBADF;
	struct nacre_err err = {0};
	int fd = nc_egress_start(&setup, &pidfd, &err);

	if (fd < 0) {
		(void)nc_err_wrap(&err, "Boxes have no network");
		say(err.message);
	}
	/* for boxes, now that it can be read; one that cannot be is none */
	if (fd >= 0)
		nc_outlet_read_trusted();
	return fd;
}
