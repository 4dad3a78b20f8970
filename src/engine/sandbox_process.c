/* What runs in a sandbox: processes, each a command with an end of its own, and work on files. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "box/outcome.h"
#include "engine/denials.h"
#include "engine/hooks.h"
#include "engine/sandbox_parts.h"
#include "engine/work.h"

#define OUTPUT_MAX (64ULL << 20)
#define FILES_WALL_MS 60000U
#define FILES_MEMORY (64ULL << 20)
/* Of what nacre-files says is wrong. */
#define SAID_MAX 400U

int nc_sandbox_exec_spec(
	struct nc_sandbox *sandbox, struct nc_exec_spec *ret_exec, struct nacre_err *err)
{
	struct nc_exec_spec *exec = ret_exec;

	if (sandbox->paused)
		return nc_err_set(err, -EBUSY, "The sandbox is paused: resume it first");
	if (sandbox->n_running >= NC_SANDBOX_RUNNING_MAX)
		return nc_err_set(
			err, -EBUSY, "%zu commands run in the sandbox already", sandbox->n_running);
	if (!nc_sandbox_is_home(sandbox) && sandbox->n_running + sandbox->n_tasks > 0)
		return nc_err_set(
			err, -EBUSY, "Without control groups a sandbox runs one command at a time");
	*exec = sandbox->exec;
	exec->users = exec->writable = false; /* as it was made */
	exec->rows = 24;
	exec->columns = 80;
	if (nc_sandbox_is_home(sandbox)) {
		exec->id = nc_hub_id_beside(sandbox->all->hub, sandbox->box_id);
		exec->home = sandbox->box_id;
	} else {
		exec->stays = true;
	}
	exec->survives = sandbox->all->ledger;
	return 0;
}

void nc_process_free(struct nc_process *process)
{
	if (process->sandbox->all->ledger)
		nc_ledger_remove(process->sandbox->all->ledger, process->page);
	if (process->looks)
		nc_file_tasks_forget(process->sandbox->all, process);
	for (enum nc_stream i = 0; i < NC_STREAM_MAX; i++)
		nc_output_done(&process->output[i]);
	json_decref(process->command);
	json_decref(process->denials);
	json_decref(process->alerts);
	free(process->input);
	free(process);
}

/* Memory for what the commands of a sandbox have printed. */
static size_t held_by(const struct nc_sandbox *sandbox)
{
	size_t sum = 0;

	for (const struct nc_process *p = sandbox->processes; p; p = p->next)
		for (enum nc_stream i = 0; i < NC_STREAM_MAX; i++)
			sum += nc_output_held(&p->output[i]);
	return sum;
}

/* Forgets the one that ended first, and returns whether there was one beside the newest. */
static bool forget_oldest(struct nc_sandbox *sandbox)
{
	struct nc_process **oldest = NULL, *process;

	for (struct nc_process **place = &sandbox->processes; *place; place = &(*place)->next)
		if (!nc_process_runs(*place) && !(*place)->awaited && *place != sandbox->processes)
			oldest = place;
	if (!oldest)
		return false;
	process = *oldest;
	*oldest = process->next;
	nc_process_free(process);
	return true;
}

/* What a tenant has remembered in all of its sandboxes, and which of them has most. */
static size_t held_for(const struct nc_sandbox *sandbox, struct nc_sandbox **ret_most)
{
	size_t sum = 0, most = 0;

	for (struct nc_sandbox *s = sandbox->all->list; s; s = s->next) {
		size_t held = nc_streq(s->tenant, sandbox->tenant) ? held_by(s) : 0;

		sum += held;
		if (held < most || held == 0)
			continue;
		most = held;
		*ret_most = s;
	}
	return sum;
}

/* What was printed is the tenant's: it has so much memory for that, and the oldest goes. */
static void bound_output(struct nc_sandbox *sandbox)
{
	struct nc_sandbox *most = NULL;

	while (held_by(sandbox) > NC_SANDBOX_HELD_MAX && forget_oldest(sandbox))
		;
	while (held_for(sandbox, &most) > NC_TENANT_HELD_MAX && most && forget_oldest(most))
		;
}

/* Only so many that have ended are remembered. */
static void forget_old(struct nc_sandbox *sandbox)
{
	size_t n = 0;

	bound_output(sandbox);

	for (struct nc_process **place = &sandbox->processes; *place;) {
		struct nc_process *process = *place;

		if (nc_process_runs(process) || process->awaited || ++n <= NC_SANDBOX_ENDED_MAX) {
			place = &process->next;
			continue;
		}
		*place = process->next;
		nc_process_free(process);
	}
}

