/* nacre exec: any command in a fresh box. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/text.h"
#include "box/run.h"
#include "cli/cli.h"
#include "kernel/cgroup_box.h"
#include "kernel/fence.h"
#include "kernel/filter.h"
#include "kernel/strength.h"

#define MB (1024ULL * 1024)

/* A file needs an inode and mostly some blocks: one per 4 KiB, as ext4 has it by default, and room.
 */
#define BYTES_PER_INODE 4096U

/*
 * The kernel counts threads as processes, and Node alone starts ten: max_processes of the
 * configuration therefore allows this many threads per process. --pids is taken as it is.
 */
#define THREADS_PER_PROCESS 16U

static bool arg_json;
static const char *arg_timeout, *arg_memory, *arg_cpus, *arg_disk, *arg_pids, *arg_output;
static struct nc_words arg_env;

static const struct nc_option options[] = {
	{.name = "cpus", .value = "N", .help = "CPU cores, such as 0.5", .text = &arg_cpus},
	{.name = "disk", .value = "SIZE", .help = "Disk, in MB or with a unit", .text = &arg_disk},
	{.name = "env", .value = "K=V", .help = "Set a variable; repeatable", .words = &arg_env},
	{.name = "json", .help = "Print one JSON object with output and bill", .flag = &arg_json},
	{.name = "memory",
		.value = "SIZE",
		.help = "Memory, in MB or with a unit",
		.text = &arg_memory},
	{.name = "output",
		.value = "SIZE",
		.help = "Most output, in bytes or with a unit",
		.text = &arg_output},
	{.name = "pids", .value = "N", .help = "Processes and threads at once", .text = &arg_pids},
	{.name = "timeout",
		.value = "TIME",
		.help = "Wall time, in seconds or with a unit",
		.text = &arg_timeout},
	{0},
};

/* What a program is called that ended so. */
static const char *status_of(const struct nc_box_end *end)
{
	switch (end->cause) {
	case NC_CAUSE_WALL:
		return "timeout";
	case NC_CAUSE_CPU:
		return "cpu_limit";
	case NC_CAUSE_MEMORY:
		return "memory_limit";
	case NC_CAUSE_OUTPUT:
		return "output_limit";
	case NC_CAUSE_CANCEL:
		return "cancelled";
	case NC_CAUSE_EXIT:
	case NC_CAUSE_MAX:
		break;
	}
	if (end->signal)
		return "killed";
	return end->code == 0 ? "success" : "error";
}

static int wrong_value(
	const char *option, const char *text, const char *expected, struct nacre_err *err)
{
	char quoted[NC_TEXT_QUOTED_MAX];

	return nc_err_set(err, -EINVAL, "Option '--%s': found %s, expected %s", option,
		nc_text_quote(quoted, text), expected);
}

static int read_size(const char *option, const char *text, uint64_t unit, uint64_t least,
	uint64_t *value, struct nacre_err *err)
{
	uint64_t bytes;

	if (!text)
		return 0;
	if (nc_parse_size(text, unit, &bytes) < 0 || bytes < least || bytes > 1ULL << 40)
		return wrong_value(option, text, "a size such as 64MB, up to 1 TB", err);
	*value = bytes;
	return 0;
}

static int read_limits(const struct nc_config *config, struct nc_run *run, struct nacre_err *err)
{
	const struct nc_limit_values *defaults = &config->limits.default_limits;
	struct nc_box_limits *limits = &run->order.limits;
	uint64_t ns;
	int r;

	*limits = (struct nc_box_limits){.memory_bytes = defaults->memory_mb.number * MB,
		.cpu_milli = defaults->cpu_cores.number,
		.wall_ms = defaults->execution_time_seconds.number * 1000,
		.pids = defaults->max_processes.number * THREADS_PER_PROCESS,
		.disk_bytes = defaults->disk_mb.number * MB,
		.open_files = 1024};
	run->output_max = 64 * MB;
	if (arg_timeout) {
		if (nc_parse_duration(arg_timeout, &ns) < 0 || ns < 1000000 ||
			ns > 7 * 86400ULL * 1000000000)
			return wrong_value(
				"timeout", arg_timeout, "a time such as 30s, up to 7 days", err);
		limits->wall_ms = ns / 1000000;
	}
	if (arg_cpus && nc_parse_milli(arg_cpus, 10, 1024000, &limits->cpu_milli) < 0)
		return wrong_value("cpus", arg_cpus, "a number from 0.01 to 1024", err);
	if (arg_pids && nc_parse_u64(arg_pids, 1, 32768, &limits->pids) < 0)
		return wrong_value("pids", arg_pids, "a whole number from 1 to 32768", err);
	r = read_size("memory", arg_memory, MB, 8 * MB, &limits->memory_bytes, err);
	if (r == 0)
		r = read_size("disk", arg_disk, MB, 64 * 1024, &limits->disk_bytes, err);
	if (r == 0)
		r = read_size("output", arg_output, 1, 1, &run->output_max, err);
	limits->inodes = limits->disk_bytes / BYTES_PER_INODE + 64;
	return r;
}

