#include "spawner/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "base/clock.h"
#include "base/error.h"

/* What boxes may wait, all together, for a client to read. */
#define PATIENCE_NS (2 * NC_NS_PER_S)

int nc_client_take(struct nc_client *client, int fd)
{
	*client = (struct nc_client){.fd = fd};
	return fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ? -errno
											: 0;
}

/* Many boxes may end, or be adopted, while it is busy: the messages are more than its socket holds.
 */
static int send_later(
	struct nc_client *client, struct nc_wire_out *out, const int *fds, size_t n_fds)
{
	struct pollfd event = {.fd = client->fd, .events = POLLOUT};
	int r = -EAGAIN;

	while (r == -EAGAIN && client->waited_ns < PATIENCE_NS) {
		uint64_t begin = nc_clock_ns();

		(void)poll(&event, 1, nc_clock_left_ms(begin + PATIENCE_NS - client->waited_ns));
		client->waited_ns += nc_clock_ns() - begin;
		r = nc_wire_send(client->fd, out, fds, n_fds);
	}
	return r;
}

const char *nc_client_send(
	struct nc_client *client, struct nc_wire_out *out, const int *fds, size_t n_fds)
{
	/* whoever has not greeted is told all when he does */
	int r = client->fd >= 0 && client->greeted && !client->dead
			? nc_wire_send(client->fd, out, fds, n_fds)
			: 0;

	if (r == -EAGAIN)
		r = send_later(client, out, fds, n_fds);
	nc_wire_out_done(out);
	if (r == -EPIPE || r == -ECONNRESET)
		client->dead = true; /* what it said before is still to be heard */
	else if (r < 0)
		return r == -EAGAIN ? "it does not read its messages" : nc_errno_text(r);
	return NULL;
}