static void on_started(void *context, uint64_t birth_ns, int door_fd)
{
	struct nc_process *process = context;

	(void)nc_fd_close(door_fd);
	process->birth_ns = birth_ns;
	process->began_ns = nc_clock_ns();
	nc_process_save(process);
	if (process->doomed)
		(void)nc_process_kill(process);
	for (size_t i = 0; i < NC_PROCESS_LISTENERS_MAX; i++)
		if (process->listener[i].begun)
			process->listener[i].begun(process->listener[i].context);
}

static void on_fed(void *context)
{
	struct nc_process *process = context;

	process->hungry = false;
	nc_process_save(process);
}

/* What it prints is written down as it is read. */
static ssize_t on_take(void *context, enum nc_stream stream, int fd, char *data, size_t size)
{
	struct nc_process *process = context;

	return nc_ledger_receive(
		process->sandbox->all->ledger, process->page, stream, fd, data, size);
}

static void on_printed(void *context, enum nc_stream stream, const char *data, size_t size)
{
	struct nc_process *process = context;

	nc_output_add(&process->output[stream], data, size);
	for (size_t i = 0; i < NC_PROCESS_LISTENERS_MAX; i++)
		if (process->listener[i].printed)
			process->listener[i].printed(
				process->listener[i].context, stream, data, size);
}

static void on_writable(void *context)
{
	struct nc_process *process = context;

	for (size_t i = 0; i < NC_PROCESS_LISTENERS_MAX; i++)
		if (process->listener[i].writable)
			process->listener[i].writable(process->listener[i].context);
}

static void tell_end(struct nc_process *process)
{
	for (size_t i = 0; i < NC_PROCESS_LISTENERS_MAX; i++) {
		struct nc_process_listener listener = process->listener[i];

		process->listener[i] = (struct nc_process_listener){0};
		process->held[i] = false;
		if (listener.ended)
			listener.ended(listener.context, process);
	}
}

static void hold_if_any(struct nc_process *process)
{
	bool held = false;

	for (size_t i = 0; i < NC_PROCESS_LISTENERS_MAX; i++)
		held = held || process->held[i];
	if (process->running)
		nc_command_hold(process->running, held);
}

void nc_process_hold(struct nc_process *process, const void *context, bool held)
{
	for (size_t i = 0; i < NC_PROCESS_LISTENERS_MAX; i++)
		if (process->listener[i].context == context)
			process->held[i] = held;
	hold_if_any(process);
}

void nc_process_forget(struct nc_process *process, const void *context)
{
	for (size_t i = 0; i < NC_PROCESS_LISTENERS_MAX; i++) {
		if (process->listener[i].context != context)
			continue;
		process->listener[i] = (struct nc_process_listener){0};
		process->held[i] = false;
	}
	hold_if_any(process);
}

bool nc_process_has_room(const struct nc_process *process)
{
	for (size_t i = 0; i < NC_PROCESS_LISTENERS_MAX; i++)
		if (!process->listener[i].context)
			return true;
	return false;
}

void nc_process_listen(struct nc_process *process, const struct nc_process_listener *listener)
{
	size_t i = 0;

	while (i < NC_PROCESS_LISTENERS_MAX && process->listener[i].context)
		i++;
	if (i < NC_PROCESS_LISTENERS_MAX)
		process->listener[i] = *listener;
}

/* Who could tell its end has died: what was told of it last, and the time until now. */
static void take_last_known(struct nc_process *process)
{
	const uint64_t wall_ns = process->began_ns > 0 ? nc_clock_ns() - process->began_ns : 0;

	process->end = process->so_far;
	process->end.tier = process->sandbox->exec.tier;
	process->end.fail = NC_FAIL_LOST;
	if (process->end.usage.wall_ns < wall_ns)
		process->end.usage.wall_ns = wall_ns;
}

static void on_ended(void *context, const struct nc_box_end *end, uint64_t output_bytes,
	const struct nacre_err *failure)
{
	struct nc_process *process = context;
	struct nc_sandbox *sandbox = process->sandbox;

	process->running = NULL;
	process->output_bytes = output_bytes;
	process->end = *end;
	process->unborn = failure != NULL;
	if (end->fail == NC_FAIL_LOST &&
		(process->began_ns > 0 || process->so_far.usage.wall_ns > 0)) {
		take_last_known(process);
		process->unborn = false;
	}
	if (sandbox->ends && (failure || end->signal == SIGKILL))
		process->end.cause = NC_CAUSE_CANCEL; /* it went with its sandbox */
	else if (failure)
		process->failure = *failure;
	else if (process->starved && !process->blocked && end->signal == SIGKILL)
		nc_err_set(&process->failure, -EIO,
			"The daemon died before the command had all of its input");
	sandbox->n_running--;
	sandbox->used_ns = nc_clock_ns();
	nc_process_close(process);
}