/* A limit that the caller names is held or refused, never weakened. */
static int check_named_limits(const struct nc_box_host *host, struct nacre_err *err)
{
	const char *option = NULL;

	if (arg_memory && !(host->cgroups & NC_CGROUP_CAN_MEMORY))
		option = "memory";
	else if (arg_cpus && !(host->cgroups & NC_CGROUP_CAN_CPU))
		option = "cpus";
	if (!option)
		return 0;
	return nc_err_set(err, -EOPNOTSUPP,
		"Option '--%s': no control group can hold this limit here: run as root, or leave "
		"it out",
		option);
}

static void add_word(struct nc_buf *buf, struct nc_box_words *words, const char *word)
{
	nc_buf_add(buf, word, strlen(word) + 1);
	words->count++;
}

/* The environment is made from scratch; what the caller names comes last and wins. */
static int add_env(struct nc_buf *buf, struct nc_box_words *words, struct nacre_err *err)
{
	static const char *const defaults[] = {"HOME=/workspace", "LANG=C.UTF-8",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"SHELL=/bin/sh", "TMPDIR=/tmp", "USER=sandbox"};
	char quoted[NC_TEXT_QUOTED_MAX];

	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++) {
		size_t name = strcspn(defaults[i], "=") + 1;
		bool replaced = false;

		for (size_t j = 0; j < arg_env.count; j++)
			replaced |= strncmp(arg_env.words[j], defaults[i], name) == 0;
		if (!replaced)
			add_word(buf, words, defaults[i]);
	}
	for (size_t i = 0; i < arg_env.count; i++) {
		if (arg_env.words[i][0] == '=' || !strchr(arg_env.words[i], '='))
			return nc_err_set(err, -EINVAL,
				"Option '--env': found %s, expected NAME=VALUE",
				nc_text_quote(quoted, arg_env.words[i]));
		add_word(buf, words, arg_env.words[i]);
	}
	return 0;
}

static json_t *usage_json(const struct nc_run *run)
{
	const struct nc_box_usage *usage = &run->end.usage;

	return json_pack("{s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:f}", "wall_seconds",
		(double)usage->wall_ns / 1e9, "cpu_user_seconds", (double)usage->cpu_user_us / 1e6,
		"cpu_system_seconds", (double)usage->cpu_system_us / 1e6, "memory_peak_bytes",
		(json_int_t)usage->memory_peak_bytes, "disk_bytes", (json_int_t)usage->disk_bytes,
		"context_switches", (json_int_t)usage->context_switches, "output_bytes",
		(json_int_t)run->output_bytes, "birth_seconds", (double)run->birth_ns / 1e9);
}

/* Limits that the command ran into and survived. */
static json_t *hit_json(const struct nc_box_end *end)
{
	json_t *hit = json_array();

	if (hit && end->usage.oom_kills > 0 && end->cause != NC_CAUSE_MEMORY)
		(void)json_array_append_new(hit, json_string("memory"));
	if (hit && end->usage.pids_refused > 0)
		(void)json_array_append_new(hit, json_string("pids"));
	return hit;
}

/* A collection that memory was too short for must not pass for a whole one. */
static json_t *complete(json_t *collection, size_t size, size_t wanted)
{
	if (size == wanted)
		return collection;
	json_decref(collection);
	return NULL;
}

static json_t *strength_json(const struct nc_box_host *host, const struct nc_box_end *end)
{
	enum nc_grade grades[NC_STRENGTH_MAX];
	json_t *object = json_object();

	nc_strength_of_box(host, end, grades);
	for (size_t i = 0; object && i < NC_STRENGTH_MAX; i++)
		(void)json_object_set_new(
			object, nc_property_names[i], json_string(nc_grade_names[grades[i]]));
	return complete(object, json_object_size(object), NC_STRENGTH_MAX);
}

static const char *call_name(const struct nc_box_denied *denied)
{
	const char *name = nc_filter_call_name((int)denied->call);

	return name ? name : "unknown";
}

static json_t *denials_json(const struct nc_box_end *end)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < end->n_denied; i++)
		(void)json_array_append_new(list,
			json_pack("{s:s, s:s, s:I, s:s}", "layer", "seccomp", "object",
				call_name(&end->denied[i]), "count",
				(json_int_t)end->denied[i].count, "message",
				"This system call, with these arguments, is not allowed in a box"));
	return complete(list, json_array_size(list), end->n_denied);
}

