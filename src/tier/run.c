/*
 * One run of a program in a fresh box: moves input and output while the spawner watches the box.
 *
 * The program sees pipes, never our own descriptors. Output is passed on as it comes; a reader of
 * ours that is slow makes the program wait on its full pipe. At the end the pipes are drained for a
 * moment, since everything in the box is dead by then and nobody can hold them open for long.
 */
#include "tier/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

/* Everything in the box is dead: who else could still write? */
#define DRAIN_MS 2000
#define CHUNK 65536

/* The pipes of a run; our ends are non-blocking where they could block us. */
struct pump {
	int to_input, from_output, from_error; /* -EBADF once closed */
	char pending[CHUNK];
	size_t pending_at, pending_size;
	bool ended, killed;
};

static int make_pipes(struct pump *pump, int theirs[3])
{
	int input[2], output[2], error[2];

	if (pipe2(input, O_CLOEXEC) < 0)
		return -errno;
	pump->to_input = input[1];
	theirs[0] = input[0];
	if (pipe2(output, O_CLOEXEC) < 0)
		return -errno;
	pump->from_output = output[0];
	theirs[1] = output[1];
	if (pipe2(error, O_CLOEXEC) < 0)
		return -errno;
	pump->from_error = error[0];
	theirs[2] = error[1];
	return fcntl(pump->to_input, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

/* Ctrl-D: what a terminal takes for the end of its input. */
#define END_OF_INPUT "\004"

static void feed_input(struct nc_run *run, struct pump *pump)
{
	ssize_t n;

	if (pump->pending_at == pump->pending_size && run->input_fd >= 0) {
		n = read(run->input_fd, pump->pending, sizeof(pump->pending));
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			return;
		pump->pending_at = 0;
		pump->pending_size = n > 0 ? (size_t)n : 0;
		if (n <= 0 && run->exec.terminal)
			(void)nc_fd_write_all(pump->to_input, END_OF_INPUT, 1); /* or it ended */
		if (n <= 0)
			pump->to_input = nc_fd_close(pump->to_input);
		return;
	}
	n = write(pump->to_input, pump->pending + pump->pending_at,
		pump->pending_size - pump->pending_at);
	if (n > 0)
		pump->pending_at += (size_t)n;
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		pump->to_input = nc_fd_close(pump->to_input); /* it does not read any more */
}

/* Passes on what is within the limit; what is beyond is counted and dropped. */
static int take_output(struct nc_holder *holder, struct nc_run *run, struct pump *pump, int *from,
	int to, struct nc_buf *buf)
{
	char chunk[CHUNK];
	ssize_t n = read(*from, chunk, sizeof(chunk));
	uint64_t room =
		run->output_max > run->output_bytes ? run->output_max - run->output_bytes : 0;
	size_t good;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n <= 0) {
		*from = nc_fd_close(*from);
		return 0;
	}
	good = (uint64_t)n < room ? (size_t)n : (size_t)room;
	run->output_bytes += (uint64_t)n;
	if (run->output_bytes > run->output_max && !pump->killed) {
		pump->killed = true;
		(void)nc_holder_kill(
			holder, run->exec.id, NC_CAUSE_OUTPUT); /* gone: its end comes */
	}
	if (to >= 0)
		return nc_fd_write_all(to, chunk, good);
	nc_buf_add(buf, chunk, good);
	return buf->error;
}

/* Both ends of the program's terminal are one descriptor for us: the master. */
static int take_terminal(struct nc_run *run, struct pump *pump, int terminal_fd)
{
	if (!run->terminal) {
		(void)nc_fd_close(terminal_fd); /* nobody has asked for one */
		return -EPROTO;
	}
	pump->from_output = terminal_fd;
	if (fcntl(terminal_fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	if (run->input_fd < 0)
		return 0;
	pump->to_input = nc_fd_dup(terminal_fd);
	/* it may have changed since the order */
	if (run->terminal && run->terminal->fd >= 0)
		nc_terminal_resize(run->terminal, terminal_fd);
	return pump->to_input < 0 ? pump->to_input : 0;
}

static int take_event(struct nc_holder *holder, struct nc_run *run, struct pump *pump)
{
	struct nc_holder_event event;
	int r = nc_holder_receive(holder, &event);

	if (r < 0)
		return r == -EAGAIN ? 0 : r;
	if (event.id != run->exec.id)
		return -EPROTO;
	if (event.type == NC_BOX_STARTED) {
		run->birth_ns = event.birth_ns;
		if (event.door_fd >= 0 && run->door.opened)
			r = run->door.opened(run->door.context, event.door_fd);
		(void)nc_fd_close(event.door_fd);
		if (r < 0)
			return r;
		return event.terminal_fd >= 0 ? take_terminal(run, pump, event.terminal_fd) : 0;
	}
	pump->ended = true;
	run->end = event.end;
	if (event.type != NC_BOX_ENDED)
		run->failure = event.failure;
	return 0;
}

static int step(struct nc_holder *holder, struct nc_run *run, struct pump *pump, int timeout_ms)
{
	bool has_pending = pump->pending_at < pump->pending_size;
	struct pollfd events[] = {
		{.fd = pump->ended ? -1 : holder->fd, .events = POLLIN},
		{.fd = pump->to_input >= 0 && !has_pending ? run->input_fd : -1, .events = POLLIN},
		{.fd = has_pending ? pump->to_input : -1, .events = POLLOUT},
		{.fd = pump->from_output, .events = POLLIN},
		{.fd = pump->from_error, .events = POLLIN},
		{.fd = run->terminal && pump->from_output >= 0 ? run->terminal->resized_fd : -1,
			.events = POLLIN},
		{.fd = pump->killed ? -1 : run->cancel_fd, .events = POLLIN},
		{.fd = run->door.readable ? run->door.fd : -1, .events = POLLIN},
	};
	int r = poll(events, sizeof(events) / sizeof(events[0]), timeout_ms);

	if (r <= 0)
		return r == 0 || errno == EINTR ? 0 : -errno;
	r = 0;
	if (events[3].revents)
		r = take_output(
			holder, run, pump, &pump->from_output, run->output_fd, &run->output);
	if (r == 0 && events[4].revents)
		r = take_output(holder, run, pump, &pump->from_error, run->error_fd, &run->error);
	if (r == 0 && events[5].revents && pump->from_output >= 0)
		nc_terminal_resize(run->terminal, pump->from_output);
	if (r == 0 && events[6].revents) {
		pump->killed = true;
		(void)nc_holder_kill(
			holder, run->exec.id, NC_CAUSE_CANCEL); /* gone: its end comes */
	}
	if (r == 0 && events[7].revents && run->door.readable(run->door.context) < 0)
		run->door.readable = NULL;
	if (r == 0 && (events[1].revents || events[2].revents))
		feed_input(run, pump);
	if (r == 0 && events[0].revents)
		r = take_event(holder, run, pump);
	return r;
}

static int pump_all(struct nc_holder *holder, struct nc_run *run, struct pump *pump)
{
	int r = 0;

	if (run->input_fd < 0)
		pump->to_input = nc_fd_close(pump->to_input);
	while (r == 0 && !pump->ended)
		r = step(holder, run, pump, -1);
	pump->to_input = nc_fd_close(pump->to_input);
	/* what is left in the pipes; a reader of ours may take its time, silence ends it */
	while (r == 0 && (pump->from_output >= 0 || pump->from_error >= 0)) {
		uint64_t before = run->output_bytes;
		int open_before = (pump->from_output >= 0) + (pump->from_error >= 0);

		r = step(holder, run, pump, DRAIN_MS);
		if (run->output_bytes == before &&
			(pump->from_output >= 0) + (pump->from_error >= 0) == open_before)
			break;
	}
	return r;
}

int nc_run(struct nc_holder *holder, struct nc_run *run, struct nacre_err *err)
{
	struct pump pump = {.to_input = -EBADF, .from_output = -EBADF, .from_error = -EBADF};
	struct nc_order_fds fds = {
		.stream = {-EBADF, -EBADF, -EBADF}, .pack = -EBADF, .image = run->image_fd};
	int r = run->exec.terminal ? 0 : make_pipes(&pump, fds.stream);

	if (r < 0)
		nc_err_errno(err, r, "Make pipes");
	else
		r = nc_holder_order(holder, false, &run->exec, &fds, err);
	for (int i = 0; i < 3; i++)
		(void)nc_fd_close(fds.stream[i]);
	if (r == 0) {
		r = pump_all(holder, run, &pump);
		if (r < 0)
			nc_err_errno(err, r, "Run the program");
	}
	(void)nc_fd_close(pump.to_input);
	(void)nc_fd_close(pump.from_output);
	(void)nc_fd_close(pump.from_error);
	return r;
}
