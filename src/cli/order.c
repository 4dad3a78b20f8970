/* What a command line says about a box. */
#include "cli/order.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parse.h"
#include "base/text.h"
#include "box/image.h"

#define MB (1024ULL * 1024)

/* A file needs an inode and mostly some blocks: one per 4 KiB, as ext4 has it by default, and room.
 */
#define BYTES_PER_INODE 4096U

/*
 * The kernel counts threads as processes, and Node alone starts ten: max_processes of the
 * configuration therefore allows this many threads per process. --pids is taken as it is.
 */
#define THREADS_PER_PROCESS 16U

#define DAYS_7_NS (7 * 86400ULL * 1000000000)

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

static int read_number(const char *option, const char *text, uint64_t least, uint64_t most,
	uint64_t *value, struct nacre_err *err)
{
	char expected[64];

	if (!text || nc_parse_u64(text, least, most, value) == 0)
		return 0;
	(void)snprintf(expected, sizeof(expected), "a whole number from %llu to %llu",
		(unsigned long long)least, (unsigned long long)most);
	return wrong_value(option, text, expected, err);
}

static int read_time(const char *option, const char *text, uint64_t *ms, struct nacre_err *err)
{
	uint64_t ns;

	if (!text)
		return 0;
	if (nc_parse_duration(text, &ns) < 0 || ns < 1000000 || ns > DAYS_7_NS)
		return wrong_value(option, text, "a time such as 30s, up to 7 days", err);
	*ms = ns / 1000000;
	return 0;
}

int nc_order_limits(const struct nc_order_args *args, struct nc_box_limits *limits,
	uint64_t *output_max, struct nacre_err *err)
{
	int r;

	if (args->cpus && nc_parse_milli(args->cpus, 10, 1024000, &limits->cpu_milli) < 0)
		return wrong_value("cpus", args->cpus, "a number from 0.01 to 1024", err);
	r = read_time("timeout", args->timeout, &limits->wall_ms, err);
	if (r == 0)
		r = read_time("cpu-time", args->cpu_time, &limits->cpu_time_ms, err);
	if (r == 0)
		r = read_number("pids", args->pids, 1, 32768, &limits->pids, err);
	if (r == 0)
		r = read_number("files", args->files, 8, 1U << 20, &limits->open_files, err);
	if (r == 0)
		r = read_size("memory", args->memory, MB, 8 * MB, &limits->memory_bytes, err);
	if (r == 0)
		r = read_size("disk", args->disk, MB, 64 * 1024, &limits->disk_bytes, err);
	if (r == 0)
		r = read_size("output", args->output, 1, 1, output_max, err);
	if (r == 0)
		r = read_number("inodes", args->inodes, 16, 1U << 30, &limits->inodes, err);
	return r;
}

static int read_limits(const struct nc_order_args *args, const struct nc_config *config,
	struct nc_run *run, struct nacre_err *err)
{
	const struct nc_limit_values *defaults = &config->limits.default_limits;
	struct nc_box_limits *limits = &run->exec.limits;
	int r;

	*limits = (struct nc_box_limits){.memory_bytes = defaults->memory_mb.number * MB,
		.cpu_milli = defaults->cpu_cores.number,
		.wall_ms = defaults->execution_time_seconds.number * 1000,
		.pids = defaults->max_processes.number * THREADS_PER_PROCESS,
		.disk_bytes = defaults->disk_mb.number * MB,
		.open_files = nc_files_usual()};
	run->output_max = 64 * MB;
	r = nc_order_limits(args, limits, &run->output_max, err);
	if (r == 0 && args->files && limits->open_files > nc_files_most())
		return nc_err_set(err, -EOPNOTSUPP,
			"Option '--files': this host allows %llu at most (ulimit -n)",
			(unsigned long long)nc_files_most());
	if (!args->inodes)
		limits->inodes = limits->disk_bytes / BYTES_PER_INODE + 64;
	return r;
}

