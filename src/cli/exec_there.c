/* nacre --server URL exec: a command in a sandbox of a daemon. */
#include "cli/exec_there.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/say.h"
#include "base/text.h"
#include "cli/remote.h"

/* What the daemon takes with one command. */
#define INPUT_MAX (1U << 20)
/* Of a sandbox of our own: should we be killed, it ends by itself. */
#define LIFE_S 3600U
#define LIFE_MAX_S 86400U
#define IDLE_S 60U

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

int nc_exec_code(const json_t *command)
{
	const json_t *code = json_object_get(command, "exit_code");
	const json_t *ended_by = json_object_get(command, "signal");

	if (nc_streq(text_of(command, "status"), "timeout"))
		return 124;
	if (json_is_integer(ended_by))
		return 128 + (int)json_integer_value(ended_by);
	if (json_is_integer(code))
		return (int)json_integer_value(code);
	if (nc_streq(text_of(command, "failure"), "program_missing"))
		return 127;
	return nc_streq(text_of(command, "failure"), "program_refused") ? 126 : NC_EXIT_SELF;
}

/* Limits of the sandbox, as a request names them. */
static json_t *limits_of(const struct nc_order_args *args, struct nacre_err *err)
{
	struct nc_box_limits limits = {0};
	uint64_t output = 0;
	const struct {
		const char *given, *name;
		const uint64_t *value;
		uint64_t unit; /* 0: thousandths */
	} names[] = {
		{args->memory, "memory_mb", &limits.memory_bytes, 1 << 20},
		{args->cpus, "cpu_cores", &limits.cpu_milli, 0},
		{args->cpu_time, "cpu_time_seconds", &limits.cpu_time_ms, 0},
		{args->timeout, "execution_time_seconds", &limits.wall_ms, 0},
		{args->pids, "max_processes", &limits.pids, 1},
		{args->disk, "disk_mb", &limits.disk_bytes, 1 << 20},
		{args->inodes, "inodes", &limits.inodes, 1},
		{args->files, "open_files", &limits.open_files, 1},
	};
	json_t *object = json_object();

	if (nc_order_limits(args, &limits, &output, err) < 0) {
		json_decref(object);
		return NULL;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uint64_t value = *names[i].value, unit = names[i].unit;

		if (names[i].given)
			(void)json_object_set_new(object, names[i].name,
				unit ? json_integer((json_int_t)((value + unit - 1) / unit))
				     : json_real((double)value / 1000));
	}
	return object;
}

/* What works here alone, and what is the sandbox's and not the command's. */
static int check_options(
	const struct nc_order_args *args, const char *sandbox, struct nacre_err *err)
{
	const struct {
		const char *name;
		bool given, of_sandbox;
	} names[] = {
		{"allow", args->allow.count > 0, true},
		{"bind", args->bind.count > 0, false},
		{"floor", args->floor.count > 0, false},
		{"output", args->output, false},
		{"tier", args->tier, false},
		{"tty", args->tty, false},
		{"cpu-time", args->cpu_time, true},
		{"cpus", args->cpus, true},
		{"disk", args->disk, true},
		{"files", args->files, true},
		{"image", args->image, true},
		{"inodes", args->inodes, true},
		{"writable-root", args->writable_root, true},
		{"memory", args->memory, true},
		{"pids", args->pids, true},
	};

	if (sandbox && !nc_remote_is_id(sandbox))
		return nc_err_set(err, -EINVAL, "Option '--sandbox': expected an id");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].given && !names[i].of_sandbox)
			return nc_err_set(err, -EINVAL,
				"Option '--%s': this works here alone, not with --server",
				names[i].name);
		if (names[i].given && sandbox)
			return nc_err_set(err, -EINVAL,
				"Option '--%s': the sandbox is there already", names[i].name);
	}
	return 0;
}

static int make_sandbox(const char *url, const struct nc_order_args *args, char id[static 64],
	struct nacre_err *err)
{
	json_t *limits = limits_of(args, err);
	const json_t *wall = json_object_get(limits, "execution_time_seconds");
	double life = wall ? json_number_value(wall) + IDLE_S : LIFE_S;
	cleanup_json json_t *body = NULL, *reply = NULL, *hosts = json_array();
	int r;

	if (!limits)
		return err->code;
	body = json_pack("{s:o, s:s*, s:f, s:i}", "limits", limits, "image", args->image, "timeout",
		life < LIFE_MAX_S ? life : LIFE_MAX_S, "idle_timeout", (int)IDLE_S);
	if (body && args->user)
		(void)json_object_set_new(body, "user", json_string(args->user));
	if (body && args->writable_root)
		(void)json_object_set_new(body, "writable_root", json_true());
	for (size_t i = 0; body && i < args->allow.count; i++)
		(void)json_array_append_new(hosts, json_string(args->allow.words[i]));
	if (body && args->allow.count > 0)
		(void)json_object_set_new(
			body, "network", json_pack("{s:O}", "allow", hosts)); /* or none */
	r = body ? nc_remote_ask(url, "POST", "/v1/sandboxes", body, &reply, err)
		 : nc_err_set(err, -ENOMEM, "Out of memory");
	if (r == 0)
		(void)snprintf(id, 64, "%s", text_of(reply, "id"));
	return r < 0 || nc_remote_is_id(id) ? r
					    : nc_err_set(err, -EPROTO, "There is no such daemon");
}

