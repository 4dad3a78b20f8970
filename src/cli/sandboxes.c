/* nacre ps, logs, kill: sandboxes of a daemon, and what runs in them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/say.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/remote.h"

#define SERVER_BUILT_IN "http://127.0.0.1:7070"
#define PATH_SIZE 256
#define PAGES_MAX 1024U

static bool arg_json, arg_follow;
static const char *arg_signal;

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static const char *server_of(const struct nc_cli *cli)
{
	return cli->server ? cli->server : SERVER_BUILT_IN;
}

/* Ids have nothing in them that a path could misread. */
static int make_path(char out[static PATH_SIZE], char **words, int n_words, struct nacre_err *err)
{
	char quoted[NC_TEXT_QUOTED_MAX];

	for (int i = 0; i < n_words; i++)
		if (!nc_remote_is_id(words[i]))
			return nc_err_set(err, -EINVAL, "%s is no id of a sandbox or command",
				nc_text_quote(quoted, words[i]));
	(void)snprintf(out, PATH_SIZE, "/v1/sandboxes%s%s%s%s", n_words > 0 ? "/" : "",
		n_words > 0 ? words[0] : "", n_words > 1 ? "/commands/" : "",
		n_words > 1 ? words[1] : "");
	return 0;
}

/* ---- ps ---- */

static void print_sandbox(const json_t *sandbox)
{
	nc_say(stdout, "%-35s  %-8s  %7lld  %8.0fs  %s\n", text_of(sandbox, "id"),
		text_of(sandbox, "state"),
		(long long)json_integer_value(json_object_get(sandbox, "running")),
		json_number_value(json_object_get(sandbox, "seconds_left")),
		text_of(sandbox, "created"));
}

