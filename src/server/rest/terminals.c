/*
 * Commands of sandboxes over WebSockets, with their input, output and terminal.
 *
 * Texts are JSON objects with a `type`: from the client start, resize, signal, end; to it started,
 * error, exit. Binary messages are data, with the stream in their first byte: 0 input, 1 output,
 * 2 errors. A client that reads slowly makes the command wait, a command that does not take its
 * input makes the client wait.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/analysts.h"
#include "engine/sandbox.h"
#include "server/reply.h"
#include "server/rest/desk.h"
#include "server/rest/rest.h"
#include "server/socket.h"

/* Who connects says soon what for. */
#define START_NS (10 * NC_NS_PER_S)

struct terminal {
	struct nc_server *server;
	struct nc_socket *socket;
	char sandbox[NC_ID_SIZE];
	struct nc_process *process; /* NULL: none yet, or it has ended */
	bool ends;		    /* the command, with its client */
	bool feeding;
	struct nc_buf input; /* that it has not taken yet */
	size_t input_at;
	uint64_t began_ns;
	/* while its command is studied */
	json_t *body;
	struct nc_buf line;
	struct nc_study study;
};

static void terminal_free(struct terminal *terminal)
{
	if (terminal->server->sandboxes)
		nc_sandboxes_forget(terminal->server->sandboxes, terminal);
	nc_analysts_forget(&terminal->study);
	nc_study_done(&terminal->study);
	nc_buf_done(&terminal->line);
	json_decref(terminal->body);
	nc_buf_done(&terminal->input);
	free(terminal);
}

static void tell(struct terminal *terminal, json_t *value)
{
	cleanup_free char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;

	json_decref(value);
	if (text)
		nc_socket_send(terminal->socket, NC_WS_TEXT, -1, text, strlen(text));
}

static void refuse(struct terminal *terminal, const char *code, const char *detail)
{
	tell(terminal, json_pack("{s:s, s:s, s:o}", "type", "error", "code", code, "detail",
			       nc_json_text(detail, strlen(detail))));
	nc_socket_close(terminal->socket, NC_WS_REFUSED, code);
}

/* ---- from the command ---- */

static void on_printed(void *context, enum nc_stream stream, const char *data, size_t size)
{
	struct terminal *terminal = context;

	nc_socket_send(
		terminal->socket, NC_WS_BINARY, stream == NC_STREAM_OUTPUT ? 1 : 2, data, size);
	if (terminal->process && nc_socket_unsent(terminal->socket) > NC_SOCKET_HIGH)
		nc_process_hold(terminal->process, terminal, true);
}

static void feed(struct terminal *terminal)
{
	size_t left = terminal->input.size - terminal->input_at;
	ssize_t n = 0;

	if (terminal->feeding)
		return; /* there is room: the loop that we are called from finds it */
	terminal->feeding = true;
	while (left > 0 && terminal->process && n >= 0) {
		n = nc_process_write(
			terminal->process, terminal->input.data + terminal->input_at, left);
		if (n == 0)
			break;
		if (n < 0)
			n = (ssize_t)left; /* nobody takes it any more */
		terminal->input_at += (size_t)n;
		left -= (size_t)n;
	}
	if (left == 0 || !terminal->process)
		terminal->input_at = terminal->input.size = 0;
	terminal->feeding = false;
	nc_socket_hold(terminal->socket, terminal->input.size > 0);
}

static void on_writable(void *context)
{
	feed(context);
}

static void on_ended(void *context, struct nc_process *process)
{
	struct terminal *terminal = context;

	terminal->process = NULL;
	terminal->input_at = terminal->input.size = 0;
	tell(terminal, json_pack("{s:s, s:o}", "type", "exit", "command",
			       nc_process_json(process, false)));
	nc_socket_close(terminal->socket, NC_WS_NORMAL, "");
	nc_socket_hold(terminal->socket, false); /* for its own close */
}

static struct nc_process_listener listener_of(struct terminal *terminal)
{
	return (struct nc_process_listener){.context = terminal,
		.printed = on_printed,
		.writable = on_writable,
		.ended = on_ended};
}

/* ---- from the client ---- */

static const char *code_of(int error)
{
	return error == -EPERM	      ? "policy"
	       : error == -EDQUOT     ? "quota"
	       : error == -EBUSY      ? "busy"
	       : error == -EOPNOTSUPP ? "not_supported"
				      : "internal_error";
}

