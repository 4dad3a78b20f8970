/* nacre shell: a shell in a sandbox of a daemon. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "cli/remote_terminal.h"

static const char *arg_image, *arg_snapshot;

static const struct nc_option options[] = {
	{.name = "image",
		.value = "NAME",
		.help = "File tree of a new sandbox",
		.text = &arg_image},
	{.name = "snapshot",
		.value = "ID",
		.help = "Files that a new sandbox begins with",
		.text = &arg_snapshot},
	{0},
};

/* A sandbox of its own, for as long as the shell. */
static int make_sandbox(const char *url, char *out, size_t size, struct nacre_err *err)
{
	cleanup_json json_t *body = json_pack("{s:i}", "timeout", 24 * 3600), *reply = NULL;
	const char *id;
	int r;

	if (arg_image)
		(void)json_object_set_new(body, "image", json_string(arg_image));
	if (arg_snapshot)
		(void)json_object_set_new(body, "snapshot", json_string(arg_snapshot));
	r = nc_remote_ask(url, "POST", "/v1/sandboxes", body, &reply, err);
	if (r < 0)
		return r;
	id = json_string_value(json_object_get(reply, "id"));
	if (!id || !nc_remote_is_sandbox(id))
		return nc_err_set(err, -EPROTO, "That is no nacre serve");
	(void)snprintf(out, size, "%s", id);
	return 0;
}

static int run_there(
	const char *url, const char *sandbox, int n_words, char **words, struct nacre_err *err)
{
	bool terminal = isatty(STDIN_FILENO);
	cleanup_json json_t *start = json_pack("{s:s, s:b}", "type", "start", "terminal", terminal);
	json_t *command = json_array();
	const char *term = getenv("TERM");
	char path[128];

	for (int i = 0; i < n_words; i++)
		(void)json_array_append_new(command, json_string(words[i]));
	if (n_words == 0)
		(void)json_array_append_new(command, json_string("/bin/sh"));
	if (!start || json_object_set_new(start, "command", command) < 0)
		return nc_err_set(err, -ENOMEM, "Out of memory");
	if (terminal && term)
		(void)json_object_set_new(start, "env", json_pack("{s:s}", "TERM", term));
	(void)snprintf(path, sizeof(path), "/v1/sandboxes/%s/exec", sandbox);
	return nc_remote_terminal(url, path, start, terminal, err);
}

/* What nobody calls a program: sb and a sign behind it, or nothing but many digits. */
static bool looks_like_id(const char *word)
{
	return ((word[0] == 's' || word[0] == 'S') && (word[1] == 'b' || word[1] == 'B') &&
		       (word[2] == '_' || word[2] == '-')) ||
	       (strlen(word) >= 16 && word[strspn(word, "0123456789abcdefABCDEF")] == '\0');
}

static int run(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	struct nacre_err ignored = {0};
	char sandbox[64] = "", path[128];
	bool given = n_words > 0 && nc_remote_is_sandbox(words[0]);
	int r;

	if (!cli->server)
		return nc_err_set(err, -EINVAL,
			"Name a daemon: nacre --server URL shell; here: nacre exec --tty -- sh");
	if (n_words > 0 && !given && looks_like_id(words[0]))
		return nc_err_set(err, -EINVAL,
			"'%.64s' is not the id of a sandbox: that is sb_ and 32 hexadecimal "
			"digits, as nacre ps lists it; to run a program of that name give its "
			"path",
			words[0]);
	if (given && (arg_image || arg_snapshot))
		return nc_err_set(err, -EINVAL, "Option '--%s': the sandbox is there already",
			arg_image ? "image" : "snapshot");
	if (given)
		(void)snprintf(sandbox, sizeof(sandbox), "%s", words[0]);
	else if ((r = make_sandbox(cli->server, sandbox, sizeof(sandbox), err)) < 0)
		return r;
	n_words -= given;
	words += given;
	if (n_words > 0 && nc_streq(words[0], "--")) {
		n_words--;
		words++;
	}
	r = run_there(cli->server, sandbox, n_words, words, err);
	(void)snprintf(path, sizeof(path), "/v1/sandboxes/%s", sandbox);
	if (!given) /* if it cannot be told, its time ends it */
		(void)nc_remote_ask(cli->server, "DELETE", path, NULL, NULL, &ignored);
	return r;
}

const struct nc_verb nc_verb_shell = {
	.name = "shell",
	.summary = "A shell in a sandbox of a daemon",
	.arguments = "[SANDBOX] [--] [COMMAND [ARGUMENT...]]",
	.details =
		"Needs --server. Runs the command, or a shell, in a sandbox there, with this\n"
		"terminal; without the id of one in a new one that ends with it. Its exit status\n"
		"is ours.",
	.example = "nacre --server http://127.0.0.1:7070 shell",
	.options = options,
	.max_words = 4096,
	.takes_server = true,
	.is_command = true,
	.without_config = true,
	.run = run,
};