/* A command in one line: what programs are called is not for a terminal. */
static void print_command(const json_t *command)
{
	cleanup_free char *line = json_dumps(json_object_get(command, "command"),
		JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	const char *status = text_of(command, "status");

	nc_say(stdout, "%-35s  %-8s  %-12s  %.100s\n", text_of(command, "id"),
		text_of(command, "state"), *status ? status : "-", line ? line : "");
}

/* All pages of the list of sandboxes as one. What a stranger's machine calls the next one is an id
 * or nothing, and there is an end to them. */
static int ask_pages(const char *url, json_t **ret_reply, struct nacre_err *err)
{
	cleanup_json json_t *all = json_array();
	const char *next = "";
	char path[PATH_SIZE] = "/v1/sandboxes?limit=1000";

	for (size_t i = 0; i < PAGES_MAX && next; i++) {
		cleanup_json json_t *page = NULL;
		int r = nc_remote_ask(url, "GET", path, NULL, &page, err);

		if (r < 0)
			return r;
		if (json_array_extend(all, json_object_get(page, "sandboxes")) < 0)
			return nc_err_set(err, -EPROTO, "That is no nacre serve");
		next = json_string_value(json_object_get(page, "next"));
		if (next && !nc_remote_is_id(next))
			return nc_err_set(err, -EPROTO, "That is no nacre serve");
		if (next)
			(void)snprintf(
				path, sizeof(path), "/v1/sandboxes?limit=1000&after=%.64s", next);
	}
	*ret_reply = json_pack("{s:O}", "sandboxes", all);
	return *ret_reply ? 0 : nc_err_set(err, -ENOMEM, "Out of memory");
}

static int ps(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_json json_t *reply = NULL;
	char path[PATH_SIZE];
	const json_t *list, *one;
	size_t i;
	int r = make_path(path, words, n_words, err);

	if (r == 0)
		r = nc_remote_drop(err);
	if (r < 0)
		return r;
	(void)snprintf(path + strlen(path), sizeof(path) - strlen(path), "/commands");
	r = n_words ? nc_remote_ask(server_of(cli), "GET", path, NULL, &reply, err)
		    : ask_pages(server_of(cli), &reply, err);
	if (r < 0)
		return r;
	if (arg_json)
		return nc_json_print(stdout, json_incref(reply), true) < 0
			       ? nc_err_set(err, -EIO, "Write the answer")
			       : NC_EXIT_OK;
	list = json_object_get(reply, n_words ? "commands" : "sandboxes");
	if (n_words)
		nc_say(stdout, "%-35s  %-8s  %-12s  %s\n", "COMMAND", "STATE", "STATUS", "WHAT");
	else
		nc_say(stdout, "%-35s  %-8s  %7s  %9s  %s\n", "SANDBOX", "STATE", "RUNNING", "LEFT",
			"CREATED");
	json_array_foreach(list, i, one)
	{
		if (n_words)
			print_command(one);
		else
			print_sandbox(one);
	}
	return NC_EXIT_OK;
}

static const struct nc_option ps_options[] = {
	{.name = "json", .help = "Print one JSON object", .flag = &arg_json},
	{0},
};

const struct nc_verb nc_verb_ps = {
	.name = "ps",
	.summary = "List sandboxes of a daemon, or what runs in one",
	.arguments = "[SANDBOX]",
	.details = "Asks the nacre serve at --server, or at " SERVER_BUILT_IN ".",
	.example = "nacre ps",
	.options = ps_options,
	.max_words = 1,
	.takes_server = true,
	.run = ps,
};

/* ---- logs ---- */

static void on_printed(void *context, enum nc_stream stream, const char *data, size_t size)
{
	(void)context;
	(void)nc_fd_write_all(
		stream == NC_STREAM_ERROR ? STDERR_FILENO : STDOUT_FILENO, data, size);
}

static void on_progress(void *context, const char *text)
{
	(void)context;
	nc_say(stderr, "nacre logs: %s\n", text);
}

static void print_stream(const json_t *command, const char *name, FILE *out)
{
	const json_t *text = json_object_get(command, name);

	(void)fwrite(json_string_value(text), 1, json_string_length(text), out);
}

static int logs(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	const struct nc_remote_listener listener = {on_printed, on_progress};
	cleanup_json json_t *reply = NULL;
	char path[PATH_SIZE];
	int r = n_words < 2
			? nc_err_set(err, -EINVAL, "Name a sandbox and a command of it: nacre ps")
			: make_path(path, words, n_words, err);

	if (r == 0)
		r = nc_remote_drop(err);
	if (r < 0)
		return r;
	if (arg_follow) {
		(void)snprintf(path + strlen(path), sizeof(path) - strlen(path), "/events");
		r = nc_remote_follow(server_of(cli), path, &listener, &reply, err);
		return r < 0 ? r : NC_EXIT_OK;
	}
	r = nc_remote_ask(server_of(cli), "GET", path, NULL, &reply, err);
	if (r < 0)
		return r;
	print_stream(reply, "stdout", stdout);
	print_stream(reply, "stderr", stderr);
	return NC_EXIT_OK;
}

static const struct nc_option logs_options[] = {
	{.name = "follow",
		.letter = 'f',
		.help = "Go on until the command ends, if it is in the background",
		.flag = &arg_follow},
	{0},
};

const struct nc_verb nc_verb_logs = {
	.name = "logs",
	.summary = "Print what a command in a sandbox has printed",
	.arguments = "SANDBOX COMMAND",
	.details = "Asks the nacre serve at --server, or at " SERVER_BUILT_IN ".",
	.example = "nacre logs --follow sb_0123 pr_4567",
	.options = logs_options,
	.max_words = 2,
	.takes_server = true,
	.run = logs,
};

/* ---- kill ---- */

static int kill_one(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_json json_t *reply = NULL, *body = NULL;
	char path[PATH_SIZE];
	int r = n_words < 1
			? nc_err_set(err, -EINVAL, "Name a sandbox, or a command of it: nacre ps")
			: make_path(path, words, n_words, err);

	if (r == 0 && arg_signal && n_words < 2)
		r = nc_err_set(err, -EINVAL, "Option '--signal': name a command too");
	if (r == 0)
		r = nc_remote_drop(err);
	if (r < 0)
		return r;
	if (!arg_signal)
		return nc_remote_ask(server_of(cli), "DELETE", path, NULL, &reply, err);
	(void)snprintf(path + strlen(path), sizeof(path) - strlen(path), "/signal");
	body = json_pack("{s:s}", "signal", arg_signal);
	return body ? nc_remote_ask(server_of(cli), "POST", path, body, &reply, err)
		    : nc_err_set(err, -EINVAL, "Option '--signal': expected a name such as TERM");
}

static const struct nc_option kill_options[] = {
	{.name = "signal",
		.value = "NAME",
		.help = "Send this to the program, such as TERM, instead",
		.text = &arg_signal},
	{0},
};

const struct nc_verb nc_verb_kill = {
	.name = "kill",
	.summary = "End a sandbox of a daemon, or a command in it",
	.arguments = "SANDBOX [COMMAND]",
	.details =
		"Asks the nacre serve at --server, or at " SERVER_BUILT_IN ". A command ends with\n"
		"everything that it started.",
	.example = "nacre kill sb_0123 pr_4567",
	.options = kill_options,
	.max_words = 2,
	.takes_server = true,
	.run = kill_one,
};