void nc_process_finish(struct nc_process *process)
{
	struct nc_sandbox *sandbox = process->sandbox;

	process->looks = false;
	nc_process_account(process);
	nc_process_save(process); /* before anybody is told: it is not to be taken back */
	nc_sandbox_save(sandbox);
	tell_end(process);
	forget_old(sandbox);
}

/* 'one word' for the shell, whatever is in it. */
static void quote(struct nc_buf *out, const char *word)
{
	nc_buf_adds(out, "'");
	for (; *word; word++) {
		if (*word == '\'')
			nc_buf_adds(out, "'\\''");
		else
			nc_buf_add(out, word, 1);
	}
	nc_buf_adds(out, "' ");
}

int nc_sandbox_line(
	json_t *body, struct nc_buf *ret_line, struct nc_faults *faults, struct nacre_err *err)
{
	cleanup_process_spec struct nc_process_spec spec = {0};
	int r = nc_process_spec_read(json_incref(body), &spec, faults);

	if (r == -EINVAL)
		return r;
	for (size_t i = 0; r == 0 && i < spec.command.count; i++) {
		if (spec.shell)
			nc_buf_adds(ret_line, spec.command.words[i]);
		else
			quote(ret_line, spec.command.words[i]);
	}
	if (r == 0)
		r = ret_line->error;
	return r < 0 ? nc_err_errno(err, r, "Read the command") : 0;
}

/* What the policy says of it. */
static int judge(const struct nc_sandbox *sandbox, const struct nc_process_spec *spec,
	const struct nc_study_text *found, struct nacre_err *err)
{
	const struct nc_finding *finding;
	size_t count;
	int r = nc_hooks_check_env(sandbox->terms, &spec->env, NULL, err);

	if (r < 0)
		return r;
	if (found->error == -EPROTO)
		return nc_err_set(err, -EPERM, "%s", nc_study_error(found->error));
	if (found->error < 0)
		return nc_err_set(err, found->error == -ETIME ? -EAGAIN : found->error, "%s",
			nc_study_error(found->error));
	if (nc_report_verdict(found->report) != NC_VERDICT_REFUSE)
		return 0;
	finding = nc_report_findings(found->report, &count);
	for (size_t i = 0; i < count; i++, finding++)
		if (finding->refuses)
			return nc_err_set(err, -EPERM,
				"The policy '%s' refuses it: %s%s%s [%s]; instead: %s",
				sandbox->terms->policy, finding->why, *finding->object ? ": " : "",
				finding->object, finding->rule, finding->remedy);
	return nc_err_set(err, -EPERM, "The policy '%s' refuses it", sandbox->terms->policy);
}

/* The sandbox's own variables, which tell of its user; another user has others. */
static void add_usual(const struct nc_sandbox *sandbox, const char *user, struct nc_word_list *env)
{
	const bool is_root = nc_streq(user, "root") || nc_streq(user, "0");
	const char *word = sandbox->env.buf.data;
	nc_buf_cleanup struct nc_buf name = NC_BUF(NC_BOX_USER_MAX + 8);

	nc_buf_addf(&name, "USER=%s", is_root ? "root" : user);
	for (size_t i = 0; i < sandbox->env.count; i++, word += strlen(word) + 1) {
		if (*user && strncmp(word, "USER=", 5) == 0)
			nc_word_add(env, nc_buf_text(&name));
		else if (*user && strncmp(word, "HOME=", 5) == 0)
			nc_word_add(env, is_root && sandbox->spec.writable_root
						 ? "HOME=" NC_BOX_ROOT_HOME
						 : "HOME=" NC_BOX_WORKSPACE);
		else
			nc_word_add(env, word);
	}
}

/* Words and environment of a command; the caller frees both lists. */
static int fill_words(const struct nc_sandbox *sandbox, const struct nc_process_spec *spec,
	struct nc_word_list *argv, struct nc_word_list *env)
{
	const struct nc_request_pairs *pairs = &spec->env;
	nc_buf_cleanup struct nc_buf word = NC_BUF(NC_REQUEST_ENV_SIZE_MAX + 16);

	if (spec->shell) {
		nc_word_add(argv, "/bin/sh");
		nc_word_add(argv, "-c");
	}
	for (size_t i = 0; i < spec->command.count; i++)
		nc_word_add(argv, spec->command.words[i]);
	add_usual(sandbox, spec->user, env);
	for (size_t i = 0; i < pairs->count; i++) {
		word.size = 0;
		nc_buf_addf(&word, "%s=%s", pairs->pair[i].name, pairs->pair[i].value);
		nc_word_add(env, nc_buf_text(&word));
	}
	if (word.error < 0)
		return word.error;
	return argv->buf.error < 0 ? argv->buf.error : env->buf.error;
}