static int print_json(const struct nc_box_host *host, const struct nc_run *run)
{
	const struct nc_box_end *end = &run->end;
	json_t *code =
		end->signal || end->cause != NC_CAUSE_EXIT ? json_null() : json_integer(end->code);
	json_t *signal = end->signal ? json_integer(end->signal) : json_null();

	return nc_json_print(stdout,
		json_pack("{s:s, s:o, s:o, s:o, s:o, s:b, s:{s:o}, s:o, s:o, s:o, s:s}", "status",
			status_of(end), "exit_code", code, "signal", signal, "stdout",
			nc_json_text(nc_buf_text(&run->output), run->output.size), "stderr",
			nc_json_text(nc_buf_text(&run->error), run->error.size), "truncated",
			run->output_bytes > run->output_max, "limits", "hit", hit_json(end),
			"usage", usage_json(run), "denials", denials_json(end), "strength",
			strength_json(host, end), "tier", "container"),
		true);
}

/* The shell's habits: 127 not found, 126 not executable; 125 is Nacre's own. */
static int failure_code(const struct nacre_err *failure, const char *command)
{
	char quoted[NC_TEXT_QUOTED_MAX];
	bool is_command = nc_text_after(failure->message, "start the program") != NULL;

	if (is_command)
		fprintf(stderr, "nacre exec: %s: %s\n", nc_text_quote(quoted, command),
			nc_errno_text(failure->code));
	else
		fprintf(stderr, "nacre exec: The box could not be made: %s\n", failure->message);
	if (!is_command)
		return NC_EXIT_SELF;
	return failure->code == -ENOENT ? 127 : 126;
}

static int exit_code(const struct nc_run *run)
{
	const struct nc_box_end *end = &run->end;

	for (size_t i = 0; !arg_json && i < end->n_denied; i++)
		fprintf(stderr, "nacre exec: Refused: system call %s (%u times)\n",
			call_name(&end->denied[i]), end->denied[i].count);
	if (end->cause == NC_CAUSE_WALL)
		return 124;
	if (end->cause != NC_CAUSE_EXIT && !arg_json)
		fprintf(stderr, "nacre exec: Ended: %s\n", status_of(end));
	return end->signal ? 128 + (int)end->signal : (int)end->code;
}

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

static int run(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err)
{
	nc_buf_cleanup struct nc_buf argv = NC_BUF(1U << 20), env = NC_BUF(1U << 20);
	cleanup_spawn struct nc_spawn spawn = {.fd = -EBADF};
	struct nc_run task = {.order = {.id = 1, .dir = "/workspace"},
		.input_fd = STDIN_FILENO,
		.output_fd = arg_json ? -EBADF : STDOUT_FILENO,
		.error_fd = arg_json ? -EBADF : STDERR_FILENO,
		.output = NC_BUF(64 * MB),
		.error = NC_BUF(64 * MB)};
	int r;

	if (n_words == 0)
		return nc_err_set(err, -EINVAL, "Name a command: nacre exec -- COMMAND");
	r = read_limits(cli->config, &task, err);
	for (int i = 0; r == 0 && i < n_words; i++)
		add_word(&argv, &task.order.argv, words[i]);
	if (r == 0)
		r = add_env(&env, &task.order.env, err);
	if (r < 0)
		return r;
	if (argv.error < 0 || env.error < 0)
		return nc_err_set(err, -E2BIG, "Arguments and environment are too long");
	task.order.argv.data = argv.data;
	task.order.argv.size = argv.size;
	task.order.env.data = env.data;
	task.order.env.size = env.size;
	if (task.output_max < task.output.max)
		task.output.max = task.error.max = task.output_max;
	/* from here on we only move bytes that a stranger wrote: no file is needed any more */
	r = nc_fence_all();
	if (r < 0)
		return nc_err_errno(err, r, "Restrict ourselves by Landlock");
	r = nc_spawn_connect(&spawn, err);
	if (r == 0)
		r = check_named_limits(&spawn.host, err);
	if (r == 0)
		r = run_quietly(&spawn, &task, err);
	if (r == 0 && task.failure.code < 0)
		r = failure_code(&task.failure, words[0]);
	else if (r == 0) {
		if (arg_json && print_json(&spawn.host, &task) < 0)
			r = nc_err_set(err, -EIO, "Write the answer");
		else
			r = exit_code(&task);
	}
	nc_buf_done(&task.output);
	nc_buf_done(&task.error);
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
	.needs_spawner = true,
	.run = run,
};
