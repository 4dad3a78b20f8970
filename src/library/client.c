/* A client of `nacre engine`. */
#include "library/client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/text.h"

#define CHUNK 65536
#define START_SECONDS 60
/* One frame: each is sent before the next is made. */
#define OUT_MAX (NC_FRAME_REQUEST_MAX + CHUNK)

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static int errno_of(const char *name)
{
	for (int i = 1; i < 256; i++)
		if (nc_streq(nc_errno_name(i), name))
			return -i;
	return -EIO;
}

static int take_error(const json_t *frame, struct nacre_err *err)
{
	return nc_err_set(err, errno_of(text_of(frame, "code")), "%s", text_of(frame, "message"));
}

/* Whoever polls nacre_engine_fd() wakes up while there is something to fetch. */
static void signal_waiting(struct nacre_engine *engine)
{
	bool waiting = engine->events || engine->n_answers > 0;
	eventfd_t ignored;

	if (waiting == engine->signalled)
		return;
	engine->signalled = waiting;
	/* from 0 to 1 and back: neither can fail */
	if (waiting)
		(void)eventfd_write(engine->event_fd, 1);
	else
		(void)eventfd_read(engine->event_fd, &ignored);
}

struct nc_ticket *nc_client_find(const struct nacre_engine *engine, uint64_t n)
{
	struct nc_ticket *ticket = engine->tickets;

	while (ticket && ticket->n != n)
		ticket = ticket->next;
	return ticket;
}

static bool waits_for_program(const struct nc_ticket *ticket)
{
	return ticket->answer && !ticket->owner;
}

void nc_client_drop(struct nacre_engine *engine, struct nc_ticket *ticket)
{
	struct nc_ticket **place = &engine->tickets;

	while (*place != ticket)
		place = &(*place)->next;
	*place = ticket->next;
	if (engine->tickets_end == &ticket->next)
		engine->tickets_end = place;
	if (waits_for_program(ticket))
		engine->n_answers--;
	json_decref(ticket->answer);
	free(ticket);
	signal_waiting(engine);
}

static struct nc_ticket *add_ticket(struct nacre_engine *engine, const struct nc_ticket *like)
{
	struct nc_ticket *ticket = calloc(1, sizeof(*ticket));

	if (!ticket)
		return NULL;
	*ticket = *like;
	ticket->n = ++engine->last_n;
	*engine->tickets_end = ticket;
	engine->tickets_end = &ticket->next;
	return ticket;
}

/* Memory, not bytes of output alone: a program may print one byte at a time. */
static size_t cost_of(const struct nc_event *event)
{
	return sizeof(*event) + event->size;
}

static int add_event(struct nacre_engine *engine, const struct nc_event *head, const char *data)
{
	struct nc_event *event = calloc(1, sizeof(*event) + head->size + 1);

	if (!event)
		return -ENOMEM;
	*event = *head;
	if (head->size > 0)
		memcpy(event->data, data, head->size);
	*engine->events_end = event;
	engine->events_end = &event->next;
	if (!event->done)
		engine->events_size += cost_of(event);
	return 0;
}

/* The reply of an execution, whatever kind of frame it came in. Takes over nothing. */
static json_t *reply_of(const json_t *frame, bool *ret_busy)
{
	const char *event = text_of(frame, "event"), *code = text_of(frame, "code");

	if (nc_streq(event, "done"))
		return json_incref(json_object_get(frame, "reply"));
	if (nc_streq(event, "faults"))
		return nc_client_invalid(json_incref(json_object_get(frame, "faults")));
	if (!nc_streq(event, "error"))
		return NULL;
	*ret_busy = nc_streq(code, "EAGAIN");
	return json_pack("{s:s, s:s, s:s}", "status", *ret_busy ? "refused" : "internal_error",
		"error", text_of(frame, "message"), "code", code);
}

static int add_piece(const char *text, size_t size, void *context)
{
	struct nc_buf *buf = context;

	nc_buf_add(buf, text, size);
	return buf->error;
}

int nc_client_text(const json_t *value, char **ret_text)
{
	nc_buf_cleanup struct nc_buf buf = NC_BUF(SIZE_MAX / 8);

	if (json_dump_callback(value, add_piece, &buf, JSON_COMPACT) < 0)
		return -ENOMEM;
	return nc_buf_take(&buf, ret_text);
}

