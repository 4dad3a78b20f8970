/*
 * Commands in boxes on an event loop.
 *
 * Theory of operation: a command sees pipes. It has ended when the spawner says so and both pipes
 * are empty; everything in the box that could hold them open is dead by then, so a pipe that stays
 * open is somebody's outside, and is given up after a while. Whoever is called back may order the
 * next command from within the call.
 */
#include "tier/hub.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/limits.h"

#define CHUNK NC_COMMAND_PENDING_MAX
/* Everything in the box is dead: who else could still write? */
#define DRAIN_MS 2000
/* Ctrl-D: what a terminal takes for the end of its input. */
#define END_OF_INPUT "\004"

struct nc_command {
	struct nc_hub *hub;
	struct nc_holder *holder;	  /* of its box */
	struct nc_command *next, **place; /* the list of those that run */
	struct nc_command_spec spec;
	uint64_t box_id;
	/* our ends; -EBADF once closed */
	int input_fd, pack_fd, from_fd[NC_STREAM_MAX];
	size_t packed; /* of its files, written by now */
	struct nc_poll *pack_poll, *input_poll, *source_poll, *poll[NC_STREAM_MAX];
	struct side {
		struct nc_command *command;
		enum nc_stream stream;
	} side[NC_STREAM_MAX];
	char *pending; /* read from the source, or given, and not written yet */
	size_t pending_at, pending_size;
	bool input_ends;  /* once the pending is through */
	bool terminal;	  /* in place of pipes */
	bool started;	  /* as far as we were told */
	uint64_t signals; /* that it gets then, as bits: before that the spawner has no program */
	bool kept;
	bool held; /* whoever is told of its output does not want it now */
	uint64_t output_bytes;
	bool killed;	     /* for its output */
	bool ended, forgets; /* the spawner is to forget it, once all is told */
	struct nc_box_end end;
	struct nacre_err failure;
	struct nc_timer *drain;
};

/* The number of its holder stands in the number of a box. */
#define HOLDER_SHIFT 56

struct link {
	struct nc_hub *hub;
	struct nc_holder *holder;
	struct nc_poll *poll; /* NULL: it is gone */
	struct nc_timer *patience;
};

struct nc_hub {
	struct nc_loop loop;
	struct link link[NC_HOLDERS_MAX];
	size_t n_links;
	struct nc_command *commands;
	struct nc_hub_watch watch;
	void (*lost)(void *context); /* the first holder has died; or NULL */
	void *lost_context;
	uint64_t last_id;
};

static void close_input(struct nc_command *command)
{
	command->input_poll = nc_poll_free(command->input_poll);
	command->source_poll = nc_poll_free(command->source_poll);
	/* the spawner keeps it open too, for the next worker */
	if (command->input_fd >= 0 && command->kept && !command->terminal && !command->ended)
		(void)nc_holder_signal(command->holder, command->box_id, 0);
	command->input_fd = nc_fd_close(command->input_fd);
}

static void close_pack(struct nc_command *command)
{
	command->pack_poll = nc_poll_free(command->pack_poll);
	command->pack_fd = nc_fd_close(command->pack_fd);
}

static void close_stream(struct nc_command *command, enum nc_stream stream)
{
	command->poll[stream] = nc_poll_free(command->poll[stream]);
	command->from_fd[stream] = nc_fd_close(command->from_fd[stream]);
}

static void command_free(struct nc_command *command)
{
	close_input(command);
	close_pack(command);
	for (enum nc_stream i = 0; i < NC_STREAM_MAX; i++)
		close_stream(command, i);
	(void)nc_timer_free(command->drain);
	if (command->place) {
		*command->place = command->next;
		if (command->next)
			command->next->place = command->place;
	}
	free(command->pending);
	free(command);
}

static void command_done(struct nc_command *command)
{
	struct nc_command_spec spec = command->spec;
	struct nc_box_end end = command->end;
	struct nacre_err failure = command->failure;
	struct nc_holder *holder = command->forgets ? command->holder : NULL;
	uint64_t output_bytes = command->output_bytes, box_id = command->box_id;

	command_free(command); /* first: the next command of the box may be ordered from within */
	spec.ended(spec.context, &end, output_bytes, failure.code < 0 ? &failure : NULL);
	/* after that: who dies in between leaves it to the next worker to be told again */
	if (holder)
		(void)nc_holder_forget(holder, box_id);
}

