/*
 * Executions for one client over a socket.
 *
 * Theory of operation: every frame of the client has a number greater than the one before, and is
 * answered by frames with that number, of which the last is not an "output". What is to be sent
 * waits in one buffer. A client that reads slowly loses live output first (the reply has the
 * beginning and the end of it anyway), then is not listened to, so that it cannot ask for more,
 * and is given up when even that is not enough.
 */
#include "engine/service.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/frame.h"
#include "base/text.h"
#include "engine/execution.h"
#include "policy/book.h"
#include "policy/json.h"
#include "tier/poll.h"

#define CHUNK 65536
#define REFUSE_MS 1000
/* Numbers that every JSON library can hold. */
#define NUMBER_MAX ((json_int_t)1 << 53)

/* One execution of the client's. */
struct operation {
	struct nc_service *service;
	struct operation *next;
	json_int_t n;
	size_t size; /* of its frame */
	struct nc_execution *execution;
	uint64_t dropped[NC_STREAM_MAX]; /* bytes since the last output that was sent */
};

struct nc_service {
	struct nc_service_setup setup;
	struct nc_poll *poll;
	struct nc_frame_in in;
	struct nc_frame_out out;
	struct operation *operations;
	size_t requests_size; /* frames of all operations */
	json_int_t last_n;
	bool ends;
};

static const char *const stream_names[NC_STREAM_MAX] = {"stdout", "stderr"};

/* There is nobody to serve any more. */
static void end(struct nc_service *service)
{
	if (service->ends)
		return;
	service->ends = true;
	service->poll = nc_poll_free(service->poll);
	service->setup.ended(service->setup.context);
}

/* Sends what can be sent, and waits for what is to be waited for. */
static void flush(struct nc_service *service)
{
	int events = 0;

	if (service->ends)
		return;
	if (nc_frame_send(&service->out, service->setup.fd) < 0) {
		end(service);
		return;
	}
	if (nc_frame_unsent(&service->out) > 0)
		events |= UV_WRITABLE;
	if (nc_frame_unsent(&service->out) < NC_SERVICE_PAUSE_MAX)
		events |= UV_READABLE;
	nc_poll_set(service->poll, events);
}

/* Takes over the frame. */
static int send_frame(struct nc_service *service, json_t *frame)
{
	int r = nc_frame_put(&service->out, frame, NC_FRAME_REPLY_MAX);

	if (r == 0)
		flush(service);
	return r;
}

static void send_error(struct nc_service *service, json_int_t n, const struct nacre_err *why)
{
	int r = send_frame(service, json_pack("{s:I, s:s, s:s, s:o}", "n", n, "event", "error",
					    "code", nc_errno_name(why->code), "message",
					    nc_json_text(why->message, strlen(why->message))));

	if (r < 0) /* it could not even be told */
		end(service);
}

/* The last frame of a number; if it cannot be sent, the client learns why instead. */
static void answer(struct nc_service *service, json_int_t n, json_t *frame)
{
	struct nacre_err why = {0};
	int r = send_frame(service, frame);

	if (r == 0)
		return;
	if (r == -EMSGSIZE)
		nc_err_set(&why, r, "The reply has more than %u MiB; capture less",
			NC_FRAME_REPLY_MAX >> 20);
	else
		nc_err_errno(&why, r, "Make the reply");
	if (r == -ENOBUFS)
		end(service);
	else
		send_error(service, n, &why);
}

static struct operation **find_operation(struct nc_service *service, json_int_t n)
{
	struct operation **place = &service->operations;

	while (*place && (*place)->n != n)
		place = &(*place)->next;
	return place;
}

static void operation_done(struct operation *operation)
{
	struct nc_service *service = operation->service;
	struct operation **place = find_operation(service, operation->n);

	*place = operation->next;
	service->requests_size -= operation->size;
	free(operation);
}

static bool is_text(const char *data, size_t size)
{
	for (size_t i = 0, n; i < size; i += n) {
		n = data[i] ? nc_text_utf8(data + i, size - i) : 0;
		if (n == 0)
			return false;
	}
	return true;
}

static json_t *output_frame(
	const struct operation *operation, enum nc_stream stream, const char *data, size_t size)
{
	bool plain = is_text(data, size);
	cleanup_free char *encoded = NULL;

	if (!plain && nc_base64_encode(data, size, &encoded) < 0)
		return NULL;
	return json_pack("{s:I, s:s, s:s, s:s%, s:I}", "n", operation->n, "event", "output",
		"stream", stream_names[stream], plain ? "text" : "base64", plain ? data : encoded,
		plain ? size : strlen(encoded), "dropped", (json_int_t)operation->dropped[stream]);
}