static void refuse_start(struct terminal *terminal, int r, const struct nc_faults *faults,
	const struct nacre_err *err)
{
	if (r == -EINVAL && faults->count > 0)
		refuse(terminal, "bad_request", faults->fault[0].message);
	else
		refuse(terminal, code_of(r), err->message);
}

static struct nc_sandbox *find_sandbox(struct terminal *terminal)
{
	struct nc_sandbox *sandbox =
		nc_sandbox_find(terminal->server->sandboxes, NULL, terminal->sandbox);

	if (!sandbox)
		refuse(terminal, "no_sandbox", "The sandbox has ended");
	return sandbox;
}

static void on_studied(void *context)
{
	static struct nc_faults faults;
	struct terminal *terminal = context;
	const struct nc_process_listener listener = listener_of(terminal);
	struct nc_sandbox *sandbox = find_sandbox(terminal);
	struct nacre_err err = {0};
	int r;

	if (sandbox) {
		faults = (struct nc_faults){0};
		r = nc_sandbox_exec(sandbox, terminal->body, &terminal->study.text[0], &listener,
			&terminal->process, &faults, &err);
		if (r < 0)
			refuse_start(terminal, r, &faults, &err);
		else
			tell(terminal, json_pack("{s:s, s:o}", "type", "started", "command",
					       nc_process_json(terminal->process, false)));
	}
	nc_socket_hold(terminal->socket, false);
}

/* What follows the start waits until its command is studied. */
static void begin(struct terminal *terminal, json_t *body)
{
	static struct nc_faults faults;
	const struct nc_sandbox *sandbox = find_sandbox(terminal);
	struct nacre_err err = {0};
	int r;

	if (!sandbox)
		return;
	if (!json_object_get(body, "keep_input") && !json_object_get(body, "input"))
		(void)json_object_set_new(body, "keep_input", json_true());
	faults = (struct nc_faults){0};
	terminal->line = (struct nc_buf)NC_BUF(NC_SANDBOX_LINE_MAX);
	r = nc_sandbox_line(body, &terminal->line, &faults, &err);
	if (r == 0) {
		terminal->body = json_incref(body);
		terminal->study.terms = nc_sandbox_terms(sandbox);
		nc_study_add(&terminal->study, NC_SHELL, NULL, nc_buf_text(&terminal->line),
			terminal->line.size);
		r = nc_analysts_ask(terminal->server->analysts, nc_sandbox_tenant(sandbox),
			&terminal->study, on_studied, terminal);
		if (r < 0)
			nc_err_errno(&err, r, "Have the command analysed");
	}
	if (r < 0)
		refuse_start(terminal, r, &faults, &err);
	else
		nc_socket_hold(terminal->socket, true);
}

static void resize(struct terminal *terminal, const json_t *body)
{
	json_int_t rows = json_integer_value(json_object_get(body, "rows"));
	json_int_t columns = json_integer_value(json_object_get(body, "columns"));

	if (rows < 1 || rows > 1000 || columns < 1 || columns > 1000)
		refuse(terminal, "bad_request", "Expected rows and columns from 1 to 1000");
	else /* without a terminal it means nothing */
		(void)nc_process_resize(
			terminal->process, (unsigned short)rows, (unsigned short)columns);
}

static void take_order(struct terminal *terminal, const char *type, json_t *body)
{
	int number;

	if (nc_streq(type, "start"))
		refuse(terminal, "bad_request", "It runs already");
	else if (nc_streq(type, "resize"))
		resize(terminal, body);
	else if (nc_streq(type, "end"))
		nc_process_end_input(terminal->process);
	else if (!nc_streq(type, "signal"))
		refuse(terminal, "bad_request", "Expected the type start, resize, signal or end");
	else if ((number = nc_rest_signal(body)) < 0)
		refuse(terminal, "bad_request", "Expected a signal, such as \"TERM\" or 15");
	else
		(void)nc_process_signal(terminal->process, number);
}