json_t *nc_client_invalid(json_t *faults)
{
	const json_t *first = json_array_get(faults, 0);
	const char *pointer = text_of(first, "pointer");

	return json_pack("{s:s, s:s++, s:o}", "status", "invalid", "error", pointer,
		*pointer ? ": " : "", text_of(first, "message"), "faults", faults);
}

/* Tells the listener later, and forgets the ticket. */
static int add_done(struct nacre_engine *engine, struct nc_ticket *ticket)
{
	struct nc_event head = {.listener = ticket->listener, .n = ticket->n, .done = true};
	cleanup_free char *text = NULL;
	int r = nc_client_text(ticket->answer, &text);

	head.size = text ? strlen(text) : 0;
	if (r == 0)
		r = add_event(engine, &head, text);
	if (r == 0)
		nc_client_drop(engine, ticket);
	return r;
}

/* An answer has come, which ends the ticket for the engine's part. Takes over the reference. */
static int settle(struct nacre_engine *engine, struct nc_ticket *ticket, json_t *answer)
{
	if (!answer)
		return -ENOMEM;
	ticket->answer = answer;
	if (waits_for_program(ticket))
		engine->n_answers++;
	if (ticket->discard)
		nc_client_drop(engine, ticket);
	else if (ticket->listener.done)
		return add_done(engine, ticket);
	return 0;
}

static int take_output(struct nacre_engine *engine, struct nc_ticket *ticket, const json_t *frame)
{
	bool is_error = nc_streq(text_of(frame, "stream"), "stderr");
	json_int_t dropped = json_integer_value(json_object_get(frame, "dropped"));
	const json_t *encoded = json_object_get(frame, "base64");
	const json_t *plain = json_object_get(frame, "text");
	struct nc_event head = {.listener = ticket->listener,
		.n = ticket->n,
		.stream = is_error ? NACRE_STDERR : NACRE_STDOUT,
		.size = json_string_length(plain)};
	const char *data = json_string_value(plain);
	cleanup_free char *decoded = NULL;
	size_t at;
	int r = 0;

	if (!ticket->listener.output || ticket->discard)
		return 0;
	if (!json_is_string(encoded ? encoded : plain))
		return -EPROTO;
	if (encoded)
		r = nc_base64_decode(json_string_value(encoded), json_string_length(encoded),
			&decoded, &head.size, &at);
	ticket->dropped[is_error] += dropped > 0 ? (uint64_t)dropped : 0;
	if (r < 0)
		return r == -EINVAL ? -EPROTO : r;
	if (engine->events_size + cost_of(&head) > NC_LIBRARY_EVENTS_MAX) {
		ticket->dropped[is_error] += head.size;
		return 0;
	}
	head.dropped = ticket->dropped[is_error];
	ticket->dropped[is_error] = 0;
	return add_event(engine, &head, decoded ? decoded : data);
}

/* What we left out ourselves and no output came after. */
static int tell_dropped(struct nacre_engine *engine, struct nc_ticket *ticket)
{
	int r = 0;

	for (int i = 0; r == 0 && i < 2; i++) {
		struct nc_event head = {.listener = ticket->listener,
			.n = ticket->n,
			.stream = i ? NACRE_STDERR : NACRE_STDOUT,
			.dropped = ticket->dropped[i]};

		if (ticket->dropped[i] > 0)
			r = add_event(engine, &head, "");
		ticket->dropped[i] = 0;
	}
	return r;
}

/* Frames of number 0 are about the engine itself. */
static int take_greeting(struct nacre_engine *engine, const json_t *frame, struct nacre_err *err)
{
	json_int_t protocol = json_integer_value(json_object_get(frame, "protocol"));

	if (nc_streq(text_of(frame, "event"), "error"))
		return take_error(frame, err);
	if (protocol != NC_FRAME_PROTOCOL)
		return nc_err_set(err, -EPROTO,
			"nacre engine speaks protocol %lld, this library %d: install both from one "
			"version",
			(long long)protocol, NC_FRAME_PROTOCOL);
	engine->max_queued = (size_t)json_integer_value(json_object_get(frame, "max_queued"));
	engine->ready = true;
	return 0;
}

