/* Bytes from one side of a connection to the other. */
#include "egress/flow.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

/* What one pipe holds, if the kernel gives that much: the most that an ordinary user may have. */
#define PIPE_SIZE (1024 * 1024)
/* What one flow moves before others have their turn. */
#define TURN_SIZE (2 * PIPE_SIZE)

/* ---- pipes ---- */

static void close_pipe(struct nc_pipe *pipe)
{
	pipe->read_fd = nc_fd_close(pipe->read_fd);
	pipe->write_fd = nc_fd_close(pipe->write_fd);
}

void nc_pipes_done(struct nc_pipes *pipes)
{
	while (pipes->n > 0)
		close_pipe(&pipes->idle[--pipes->n]);
}

static int take_pipe(struct nc_pipes *pipes, struct nc_pipe *ret_pipe)
{
	int ends[2];

	if (pipes->n > 0) {
		*ret_pipe = pipes->idle[--pipes->n];
		return 0;
	}
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	(void)fcntl(ends[1], F_SETPIPE_SZ, PIPE_SIZE); /* a smaller one is slower, nothing else */
	*ret_pipe = (struct nc_pipe){.read_fd = ends[0], .write_fd = ends[1]};
	return 0;
}

static void give_pipe(struct nc_flow *flow, struct nc_pipes *pipes)
{
	/* one with bytes in it would hand them to another box */
	if (flow->held == 0 && flow->pipe.read_fd >= 0 && pipes->n < NC_PIPES_IDLE_MAX) {
		pipes->idle[pipes->n++] = flow->pipe;
		flow->pipe = (struct nc_pipe){-EBADF, -EBADF};
	}
	close_pipe(&flow->pipe);
}

/* ---- moving ---- */

void nc_flow_init(struct nc_flow *flow, enum nc_http_body body, uint64_t length, bool tolerant)
{
	*flow = (struct nc_flow){.pipe = {-EBADF, -EBADF}, .chunks.tolerant = tolerant};
	flow->chunked = body == NC_BODY_CHUNKED;
	flow->left = body == NC_BODY_LENGTH ? length : body == NC_BODY_NONE ? 0 : UINT64_MAX;
}

void nc_flow_mask(struct nc_flow *flow, struct nc_mask *mask)
{
	nc_mask_begin(mask);
	flow->mask = mask;
}

void nc_flow_done(struct nc_flow *flow, struct nc_pipes *pipes)
{
	nc_mask_free(flow->mask);
	flow->mask = NULL;
	give_pipe(flow, pipes);
	flow->held = 0;
}

