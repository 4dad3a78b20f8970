/* One end of a connection. */
#include "egress/side.h"

#include <errno.h>
#include <openssl/err.h>
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

/* What a failed call of TLS waits for; -EPROTO: nothing. */
static int tls_waits(struct nc_side *side, int result)
{
	const int error = SSL_get_error(side->tls, result);

	if (error == SSL_ERROR_WANT_READ)
		side->readable = false;
	else if (error == SSL_ERROR_WANT_WRITE)
		side->writable = false;
	else if (error == SSL_ERROR_ZERO_RETURN)
		side->ended = true;
	else
		return -EPROTO;
	return 0;
}

int nc_side_secure(struct nc_side *side, SSL *tls)
{
	side->tls = tls;
	return tls && SSL_set_fd(tls, side->fd) == 1 ? 0 : -ENOMEM;
}

int nc_side_shake(struct nc_side *side)
{
	int r;

	ERR_clear_error(); /* what others left there would be taken for ours */
	r = SSL_do_handshake(side->tls);
	return r == 1 ? 1 : tls_waits(side, r);
}

/* As read(): -EAGAIN for not now. */
static ssize_t receive(struct nc_side *side, void *data, size_t size)
{
	ssize_t n;
	int r;

	if (side->tls) {
		ERR_clear_error();
		r = SSL_read(side->tls, data, (int)size);
		if (r > 0)
			return r;
		r = tls_waits(side, r);
		return r < 0 ? r : side->ended ? 0 : -EAGAIN;
	}
	do
		n = read(side->fd, data, size);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

ssize_t nc_side_send(struct nc_side *side, const void *data, size_t size)
{
	ssize_t n;
	int r;

	if (side->tls) {
		ERR_clear_error();
		r = SSL_write(side->tls, data, (int)size);
		side->retry = r > 0 ? 0 : size;
		return r > 0 ? r : tls_waits(side, r);
	}
	do
		n = send(side->fd, data, size, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return n;
	if (errno != EAGAIN)
		return -errno;
	side->writable = false;
	return 0;
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

static void drop_tls(struct nc_side *side)
{
	SSL_free(side->tls);
	side->tls = NULL;
}

int nc_side_detach(struct nc_side *side, struct nc_loop *loop)
{
	drop_tls(side);
	drop_data(side);
	if (side->fd >= 0)
		nc_loop_remove(loop, side->fd);
	return take_fd(side->fd);
}

void nc_side_done(struct nc_side *side)
{
	drop_tls(side);
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
	n = receive(side, side->data + side->end, NC_EGRESS_HEAD_MAX - side->end);
	if (n < 0 && n != -EAGAIN)
		return n;
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
		n = nc_side_send(side, side->out.data + side->sent, side->out.size - side->sent);
		if (n <= 0)
			return (int)n;
		side->sent += (size_t)n;
	}
	if (side->out.size > 0)
		drop_out(side);
	return 1;
}

void nc_side_shut(struct nc_side *side)
{
	if (!side->shut && side->tls)
		(void)SSL_shutdown(side->tls);
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