static int take_frame(struct nacre_engine *engine, json_t *frame, struct nacre_err *err)
{
	json_int_t n = json_integer_value(json_object_get(frame, "n"));
	struct nc_ticket *ticket = n > 0 ? nc_client_find(engine, (uint64_t)n) : NULL;
	json_t *answer;
	int r;

	if (n == 0)
		return take_greeting(engine, frame, err);
	if (n < 0 || (uint64_t)n > engine->last_n)
		return nc_err_set(err, -EPROTO, "nacre engine answers what nobody asked");
	if (!ticket) /* whoever asked has given up waiting */
		return 0;
	if (nc_streq(text_of(frame, "event"), "output")) {
		r = take_output(engine, ticket, frame);
	} else {
		r = tell_dropped(engine, ticket);
		answer = ticket->is_call ? json_incref(frame) : reply_of(frame, &ticket->busy);
		if (r == 0)
			r = settle(engine, ticket, answer);
		else
			json_decref(answer);
	}
	return r < 0 ? nc_err_errno(err, r, "Take an answer") : 0;
}

static int take_bytes(
	struct nacre_engine *engine, const char *data, size_t size, struct nacre_err *err)
{
	int r = 0;

	while (r >= 0 && size > 0) {
		cleanup_json json_t *frame = NULL;
		size_t used;

		r = nc_frame_take(&engine->in, data, size, &used, &frame, err);
		if (r <= 0)
			break;
		r = take_frame(engine, frame, err);
		data += used;
		size -= used;
	}
	return r < 0 ? r : 0;
}

/* Everything that has come. */
static int receive(struct nacre_engine *engine, struct nacre_err *err)
{
	char chunk[CHUNK];

	for (;;) {
		ssize_t n = read(engine->program.fd, chunk, sizeof(chunk));
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0)
			return nc_err_set(
				err, -EPIPE, "nacre engine has ended; standard error may say why");
		r = take_bytes(engine, chunk, (size_t)n, err);
		if (r < 0)
			return r;
		if ((size_t)n < sizeof(chunk))
			return 0;
	}
}

/* Waits for events of the socket at most timeout_ms, and takes what has come. */
static int turn(struct nacre_engine *engine, short events, int timeout_ms, struct nacre_err *err)
{
	struct pollfd wait = {.fd = engine->program.fd, .events = events};
	struct nacre_err why = {0};
	int r = 0;

	if (engine->gone.code == 0) {
		r = poll(&wait, 1, timeout_ms);
		if (r < 0 && errno != EINTR)
			return nc_err_errno(err, -errno, "Wait for nacre engine");
		if (r > 0 && (wait.revents & ~POLLOUT) && receive(engine, &why) < 0)
			engine->gone = why; /* in the middle of a frame there is no way on */
	}
	signal_waiting(engine);
	return engine->gone.code < 0
		       ? nc_err_set(err, engine->gone.code, "%s", engine->gone.message)
		       : 0;
}

int nc_client_pump(struct nacre_engine *engine, int timeout_ms, struct nacre_err *err)
{
	return turn(engine, POLLIN, timeout_ms, err);
}

/* Gets everything out. The engine may stop listening while we do not read, so we do both. */
static int flush(struct nacre_engine *engine, struct nacre_err *err)
{
	int r;

	while ((r = nc_frame_send(&engine->out, engine->program.fd)) <= 0) {
		/* if it has hung up: what it said before that is still to be read */
		int done = turn(engine, r < 0 ? POLLIN : POLLIN | POLLOUT, -1, err);

		if (done < 0)
			return done;
	}
	return 0;
}

int nc_client_call_back(struct nacre_engine *engine)
{
	int calls = 0;

	while (engine->events) {
		struct nc_event *event = engine->events;
		const struct nacre_listener *to = &event->listener;

		engine->events = event->next;
		if (!engine->events)
			engine->events_end = &engine->events;
		if (!event->done)
			engine->events_size -= cost_of(event);
		if (event->done)
			to->done(to->context, event->n, event->data);
		else
			to->output(to->context, event->n, event->stream, event->data, event->size,
				event->dropped);
		free(event);
		calls++;
	}
	signal_waiting(engine);
	return calls;
}