/* Empties the pipe. 1: it is empty; 0: the other side does not take more; -errno. */
static int drain_pipe(struct nc_flow *flow, struct nc_side *to, struct nc_pipes *pipes)
{
	while (flow->held > 0) {
		ssize_t n;

		if (!to->writable)
			return 0;
		n = splice(flow->pipe.read_fd, NULL, to->fd, NULL, flow->held,
			SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
		if (n < 0 && errno == EAGAIN)
			to->writable = false;
		else if (n < 0 && errno != EINTR)
			return -errno;
		else if (n > 0)
			flow->held -= (size_t)n;
	}
	if (flow->pipe.read_fd >= 0)
		give_pipe(flow, pipes);
	return 1;
}

/* Looks at what has not been looked at; in chunks, the text of one goes on in the next. */
static int look(struct nc_flow *flow, struct nc_side *from, size_t has)
{
	while (flow->checked < has) {
		char *data = from->data + from->start + flow->checked;
		const bool is_text = !flow->chunked || flow->chunks.state == NC_CHUNKS_DATA;
		ssize_t n = (ssize_t)(has - flow->checked);

		if (flow->chunked)
			n = nc_chunks_take(&flow->chunks, data,
				!is_text			  ? 1
				: (uint64_t)n < flow->chunks.left ? (size_t)n
								  : flow->chunks.left);
		if (n <= 0)
			return (int)n;
		nc_mask_look(flow->mask, data, (size_t)n, is_text);
		flow->checked += (size_t)n;
	}
	return 0;
}

/* The same where something is looked for: what may be the beginning of that is not usable yet. */
static ssize_t settled(struct nc_flow *flow, struct nc_side *from)
{
	const size_t all = nc_side_has(from), has = all < flow->left ? all : (size_t)flow->left;
	int r = look(flow, from, has);

	if (r < 0)
		return r;
	if (from->ended || (flow->chunked ? flow->chunks.state == NC_CHUNKS_DONE
					  : flow->left == flow->checked))
		return (ssize_t)flow->checked;
	/* a value that fills all that can be held is none that could be told */
	if (nc_mask_held(flow->mask) >= flow->checked && nc_side_is_full(from))
		return -EBADMSG;
	return (ssize_t)(flow->checked - nc_mask_held(flow->mask));
}

/* The bytes at the front of data that belong to the body; -EBADMSG. */
static ssize_t usable(struct nc_flow *flow, struct nc_side *from)
{
	const size_t has = nc_side_has(from);
	ssize_t n;

	if (flow->mask)
		return settled(flow, from);
	if (!flow->chunked)
		return (ssize_t)(has < flow->left ? has : flow->left);
	n = nc_chunks_take(&flow->chunks, nc_side_bytes(from) + flow->checked, has - flow->checked);
	if (n < 0)
		return n;
	flow->checked += (size_t)n;
	return (ssize_t)flow->checked;
}

/* Sends bytes that were read already. Their number; 0: none; -errno. */
static ssize_t send_bytes(struct nc_flow *flow, struct nc_side *from, struct nc_side *to, size_t n,
	const struct nc_flow_host *host)
{
	ssize_t sent;

	if (!to->writable)
		return 0;
	sent = nc_side_send(to, nc_side_bytes(from), n < to->retry ? to->retry : n);
	if (sent <= 0)
		return sent;
	nc_side_use(from, (size_t)sent);
	host->took(host->user, (size_t)sent);
	if (flow->chunked || flow->mask)
		flow->checked -= (size_t)sent;
	if (!flow->chunked && flow->left != UINT64_MAX)
		flow->left -= (uint64_t)sent;
	return sent;
}

/* Fills the pipe from the socket. The bytes; 0: none now, or the end; -errno. */
static ssize_t fill_pipe(
	struct nc_flow *flow, struct nc_side *from, size_t wanted, const struct nc_flow_host *host)
{
	ssize_t n;

	n = splice(from->fd, NULL, flow->pipe.write_fd, NULL, wanted,
		SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	if (n < 0 && errno == EAGAIN)
		from->readable = false; /* the pipe is empty, so that it is not to blame */
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	from->ended = n == 0;
	flow->held = (size_t)n;
	if (flow->left != UINT64_MAX)
		flow->left -= (uint64_t)n;
	if (n > 0)
		host->took(host->user, (size_t)n);
	return n;
}

static bool is_complete(const struct nc_flow *flow, const struct nc_side *from)
{
	if (flow->chunked)
		return flow->chunks.state == NC_CHUNKS_DONE && flow->checked == 0;
	return flow->left == 0 ||
	       (flow->left == UINT64_MAX && from->ended && nc_side_has(from) == 0);
}

/* One piece, or why there is none; everything before it has gone. */
static int move_piece(struct nc_flow *flow, struct nc_side *from, struct nc_side *to,
	const struct nc_flow_host *host, size_t *moved)
{
	ssize_t n = usable(flow, from);
	size_t wanted, may;

	if (n < 0 || is_complete(flow, from))
		return n < 0 ? (int)n : NC_FLOW_DONE;
	if (n == 0 && !from->ended && (flow->chunked || flow->mask || from->tls || to->tls)) {
		n = nc_side_fill(from);
		if (n < 0)
			return (int)n;
		return n > 0 || from->ended ? NC_FLOW_TURN : NC_FLOW_WAITS;
	}
	if (n == 0 && from->ended)
		return -EBADMSG; /* the end was not to be yet */
	if (n == 0 && !from->readable)
		return NC_FLOW_WAITS;
	wanted = n > 0 ? (size_t)n : PIPE_SIZE < flow->left ? PIPE_SIZE : (size_t)flow->left;
	may = host->may(host->user, wanted);
	if (may == 0 || (n == 0 && take_pipe(host->pipes, &flow->pipe) < 0))
		return NC_FLOW_HELD;
	if (n > 0) {
		n = send_bytes(flow, from, to, may, host);
		*moved += n > 0 ? (size_t)n : 0;
		return n < 0 ? (int)n : n > 0 ? NC_FLOW_TURN : NC_FLOW_WAITS;
	}
	n = fill_pipe(flow, from, may, host);
	if (n <= 0)
		give_pipe(flow, host->pipes);
	*moved += n > 0 ? (size_t)n : 0;
	return n < 0 ? (int)n : NC_FLOW_TURN;
}

int nc_flow_move(struct nc_flow *flow, struct nc_side *from, struct nc_side *to,
	const struct nc_flow_host *host)
{
	size_t moved = 0;
	int state = NC_FLOW_TURN;

	while (state == NC_FLOW_TURN && moved < TURN_SIZE) {
		int r = nc_side_flush(to);

		if (r > 0)
			r = drain_pipe(flow, to, host->pipes);
		if (r <= 0)
			return r < 0 ? r : NC_FLOW_WAITS;
		state = move_piece(flow, from, to, host, &moved);
	}
	return state;
}