/* Whether it is over; then command is gone. */
static bool check_done(struct nc_command *command)
{
	for (enum nc_stream i = 0; i < NC_STREAM_MAX; i++)
		if (command->from_fd[i] >= 0)
			return false;
	if (!command->ended)
		return false;
	command_done(command);
	return true;
}

static void on_drain_timeout(void *context)
{
	struct nc_command *command = context;

	for (enum nc_stream i = 0; i < NC_STREAM_MAX; i++)
		close_stream(command, i);
	(void)check_done(command);
}

static void expect_no_more(struct nc_command *command)
{
	command->drain = nc_timer_free(command->drain);
	/* without a clock the end of its pipes is waited for */
	(void)nc_loop_after(
		&command->hub->loop, DRAIN_MS, on_drain_timeout, command, &command->drain);
}

/* Passes on what is within the limit; what is beyond is counted and dropped. */
static void on_output(void *context, int events)
{
	struct side *side = context;
	struct nc_command *command = side->command;
	const struct nc_command_spec *spec = &command->spec;
	char chunk[CHUNK];
	int fd = command->from_fd[side->stream];
	ssize_t n = spec->take ? spec->take(spec->context, side->stream, fd, chunk, sizeof(chunk))
			       : read(fd, chunk, sizeof(chunk));
	uint64_t room = spec->output_max > command->output_bytes
				? spec->output_max - command->output_bytes
				: 0;

	(void)events;
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		close_stream(command, side->stream);
		(void)check_done(command);
		return;
	}
	command->output_bytes += (uint64_t)n;
	if (command->output_bytes > spec->output_max && !command->killed) {
		command->killed = true;
		/* if it cannot be told, it is gone, and its end comes */
		(void)nc_holder_kill(command->holder, command->box_id, NC_CAUSE_OUTPUT);
	}
	if (command->drain) /* whoever is told may take its time: silence ends it */
		expect_no_more(command);
	if (room > 0)
		spec->printed(spec->context, side->stream, chunk,
			(uint64_t)n < room ? (size_t)n : (size_t)room);
}

static void feed(struct nc_command *command);

static void on_writable(void *context, int events)
{
	(void)events;
	feed(context);
}

/* Written at once at the most: who reads as fast as we write would hold up everybody else. */
#define TURN_MAX (512U * 1024)

