/* One end of a connection. */
#include "egress/side.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"

/* A head with what is added to it: secrets, and lines of our own. */
#define OUT_MAX (2 * NC_EGRESS_HEAD_MAX + NC_EGRESS_SECRETS_MAX * NC_EGRESS_SECRET_MAX)

void nc_side_init(struct nc_side *side, void (*ready)(struct nc_watch *watch, uint32_t events))
{
	*side = (struct nc_side){.watch.ready = ready, .fd = -EBADF, .out = NC_BUF(OUT_MAX)};
}

static void drop_data(struct nc_side *side)
{
	nc_freep(&side->data);
	side->start = side->end = 0;
}

static void drop_out(struct nc_side *side)
{
	/* it may have held secrets */
	if (side->out.data)
		explicit_bzero(side->out.data, side->out.size);
	nc_buf_done(&side->out);
	side->sent = 0;
}

int nc_side_attach(struct nc_side *side, struct nc_loop *loop, int fd)
{
	int r;

	side->fd = fd;
	side->readable = side->writable = side->ended = side->shut = false;
	r = nc_loop_add(loop, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, &side->watch);
	if (r < 0)
		side->fd = nc_fd_close(fd);
	return r;
}

int nc_side_detach(struct nc_side *side, struct nc_loop *loop)
{
	drop_data(side);
	if (side->fd >= 0)
		nc_loop_remove(loop, side->fd);
	return take_fd(side->fd);
}

void nc_side_done(struct nc_side *side)
{
	side->fd = nc_fd_close(side->fd);
	drop_data(side);
	drop_out(side);
}

bool nc_side_is_full(const struct nc_side *side)
{
	return nc_side_has(side) == NC_EGRESS_HEAD_MAX;
}

ssize_t nc_side_fill(struct nc_side *side)
{
	ssize_t n;

	if (!side->readable || side->ended || nc_side_is_full(side))
		return 0;
	if (!side->data)
		side->data = malloc(NC_EGRESS_HEAD_MAX);
	if (!side->data)
		return -ENOMEM;
	if (side->start > 0) {
		memmove(side->data, side->data + side->start, nc_side_has(side));
		side->end -= side->start;
		side->start = 0;
	}
	do
		n = read(side->fd, side->data + side->end, NC_EGRESS_HEAD_MAX - side->end);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno != EAGAIN)
		return -errno;
	if (n < 0)
		side->readable = false;
	side->ended = n == 0;
	if (n > 0)
		side->end += (size_t)n;
	else if (side->end == 0)
		drop_data(side);
	return n > 0 ? n : 0;
}

void nc_side_use(struct nc_side *side, size_t n)
{
	side->start += n;
	if (side->start == side->end)
		drop_data(side);
}

int nc_side_flush(struct nc_side *side)
{
	if (side->out.error < 0)
		return side->out.error;
	while (side->sent < side->out.size) {
		ssize_t n;

		if (!side->writable)
			return 0;
		n = send(side->fd, side->out.data + side->sent, side->out.size - side->sent,
			MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			side->writable = false;
		else if (n < 0 && errno != EINTR)
			return -errno;
		else if (n > 0)
			side->sent += (size_t)n;
	}
	if (side->out.size > 0)
		drop_out(side);
	return 1;
}

void nc_side_shut(struct nc_side *side)
{
	if (!side->shut && side->fd >= 0)
		(void)shutdown(side->fd, SHUT_WR); /* if it is gone, that is fine as well */
	side->shut = true;
}

void nc_side_ready(struct nc_side *side, uint32_t events)
{
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		side->readable = true;
	if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		side->writable = true;
}
