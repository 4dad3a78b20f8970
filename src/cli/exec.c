/* nacre exec: any command in a fresh box. */
#include <errno.h>

#include "base/json.h"
#include "cli/answer.h"
#include "cli/answer_json.h"
#include "cli/cli.h"
#include "cli/early.h"
#include "cli/exec_door.h"
#include "cli/exec_here.h"
#include "cli/exec_there.h"

struct nc_early nc_early;

static bool arg_json;
static const char *arg_sandbox;
static struct nc_order_args args;

static const struct nc_option options[] = {
	{.name = "allow",
		.value = "HOST[:PORT]",
		.help = "A host that it may reach; repeatable",
		.words = &args.allow},
	{.name = "bind",
		.value = "SRC[:DST][:rw]",
		.help = "Show a file or directory; repeatable",
		.words = &args.bind},
	NC_OPTION_CPU_TIME(args),
	NC_OPTION_CPUS(args),
	NC_OPTION_DISK(args),
	NC_OPTION_ENV(args),
	NC_OPTION_FILES(args),
	{.name = "floor",
		.value = "[PROPERTY=]GRADE",
		.help = "Least strength; repeatable",
		.words = &args.floor},
	{.name = "image",
		.value = "NAME",
		.help = "File tree of the box: host, or imported",
		.text = &args.image},
	NC_OPTION_INODES(args),
	{.name = "json", .help = "Print one JSON object with output and bill", .flag = &arg_json},
	NC_OPTION_MEMORY(args),
	NC_OPTION_OUTPUT(args),
	NC_OPTION_PIDS(args),
	{.name = "sandbox",
		.value = "ID",
		.help = "Run it in this sandbox of --server",
		.text = &arg_sandbox},
	NC_OPTION_TIER(args),
	NC_OPTION_TIMEOUT(args),
	{.name = "tty", .help = "Give it a terminal of its own", .flag = &args.tty},
	{.name = "user",
		.value = "USER",
		.help = "Whose it is in the box: root, or another",
		.text = &args.user},
	{.name = "writable-root",
		.help = "Its root can be written to, within --disk",
		.flag = &args.writable_root},
	{0},
};

static int answer(const struct nc_run *task, const char *command, struct nacre_err *err)
{
	cleanup_json json_t *refused = NULL;
	struct nacre_err said = {0};
	int code;

	if (task->failure.code < 0) {
		code = nc_answer_failure(task, command, &said);
		if (arg_json)
			nc_answer_error(said.message, code, NULL);
		return code;
	}
	refused = nc_exec_door_denials();
	if (arg_json && nc_answer_print(task, refused) < 0)
		return nc_err_set(err, -EIO, "Write the answer");
	if (!arg_json)
		nc_answer_denials("exec", refused, "");
	return nc_answer_code(task, arg_json);
}

static int run(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	struct nc_exec exec = {.args = &args,
		.config = cli->config,
		.collects = arg_json,
		.begun_fd = nc_early.fd,
		.begun_parent = nc_early.parent,
		.answer = answer};

	if (n_words == 0)
		return nc_err_set(err, -EINVAL, "Name a command: nacre exec -- COMMAND");
	if (cli->server)
		return nc_exec_there(cli, &args, arg_sandbox, arg_json, words, n_words, err);
	if (arg_sandbox)
		return nc_err_set(err, -EINVAL, "Option '--sandbox': name the --server too");
	if (args.allow.count > 0) {
		int r = nc_exec_door_start(&args, err);

		if (r < 0)
			return r;
		exec.prepare = nc_exec_door_prepare;
	}
	return nc_exec_here(&exec, words, n_words, err);
}

const struct nc_verb nc_verb_exec = {
	.name = "exec",
	.summary = "Run a command in a fresh box",
	.arguments = "[--] COMMAND [ARGUMENT...]",
	.details = "Runs the command in a box of its own: own root, processes, network and users, "
		   "with\n"
		   "limits; input and output are passed through, and its exit status is ours.",
	.example = "nacre exec --memory 256MB --timeout 10s -- python3 -c 'print(1)'",
	.options = options,
	.max_words = 4096,
	.is_command = true,
	.takes_server = true,
	.run = run,
};