static void take_wishes(const struct nc_process_spec *spec, struct nc_exec_spec *exec)
{
	if (spec->terminal)
		exec->terminal = true;
	/* less than the sandbox allows each, never more */
	if (spec->wall_ms.given && spec->wall_ms.value < exec->limits.wall_ms)
		exec->limits.wall_ms = spec->wall_ms.value;
	if (spec->rows.given)
		exec->rows = (uint32_t)spec->rows.value;
	if (spec->columns.given)
		exec->columns = (uint32_t)spec->columns.value;
	if (*spec->user)
		memcpy(exec->user, spec->user, sizeof(exec->user));
	if (spec->dir)
		(void)snprintf(exec->dir, sizeof(exec->dir), "%s", spec->dir);
}

struct nc_process *nc_process_new(struct nc_sandbox *sandbox, const struct nc_process_spec *spec)
{
	struct nc_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->sandbox = sandbox;
	process->terminal = spec->terminal;
	process->background = spec->background;
	process->interactive = spec->terminal || spec->keeps_input;
	process->command = json_incref(json_object_get(spec->source, "command"));
	process->input = spec->input ? strdup(spec->input) : NULL;
	for (enum nc_stream i = 0; i < NC_STREAM_MAX; i++) {
		nc_output_init(&process->output[i], NC_LEDGER_STREAM_MAX);
		process->output[i].no_whole = true;
	}
	nc_clock_stamp(process->started);
	if (nc_id_new("pr", process->id) < 0 || (spec->input && !process->input)) {
		nc_process_free(process);
		return NULL;
	}
	return process;
}

static void enlist(struct nc_process *process)
{
	struct nc_sandbox *sandbox = process->sandbox;

	process->next = sandbox->processes;
	sandbox->processes = process;
	sandbox->n_running++;
	sandbox->used_ns = nc_clock_ns();
}

/* What the hub has to know of it, whoever has ordered it. */
static struct nc_command_spec spec_of(struct nc_process *process)
{
	return (struct nc_command_spec){.image_fd = -EBADF,
		.input_fd = -EBADF,
		.interactive = process->interactive,
		.output_max = OUTPUT_MAX,
		.context = process,
		.started = on_started,
		.fed = on_fed,
		.take = process->page ? on_take : NULL,
		.printed = on_printed,
		.writable = on_writable,
		/* else what is told of the box is of all of it */
		.told = nc_sandbox_is_home(process->sandbox) ? nc_process_told : NULL,
		.ended = on_ended};
}

static int start(struct nc_process *process, const struct nc_exec_spec *exec, struct nacre_err *err)
{
	struct nc_command_spec spec;
	int r;

	process->box_id = exec->id;
	process->hungry = !process->interactive && process->input && *process->input;
	r = nc_process_keep(process); /* first: the next worker is not to meet a stranger */
	if (r < 0)
		return nc_err_errno(err, r, "Take the command");
	spec = spec_of(process);
	spec.exec = exec;
	spec.next = exec->home == 0;
	if (!process->interactive && process->input) {
		spec.input = process->input;
		spec.input_size = strlen(process->input);
	}
	r = nc_hub_start(process->sandbox->all->hub, &spec, &process->running, err);
	if (r < 0)
		return r;
	enlist(process);
	if (process->interactive && process->input)
		(void)nc_command_write(process->running, process->input, strlen(process->input));
	return 0;
}

/* Whether its tenant and the policy allow it. What the policy refuses is told of as what ran is. */
static int allow(struct nc_sandbox *sandbox, const struct nc_process_spec *spec,
	const struct nc_study_text *found, struct nacre_err *err)
{
	const struct nc_sandboxes_gate *gate = &sandbox->all->gate;
	int r = gate->admit_command ? gate->admit_command(gate->context, sandbox->tenant, err) : 0;
	struct nc_process *process;

	if (r == 0)
		r = judge(sandbox, spec, found, err);
	if (r != -EPERM)
		return r;
	process = nc_process_new(sandbox, spec);
	if (!process)
		return nc_err_errno(err, -ENOMEM, "Record the command");
	if (nc_process_take_study(process, found) == 0) {
		nc_process_refuse(process, spec, err);
		return r;
	}
	nc_process_free(process);
	return nc_err_errno(err, -ENOMEM, "Record the command");
}

