/*
 * nacre-exec: the worker of a plain `nacre exec`.
 *
 * Theory of operation: nacre (src/cli/early.c) has forked before its own start, its parent is
 * becoming nacre-spawner, and the child became this program, with its end of the pair to the
 * spawner as descriptor 3 and nacre's own path as word 0. It does what nacre would do, with the
 * same code, but starts in a tenth of the time: there is nothing in it that a plain command does
 * not need. Where there is a configuration to be read it becomes nacre after all.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/answer.h"
#include "cli/exec_here.h"

#define BEGUN_FD 3

static struct nc_order_args args;

static const struct nc_option options[] = {
	NC_OPTION_CPU_TIME(args),
	NC_OPTION_CPUS(args),
	NC_OPTION_DISK(args),
	NC_OPTION_ENV(args),
	NC_OPTION_FILES(args),
	NC_OPTION_INODES(args),
	NC_OPTION_MEMORY(args),
	NC_OPTION_OUTPUT(args),
	NC_OPTION_PIDS(args),
	NC_OPTION_TIMEOUT(args),
	{0},
};

static const struct nc_verb verb_exec = {
	.name = "exec", .options = options, .max_words = 4096, .is_command = true};
static const struct nc_verb *const verbs[] = {&verb_exec, NULL};
static const struct nc_verb verb_root = {.name = "nacre", .verbs = verbs};

static int answer(const struct nc_run *task, const char *command, struct nacre_err *err)
{
	struct nacre_err said = {0};

	(void)err;
	return task->failure.code < 0 ? nc_answer_failure(task, command, &said)
				      : nc_answer_code(task, false);
}

/* Who made the pair, and is our parent as long as it lives. */
static pid_t find_parent(void)
{
	struct ucred maker;
	socklen_t size = sizeof(maker);

	if (getsockopt(BEGUN_FD, SOL_SOCKET, SO_PEERCRED, &maker, &size) < 0 || maker.pid <= 0)
		return -1;
	return maker.pid;
}

/* It goes on with the spawner that was begun; see src/cli/early.c. Returns only if it cannot. */
static int become_nacre(char **argv, pid_t parent)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%d", (int)parent);
	if (setenv("NACRE_BEGUN", text, 1) == 0)
		(void)execv(argv[0], argv);
	fprintf(stderr, "nacre: Start %s: %s\n", argv[0], nc_errno_text(errno));
	return NC_EXIT_SELF;
}

int main(int argc, char **argv)
{
	struct nc_call call = {0};
	struct nacre_err err = {0};
	struct nc_config config;
	struct nc_exec exec = {.args = &args,
		.config = &config,
		.begun_fd = BEGUN_FD,
		.begun_parent = find_parent(),
		.answer = answer};
	cleanup_free char **line = calloc((size_t)argc + 1, sizeof(*line));
	int r;

	if (exec.begun_parent < 0) {
		fputs("nacre-exec: It is nacre that starts this\n", stderr);
		return NC_EXIT_SELF;
	}
	if (line) /* reading puts the words in another order */
		memcpy(line, argv, (size_t)argc * sizeof(*line));
	if (!line || nc_config_init(&config, NULL, &err) < 0 || config.dir ||
		nc_call_parse(&verb_root, argc, line, &call, &err) < 0 || call.n_words == 0 ||
		call.n_words > verb_exec.max_words)
		return become_nacre(argv, exec.begun_parent);
	r = fcntl(BEGUN_FD, F_SETFD, FD_CLOEXEC) < 0
		    ? nc_err_errno(&err, -errno, "Keep descriptor %d", BEGUN_FD)
		    : nc_exec_here(&exec, call.words, call.n_words, &err);
	return r < 0 ? nc_call_report(&call, &err) : r;
}
