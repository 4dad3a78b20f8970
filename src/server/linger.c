/* Connections that were answered before their client had sent all. */
#include "server/linger.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "tier/poll.h"

#define EACH_NS (3 * NC_NS_PER_S)
#define MOST 64U
#define BLOCK 65536

struct end {
	struct nc_linger *all;
	struct end *next, **place;
	struct nc_poll *poll;
	int fd;
	uint64_t until_ns;
};

struct nc_linger {
	uv_loop_t *loop;
	struct end *ends;
	size_t count;
};

struct nc_linger *nc_linger_new(uv_loop_t *loop)
{
	struct nc_linger *linger = calloc(1, sizeof(*linger));

	if (linger)
		linger->loop = loop;
	return linger;
}

static void end_free(struct end *end)
{
	*end->place = end->next;
	if (end->next)
		end->next->place = end->place;
	end->all->count--;
	(void)nc_poll_free(end->poll);
	(void)nc_fd_close(end->fd);
	free(end);
}

void nc_linger_free(struct nc_linger *linger)
{
	while (linger && linger->ends)
		end_free(linger->ends);
	free(linger);
}

static void on_ready(void *context, int events)
{
	static char nothing[BLOCK];
	struct end *end = context;
	ssize_t n = recv(end->fd, nothing, sizeof(nothing), MSG_DONTWAIT);

	(void)events;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		end_free(end);
}

void nc_linger_add(struct nc_linger *linger, int fd)
{
	struct end *end = linger->count < MOST ? calloc(1, sizeof(*end)) : NULL;

	if (!end)
		return;
	end->all = linger;
	end->until_ns = nc_clock_ns() + EACH_NS;
	end->next = linger->ends;
	end->place = &linger->ends;
	if (end->next)
		end->next->place = &end->next;
	linger->ends = end;
	linger->count++;
	end->fd = nc_fd_dup(fd);
	/* the answer is whole: nothing follows it */
	if (end->fd < 0 || shutdown(end->fd, SHUT_WR) < 0 ||
		nc_poll_new(linger->loop, end->fd, UV_READABLE, on_ready, end, &end->poll) < 0)
		end_free(end);
}

size_t nc_linger_tick(struct nc_linger *linger)
{
	uint64_t now = nc_clock_ns();

	for (struct end *end = linger->ends, *next; end; end = next) {
		next = end->next;
		if (end->until_ns <= now)
			end_free(end);
	}
	return linger->count;
}