int nc_sandbox_exec(struct nc_sandbox *sandbox, json_t *body, const struct nc_study_text *found,
	const struct nc_process_listener *listener, struct nc_process **ret_process,
	struct nc_faults *faults, struct nacre_err *err)
{
	cleanup_process_spec struct nc_process_spec spec = {0};
	struct nc_word_list argv = NC_WORD_LIST, env = NC_WORD_LIST;
	struct nc_process *process = NULL;
	struct nc_sandbox *most = NULL;
	struct nc_exec_spec exec;
	int r = nc_process_spec_read(json_incref(body), &spec, faults);

	if (r == -EINVAL)
		return r;
	if (r == 0)
		r = allow(sandbox, &spec, found, err);
	/* such a box was made without terminals, and the spawner ends who asks for one then */
	if (r == 0 && spec.terminal && !nc_sandbox_is_home(sandbox))
		r = nc_err_set(
			err, -EOPNOTSUPP, "Without control groups a sandbox has no terminals");
	if (r == 0 && *spec.user && !*sandbox->spec.user)
		r = nc_err_set(err, -EPERM,
			"user: the sandbox was made for its own user alone; give it a 'user' when "
			"it is made, such as root or " NC_SANDBOX_USER);
	/* what a program that runs already takes comes in pieces */
	if (r == 0 && (spec.terminal || spec.keeps_input) && spec.input &&
		strlen(spec.input) > NC_COMMAND_PENDING_MAX)
		r = nc_err_set(err, -E2BIG,
			"input: with keep_input or terminal at most %u bytes; send the rest to "
			".../input",
			NC_COMMAND_PENDING_MAX);
	if (r == 0 && held_for(sandbox, &most) > NC_TENANT_HELD_MAX)
		r = nc_err_set(err, -EAGAIN,
			"What commands of the tenant have printed takes %u MiB: wait for one to "
			"end",
			NC_TENANT_HELD_MAX >> 20);
	if (r == 0)
		r = nc_sandbox_exec_spec(sandbox, &exec, err);
	if (r < 0)
		return err->code < 0 ? r : nc_err_errno(err, r, "Read the request");
	take_wishes(&spec, &exec);
	process = nc_process_new(sandbox, &spec);
	r = process ? nc_process_take_study(process, found) : -ENOMEM;
	if (r == 0)
		r = fill_words(sandbox, &spec, &argv, &env);
	exec.argv = nc_word_view(&argv);
	exec.env = nc_word_view(&env);
	if (r < 0)
		(void)nc_err_errno(err, r, "Take the command");
	else
		r = start(process, &exec, err);
	nc_buf_done(&argv.buf);
	nc_buf_done(&env.buf);
	if (r < 0) {
		if (process)
			nc_process_free(process);
		return r;
	}
	process->listener[0] = *listener;
	*ret_process = process;
	return 0;
}

struct nc_process *nc_process_find(const struct nc_sandbox *sandbox, const char *id)
{
	struct nc_process *process = sandbox->processes;

	while (process && !nc_streq(process->id, id))
		process = process->next;
	return process;
}

void nc_processes_visit(const struct nc_sandbox *sandbox,
	bool (*visit)(void *context, struct nc_process *process), void *context)
{
	for (struct nc_process *next, *p = sandbox->processes; p; p = next) {
		next = p->next;
		if (!visit(context, p))
			return;
	}
}

const char *nc_process_id(const struct nc_process *process)
{
	return process->id;
}

bool nc_process_runs(const struct nc_process *process)
{
	return process->running || process->looks;
}

bool nc_process_is_background(const struct nc_process *process)
{
	return process->background;
}

const struct nacre_err *nc_process_failure(const struct nc_process *process)
{
	return process->failure.code < 0 ? &process->failure : NULL;
}

uint64_t nc_process_pieces(const struct nc_process *process)
{
	return process->page ? nc_ledger_pieces(process->sandbox->all->ledger, process->page) : 0;
}

