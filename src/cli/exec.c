/* nacre exec: any command in a fresh box. */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/early.h"
#include "cli/exec_there.h"
#include "cli/order.h"
#include "kernel/fence.h"
#include "kernel/filter.h"

/* What an answer holds of the output, at most. */
#define ANSWER_MAX (64ULL << 20)

struct nc_early nc_early;

static bool arg_json;
static const char *arg_sandbox;
static struct nc_order_args args;

static const struct nc_option options[] = {
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
	{0},
};

/* A program that closes its input must not end us; a reader that leaves ends us as any filter. */
static int run_quietly(struct nc_spawn *spawn, struct nc_run *task, struct nacre_err *err)
{
	int r;

	(void)signal(SIGPIPE, SIG_IGN);
	r = nc_run(spawn, task, err);
	(void)signal(SIGPIPE, SIG_DFL);
	if (r == -EPIPE)
		(void)raise(SIGPIPE);
	return r;
}

/* The unprivileged half: no file is needed any more, only bytes that a stranger wrote are moved. */
static int run_as_worker(struct nc_spawn *spawn, struct nc_order *order, struct nacre_err *err)
{
	struct nc_terminal terminal = {.fd = -EBADF, .resized_fd = -EBADF};
	int landlock = nc_fence_all();
	int r = landlock < 0 ? landlock : nc_filter_load(NC_FILTER_WORKER, NULL);

	if (r < 0)
		return nc_err_errno(err, r, "Restrict ourselves");
	r = nc_spawn_connect(spawn, err);
	if (r == 0)
		r = nc_order_settle(&args, &spawn->host, landlock, order, err);
	if (r < 0)
		return r;
	if (args.tty) {
		r = nc_terminal_take(&terminal, STDIN_FILENO);
		if (r < 0)
			return nc_err_errno(err, r, "Take over the terminal");
		nc_terminal_size(&terminal, &order->run.order.rows, &order->run.order.columns);
		order->run.terminal = &terminal;
	}
	r = run_quietly(spawn, &order->run, err);
	nc_terminal_give_back(&terminal);
	order->run.terminal = NULL;
	return r;
}

static int answer(const struct nc_spawn *spawn, const struct nc_run *task, const char *command,
	struct nacre_err *err)
{
	if (task->failure.code < 0)
		return nc_answer_failure(&task->failure, command);
	if (arg_json && nc_answer_print(&spawn->host, task) < 0)
		return nc_err_set(err, -EIO, "Write the answer");
	return nc_answer_code(task, arg_json);
}

static int run(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	cleanup_spawn struct nc_spawn spawn = {.fd = -EBADF};
	cleanup_order struct nc_order order = {0};
	struct nc_run *task = &order.run;
	struct nc_spawn_setup setup;
	int r;

	if (n_words == 0)
		return nc_err_set(err, -EINVAL, "Name a command: nacre exec -- COMMAND");
	if (cli->server)
		return nc_exec_there(cli, &args, arg_sandbox, arg_json, words, n_words, err);
	if (arg_sandbox)
		return nc_err_set(err, -EINVAL, "Option '--sandbox': name the --server too");
	r = nc_order_read(&args, cli->config, words, n_words, &order, err);
	if (r < 0)
		return r;
	task->input_fd = STDIN_FILENO;
	task->output_fd = arg_json ? -EBADF : STDOUT_FILENO;
	task->error_fd = arg_json ? -EBADF : STDERR_FILENO;
	task->output.max = task->error.max =
		task->output_max < ANSWER_MAX ? task->output_max : ANSWER_MAX;
	if (order.in_rw_bind && !arg_json)
		fputs("nacre exec: The disk limit does not cover what is bound with :rw\n", stderr);
	setup = (struct nc_spawn_setup){.begun_fd = nc_early.fd,
		.begun_parent = nc_early.parent,
		.ready = nc_box_is_neutral(&task->order) ? 1 : 0,
		.binds = order.bind_fd,
		.n_binds = order.n_bind_fds,
		.witness_fd = -EBADF};
	r = nc_spawn_start(&spawn, &setup, err);
	if (r == 0)
		r = run_as_worker(&spawn, &order, err);
	if (r == 0)
		r = answer(&spawn, task, words[0], err);
	nc_buf_done(&task->output);
	nc_buf_done(&task->error);
	return r;
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
