/* A command in a fresh box of this machine, with the caller's own streams. */
#include "cli/exec_here.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/fence.h"
#include "kernel/filter.h"
#include "kernel/processor.h"

/* What an answer holds of the output, at most. */
#define ANSWER_MAX (64ULL << 20)

/* A program that closes its input must not end us; a reader that leaves ends us as any filter. */
static int run_quietly(struct nc_holder *holder, struct nc_run *task, struct nacre_err *err)
{
	int r;

	(void)signal(SIGPIPE, SIG_IGN);
	r = nc_run(holder, task, err);
	(void)signal(SIGPIPE, SIG_DFL);
	if (r == -EPIPE) /* raise() of musl is a call that our filter refuses */
		(void)syscall(SYS_tgkill, getpid(), gettid(), SIGPIPE);
	return r;
}

/*
 * A spawner that was begun before us answers while it prepares the box: woken on the processor of
 * the box's first process, we would hold that up.
 */
static int greet(const struct nc_exec *exec, struct nc_holder *holder, struct nacre_err *err)
{
	cpu_set_t had;
	bool stays = exec->begun_fd > 0 && nc_processor_stay(&had);
	int r = nc_holder_connect(holder, err);

	if (stays)
		(void)nc_processor_roam(&had); /* what we had cannot be refused */
	return r;
}

/* The unprivileged half: no file is needed any more, only bytes that a stranger wrote are moved. */
static int run_as_worker(const struct nc_exec *exec, struct nc_holder *holder,
	struct nc_order *order, struct nacre_err *err)
{
	struct nc_terminal terminal = {.fd = -EBADF, .resized_fd = -EBADF};
	int r = nc_fence_all();

	if (r >= 0)
		r = nc_filter_load(NC_FILTER_WORKER, NULL);
	if (r < 0)
		return nc_err_errno(err, r, "Restrict ourselves");
	r = greet(exec, holder, err);
	if (r == 0 && exec->prepare)
		r = exec->prepare(&order->run, err);
	if (r == 0)
		r = nc_order_settle(exec->args, holder, order, err);
	if (r < 0)
		return r;
	if (exec->args->tty) {
		r = nc_terminal_take(&terminal, STDIN_FILENO);
		if (r < 0)
			return nc_err_errno(err, r, "Take over the terminal");
		nc_terminal_size(&terminal, &order->run.exec.rows, &order->run.exec.columns);
		order->run.terminal = &terminal;
	}
	r = run_quietly(holder, &order->run, err);
	nc_terminal_give_back(&terminal);
	order->run.terminal = NULL;
	return r;
}

int nc_exec_here(const struct nc_exec *exec, char **words, int n_words, struct nacre_err *err)
{
	cleanup_holder struct nc_holder holder = {.fd = -EBADF};
	cleanup_order struct nc_order order = {0};
	struct nc_run *task = &order.run;
	struct nc_holder_setup setup;
	int r = nc_order_read(exec->args, exec->config, words, n_words, &order, err);

	if (r < 0)
		return r;
	task->input_fd = STDIN_FILENO;
	task->output_fd = exec->collects ? -EBADF : STDOUT_FILENO;
	task->error_fd = exec->collects ? -EBADF : STDERR_FILENO;
	task->output.max = task->error.max =
		task->output_max < ANSWER_MAX ? task->output_max : ANSWER_MAX;
	if (order.in_rw_bind && !exec->collects)
		fputs("nacre exec: The disk limit does not cover what is bound with :rw\n", stderr);
	setup = (struct nc_holder_setup){.begun_fd = exec->begun_fd,
		.begun_parent = exec->begun_parent,
		.ready = task->image_fd < 0 && nc_exec_is_neutral(&task->exec) && !exec->prepare
				 ? 1
				 : 0,
		.binds = order.bind_fd,
		.n_binds = order.n_bind_fds,
		.witness_fd = -EBADF};
	r = nc_holder_start(&holder, &setup, err);
	if (r == 0)
		r = run_as_worker(exec, &holder, &order, err);
	if (r == 0)
		r = exec->answer(task, words[0], err);
	nc_buf_done(&task->output);
	nc_buf_done(&task->error);
	return r;
}