int nc_client_send(struct nacre_engine *engine, json_t *frame, const struct nc_ticket *like,
	uint64_t *ret_n, struct nacre_err *err)
{
	struct nc_ticket *ticket = frame ? add_ticket(engine, like) : NULL;
	uint64_t n = engine->last_n;
	int r = -ENOMEM;

	if (ticket && json_object_set_new(frame, "n", json_integer((json_int_t)n)) == 0)
		r = nc_frame_put(&engine->out, take_ptr(frame), NC_FRAME_REQUEST_MAX);
	json_decref(frame);
	r = r < 0 ? nc_err_errno(err, r, "Make a frame") : flush(engine, err);
	if (r < 0) {
		ticket = nc_client_find(engine, n);
		if (ticket)
			nc_client_drop(engine, ticket);
		return r;
	}
	*ret_n = n;
	return 0;
}

int nc_client_answer(struct nacre_engine *engine, json_t *answer, const struct nc_ticket *like,
	uint64_t *ret_n, struct nacre_err *err)
{
	struct nc_ticket *ticket = answer ? add_ticket(engine, like) : NULL;
	uint64_t n = engine->last_n;
	int r = ticket ? settle(engine, ticket, answer) : -ENOMEM;

	if (r < 0) {
		if (ticket)
			nc_client_drop(engine, ticket);
		else
			json_decref(answer);
		return nc_err_errno(err, r, "Answer a request");
	}
	signal_waiting(engine);
	*ret_n = n;
	return 0;
}

int nc_client_ask(
	struct nacre_engine *engine, json_t *frame, json_t **ret_answer, struct nacre_err *err)
{
	const struct nc_ticket like = {.owner = &like, .is_call = true};
	struct nc_ticket *ticket;
	uint64_t n;
	int r = nc_client_send(engine, frame, &like, &n, err);

	if (r < 0)
		return r;
	while (r == 0 && !nc_client_find(engine, n)->answer) {
		r = nc_client_pump(engine, -1, err);
		(void)nc_client_call_back(engine);
	}
	ticket = nc_client_find(engine, n);
	if (r == 0 && nc_streq(text_of(ticket->answer, "event"), "error"))
		r = take_error(ticket->answer, err);
	if (r == 0)
		*ret_answer = json_incref(ticket->answer);
	nc_client_drop(engine, ticket);
	return r;
}

static int watch(struct nacre_engine *engine)
{
	struct epoll_event event = {.events = EPOLLIN};

	engine->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	engine->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (engine->event_fd < 0 || engine->epoll_fd < 0 ||
		epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, engine->event_fd, &event) < 0 ||
		epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, engine->program.fd, &event) < 0)
		return -errno;
	return 0;
}

int nc_client_start(struct nacre_engine *engine, const struct nacre_engine_options *options,
	struct nacre_err *err)
{
	uint64_t deadline_ns = nc_clock_ns() + START_SECONDS * NC_NS_PER_S;
	int r;

	*engine = (struct nacre_engine){.program = {-EBADF, -EBADF},
		.epoll_fd = -EBADF,
		.event_fd = -EBADF,
		.in = {.max = NC_FRAME_REPLY_MAX, .max_values = NC_FRAME_REPLY_VALUES_MAX},
		.out = {.buf = NC_BUF(OUT_MAX)},
		.tickets_end = &engine->tickets,
		.events_end = &engine->events};
	r = nc_program_start(&engine->program, options, err);
	if (r < 0)
		return r;
	r = watch(engine);
	if (r < 0)
		return nc_err_errno(err, r, "Watch nacre engine");
	while (r == 0 && !engine->ready) {
		r = nc_client_pump(engine, nc_clock_left_ms(deadline_ns), err);
		if (r == 0 && !engine->ready && nc_clock_ns() >= deadline_ns)
			r = nc_err_set(err, -ETIMEDOUT, "nacre engine does not get ready");
	}
	return r < 0 ? nc_err_wrap(err, "Start '%s'", "nacre engine") : 0;
}

void nc_client_end(struct nacre_engine *engine)
{
	while (engine->tickets)
		nc_client_drop(engine, engine->tickets);
	while (engine->events) {
		struct nc_event *event = engine->events;

		engine->events = event->next;
		free(event);
	}
	nc_frame_in_done(&engine->in);
	nc_frame_out_done(&engine->out);
	engine->epoll_fd = nc_fd_close(engine->epoll_fd);
	engine->event_fd = nc_fd_close(engine->event_fd);
	nc_program_end(&engine->program);
}