/* Writes what there is: 1 when all of it is through, 0 when more is to be tried, or -errno. */
static int write_some(int fd, const char *data, size_t size, size_t *at)
{
	const size_t end = size - *at > TURN_MAX ? *at + TURN_MAX : size;

	while (*at < end) {
		ssize_t n = write(fd, data + *at, end - *at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		*at += (size_t)n;
	}
	return end == size;
}

/* Files are mostly small, and fit into the pipe at once. */
static void on_pack_writable(void *context, int events)
{
	struct nc_command *command = context;

	(void)events;
	if (write_some(command->pack_fd, command->spec.pack, command->spec.pack_size,
		    &command->packed) != 0)
		close_pack(command); /* all is through, or nobody reads */
}

static int give_pack(struct nc_command *command, int *their_fd)
{
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	*their_fd = ends[0];
	command->pack_fd = ends[1];
	if (fcntl(command->pack_fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	r = write_some(
		command->pack_fd, command->spec.pack, command->spec.pack_size, &command->packed);
	if (r == 0)
		return nc_loop_watch(&command->hub->loop, command->pack_fd, NC_WRITABLE,
			on_pack_writable, command, &command->pack_poll);
	close_pack(command);
	return r < 0 ? r : 0;
}

/* The next piece of the source: 1, or 0 at its end or if it has nothing now. */
static int read_source(struct nc_command *command)
{
	ssize_t n = read(command->spec.input_fd, command->pending, CHUNK);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n <= 0) {
		if (command->terminal)
			(void)nc_fd_write_all(command->input_fd, END_OF_INPUT, 1); /* or it ended */
		close_input(command);
		return 0;
	}
	command->pending_at = 0;
	command->pending_size = (size_t)n;
	return 1;
}

/* The same for what was given by nc_command_write. */
static void feed_given(struct nc_command *command)
{
	bool was_full = command->pending_size == CHUNK;
	int r = write_some(
		command->input_fd, command->pending, command->pending_size, &command->pending_at);

	if (r < 0 || (r > 0 && command->input_ends)) {
		close_input(command);
		return;
	}
	memmove(command->pending, command->pending + command->pending_at,
		command->pending_size - command->pending_at);
	command->pending_size -= command->pending_at;
	command->pending_at = 0;
	nc_poll_set(command->input_poll, r == 0 ? NC_WRITABLE : 0);
	if (was_full && command->pending_size < CHUNK && command->spec.writable)
		command->spec.writable(command->spec.context);
}

/*
 * Writes what was given, piece by piece: 1: all of it; 0: the pipe is full, or others have their
 * turn, since pieces that are made as they are asked for may take longer than the reader does.
 */
static int feed_pieces(struct nc_command_spec *spec, int fd)
{
	size_t moved = 0;

	while (spec->input) {
		size_t at = 0;
		int r = write_some(fd, spec->input, spec->input_size, &at);

		moved += at;
		if (r == 0) {
			spec->input += at;
			spec->input_size -= at;
		}
		if (r <= 0 || !spec->more ||
			!spec->more(spec->context, &spec->input, &spec->input_size))
			return r;
		if (moved >= TURN_MAX)
			return 0;
	}
	return 1;
}

/* Moves input until the pipe is full or nothing more is there. */
static void feed(struct nc_command *command)
{
	struct nc_command_spec *spec = &command->spec;
	int r;

	if (spec->interactive) {
		feed_given(command);
		return;
	}
	r = feed_pieces(spec, command->input_fd);
	if (r > 0 && spec->input && spec->fed)
		spec->fed(spec->context);
	if (r > 0) {
		spec->input = NULL;
		if (spec->input_fd < 0) {
			close_input(command);
			return;
		}
		r = write_some(command->input_fd, command->pending, command->pending_size,
			&command->pending_at);
	}
	if (r < 0) { /* it does not read any more */
		close_input(command);
		return;
	}
	if (r > 0 && !command->source_poll) { /* a file: always ready */
		if (read_source(command) > 0)
			nc_poll_set(command->input_poll, NC_WRITABLE);
		return;
	}
	nc_poll_set(command->input_poll, r == 0 ? NC_WRITABLE : 0);
	if (command->source_poll)
		nc_poll_set(command->source_poll, r > 0 ? NC_READABLE : 0);
}

static void on_source(void *context, int events)
{
	(void)events;
	if (read_source(context) > 0)
		feed(context);
}

static int make_pipes(struct nc_command *command, int theirs[3])
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	theirs[0] = ends[0];
	command->input_fd = ends[1];
	for (enum nc_stream i = 0; i < NC_STREAM_MAX; i++) {
		if (pipe2(ends, O_CLOEXEC) < 0)
			return -errno;
		command->from_fd[i] = ends[0];
		theirs[1 + i] = ends[1];
		if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
			return -errno;
	}
	return fcntl(command->input_fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int watch(struct nc_command *command)
{
	const struct nc_loop *loop = &command->hub->loop;
	int r = 0;

	for (enum nc_stream i = 0; r == 0 && i < NC_STREAM_MAX; i++) {
		command->side[i] = (struct side){command, i};
		if (command->from_fd[i] >= 0)
			r = nc_loop_watch(loop, command->from_fd[i],
				command->held ? 0 : NC_READABLE, on_output, &command->side[i],
				&command->poll[i]);
	}
	if (r == 0 && command->input_fd >= 0)
		r = nc_loop_watch(loop, command->input_fd, NC_WRITABLE, on_writable, command,
			&command->input_poll);
	if (r < 0 || (command->spec.input_fd < 0 && !command->spec.interactive))
		return r;
	if (!command->pending)
		command->pending = malloc(CHUNK);
	if (!command->pending)
		return -ENOMEM;
	if (command->spec.interactive || command->input_fd < 0) /* a terminal: it comes */
		return 0;
	r = nc_loop_watch(
		loop, command->spec.input_fd, 0, on_source, command, &command->source_poll);
	return r == -EPERM ? 0 : r;
}

static void enlist(struct nc_hub *hub, struct nc_command *command)
{
	command->next = hub->commands;
	command->place = &hub->commands;
	if (command->next)
		command->next->place = &command->next;
	hub->commands = command;
}

static struct link *link_of(struct nc_hub *hub, uint64_t box_id)
{
	const unsigned int number = nc_hub_holder_of(box_id);

	return number < hub->n_links && hub->link[number].poll ? &hub->link[number] : NULL;
}

static void on_silence(void *context);

/* Whether there is something that it has to say, or to take, before long. */
static bool owes(const struct link *link)
{
	const struct nc_holder *holder = link->holder;
	const struct nc_command *command = link->hub->commands;

	while (command && (command->holder != holder || command->started || command->ended))
		command = command->next;
	return command || !holder->greeted || holder->welcome.n_adopted > 0 || holder->mail.first ||
	       holder->unanswered || holder->untold;
}

/*
 * Whoever is silent for too long is given up with all that it holds, so that nobody else has to
 * wait for it. Not the first one: without that there is nothing anyway.
 */
static void expect(struct link *link)
{
	/* all adoptions together: a worker that begins waits for them */
	if (link->poll && link->patience && link->holder->welcome.n_adopted > 0)
		return;
	link->patience = nc_timer_free(link->patience);
	if (link->poll && link->holder->number > 0 && owes(link))
		(void)nc_loop_after(
			&link->hub->loop, NC_HOLDER_PATIENCE_MS, on_silence, link, &link->patience);
}

static int send_order(struct nc_command *command, const int theirs[4], struct nacre_err *err)
{
	const struct nc_command_spec *spec = &command->spec;
	const struct nc_exec_spec *exec = spec->exec;
	const bool keeps = exec->survives && !exec->terminal;
	struct nc_box_fds fds = {0};

	for (size_t i = 0; i < 3; i++)
		nc_box_fds_add(&fds, nc_box_streams[i], theirs[i]);
	nc_box_fds_add(&fds, NC_FD_PACK, theirs[3]);
	nc_box_fds_add(&fds, NC_FD_IMAGE, spec->image_fd);
	for (size_t i = 0; i < exec->n_layers; i++)
		nc_box_fds_add(&fds, exec->layer_writable[i] ? NC_FD_LAYER_WRITABLE : NC_FD_LAYER,
			spec->layer_fd[i]);
	for (size_t i = 0; keeps && i < 3; i++)
		nc_box_fds_add(&fds, nc_box_own_streams[i],
			i == 0 ? command->input_fd : command->from_fd[i - 1]);
	return nc_holder_order(command->holder, spec->next, exec, &fds, err);
}

/* The master of its terminal is both its output and its input. */
static int take_terminal(struct nc_command *command, int fd)
{
	int r;

	command->from_fd[NC_STREAM_OUTPUT] = fd;
	command->input_fd = nc_fd_dup(fd);
	if (command->input_fd < 0 || fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0)
		return -errno;
	r = watch(command);
	if (r == 0 && !command->spec.interactive && command->spec.input_fd < 0)
		nc_poll_set(command->input_poll, 0);
	return r;
}

/* What its terms do not have is not ordered: a holder hangs up on that, and others lose their
 * boxes.
 */
static int check_terms(
	const struct nc_holder *holder, const struct nc_command_spec *spec, struct nacre_err *err)
{
	const struct nc_exec_spec *exec = spec->exec;
	const struct nc_tier_terms *terms = &holder->welcome.terms[exec->tier];
	const bool mounts = spec->image_fd >= 0 || exec->n_layers > 0 || exec->n_binds > 0 ||
			    exec->door || exec->guests;

	if (holder->number > 0 && !terms->here)
		return nc_err_set(
			err, -EOPNOTSUPP, "No %s box can be had there", nc_tier_names[exec->tier]);
	if (!mounts || terms->mounts)
		return 0;
	return nc_err_set(err, -EOPNOTSUPP,
		"A %s box has no mounts: no image, network or shared directory can be had in it",
		nc_tier_names[exec->tier]);
}

int nc_hub_start(struct nc_hub *hub, const struct nc_command_spec *spec,
	struct nc_command **ret_command, struct nacre_err *err)
{
	struct link *link = link_of(hub, spec->exec->id);
	struct nc_command *command = link ? calloc(1, sizeof(*command)) : NULL;
	int theirs[4] = {-EBADF, -EBADF, -EBADF, -EBADF};
	int r;

	if (!link)
		return nc_err_set(err, -ECONNRESET, "The holder of such boxes is gone");
	if (check_terms(link->holder, spec, err) < 0) {
		free(command);
		return err->code;
	}
	if (!command)
		return nc_err_errno(err, -ENOMEM, "Begin a command");
	*command = (struct nc_command){.hub = hub,
		.holder = link->holder,
		.spec = *spec,
		.box_id = spec->exec->id,
		.terminal = spec->exec->terminal,
		.kept = spec->exec->survives,
		.input_fd = -EBADF,
		.pack_fd = -EBADF,
		.from_fd = {-EBADF, -EBADF}};
	r = command->terminal ? 0 : make_pipes(command, theirs);
	if (r == 0 && spec->pack)
		r = give_pack(command, &theirs[3]);
	if (r == 0)
		r = watch(command);
	r = r < 0 ? nc_err_errno(err, r, "Make pipes") : send_order(command, theirs, err);
	for (int i = 0; i < 4; i++)
		(void)nc_fd_close(theirs[i]);
	if (r < 0) {
		command_free(command);
		return r;
	}
	command->spec.exec = NULL;
	enlist(hub, command);
	if (!link->patience)
		expect(link);
	*ret_command = command;
	return 0;
}

int nc_hub_adopt(struct nc_hub *hub, struct nc_adoption *adoption,
	const struct nc_command_spec *spec, struct nc_command **ret_command)
{
	const struct link *link = link_of(hub, adoption->id);
	struct nc_command *command = link ? calloc(1, sizeof(*command)) : NULL;
	int r;

	if (!command)
		return link ? -ENOMEM : -ECONNRESET;
	*command = (struct nc_command){.hub = hub,
		.holder = link->holder,
		.spec = *spec,
		.box_id = adoption->id,
		.terminal = nc_box_fds_has(&adoption->fds, NC_FD_TERMINAL),
		.started = true,
		.kept = true,
		.pack_fd = -EBADF,
		.output_bytes =
			spec->had_bytes[NC_STREAM_OUTPUT] + spec->had_bytes[NC_STREAM_ERROR],
		.input_fd = nc_box_fds_take(&adoption->fds, NC_FD_OWN_INPUT),
		.from_fd = {nc_box_fds_take(&adoption->fds, NC_FD_OWN_OUTPUT),
			nc_box_fds_take(&adoption->fds, NC_FD_OWN_ERROR)}};
	command->spec.input_fd = -EBADF;
	r = command->terminal
		    ? take_terminal(command, nc_box_fds_take(&adoption->fds, NC_FD_TERMINAL))
		    : watch(command);
	if (r < 0) {
		command_free(command);
		return r;
	}
	enlist(hub, command);
	(void)nc_holder_had(link->holder, adoption->id, spec->had_bytes[NC_STREAM_OUTPUT],
		spec->had_bytes[NC_STREAM_ERROR]);
	*ret_command = command;
	return 0;
}

size_t nc_command_write(struct nc_command *command, const char *data, size_t size)
{
	size_t room = command->pending ? CHUNK - command->pending_size : 0;

	/* a terminal that is not there yet takes what fits; what has ended takes all */
	if (command->input_ends || (command->input_fd < 0 && !command->terminal))
		return size;
	if (size > room)
		size = room;
	if (size == 0)
		return 0; /* nothing moves here: who is told nothing now is told by writable() */
	memcpy(command->pending + command->pending_size, data, size);
	command->pending_size += size;
	if (command->input_fd >= 0)
		feed_given(command);
	return size;
}

void nc_command_hold(struct nc_command *command, bool held)
{
	if (command->held == held)
		return;
	command->held = held;
	for (enum nc_stream i = 0; i < NC_STREAM_MAX; i++)
		if (command->poll[i])
			nc_poll_set(command->poll[i], held ? 0 : NC_READABLE);
	if (held)
		command->drain = nc_timer_free(command->drain);
	else if (command->ended)
		expect_no_more(command);
}

void nc_command_end_input(struct nc_command *command)
{
	if (command->terminal) {
		(void)nc_command_write(command, END_OF_INPUT, 1);
		return;
	}
	command->input_ends = true;
	if (command->input_fd >= 0)
		feed_given(command);
}

/* The number of a request, with that of its holder. */
static int64_t ticket_of(const struct nc_holder *holder, int64_t number)
{
	return number < 0 ? number : (int64_t)holder->number << 32 | number;
}

/* The same for one that has just been made, whose answer is waited for. */
static int64_t ask(struct nc_hub *hub, const struct nc_holder *holder, int64_t number)
{
	struct link *link = &hub->link[holder->number];

	if (!link->patience)
		expect(link);
	return ticket_of(holder, number);
}

bool nc_hub_is_ticket(int64_t answered, int64_t ticket)
{
	return answered == ticket || (answered >> 32 == ticket >> 32 && !(uint32_t)answered);
}

int64_t nc_command_resize(struct nc_command *command, unsigned short rows, unsigned short columns)
{
	if (!command->terminal || command->from_fd[NC_STREAM_OUTPUT] < 0)
		return -ENOTTY;
	return ask(command->hub, command->holder,
		nc_holder_resize(command->holder, command->box_id, rows, columns));
}

int64_t nc_command_signal(struct nc_command *command, int signal)
{
	if (command->started)
		return ask(command->hub, command->holder,
			nc_holder_signal(command->holder, command->box_id, signal));
	if (signal > 0 && signal <= 64)
		command->signals |= 1ULL << (signal - 1);
	return 0;
}

static void disowned_printed(void *context, enum nc_stream stream, const char *data, size_t size)
{
	(void)context, (void)stream, (void)data, (void)size;
}

static void disowned_ended(void *context, const struct nc_box_end *end, uint64_t output_bytes,
	const struct nacre_err *failure)
{
	(void)context, (void)end, (void)output_bytes, (void)failure;
}

void nc_command_release(struct nc_command *command)
{
	command->kept = false; /* nothing is to be said to the spawner */
	command_free(command);
}

void nc_command_disown(struct nc_command *command)
{
	struct nc_command_spec *spec = &command->spec;

	close_input(command); /* what it reads from may go */
	close_pack(command);
	nc_command_hold(command, false);
	spec->context = NULL;
	spec->started = NULL;
	spec->told = NULL;
	spec->take = NULL;
	spec->fed = NULL;
	spec->writable = NULL;
	spec->printed = disowned_printed;
	spec->ended = disowned_ended;
}

int64_t nc_hub_freeze(struct nc_hub *hub, uint64_t box_id, bool frozen)
{
	const struct link *link = link_of(hub, box_id);

	return link ? ask(hub, link->holder, nc_holder_freeze(link->holder, box_id, frozen))
		    : -ECONNRESET;
}

int64_t nc_hub_ask(struct nc_hub *hub, uint64_t box_id)
{
	const struct link *link = link_of(hub, box_id);

	return link ? ask(hub, link->holder, nc_holder_ask(link->holder, box_id)) : -ECONNRESET;
}

void nc_hub_ready(struct nc_hub *hub, uint64_t warm_class, unsigned int n)
{
	const struct link *link = link_of(hub, warm_class);

	if (link)
		(void)nc_holder_ready(link->holder, warm_class, n);
}

void nc_hub_watch(struct nc_hub *hub, const struct nc_hub_watch *watch)
{
	hub->watch = *watch;
}

int64_t nc_command_cancel(struct nc_command *command)
{
	return ask(command->hub, command->holder,
		nc_holder_kill(command->holder, command->box_id, NC_CAUSE_CANCEL));
}

void nc_hub_drop(struct nc_hub *hub, uint64_t box_id)
{
	const struct link *link = link_of(hub, box_id);

	if (link)
		(void)nc_holder_kill(link->holder, box_id, NC_CAUSE_CANCEL);
}

uint32_t nc_hub_unadopted(const struct nc_hub *hub)
{
	uint32_t n = 0;

	for (size_t i = 0; i < hub->n_links; i++)
		n += hub->link[i].poll ? hub->link[i].holder->welcome.n_adopted : 0;
	return n;
}

void nc_hub_on_lost(struct nc_hub *hub, void (*lost)(void *context), void *context)
{
	hub->lost = lost;
	hub->lost_context = context;
}

static size_t count_commands(const struct nc_hub *hub, const struct nc_holder *holder)
{
	size_t n = 0;

	for (const struct nc_command *command = hub->commands; command; command = command->next)
		n += command->holder == holder;
	return n;
}

/* Of several that have the tier, the one with the least to do. */
static const struct nc_holder *choose(const struct nc_hub *hub, enum nc_tier tier)
{
	const struct nc_holder *best = nc_holder_of(hub->link[0].holder, tier);
	const struct nc_holder *other = best;

	while ((other = other->next))
		if (other->welcome.terms[tier].here &&
			count_commands(hub, other) < count_commands(hub, best))
			best = other;
	return best;
}

uint64_t nc_hub_box_id(struct nc_hub *hub, enum nc_tier tier)
{
	return ++hub->last_id | (uint64_t)choose(hub, tier)->number << HOLDER_SHIFT;
}

uint64_t nc_hub_id_beside(struct nc_hub *hub, uint64_t box_id)
{
	return ++hub->last_id | box_id >> HOLDER_SHIFT << HOLDER_SHIFT;
}

unsigned int nc_hub_holder_of(uint64_t box_id)
{
	return (unsigned int)(box_id >> HOLDER_SHIFT);
}

static struct nc_command *find(struct nc_hub *hub, uint64_t box_id)
{
	struct nc_command *command = hub->commands;

	while (command && (command->box_id != box_id || command->ended))
		command = command->next;
	return command;
}

/* Nobody is left who could end them. */
static void lose_commands(struct nc_hub *hub, const struct nc_holder *holder)
{
	struct nc_command *command = hub->commands;

	while (command) {
		if (command->holder != holder) {
			command = command->next;
			continue;
		}
		nc_err_set(&command->failure, -ECONNRESET, "The holder of its box is gone");
		command->end.fail = NC_FAIL_LOST;
		command_done(command);
		command = hub->commands; /* who is told may have ended others */
	}
}

static void on_answer(const struct link *link, uint32_t number, int error)
{
	const struct nc_hub_watch *watch = &link->hub->watch;

	if (watch->answered)
		watch->answered(watch->context, ticket_of(link->holder, number), error);
}

/* What it held is gone with it. Without the first one nothing goes on, and nobody is told that its
 * tiers cannot be had. */
static void lose(struct link *link)
{
	struct nc_hub *hub = link->hub;
	struct nc_holder *holder = link->holder;

	link->poll = nc_poll_free(link->poll);
	link->patience = nc_timer_free(link->patience);
	if (holder->number > 0) {
		memset(holder->welcome.terms, 0, sizeof(holder->welcome.terms));
		holder->welcome.n_adopted = 0;
		nc_mail_done(&holder->mail);
		holder->fd = nc_fd_close(holder->fd); /* it ends what is nobody's then */
	}
	lose_commands(hub, holder);
	on_answer(link, 0, -ECONNRESET);
	if (holder->number > 0 && hub->watch.lost)
		hub->watch.lost(hub->watch.context, holder->number);
	else if (holder->number == 0 && hub->lost)
		hub->lost(hub->lost_context);
}

static void on_silence(void *context)
{
	lose(context);
}

/* A box that no command waits for: one that stays, or was dropped, or was there before us. */
static void on_other(struct link *link, struct nc_holder_event *event)
{
	struct nc_hub *hub = link->hub;

	if (event->type == NC_BOX_ADOPT) {
		struct nc_adoption adoption = {event->id, event->home,
			nc_box_fds_has(&event->fds, NC_FD_TERMINAL) ||
				nc_box_fds_has(&event->fds, NC_FD_OWN_OUTPUT),
			event->fds};

		const uint64_t number = event->id & ((1ULL << HOLDER_SHIFT) - 1);

		if (link->holder->welcome.n_adopted > 0)
			link->holder->welcome.n_adopted--;
		if (hub->last_id < number)
			hub->last_id = number;
		if (hub->watch.adopted)
			hub->watch.adopted(hub->watch.context, &adoption);
		event->fds = adoption.fds; /* what was not taken */
	} else if (event->type == NC_BOX_TOLD) {
		if (hub->watch.told)
			hub->watch.told(hub->watch.context, &event->now);
	} else if (event->type == NC_BOX_ENDED && !event->end.stays) {
		if (hub->watch.gone)
			hub->watch.gone(hub->watch.context, event->id);
		(void)nc_holder_forget(link->holder, event->id); /* if it was kept */
	}
}

static void on_started(struct nc_command *command, struct nc_holder_event *event)
{
	const struct nc_command_spec *spec = &command->spec;
	const int terminal_fd = nc_box_fds_take(&event->fds, NC_FD_TERMINAL);

	if (terminal_fd >= 0)
		command->terminal = true; /* adopted before it had begun, nobody knew */
	if (terminal_fd >= 0 && take_terminal(command, terminal_fd) < 0)
		(void)nc_command_cancel(command);
	command->started = true;
	for (int i = 1; i <= 64; i++)
		if (command->signals >> (i - 1) & 1)
			(void)nc_command_signal(command, i);
	command->signals = 0;
	if (spec->started)
		spec->started(
			spec->context, event->birth_ns, nc_box_fds_take(&event->fds, NC_FD_DOOR));
}

static void on_end(struct nc_command *command, const struct nc_holder_event *event)
{
	command->forgets = command->kept && event->type == NC_BOX_ENDED && !event->end.stays;
	command->ended = true;
	command->end = event->end;
	if (event->type == NC_BOX_FAILED)
		command->failure = event->failure;
	close_input(command);
	if (!check_done(command) && !command->held)
		expect_no_more(command);
}

static void on_event(struct link *link, struct nc_holder_event *event)
{
	struct nc_command *command =
		event->type == NC_BOX_ADOPT ? NULL : find(link->hub, event->id);

	if (event->type == NC_BOX_ANSWER) {
		on_answer(link, event->number, event->error);
		return;
	}
	/* a holder speaks of boxes of its own and of no others */
	if (command && command->holder != link->holder)
		command = NULL;
	if (!command || (event->type == NC_BOX_TOLD && !command->spec.told))
		on_other(link, event);
	else if (event->type == NC_BOX_TOLD)
		command->spec.told(command->spec.context, &event->now);
	else if (event->type == NC_BOX_STARTED)
		on_started(command, event);
	else
		on_end(command, event);
	nc_box_fds_close(&event->fds); /* those that nobody took */
}

static void on_holder(void *context, int events)
{
	struct link *link = context;
	struct nc_holder_event event;
	int r;

	if (events & NC_WRITABLE && nc_mail_flush(&link->holder->mail, link->holder->fd))
		nc_poll_set(link->poll, NC_READABLE);
	if (!(events & ~NC_WRITABLE))
		return;
	r = nc_holder_receive(link->holder, &event);
	if (r == 0 && event.type != NC_BOX_WELCOME && event.type != NC_BOX_ANSWER &&
		nc_hub_holder_of(event.id) != link->holder->number)
		r = -EPROTO;
	if (r == 0)
		on_event(link, &event);
	else if (r != -EAGAIN)
		lose(link);
	expect(link);
}

bool nc_hub_is_behind(const struct nc_hub *hub)
{
	for (size_t i = 0; i < hub->n_links; i++)
		if (hub->link[i].poll && hub->link[i].holder->mail.first)
			return true;
	return false;
}

/* Something waits to be taken by it. */
static void on_mail(void *context)
{
	struct link *link = context;

	if (!link->poll)
		return;
	nc_poll_set(link->poll, NC_READABLE | NC_WRITABLE);
	if (!link->patience)
		expect(link);
}

static int listen_to(struct link *link)
{
	int r = nc_loop_watch(
		&link->hub->loop, link->holder->fd, NC_READABLE, on_holder, link, &link->poll);

	expect(link);
	return r;
}

static int add_link(struct nc_hub *hub, struct nc_holder *holder)
{
	struct link *link = &hub->link[hub->n_links];

	assert(hub->n_links < NC_HOLDERS_MAX && holder->number == hub->n_links);
	hub->n_links++;
	*link = (struct link){.hub = hub, .holder = holder};
	if (hub->last_id < holder->last_id)
		hub->last_id = holder->last_id;
	holder->mail.max = NC_HOLDER_MAIL_MAX;
	holder->mail.waits = on_mail;
	holder->mail.context = link;
	return holder->fd < 0 ? 0 : listen_to(link);
}

int nc_hub_new(struct nc_loop loop, struct nc_holder *first, struct nc_hub **ret_hub)
{
	struct nc_hub *hub = calloc(1, sizeof(*hub));
	int r = hub ? 0 : -ENOMEM;

	if (r == 0)
		*hub = (struct nc_hub){.loop = loop};
	for (struct nc_holder *holder = first; r == 0 && holder; holder = holder->next)
		r = add_link(hub, holder);
	if (r < 0) {
		nc_hub_free(hub);
		return r;
	}
	*ret_hub = hub;
	return 0;
}

int nc_hub_meet(struct nc_hub *hub, unsigned int number, int fd)
{
	struct link *link = number < hub->n_links ? &hub->link[number] : NULL;
	cleanup_close int own_fd = fd;
	int r;

	if (!link || link->poll)
		return -EBUSY;
	nc_mail_done(&link->holder->mail);
	(void)nc_fd_close(link->holder->fd);
	link->holder->fd = take_fd(own_fd);
	r = nc_holder_greet(link->holder);
	return r < 0 ? r : listen_to(link);
}

bool nc_hub_has(const struct nc_hub *hub, unsigned int number)
{
	return number < hub->n_links && hub->link[number].poll;
}

bool nc_hub_hears(const struct nc_hub *hub, unsigned int number)
{
	return nc_hub_has(hub, number) && hub->link[number].holder->greeted;
}

bool nc_hub_is_settled(const struct nc_hub *hub, unsigned int number)
{
	return nc_hub_has(hub, number) && hub->link[number].holder->greeted &&
	       hub->link[number].holder->welcome.n_adopted == 0;
}

void nc_hub_free(struct nc_hub *hub)
{
	if (!hub)
		return;
	hub->watch = (struct nc_hub_watch){0};
	hub->lost = NULL;
	for (size_t i = 0; i < hub->n_links; i++) {
		struct link *link = &hub->link[i];

		link->poll = nc_poll_free(link->poll);
		link->patience = nc_timer_free(link->patience);
		lose_commands(hub, link->holder);
		link->holder->mail.waits = NULL;
	}
	free(hub);
}