/* How it ended, beside what is told of every process. */
static int add_end(const struct nc_process *process, json_t *object)
{
	const struct nc_box_end *end = &process->end;
	bool failed = process->failure.code < 0, ran = !process->unborn;
	json_t *none = json_null();
	json_t *denials = process->denials ? json_copy(process->denials) : json_array();
	char why[sizeof(process->failure.message)] = "";
	int r = 0;

	if (failed)
		(void)snprintf(why, sizeof(why), "%s", process->failure.message);
	else
		nc_denials_explain(end, why, sizeof(why));
	r |= json_object_set_new(object, "status",
		json_string(process->blocked		? "blocked"
			    : end->fail == NC_FAIL_LOST ? "lost"
			    : failed			? "error"
							: nc_outcome_status(end)));
	r |= json_object_set_new(object, "exit_code", failed ? none : nc_outcome_code(end));
	r |= json_object_set_new(object, "signal", failed ? none : nc_outcome_signal(end));
	r |= json_object_set_new(object, "error", *why ? nc_json_text(why, strlen(why)) : none);
	r |= json_object_set_new(object, "failure",
		json_pack("s?", nc_outcome_failure(end->fail, process->failure.code)));
	r |= ran ? nc_denials_add_end(denials, end) : 0;
	r |= json_object_set_new(object, "denials", denials);
	r |= json_object_set_new(
		object, "alerts", process->alerts ? json_incref(process->alerts) : json_array());
	r |= json_object_set_new(object, "risk", json_string(nc_severity_names[process->risk]));
	if (ran)
		r |= json_object_set_new(object, "strength", nc_outcome_strength(end));
	if (ran)
		r |= json_object_set_new(object, "usage",
			nc_outcome_usage(end, process->output_bytes, process->birth_ns));
	if (ran)
		r |= json_object_set_new(object, "limits_hit", nc_outcome_hit(end));
	return r;
}

json_t *nc_process_json(const struct nc_process *process, bool with_output)
{
	json_t *object = json_pack("{s:s, s:s, s:O, s:s, s:b, s:b}", "id", process->id, "state",
		nc_process_runs(process) ? "running" : "ended", "command", process->command,
		"started", process->started, "terminal", process->terminal, "background",
		process->background);
	int r = object ? 0 : -1;

	if (r == 0 && !nc_process_runs(process))
		r = add_end(process, object);
	if (r == 0 && with_output) {
		r |= nc_output_set(&process->output[NC_STREAM_OUTPUT], object, "stdout");
		r |= nc_output_set(&process->output[NC_STREAM_ERROR], object, "stderr");
		r |= json_object_set_new(object, "truncated",
			json_boolean(nc_output_is_cut(&process->output[NC_STREAM_OUTPUT]) ||
				     nc_output_is_cut(&process->output[NC_STREAM_ERROR])));
	}
	if (r == 0)
		return object;
	json_decref(object);
	return NULL;
}

ssize_t nc_process_write(struct nc_process *process, const char *data, size_t size)
{
	if (!process->running || !process->interactive)
		return -ESRCH;
	process->sandbox->used_ns = nc_clock_ns();
	return (ssize_t)nc_command_write(process->running, data, size);
}

void nc_process_end_input(struct nc_process *process)
{
	if (process->running && process->interactive)
		nc_command_end_input(process->running);
}

int64_t nc_process_resize(struct nc_process *process, unsigned short rows, unsigned short columns)
{
	return process->running ? nc_command_resize(process->running, rows, columns) : -ESRCH;
}

int64_t nc_process_signal(struct nc_process *process, int signal)
{
	return process->running ? nc_command_signal(process->running, signal) : 0;
}

/* In a sandbox without groups the box would go with it; its end then takes all that it started. */
int64_t nc_process_kill(struct nc_process *process)
{
	if (!process->running)
		return 0;
	if (nc_sandbox_is_home(process->sandbox))
		return nc_command_cancel(process->running);
	process->doomed = true; /* if it has not begun yet it does not hear that */
	return nc_command_signal(process->running, SIGKILL);
}

int nc_process_adopt(struct nc_process *process, struct nc_adoption *adoption)
{
	struct nc_command_spec spec = spec_of(process);
	int r;

	for (enum nc_stream i = 0; i < NC_STREAM_MAX; i++)
		spec.had_bytes[i] = process->output[i].bytes;
	r = nc_hub_adopt(process->sandbox->all->hub, adoption, &spec, &process->running);
	if (r < 0)
		return r;
	process->awaited = false;
	process->sandbox->n_running++;
	/* it would take the end of some for the end of all */
	process->starved = process->hungry;
	if (process->starved)
		(void)nc_process_kill(process);
	return 0;
}

void nc_process_unlooked(struct nc_process *process)
{
	process->looks = false;
	nc_process_account(process);
	nc_process_save(process);
}

void nc_process_lose(struct nc_process *process)
{
	process->awaited = false;
	process->unborn = true;
	nc_err_set(&process->failure, -EIO, "The daemon died before it had begun");
	nc_process_account(process);
	nc_process_save(process);
}