static void take_text(struct terminal *terminal, const char *data, size_t size)
{
	cleanup_json json_t *body = NULL;
	struct nacre_err err = {0};
	cleanup_free char *type = NULL;

	if (nc_json_count(data, size) > NC_REQUEST_VALUES_MAX ||
		nc_json_parse(data, size, &body, &err) < 0 ||
		!json_is_string(json_object_get(body, "type"))) {
		refuse(terminal, "bad_request", "Expected a JSON object with a type");
		return;
	}
	type = strdup(json_string_value(json_object_get(body, "type")));
	(void)json_object_del(body, "type");
	if (!type)
		refuse(terminal, "no_memory", "Out of memory");
	else if (terminal->process)
		take_order(terminal, type, body);
	else if (nc_streq(type, "start") && !terminal->body)
		begin(terminal, body);
	else
		refuse(terminal, "bad_request", "Expected the type start first");
}

static void on_message(void *context, enum nc_ws_kind kind, const char *data, size_t size)
{
	struct terminal *terminal = context;

	if (kind == NC_WS_TEXT) {
		take_text(terminal, data, size);
		return;
	}
	if (size == 0 || data[0] != 0 || !terminal->process) {
		refuse(terminal, "bad_request",
			"Expected data of stream 0, once the command is started");
		return;
	}
	nc_buf_add(&terminal->input, data + 1, size - 1);
	feed(terminal);
}

static void on_drained(void *context)
{
	struct terminal *terminal = context;

	if (terminal->process)
		nc_process_hold(terminal->process, terminal, false);
}

static void on_tick(void *context)
{
	struct terminal *terminal = context;

	if (!terminal->process && !terminal->body && nc_clock_ns() - terminal->began_ns >= START_NS)
		refuse(terminal, "timeout", "Nothing was started in time");
}

static void on_closed(void *context)
{
	struct terminal *terminal = context;

	if (terminal->process && terminal->ends && terminal->server->sandboxes)
		(void)nc_process_kill(terminal->process);
	terminal_free(terminal);
}

/* ---- routes ---- */

/* What becomes of the command with its client: ?on_hangup=end or stay. -EINVAL: it was answered. */
static int hangup_of(struct nc_exchange *exchange, bool preset)
{
	const char *text = nc_exchange_query(exchange, "on_hangup");

	if (!text)
		return preset;
	if (nc_streq(text, "end") || nc_streq(text, "stay"))
		return nc_streq(text, "end");
	nc_problem(exchange, 400, "bad_request", "on_hangup", NULL, "Expected end or stay");
	return -EINVAL;
}

static struct terminal *connect_to(struct nc_server *server, struct nc_exchange *exchange,
	const struct nc_sandbox *sandbox, bool ends)
{
	struct terminal *terminal = calloc(1, sizeof(*terminal));
	const struct nc_socket_listener listener = {
		terminal, on_message, on_drained, on_tick, on_closed};

	if (!terminal) {
		nc_problem(exchange, 503, "no_memory", NULL, "Try again later", "Out of memory");
		return NULL;
	}
	*terminal = (struct terminal){.server = server,
		.ends = ends,
		.input = NC_BUF(256U * 1024),
		.began_ns = nc_clock_ns()};
	memcpy(terminal->sandbox, nc_sandbox_id(sandbox), sizeof(terminal->sandbox));
	terminal->socket = nc_socket_accept(server, exchange, &listener);
	if (terminal->socket)
		return terminal;
	free(terminal);
	return NULL;
}

NC_REST(terminals_exec)
{
	const struct nc_sandbox *sandbox = nc_rest_sandbox(server, exchange);
	int ends = sandbox ? hangup_of(exchange, true) : -EINVAL;

	if (ends >= 0)
		(void)connect_to(server, exchange, sandbox, ends > 0);
}

NC_REST(terminals_attach)
{
	struct nc_process *process = nc_rest_process(server, exchange);
	const struct nc_sandbox *sandbox = process ? nc_rest_sandbox(server, exchange) : NULL;
	int ends = sandbox ? hangup_of(exchange, false) : -EINVAL;
	struct nc_process_listener listener;
	struct terminal *terminal;

	if (ends < 0)
		return;
	if (!nc_process_runs(process) || !nc_process_has_room(process)) {
		nc_problem(exchange, 409, "not_running", NULL, NULL,
			"The command has ended, or too many are attached to it");
		return;
	}
	terminal = connect_to(server, exchange, sandbox, ends > 0);
	if (!terminal)
		return;
	terminal->process = process;
	listener = listener_of(terminal);
	nc_process_listen(process, &listener);
	tell(terminal, json_pack("{s:s, s:o}", "type", "started", "command",
			       nc_process_json(process, false)));
}
