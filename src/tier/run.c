/*
 * One run of a program in a fresh box, in a process that waits for nothing else. Output is passed
 * on as it comes; a reader of ours that is slow makes the program wait on its full pipe.
 */
#include "tier/run.h"

#include <errno.h>
#include <unistd.h>

#include "base/fd.h"
#include "tier/hub.h"

struct running {
	struct nc_run *run;
	struct nc_small_loop loop;
	struct nc_command *command;
	struct nc_poll *cancel, *resized, *door;
	bool ended;
	int error; /* of our own, which ends it */
};

static void on_cancel(void *context, int events)
{
	struct running *running = context;

	(void)events;
	nc_poll_set(running->cancel, 0);
	nc_command_cancel(running->command);
}

static void on_resized(void *context, int events)
{
	struct running *running = context;
	uint32_t rows, columns;

	(void)events;
	nc_terminal_resized(running->run->terminal, &rows, &columns);
	/* it may have ended */
	(void)nc_command_resize(running->command, (unsigned short)rows, (unsigned short)columns);
}

static void on_door(void *context, int events)
{
	struct running *running = context;

	(void)events;
	if (running->run->door.readable(running->run->door.context) < 0)
		nc_poll_set(running->door, 0);
}

static void started(void *context, uint64_t birth_ns, int door_fd)
{
	struct running *running = context;
	struct nc_run *run = running->run;

	run->birth_ns = birth_ns;
	if (door_fd >= 0 && run->door.opened)
		running->error = run->door.opened(run->door.context, door_fd);
	(void)nc_fd_close(door_fd);
	if (running->resized) {
		nc_poll_set(running->resized, NC_READABLE);
		on_resized(running, 0); /* it may have changed since the order */
	}
}

static void printed(void *context, enum nc_stream stream, const char *data, size_t size)
{
	struct running *running = context;
	struct nc_run *run = running->run;
	const bool is_error = stream == NC_STREAM_ERROR;
	struct nc_buf *buf = is_error ? &run->error : &run->output;
	const int fd = is_error ? run->error_fd : run->output_fd;

	if (running->error < 0)
		return;
	if (fd < 0)
		nc_buf_add(buf, data, size);
	running->error = fd >= 0 ? nc_fd_write_all(fd, data, size) : buf->error;
}

static void ended(void *context, const struct nc_box_end *end, uint64_t output_bytes,
	const struct nacre_err *failure)
{
	struct running *running = context;

	running->ended = true;
	running->run->end = *end;
	running->run->output_bytes = output_bytes;
	if (failure && end->fail != NC_FAIL_LOST)
		running->run->failure = *failure;
	else if (failure && running->error == 0)
		running->error = failure->code;
}

static int watch(struct running *running)
{
	const struct nc_run *run = running->run;
	const struct nc_loop *loop = &running->loop.face;
	int r = 0;

	if (run->cancel_fd >= 0)
		r = nc_loop_watch(
			loop, run->cancel_fd, NC_READABLE, on_cancel, running, &running->cancel);
	if (r == 0 && run->terminal && run->terminal->resized_fd >= 0)
		r = nc_loop_watch(
			loop, run->terminal->resized_fd, 0, on_resized, running, &running->resized);
	if (r == 0 && run->door.readable)
		r = nc_loop_watch(
			loop, run->door.fd, NC_READABLE, on_door, running, &running->door);
	return r;
}

static int run_to_end(struct running *running, struct nc_hub *hub, struct nacre_err *err)
{
	const struct nc_run *run = running->run;
	const struct nc_command_spec spec = {.exec = &run->exec,
		.image_fd = run->image_fd,
		.input_fd = run->input_fd,
		.output_max = run->output_max,
		.context = running,
		.started = started,
		.printed = printed,
		.ended = ended};
	int r = watch(running);

	if (r < 0)
		return nc_err_errno(err, r, "Run the program");
	r = nc_hub_start(hub, &spec, &running->command, err);
	if (r < 0)
		return r;
	while (r == 0 && running->error == 0 && !running->ended)
		r = nc_small_loop_turn(&running->loop);
	r = running->error < 0 ? running->error : r;
	return r < 0 ? nc_err_errno(err, r, "Run the program") : 0;
}

int nc_run(struct nc_holder *holder, struct nc_run *run, struct nacre_err *err)
{
	struct running running = {.run = run};
	struct nc_hub *hub;
	int r;

	nc_small_loop_init(&running.loop);
	r = nc_hub_new(running.loop.face, holder, &hub);
	if (r < 0)
		return nc_err_errno(err, r, "Run the program");
	r = run_to_end(&running, hub, err);
	nc_hub_free(hub);
	nc_small_loop_done(&running.loop);
	return r;
}