void nc_processes_lose(struct nc_sandbox *sandbox)
{
	for (struct nc_process *p = sandbox->processes; p; p = p->next) {
		if (!nc_process_runs(p))
			continue;
		/* their ends come, or have come, and find nobody */
		if (p->running) {
			nc_command_disown(p->running);
			p->running = NULL;
			take_last_known(p);
			p->end.cause = NC_CAUSE_CANCEL;
			if (!sandbox->ends)
				nc_err_set(&p->failure, -ECONNRESET, "Its sandbox is gone");
			else
				p->end.fail = NC_FAIL_NONE;
		}
		nc_file_tasks_forget(sandbox->all, p);
		p->looks = false;
		nc_process_account(p);
		tell_end(p);
	}
}

/* Work on files: one command of nacre-files, whose exit status is an errno. */
struct nc_file_task {
	struct nc_file_task *next, **place;
	struct nc_sandboxes *all; /* NULL: they have gone before */
	struct nc_file_work asked;
	struct nc_buf printed, said;
	struct nc_buf input;
	char sandbox[NC_ID_SIZE];
	int input_fd; /* of its own, or -EBADF */
	struct nc_command *command;
	bool home;   /* it can be ended without the box */
	bool doomed; /* as a process is */
};

static void task_kill(struct nc_file_task *task)
{
	task->doomed = true;
	if (task->home)
		(void)nc_command_cancel(task->command);
	else
		(void)nc_command_signal(task->command, SIGKILL);
}

static void task_started(void *context, uint64_t birth_ns, int door_fd)
{
	struct nc_file_task *task = context;

	(void)birth_ns;
	(void)nc_fd_close(door_fd);
	if (task->doomed && !task->home)
		task_kill(task);
}

/* Nobody wants it any more: what nobody waits for ends. */
static void task_forget(struct nc_file_task *task)
{
	bool streams = task->asked.printed || task->asked.interactive || task->asked.input_fd > 0;

	task->asked.done = NULL;
	task->asked.printed = NULL;
	task->asked.writable = NULL;
	if (!streams || !task->command)
		return;
	nc_command_hold(task->command, false);
	task_kill(task);
}

void nc_file_tasks_forget(struct nc_sandboxes *sandboxes, const void *context)
{
	for (struct nc_file_task *next, *task = sandboxes->tasks; task; task = next) {
		next = task->next;
		if (!context || task->asked.context == context)
			task_forget(task);
		if (!context) { /* the list goes, and the hub ends it later */
			task->place = NULL;
			task->all = NULL;
		}
	}
	if (!context)
		sandboxes->tasks = NULL;
}

static void task_free(struct nc_file_task *task)
{
	struct nc_sandbox *s = task->all ? task->all->list : NULL;

	while (s && !nc_streq(s->id, task->sandbox))
		s = s->next;
	if (s) {
		s->n_tasks -= !task->asked.serves;
		s->n_idling -= task->asked.idles;
		if (!task->asked.idles && !task->asked.serves)
			s->used_ns = nc_clock_ns();
	}
	if (task->place) {
		*task->place = task->next;
		if (task->next)
			task->next->place = task->place;
	}
	nc_buf_done(&task->printed);
	nc_buf_done(&task->said);
	(void)nc_fd_close(task->input_fd);
	nc_buf_done(&task->input);
	free(task);
}

static void task_printed(void *context, enum nc_stream stream, const char *data, size_t size)
{
	struct nc_file_task *task = context;

	if (stream == NC_STREAM_ERROR) /* its status in words; more than a line is none of it */
		nc_buf_add(&task->said, data,
			size < task->said.max - task->said.size ? size
								: task->said.max - task->said.size);
	else if (task->asked.printed)
		task->asked.printed(task->asked.context, data, size);
	else
		nc_buf_add(&task->printed, data, size);
	/* more than it may print is not read to its end, which may be none */
	if (task->printed.error < 0 && !task->doomed) {
		int error = task->printed.error;

		nc_buf_done(&task->printed);
		task->printed.error = error;
		task_kill(task);
	}
}

static void task_writable(void *context)
{
	struct nc_file_task *task = context;

	if (task->asked.writable)
		task->asked.writable(task->asked.context);
}

static void task_ended(void *context, const struct nc_box_end *end, uint64_t output_bytes,
	const struct nacre_err *failure)
{
	struct nc_file_task *task = context;
	int error = failure ? failure->code : end->code > 0 ? -(int)end->code : 0;

	(void)output_bytes;
	if (task->printed.error < 0)
		error = task->printed.error;
	else if (error == 0 && end->cause == NC_CAUSE_WALL)
		error = -ETIMEDOUT;
	else if (error == 0 && (end->signal || end->cause != NC_CAUSE_EXIT))
		error = end->cause == NC_CAUSE_OUTPUT ? -EFBIG : -ECONNRESET;
	task->command = NULL;
	if (task->asked.done) {
		const struct nc_buf *told = error < 0 ? &task->said : &task->printed;

		task->asked.done(task->asked.context, task->sandbox, error, nc_buf_text(told),
			error < 0 ? strcspn(nc_buf_text(told), "\n") : told->size);
	}
	task_free(task);
}