static int read_tier(const struct nc_order_args *args, struct nc_run *run, struct nacre_err *err)
{
	if (!args->tier || nc_streq(args->tier, "container"))
		return 0;
	if (!nc_streq(args->tier, "process"))
		return wrong_value("tier", args->tier, "container or process", err);
	run->exec.tier = NC_TIER_PROCESS;
	if (args->image || args->bind.count > 0)
		return nc_err_set(err, -EINVAL,
			"Option '--%s': a process box has no mounts of its own; use --tier "
			"container",
			args->image ? "image" : "bind");
	return 0;
}

static int read_user(const struct nc_order_args *args, struct nc_run *run, struct nacre_err *err)
{
	struct nc_exec_spec *exec = &run->exec;

	if (args->user && (!*args->user || strlen(args->user) > NC_BOX_USER_MAX))
		return wrong_value("user", args->user,
			"a name or number of the box's /etc/passwd, such as root", err);
	exec->writable = args->writable_root;
	if (!args->user || nc_streq(args->user, NC_SANDBOX_USER))
		return 0;
	exec->users = true;
	(void)snprintf(exec->user, sizeof(exec->user), "%s", args->user);
	return 0;
}

static int read_image(const struct nc_order_args *args, struct nc_run *run, struct nacre_err *err)
{
	if (!args->image || nc_streq(args->image, NC_IMAGE_HOST))
		return 0;
	run->image_fd = nc_image_open(args->image, err);
	if (run->image_fd < 0)
		return run->image_fd;
	return 0;
}

int nc_order_bind(const char *text, struct nc_order *order, struct nacre_err *err)
{
	const char *expected = "SOURCE[:TARGET][:rw], the target absolute, without dots, no longer "
			       "than 255 bytes, and not in /proc, /dev or /sys";
	struct nc_exec_spec *exec = &order->run.exec;
	struct nc_box_bind *bind = &exec->binds[exec->n_binds];
	cleanup_free char *copy = strdup(text), *real = NULL;
	char quoted[NC_TEXT_QUOTED_MAX];
	char *colon;
	int fd;

	if (!copy)
		return nc_err_errno(err, -ENOMEM, "Option '--bind'");
	if (exec->n_binds == NC_BOX_BINDS_MAX)
		return nc_err_set(err, -E2BIG, "Option '--bind': more than %u", NC_BOX_BINDS_MAX);
	colon = strrchr(copy, ':');
	if (colon && (nc_streq(colon, ":rw") || nc_streq(colon, ":ro"))) {
		bind->writable = nc_streq(colon, ":rw");
		*colon = '\0';
		colon = strrchr(copy, ':');
	}
	if (colon && colon[1] == '/')
		*colon = '\0';
	else
		colon = NULL;
	fd = open(copy, O_PATH | O_CLOEXEC);
	real = fd < 0 ? NULL : realpath(copy, NULL);
	if (!real) {
		(void)nc_fd_close(fd);
		return nc_err_errno(
			err, -errno, "Option '--bind': %s", nc_text_quote(quoted, copy));
	}
	order->bind_fd[order->n_bind_fds++] = fd;
	if (!nc_box_target_ok(colon ? colon + 1 : real))
		return wrong_value("bind", text, expected, err);
	(void)snprintf(bind->target, sizeof(bind->target), "%s", colon ? colon + 1 : real);
	bind->index = exec->n_binds++;
	order->in_rw_bind |= bind->writable;
	return 0;
}

/* PROPERTY=GRADE, or GRADE for all that a box of ours can have in full. */
static int read_floor(const char *text, struct nc_order *order, struct nacre_err *err)
{
	const char *equals = strchr(text, '=');
	const char *word = equals ? equals + 1 : text;
	size_t length = equals ? (size_t)(equals - text) : 0;
	enum nc_grade grade = NC_GRADE_NONE;
	bool known = false;

	while (grade < NC_GRADE_MAX && !nc_streq(word, nc_grade_names[grade]))
		grade++;
	for (size_t i = 0; grade < NC_GRADE_MAX && i < NC_STRENGTH_MAX; i++) {
		bool named = equals && strlen(nc_property_names[i]) == length &&
			     strncmp(text, nc_property_names[i], length) == 0;

		if (!named && (equals || i == NC_STRENGTH_HYPERVISOR || i == NC_STRENGTH_IO))
			continue;
		known = true;
		/* it raises the floor and never lowers it */
		if (order->wish.floor[i] < grade)
			order->wish.floor[i] = grade;
	}
	if (known)
		return 0;
	return wrong_value("floor", text,
		"full, reduced or none, or one of them for a property such as memory=full", err);
}

