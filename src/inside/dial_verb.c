/*
 * nacre-files reaches a port of its box.
 *
 * Theory of operation: whoever stands outside has no way into the box's network, and needs none:
 * this runs in it as any command does, so that it can reach no more than the box itself. Each
 * direction has one buffer, and is read only while that is empty: neither can hold up the other.
 */
#include "inside/dial_verb.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parse.h"

struct side {
	int from_fd, to_fd; /* -EBADF: it has ended */
	size_t at, size;
	char data[65536];
};

static int dial(uint16_t port)
{
	const struct sockaddr_in loopback = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr_in6 loopback6 = {.sin6_family = AF_INET6,
		.sin6_port = htons(port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT};
	cleanup_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r;

	if (fd >= 0 && connect(fd, (const struct sockaddr *)&loopback, sizeof(loopback)) == 0)
		return take_fd(fd);
	r = -errno;
	(void)nc_fd_close(fd);
	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&loopback6, sizeof(loopback6)) == 0)
		return take_fd(fd);
	return r;
}

/* Nothing more goes this way. */
static void end(struct side *side)
{
	/* a socket hears of it while the other direction goes on */
	if (shutdown(side->to_fd, SHUT_WR) < 0)
		(void)close(side->to_fd);
	side->from_fd = side->to_fd = -EBADF;
	side->size = side->at = 0;
}

static bool try_again(ssize_t n)
{
	return n < 0 && (errno == EINTR || errno == EAGAIN);
}

static void move(struct side *side)
{
	ssize_t n;

	if (side->size == 0) {
		n = read(side->from_fd, side->data, sizeof(side->data));
		if (n > 0)
			side->size = (size_t)n;
		else if (!try_again(n))
			end(side);
	}
	if (side->size == 0)
		return;
	n = write(side->to_fd, side->data + side->at, side->size - side->at);
	if (n > 0)
		side->at += (size_t)n;
	else if (!try_again(n))
		end(side);
	if (side->at == side->size)
		side->at = side->size = 0;
}

/* What each direction waits for: something to read, or that there is room for it. */
static struct pollfd awaited(const struct side *side)
{
	return side->size == 0 ? (struct pollfd){.fd = side->from_fd, .events = POLLIN}
			       : (struct pollfd){.fd = side->to_fd, .events = POLLOUT};
}

int nc_verb_dial(char **argv, struct nacre_err *err)
{
	static struct side there = {.from_fd = STDIN_FILENO}, back = {.to_fd = STDOUT_FILENO};
	uint64_t port;
	int fd, r;

	if (nc_parse_u64(argv[0], 1, UINT16_MAX, &port) < 0)
		return nc_err_set(err, -EINVAL, "%s is no port", argv[0]);
	fd = dial((uint16_t)port);
	if (fd < 0)
		return nc_err_errno(err, fd, "Connect to port %s", argv[0]);
	there.to_fd = back.from_fd = fd;
	for (int i = 0; i < 2; i++) {
		r = fcntl(i, F_SETFL, O_NONBLOCK | fcntl(i, F_GETFL));
		if (r < 0)
			return nc_err_errno(err, -errno, "Move bytes");
	}
	(void)fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK); /* it can be of no kind that refuses */
	while (back.to_fd >= 0) {
		struct pollfd fds[2] = {awaited(&there), awaited(&back)};

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return nc_err_errno(err, -errno, "Wait for bytes");
		if (fds[0].revents && there.to_fd >= 0)
			move(&there);
		if (fds[1].revents)
			move(&back);
	}
	return 0;
}