static int add_env(json_t *body, const struct nc_words *env, struct nacre_err *err)
{
	json_t *object = json_object();

	for (size_t i = 0; i < env->count; i++) {
		const char *equals = strchr(env->words[i], '=');
		char name[256];

		if (!equals || equals == env->words[i] ||
			(size_t)(equals - env->words[i]) >= sizeof(name)) {
			json_decref(object);
			return nc_err_set(err, -EINVAL, "Option '--env': expected K=V");
		}
		(void)snprintf(
			name, sizeof(name), "%.*s", (int)(equals - env->words[i]), env->words[i]);
		(void)json_object_set_new(object, name, json_string(equals + 1));
	}
	return json_object_set_new(body, "env", object) < 0
		       ? nc_err_set(err, -ENOMEM, "Out of memory")
		       : 0;
}

/* Standard input, if it is none of a person's. */
static int add_input(json_t *body, struct nacre_err *err)
{
	cleanup_free char *text = NULL;
	size_t size = 0;
	int r = isatty(STDIN_FILENO) ? 0 : nc_fd_read_all(STDIN_FILENO, INPUT_MAX, &text, &size);

	if (r < 0)
		return nc_err_errno(err, r, "Read standard input, of which a daemon takes 1 MB");
	if (size > 0 && json_object_set_new(body, "input", json_stringn(text, size)) < 0)
		return nc_err_set(err, -EINVAL, "Standard input is not UTF-8");
	return 0;
}

static json_t *command_of(
	const struct nc_order_args *args, char **words, int n_words, struct nacre_err *err)
{
	json_t *list = json_array();
	json_t *body = json_pack("{s:o, s:b}", "command", list, "background", 1);
	struct nc_box_limits limits = {0};
	uint64_t output = 0;
	int r = body ? nc_order_limits(args, &limits, &output, err)
		     : nc_err_set(err, -ENOMEM, "Out of memory");

	for (int i = 0; r == 0 && i < n_words; i++)
		if (json_array_append_new(list, json_string(words[i])) < 0)
			r = nc_err_set(err, -EINVAL, "The command is not UTF-8");
	if (r == 0 && args->timeout)
		(void)json_object_set_new(
			body, "timeout", json_real((double)limits.wall_ms / 1000));
	if (r == 0 && args->user)
		(void)json_object_set_new(body, "user", json_string(args->user));
	if (r == 0)
		r = add_env(body, &args->env, err);
	if (r == 0)
		r = add_input(body, err);
	if (r == 0)
		return body;
	json_decref(body);
	return NULL;
}

static void on_printed(void *context, enum nc_stream stream, const char *data, size_t size)
{
	(void)context;
	(void)nc_fd_write_all(
		stream == NC_STREAM_ERROR ? STDERR_FILENO : STDOUT_FILENO, data, size);
}

static void on_progress(void *context, const char *text)
{
	(void)context;
	nc_say(stderr, "nacre exec: %s\n", text);
}

/* Runs it to its end; the caller frees that, which has the output if nothing was printed. */
static int run_in(const char *url, const char *sandbox, const json_t *command, bool json,
	json_t **ret_end, struct nacre_err *err)
{
	const struct nc_remote_listener listener = {
		.printed = json ? NULL : on_printed, .progress = json ? NULL : on_progress};
	cleanup_json json_t *begun = NULL, *end = NULL;
	char path[192], events[256];
	int r;

	(void)snprintf(path, sizeof(path), "/v1/sandboxes/%.64s/commands", sandbox);
	r = nc_remote_ask(url, "POST", path, command, &begun, err);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "/v1/sandboxes/%.64s/commands/%.64s", sandbox,
		text_of(begun, "id"));
	(void)snprintf(events, sizeof(events), "%s/events", path);
	r = nc_remote_follow(url, events, &listener, &end, err);
	if (r == 0 && json)
		return nc_remote_ask(url, "GET", path, NULL, ret_end, err);
	*ret_end = take_ptr(end);
	return r;
}

static int answer(json_t *end, bool json, struct nacre_err *err)
{
	const char *status = text_of(end, "status"), *error = text_of(end, "error");

	if (json && nc_json_print(stdout, json_incref(end), true) < 0)
		return nc_err_set(err, -EIO, "Write the answer");
	/* what a program that ran ended with is its own affair */
	if (!json && *error && json_is_null(json_object_get(end, "exit_code")) &&
		json_is_null(json_object_get(end, "signal")))
		nc_say(stderr, "nacre exec: %s\n", error);
	else if (!json && !nc_streq(status, "success") && !nc_streq(status, "error") &&
		 !nc_streq(status, "killed") && !nc_streq(status, "timeout"))
		nc_say(stderr, "nacre exec: Ended: %s\n", status);
	return nc_exec_code(end);
}

int nc_exec_there(const struct nc_cli *cli, const struct nc_order_args *args, const char *sandbox,
	bool json, char **words, int n_words, struct nacre_err *err)
{
	cleanup_json json_t *command = NULL, *end = NULL, *nothing = NULL;
	struct nacre_err ignored = {0};
	char own[64] = "", path[128];
	int r = check_options(args, sandbox, err);

	if (r == 0 && !(command = command_of(args, words, n_words, err)))
		r = err->code;
	if (r == 0)
		r = nc_remote_drop(err);
	if (r == 0 && !sandbox)
		r = make_sandbox(cli->server, args, own, err);
	if (r == 0)
		r = run_in(cli->server, sandbox ? sandbox : own, command, json, &end, err);
	if (*own) {
		(void)snprintf(path, sizeof(path), "/v1/sandboxes/%s", own);
		(void)nc_remote_ask(cli->server, "DELETE", path, NULL, &nothing, &ignored);
	}
	return r < 0 ? r : answer(end, json, err);
}