static int check_env(const struct nc_order_args *args, struct nacre_err *err)
{
	for (size_t i = 0; i < args->env.count; i++)
		if (args->env.words[i][0] == '=' || !strchr(args->env.words[i], '='))
			return wrong_value("env", args->env.words[i], "NAME=VALUE", err);
	return 0;
}

int nc_order_read(const struct nc_order_args *args, const struct nc_config *config, char **words,
	int n_words, struct nc_order *order, struct nacre_err *err)
{
	struct nc_run *run = &order->run;
	int r;

	*order = (struct nc_order){
		.run = {.exec = {.id = 1}, .image_fd = -EBADF, .cancel_fd = -EBADF},
		.argv = NC_WORD_LIST,
		.env = NC_WORD_LIST};
	memcpy(order->wish.floor, nc_strength_floor, sizeof(order->wish.floor));
	run->exec.terminal = args->tty;
	r = read_limits(args, config, run, err);
	if (r == 0)
		r = read_tier(args, run, err);
	if (r == 0)
		r = read_user(args, run, err);
	if (r == 0)
		r = check_env(args, err);
	for (size_t i = 0; r == 0 && i < args->floor.count; i++)
		r = read_floor(args->floor.words[i], order, err);
	for (size_t i = 0; r == 0 && i < args->bind.count; i++)
		r = nc_order_bind(args->bind.words[i], order, err);
	if (r == 0)
		r = read_image(args, run, err);
	for (int i = 0; r == 0 && i < n_words; i++)
		nc_word_add(&order->argv, words[i]);
	return r;
}

void nc_order_done(struct nc_order *order)
{
	for (size_t i = 0; i < order->n_bind_fds; i++)
		order->bind_fd[i] = nc_fd_close(order->bind_fd[i]);
	order->run.image_fd = nc_fd_close(order->run.image_fd);
	nc_buf_done(&order->argv.buf);
	nc_buf_done(&order->env.buf);
}

int nc_order_settle(const struct nc_order_args *args, const struct nc_holder *holder,
	struct nc_order *order, struct nacre_err *err)
{
	static const char *const names[NC_NAMED_MAX] = {"Option '--memory'", "Option '--cpus'",
		"Option '--cpu-time'", "Option '--pids'", "Option '--disk'", "Option '--inodes'"};
	const char *given[NC_WORDS_MAX + 1] = {NULL};
	char workspace[NC_PLACE_SIZE], temporary[NC_PLACE_SIZE];
	struct nc_exec_spec *exec = &order->run.exec;
	int r;

	order->wish.names = names;
	order->wish.named[NC_NAMED_MEMORY] = args->memory != NULL;
	order->wish.named[NC_NAMED_CPUS] = args->cpus != NULL;
	order->wish.named[NC_NAMED_CPU_TIME] = args->cpu_time != NULL;
	order->wish.named[NC_NAMED_PIDS] = args->pids != NULL;
	order->wish.named[NC_NAMED_DISK] = args->disk != NULL;
	order->wish.named[NC_NAMED_INODES] = args->inodes != NULL;
	r = nc_settle(holder, &order->wish, exec, err);
	if (r < 0)
		return r;
	memcpy(given, args->env.words, args->env.count * sizeof(given[0]));
	nc_box_places(holder, exec->tier, exec->id, workspace, temporary);
	nc_env_fill(&order->env,
		&(struct nc_env_place){workspace, temporary, exec->tier, exec->limits.memory_bytes,
			exec->user, exec->writable},
		given);
	if (order->argv.buf.error < 0 || order->env.buf.error < 0)
		return nc_err_set(err, -E2BIG, "Arguments and environment are longer than %u KiB",
			NC_BOX_WORDS_MAX / 1024);
	exec->argv = nc_word_view(&order->argv);
	exec->env = nc_word_view(&order->env);
	return 0;
}