static void on_printed(void *context, enum nc_stream stream, const char *data, size_t size)
{
	struct operation *operation = context;
	struct nc_service *service = operation->service;

	if (service->ends)
		return;
	if (nc_frame_unsent(&service->out) < NC_SERVICE_STREAM_MAX &&
		send_frame(service, output_frame(operation, stream, data, size)) == 0)
		operation->dropped[stream] = 0;
	else
		operation->dropped[stream] += size;
}

static void on_done(void *context, json_t *reply, struct nc_buf *text)
{
	struct operation *operation = context;
	struct nc_service *service = operation->service;
	json_int_t n = operation->n;

	(void)text; /* it is written as the client wants it */
	/* that the end of the live output is missing is said too */
	for (enum nc_stream i = 0; i < NC_STREAM_MAX && !service->ends; i++)
		if (operation->dropped[i] > 0)
			(void)send_frame(service, output_frame(operation, i, "", 0));
	operation_done(operation);
	if (service->ends)
		json_decref(reply);
	else
		answer(service, n,
			json_pack("{s:I, s:s, s:o}", "n", n, "event", "done", "reply", reply));
}

/* A frame of the client's. */
struct call {
	json_int_t n;
	size_t size; /* of the frame */
	json_t *frame;
};

static int submit(struct nc_service *service, const struct call *call, struct nc_request *request,
	struct nacre_err *err)
{
	bool stream = json_is_true(json_object_get(call->frame, "stream"));
	struct operation *operation = calloc(1, sizeof(*operation));
	const struct nc_listener listener = {
		.context = operation, .printed = stream ? on_printed : NULL, .done = on_done};
	int r;

	if (!operation) {
		nc_request_done(request);
		return nc_err_errno(err, -ENOMEM, "Take the request");
	}
	*operation = (struct operation){.service = service, .n = call->n, .size = call->size};
	r = nc_engine_submit(service->setup.engine, request, NULL, -EBADF, &listener,
		&operation->execution, err);
	if (r < 0) {
		free(operation);
		return r;
	}
	operation->next = service->operations;
	service->operations = operation;
	service->requests_size += call->size;
	return 0;
}

static int do_execute(struct nc_service *service, const struct call *call, struct nacre_err *err)
{
	static struct nc_faults faults; /* large, and of this call alone */
	cleanup_request struct nc_request request = {0};
	json_t *source = json_object_get(call->frame, "request");
	int r;

	if (!source)
		return nc_err_set(err, -EINVAL, "There is no request");
	if (call->size > NC_SERVICE_REQUESTS_MAX - service->requests_size)
		return nc_err_set(err, -EAGAIN, "Open requests have %zu bytes; try again later",
			service->requests_size);
	faults = (struct nc_faults){0};
	r = nc_request_read(json_incref(source), &request, &faults);
	if (r == -EINVAL) {
		answer(service, call->n,
			json_pack("{s:I, s:s, s:o}", "n", call->n, "event", "faults", "faults",
				nc_faults_json(&faults)));
		return 0;
	}
	request.network.trusted = true; /* whoever starts us owns us */
	return r < 0 ? nc_err_errno(err, r, "Read the request")
		     : submit(service, call, &request, err);
}

static int do_cancel(struct nc_service *service, const struct call *call, struct nacre_err *err)
{
	json_int_t of = json_integer_value(json_object_get(call->frame, "of"));
	struct operation **place = find_operation(service, of);

	if (!*place)
		return nc_err_set(
			err, -ENOENT, "There is no execution %lld that runs", (long long)of);
	nc_engine_cancel((*place)->execution);
	answer(service, call->n, json_pack("{s:I, s:s}", "n", call->n, "event", "ok"));
	return 0;
}

static int do_load(struct nc_service *service, const struct call *call, struct nacre_err *err)
{
	struct nc_engine_load load;

	(void)err;
	nc_engine_load(service->setup.engine, &load);
	answer(service, call->n,
		json_pack("{s:I, s:s, s:I, s:I, s:I}", "n", call->n, "event", "load", "running",
			(json_int_t)load.running, "queued", (json_int_t)load.queued, "memory_bytes",
			(json_int_t)load.memory_bytes));
	return 0;
}

static int do_check(struct nc_service *service, const struct call *call, struct nacre_err *err)
{
	cleanup_report struct nc_report *report = NULL;
	const struct nc_terms *terms;
	const char *language_name = NULL, *code = NULL, *policy = "";
	enum nc_language language;
	char quoted[NC_TEXT_QUOTED_MAX];
	size_t size;
	int r;

	if (json_unpack(call->frame, "{s:s, s:s%, s?s}", "language", &language_name, "code", &code,
		    &size, "policy", &policy) < 0)
		return nc_err_set(err, -EINVAL, "A check has language, code and policy, all texts");
	language = nc_policy_parse_language(language_name);
	if (language < 0)
		return nc_err_set(
			err, -EINVAL, "Unknown language %s", nc_text_quote(quoted, language_name));
	r = nc_engine_terms(service->setup.engine, policy, "", &terms, err);
	if (r < 0)
		return r;
	r = nc_policy_analyse(terms->analyser, language, code, size, &report);
	if (r < 0)
		return nc_err_errno(err, r, "Check");
	answer(service, call->n,
		json_pack("{s:I, s:s, s:o}", "n", call->n, "event", "report", "report",
			nc_report_json(report, "", language)));
	return 0;
}