static struct nc_file_task *task_new(struct nc_sandbox *sandbox, const struct nc_file_work *asked)
{
	struct nc_sandboxes *sandboxes = sandbox->all;
	struct nc_file_task *task = calloc(1, sizeof(*task));

	if (!task)
		return NULL;
	task->asked = *asked;
	task->all = sandboxes;
	task->input_fd = asked->input_fd > 0 ? nc_fd_dup(asked->input_fd) : -EBADF;
	memcpy(task->sandbox, sandbox->id, sizeof(task->sandbox));
	task->home = nc_sandbox_is_home(sandbox);
	task->printed = (struct nc_buf)NC_BUF(asked->output_max);
	task->said = (struct nc_buf)NC_BUF(SAID_MAX);
	if (asked->input_fd > 0 && task->input_fd < 0) {
		free(task);
		return NULL;
	}
	if (asked->input) {
		task->input = *asked->input;
		*asked->input = (struct nc_buf)NC_BUF(0);
	}
	sandbox->n_tasks += !asked->serves;
	sandbox->n_idling += asked->idles;
	task->next = sandboxes->tasks;
	task->place = &sandboxes->tasks;
	if (task->next)
		task->next->place = &task->next;
	sandboxes->tasks = task;
	return task;
}

static int start_task(struct nc_sandbox *sandbox, struct nc_file_task *task,
	struct nc_exec_spec *exec, struct nacre_err *err)
{
	struct nc_word_list argv = NC_WORD_LIST;
	const struct nc_command_spec spec = {.exec = exec,
		.next = exec->home == 0,
		.image_fd = -EBADF,
		.input_fd = task->input_fd,
		.input = task->input.size > 0 ? task->input.data : NULL,
		.input_size = task->input.size,
		.interactive = task->asked.interactive,
		.output_max = UINT64_MAX,
		.context = task,
		.started = task_started,
		.printed = task_printed,
		.writable = task_writable,
		.ended = task_ended};
	int r;

	nc_word_add(&argv, "nacre-files");
	for (const char *const *word = task->asked.words; *word; word++)
		nc_word_add(&argv, *word);
	exec->argv = nc_word_view(&argv);
	r = argv.buf.error < 0 ? nc_err_errno(err, argv.buf.error, "Work on files")
			       : nc_hub_start(sandbox->all->hub, &spec, &task->command, err);
	nc_buf_done(&argv.buf);
	task->asked.words = NULL;
	return r;
}

int nc_sandbox_stream(struct nc_sandbox *sandbox, const struct nc_file_work *asked,
	struct nc_file_task **ret_task, struct nacre_err *err)
{
	struct nc_file_task *task;
	struct nc_exec_spec exec = {0};
	int r = nc_sandbox_exec_spec(sandbox, &exec, err);

	if (r == 0 && !asked->serves && sandbox->n_tasks >= NC_SANDBOX_TASKS_MAX)
		r = nc_err_set(err, -EAGAIN, "So much is done with its files already");
	if (r < 0)
		return r;
	if (nc_sandbox_is_home(sandbox)) /* else it is the box that is kept */
		exec.survives = false;
	exec.files = true;
	exec.limits.wall_ms = asked->wall_ms ? asked->wall_ms : FILES_WALL_MS;
	exec.limits.memory_bytes = FILES_MEMORY + sandbox->limits.disk_bytes;
	if (asked->serves)
		(void)snprintf(exec.user, sizeof(exec.user), "root");
	task = task_new(sandbox, asked);
	if (!task)
		return nc_err_errno(err, -ENOMEM, "Work on files");
	if (!asked->serves)
		sandbox->used_ns = nc_clock_ns();
	r = start_task(sandbox, task, &exec, err);
	if (r < 0)
		task_free(task);
	else
		*ret_task = task;
	return r;
}

int nc_sandbox_files(
	struct nc_sandbox *sandbox, const struct nc_file_work *asked, struct nacre_err *err)
{
	struct nc_file_task *task;

	return nc_sandbox_stream(sandbox, asked, &task, err);
}

size_t nc_file_write(struct nc_file_task *task, const char *data, size_t size)
{
	return nc_command_write(task->command, data, size);
}

void nc_file_end_input(struct nc_file_task *task)
{
	nc_command_end_input(task->command);
}

void nc_file_hold(struct nc_file_task *task, bool held)
{
	nc_command_hold(task->command, held);
}