static const struct {
	const char *op;
	int (*run)(struct nc_service *service, const struct call *call, struct nacre_err *err);
} calls[] = {
	{"execute", do_execute},
	{"cancel", do_cancel},
	{"load", do_load},
	{"check", do_check},
};

static int run_call(struct nc_service *service, const struct call *call, struct nacre_err *err)
{
	const char *op = json_string_value(json_object_get(call->frame, "op"));
	char quoted[NC_TEXT_QUOTED_MAX];

	for (size_t i = 0; op && i < sizeof(calls) / sizeof(calls[0]); i++)
		if (nc_streq(op, calls[i].op))
			return calls[i].run(service, call, err);
	return nc_err_set(err, -EOPNOTSUPP, "Unknown op %s", nc_text_quote(quoted, op ? op : ""));
}

/* One frame; -errno only if it breaks the protocol. */
static int take_frame(struct nc_service *service, struct call *call, struct nacre_err *err)
{
	const json_t *n = json_object_get(call->frame, "n");
	struct nacre_err why = {0};

	call->n = json_integer_value(n);
	if (!json_is_integer(n) || call->n <= service->last_n || call->n > NUMBER_MAX)
		return nc_err_set(err, -EPROTO,
			"Frames have a whole number n, each greater than the one before");
	service->last_n = call->n;
	if (run_call(service, call, &why) < 0)
		send_error(service, call->n, &why);
	return 0;
}

/* What was read: whole frames are taken, the rest waits. */
static int take_bytes(
	struct nc_service *service, const char *data, size_t size, struct nacre_err *err)
{
	int r = 0;

	while (r >= 0 && size > 0 && !service->ends) {
		cleanup_json json_t *frame = NULL;
		struct call call = {0};
		size_t used;

		r = nc_frame_take(&service->in, data, size, &used, &frame, err);
		if (r <= 0)
			break;
		call.frame = frame;
		call.size = service->in.wanted;
		r = take_frame(service, &call, err);
		data += used;
		size -= used;
	}
	return r;
}

static void on_ready(void *context, int events)
{
	struct nc_service *service = context;
	struct nacre_err err = {0};
	char chunk[CHUNK];
	ssize_t n;

	if (events & UV_READABLE) {
		n = read(service->setup.fd, chunk, sizeof(chunk));
		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
			end(service);
			return;
		}
		if (n > 0 && take_bytes(service, chunk, (size_t)n, &err) < 0) {
			send_error(service, 0, &err);
			end(service);
			return;
		}
	}
	flush(service);
}

int nc_service_new(const struct nc_service_setup *setup, struct nc_service **ret_service)
{
	struct nc_service *service = calloc(1, sizeof(*service));
	int r;

	if (!service)
		return -ENOMEM;
	*service = (struct nc_service){.setup = *setup,
		.in = {.max = NC_FRAME_REQUEST_MAX, .max_values = NC_FRAME_VALUES_MAX},
		.out = {.buf = NC_BUF(NC_SERVICE_UNSENT_MAX)}};
	r = nc_poll_new(setup->loop, setup->fd, UV_READABLE, on_ready, service, &service->poll);
	if (r == 0)
		r = send_frame(service,
			json_pack("{s:i, s:s, s:i, s:s, s:I, s:I}", "n", 0, "event", "ready",
				"protocol", NC_FRAME_PROTOCOL, "version", NACRE_VERSION,
				"max_running", (json_int_t)setup->max_running, "max_queued",
				(json_int_t)setup->max_queued));
	if (r < 0) {
		service->ends = true;
		nc_service_free(service);
		return r;
	}
	*ret_service = service;
	return 0;
}

void nc_service_free(struct nc_service *service)
{
	if (!service)
		return;
	(void)nc_poll_free(service->poll);
	while (service->operations)
		operation_done(service->operations);
	nc_frame_in_done(&service->in);
	nc_frame_out_done(&service->out);
	free(service);
}

void nc_service_refuse(int fd, const struct nacre_err *err)
{
	struct nc_frame_out out = {.buf = NC_BUF(CHUNK)};
	struct pollfd wait = {.fd = fd, .events = POLLOUT};

	(void)nc_frame_put(&out,
		json_pack("{s:i, s:s, s:s, s:o}", "n", 0, "event", "error", "code",
			nc_errno_name(err->code), "message",
			nc_json_text(err->message, strlen(err->message))),
		CHUNK);
	if (poll(&wait, 1, REFUSE_MS) > 0)
		(void)nc_frame_send(&out, fd);
	nc_frame_out_done(&out);
}
