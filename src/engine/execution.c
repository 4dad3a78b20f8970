/*
 * One execution, from its first box to its reply.
 *
 * Theory of operation: the stages were planned before; each is one command, and the end of one
 * begins the next. The user's program may fail, and then the files are still captured; anything
 * else that fails ends the execution. A box that is waiting for a next stage that never comes is
 * dropped.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "box/outcome.h"
#include "engine/decoys.h"
#include "engine/hooks.h"
#include "engine/installer.h"
#include "engine/pool.h"
#include "engine/programs.h"
#include "engine/vigil.h"
#include "engine/work.h"
#include "kernel/bill.h"

/* What a build cache may need: Go's library takes 144 MB. */
#define WARMTH_ROOM (512ULL << 20)

static const struct nc_stage *stage_of(const struct nc_execution *execution)
{
	return &execution->stages[execution->at];
}

/* That of the stage, or NULL for one that belongs to all steps. */
static struct nc_step_state *step_of(struct nc_execution *execution)
{
	size_t i = stage_of(execution)->step;

	return i < execution->request.n_steps ? &execution->step[i] : NULL;
}

/* What runs now is the user's program, or what he has compiled: others are ours. */
static bool is_billed(const struct nc_execution *execution)
{
	return stage_of(execution)->kind == NC_STAGE_RUN ||
	       stage_of(execution)->kind == NC_STAGE_COMPILE;
}

static void finish(struct nc_execution *execution);

static void on_door_shut(void *context)
{
	finish(context);
}

static void finish(struct nc_execution *execution)
{
	/* what went through it is told in the reply */
	if (nc_access_is_open(execution->reach) && !nc_engine_ends(execution->engine)) {
		nc_access_close(execution->reach, on_door_shut, execution);
		return;
	}
	execution->ended_ns = nc_clock_ns();
	for (size_t i = 0; i < execution->request.n_steps; i++)
		for (enum nc_stream j = 0; j < NC_STREAM_MAX; j++)
			(void)nc_output_seal(&execution->step[i].output[j]); /* or it is not kept */
	if (execution->box_id)
		nc_hub_drop(nc_engine_hub(execution->engine), execution->box_id);
	execution->box_id = 0;
	nc_engine_finished(execution);
}

static void on_started(void *context, uint64_t birth_ns, int door_fd)
{
	struct nc_execution *execution = context;

	struct nacre_err err = {0};

	if (door_fd >= 0 &&
		nc_access_open(execution->reach, execution->box_id, door_fd, &err) < 0) {
		(void)nc_execution_fail(execution, "internal_error", "%s", err.message);
		nc_execution_stop(execution);
	}

	if (door_fd >= 0)
		nc_access_on_over(execution->reach, nc_vigil_over, execution);
	if (!is_billed(execution))
		return;
	step_of(execution)->began_ns = nc_clock_ns();
	nc_vigil_begin(execution);
	if (stage_of(execution)->kind != NC_STAGE_RUN)
		return;
	step_of(execution)->birth_ns = birth_ns;
	if (execution->prepared_ns == 0)
		execution->prepared_ns = nc_clock_ns();
}

/* What its box uses, asked for while its program runs, or its compiler. */
static void on_told(void *context, const struct nc_box_now *now)
{
	struct nc_execution *execution = context;
	struct nc_step_state *step = step_of(execution);

	if (!is_billed(execution))
		return;
	step->so_far = now->so_far;
	if (stage_of(execution)->kind != NC_STAGE_RUN)
		return;
	nc_rate_add(&step->memory_rate, nc_clock_ns(), now->memory_bytes);
	nc_forks_add(&step->forks, now->made_ns, now->made, now->so_far.usage.pids_refused);
	nc_vigil_look(execution);
}

static void on_progress(void *context, const char *text)
{
	struct nc_execution *execution = context;

	execution->listener.progress(execution->listener.context, text);
}

/* What a program wrote to a stream, for the reply and the listener. */
static void pass(
	struct nc_execution *execution, enum nc_stream stream, const char *data, size_t size)
{
	nc_output_add(&step_of(execution)->output[stream], data, size);
	if (execution->listener.printed)
		execution->listener.printed(execution->listener.context, stream, data, size);
}

static void pass_error(void *context, const char *data, size_t size)
{
	pass(context, NC_STREAM_ERROR, data, size);
}

/* The program's own words go to the reply and the listener, those of others are for errors. */
static void on_printed(void *context, enum nc_stream stream, const char *data, size_t size)
{
	struct nc_execution *execution = context;
	const struct nc_stage *stage = stage_of(execution);
	size_t room = execution->said.max - execution->said.size;

	switch (stage->kind) {
	case NC_STAGE_RUN:
		if (stream == NC_STREAM_ERROR && step_of(execution)->hooks)
			nc_hook_reader_add(
				step_of(execution)->hooks, data, size, pass_error, execution);
		else
			pass(execution, stream, data, size);
		break;
	case NC_STAGE_COMPILE:
		nc_output_add(&step_of(execution)->output[NC_STREAM_ERROR], data, size);
		break;
	case NC_STAGE_FETCH:
	case NC_STAGE_CAPTURE:
		if (stream == NC_STREAM_OUTPUT) {
			if (execution->unpack_error)
				break; /* its end is on its way */
			execution->unpack_error = nc_unpack_add(&execution->unpack, data, size);
			if (execution->unpack_error)
				(void)nc_command_cancel(execution->command);
			break;
		}
		__attribute__((fallthrough));
	case NC_STAGE_PUT:
	case NC_STAGE_HOOK:
	case NC_STAGE_PROBE:
	case NC_STAGE_LOOK:
		nc_buf_add(&execution->said, data, size < room ? size : room);
		break;
	}
}

/* What Nacre's own stages leave to say. */
static const char *said(struct nc_execution *execution)
{
	size_t size = execution->said.size;

	while (size > 0 && execution->said.data[size - 1] == '\n')
		execution->said.data[--size] = '\0';
	return size > 0 ? execution->said.data : "no reason was given";
}

static int fail_to_put(struct nc_execution *execution, const struct nc_box_end *end)
{
	bool full = (end->hit & (NC_HIT_DISK | NC_HIT_INODES)) != 0;

	return nc_execution_fail(execution, full ? "disk_limit" : "internal_error",
		"Put files into the box: %s", said(execution));
}

static int take_program(struct nc_execution *execution)
{
	struct nc_step_state *step = step_of(execution);
	const char *name = nc_step_program_name(execution, step);

	for (size_t i = 0; i < execution->unpack.n_files; i++) {
		struct nc_unpacked *file = &execution->unpack.files[i];

		if (!nc_streq(file->path, name) || !file->data)
			continue;
		if (!file->executable)
			return nc_execution_fail(execution, "error",
				"The compiler made no program of it; does it have a main function, "
				"and in Go a package main?");
		step->program = file->data;
		step->program_size = (size_t)file->size;
		file->data = NULL;
		return 0;
	}
	return nc_execution_fail(execution, "internal_error",
		"The compiler left no program, or one of more than %u MiB", NC_TAKEN_MAX >> 20);
}

static int choose_run(struct nc_execution *execution)
{
	struct nc_step_state *step = step_of(execution);

	step->run_argv = nc_runtime_run_argv(step->runtime, said(execution));
	nc_hooks_probed(step, said(execution));
	if (!step->run_argv)
		return nc_execution_fail(execution, "error", "%s: %s (%s)", step->runtime->name,
			step->runtime->too_old, step->runtime->fix);
	return 0;
}

/* Where and why, from what it wrote. */
static void diagnose(struct nc_execution *execution, struct nc_step_state *step, enum nc_step phase)
{
	nc_buf_cleanup struct nc_buf text = NC_BUF(NC_INLINE_MAX + 256);
	const struct nc_request_step *wanted = &execution->request.step[step - execution->step];
	char source[NC_BOX_DIR_MAX + 128];
	struct nc_failure failure;

	if (nc_output_text(&step->output[NC_STREAM_ERROR], &text) < 0)
		return; /* the reply has the text all the same */
	(void)snprintf(source, sizeof(source), "%s/%s", execution->exec.dir, step->source);
	failure = (struct nc_failure){.step = phase,
		.source = source,
		.code = wanted->code,
		.code_size = wanted->code_size,
		.text = nc_buf_text(&text),
		.size = text.size};
	(void)nc_runtime_diagnose(step->runtime, &failure, &step->diagnostic);
	if (phase == NC_STEP_RUN)
		nc_hooks_read_error(step, failure.text);
}

/* The program has ended, or nothing more will be known of it. */
static void note_run(
	struct nc_execution *execution, const struct nc_box_end *end, uint64_t output_bytes)
{
	struct nc_step_state *step = step_of(execution);

	if (step->hooks)
		nc_hook_reader_end(step->hooks, pass_error, execution);
	step->has_run = true;
	step->end = *end;
	step->output_bytes = output_bytes;
	execution->ran_ns = nc_clock_ns();
}

/* It has done its work, perhaps a second time after a fault of ours. */
static void note_compiler(struct nc_step_state *step, const struct nc_box_end *end)
{
	struct nc_box_usage before = step->compiler.usage;

	step->compiler = *end;
	nc_bill_add(&step->compiler.usage, &before);
	step->so_far = (struct nc_box_end){0};
	step->began_ns = 0;
}

static int take_compilation(struct nc_execution *execution, const struct nc_box_end *end)
{
	struct nc_step_state *step = step_of(execution);

	if (nc_streq(nc_outcome_status(end), "success")) {
		note_compiler(step, end);
		nc_output_done(&step->output[NC_STREAM_ERROR]); /* warnings are not the program's */
		nc_output_init(&step->output[NC_STREAM_ERROR], NC_INLINE_MAX);
		return 0;
	}
	step->compiled_badly = true;
	step->end = *end;
	diagnose(execution, step, NC_STEP_COMPILE);
	return -ECANCELED;
}

/* The end of the user's program: whether the next step follows. */
static int take_run(
	struct nc_execution *execution, const struct nc_box_end *end, uint64_t output_bytes)
{
	struct nc_step_state *step = step_of(execution);
	bool good = nc_streq(nc_outcome_status(end), "success");
	size_t behind = execution->n_stages; /* where the last run is over */

	note_run(execution, end, output_bytes);
	if (!good)
		diagnose(execution, step, NC_STEP_RUN);
	while (behind > 0 && execution->stages[behind - 1].kind > NC_STAGE_RUN)
		behind--;
	if (good || end->cause == NC_CAUSE_CANCEL || behind == execution->n_stages)
		return good ? 0 : -ECANCELED;
	/* what it has left behind may be what the caller wants to see, or the policy */
	execution->at = behind - 1;
	return 0;
}

static int take_end(
	struct nc_execution *execution, const struct nc_box_end *end, uint64_t output_bytes)
{
	const struct nc_stage *stage = stage_of(execution);
	bool good = nc_streq(nc_outcome_status(end), "success");

	switch (stage->kind) {
	case NC_STAGE_PUT:
	case NC_STAGE_HOOK:
		return good ? 0 : fail_to_put(execution, end);
	case NC_STAGE_PROBE:
		return choose_run(execution);
	case NC_STAGE_COMPILE:
		return take_compilation(execution, end);
	case NC_STAGE_FETCH:
		return take_program(execution);
	case NC_STAGE_RUN:
		return take_run(execution, end, output_bytes);
	case NC_STAGE_LOOK:
		execution->decoys_touched = good ? nc_decoys_count(said(execution)) : 0;
		break;
	case NC_STAGE_CAPTURE:
		execution->captured = good && execution->unpack.ended;
		break;
	}
	return 0;
}

/* The end of what was stopped is that of its program, or of its compiler. */
static void note_end(
	struct nc_execution *execution, const struct nc_box_end *end, uint64_t output_bytes)
{
	if (stage_of(execution)->kind == NC_STAGE_RUN) {
		note_run(execution, end, output_bytes);
		return;
	}
	step_of(execution)->compiled_badly = true;
	step_of(execution)->end = *end;
}

/* Its end is not told: what was told of it last, and the time until now. The step, or NULL. */
static struct nc_step_state *note_last_known(struct nc_execution *execution, uint64_t output_bytes)
{
	struct nc_step_state *step = step_of(execution);
	struct nc_box_end end;
	uint64_t wall_ns;

	if (!is_billed(execution) || step->began_ns == 0)
		return NULL;
	wall_ns = nc_clock_ns() - step->began_ns;
	end = step->so_far;
	end.tier = execution->tier;
	end.cause = NC_CAUSE_CANCEL;
	if (end.usage.wall_ns < wall_ns)
		end.usage.wall_ns = wall_ns;
	note_end(execution, &end, output_bytes);
	return step;
}

/* A box that could not be made, or a program that is not in the image. */
static int take_failure(struct nc_execution *execution, enum nc_fail fail, uint64_t output_bytes,
	const struct nacre_err *failure)
{
	const struct nc_stage *stage = stage_of(execution);
	bool is_full = failure->code == -ENOSPC || failure->code == -EDQUOT;

	if (fail == NC_FAIL_LOST) {
		struct nc_step_state *step = note_last_known(execution, output_bytes);

		if (step)
			step->lost = true;
		return nc_execution_fail(
			execution, "lost", "The process that holds the boxes has died");
	}
	if (fail == NC_FAIL_PROGRAM && step_of(execution) && stage->kind != NC_STAGE_FETCH)
		return nc_execution_fail(execution, "error",
			"%s cannot be run in this image: %s: %s", step_of(execution)->runtime->name,
			nc_errno_text(failure->code), step_of(execution)->runtime->fix);
	if (is_full && fail == NC_FAIL_FILES)
		return nc_execution_fail(execution, "disk_limit", "Put files into the box: %s",
			nc_errno_text(failure->code));
	/* the fault is ours, and nothing of the user's has run: once more from the beginning */
	if (!execution->retried && execution->prepared_ns == 0) {
		execution->retried = true;
		return -EAGAIN;
	}
	return nc_execution_fail(
		execution, "internal_error", "The box could not be made: %s", failure->message);
}

static void begin_stage(struct nc_execution *execution);
static void on_late(uv_timer_t *timer);

static void keep_program(struct nc_execution *execution)
{
	nc_programs_keep(execution, step_of(execution));
}

/* The stage is done: the next. */
static void go_on(struct nc_execution *execution)
{
	if (nc_engine_ends(execution->engine))
		return;
	if (execution->cancelled)
		(void)nc_execution_fail(execution, "cancelled", "It was cancelled");
	if (!execution->cancelled && ++execution->at < execution->n_stages)
		begin_stage(execution);
	else
		finish(execution);
}

/* ---- who is ended before his time ---- */

static bool is_stopped(const struct nc_execution *execution)
{
	return execution->cancelled || execution->status;
}

/* The stage that looks who has touched decoys, behind the one that runs and in its box; 0: none. */
static size_t find_look(const struct nc_execution *execution)
{
	bool has_run = stage_of(execution)->kind == NC_STAGE_RUN;

	for (size_t i = 0; i < execution->request.n_steps; i++)
		has_run |= execution->step[i].has_run;
	for (size_t i = execution->at; has_run && !execution->stages[i].last;)
		if (execution->stages[++i].kind == NC_STAGE_LOOK)
			return i;
	return 0;
}

/* What was stopped: its bill, if it had come so far that anything of it ran. */
static void note_stopped(
	struct nc_execution *execution, const struct nc_box_end *end, uint64_t output_bytes)
{
	bool compiles = stage_of(execution)->kind == NC_STAGE_COMPILE;
	struct nc_box_end stopped = *end;

	if (end->usage.wall_ns == 0)
		return;
	if (compiles || (end->cause == NC_CAUSE_EXIT && end->signal == SIGKILL))
		stopped.cause = NC_CAUSE_CANCEL;
	note_end(execution, &stopped, output_bytes);
}

static void take_stopped(struct nc_execution *execution, const struct nc_box_end *end,
	uint64_t output_bytes, const struct nacre_err *failure);

/* The spawner says nothing: its last word counts, and nobody waits for more. */
static void on_late(uv_timer_t *timer)
{
	struct nc_execution *execution = timer->data;
	const struct nc_output *output = step_of(execution) ? step_of(execution)->output : NULL;
	struct nacre_err failure = {0};

	nc_err_set(&failure, -ETIMEDOUT, "The process that holds the boxes does not answer");
	if (execution->box_id)
		nc_hub_drop(nc_engine_hub(execution->engine), execution->box_id);
	nc_command_disown(take_ptr(execution->command));
	execution->box_id = 0;
	take_stopped(execution, NULL,
		output ? output[NC_STREAM_OUTPUT].bytes + output[NC_STREAM_ERROR].bytes : 0,
		&failure);
}

void nc_execution_stop(struct nc_execution *execution)
{
	struct nc_hub *hub = nc_engine_hub(execution->engine);

	if (!execution->command)
		return;
	nc_vigil_expect_end(execution, on_late);
	if (stage_of(execution)->kind == NC_STAGE_LOOK)
		return; /* it is all that is still wanted of the box */
	if (find_look(execution) == 0) {
		(void)nc_command_cancel(execution->command);
		return;
	}
	(void)nc_command_signal(execution->command, SIGKILL);
	if (execution->frozen_for.id)
		(void)nc_hub_freeze(hub, execution->box_id, false);
}

/* The bill of what was stopped, and then the end, but for a look at decoys. */
static void take_stopped(struct nc_execution *execution, const struct nc_box_end *end,
	uint64_t output_bytes, const struct nacre_err *failure)
{
	const enum nc_stage_kind kind = stage_of(execution)->kind;
	size_t look = find_look(execution);

	nc_vigil_end(execution);
	(void)nc_execution_fail(execution, "cancelled", "It was cancelled");
	if (failure || !end)
		(void)note_last_known(execution, output_bytes);
	else if (is_billed(execution))
		note_stopped(execution, end, output_bytes);
	else if (kind == NC_STAGE_LOOK)
		(void)take_end(execution, end, output_bytes);
	if (failure || look == 0 || execution->box_id == 0) {
		finish(execution);
		return;
	}
	execution->at = look;
	begin_stage(execution);
}

static void on_ended(void *context, const struct nc_box_end *end, uint64_t output_bytes,
	const struct nacre_err *failure)
{
	struct nc_execution *execution = context;
	int r;

	execution->command = NULL;
	nc_vigil_end(execution);
	if (failure || !end->stays)
		execution->box_id = 0;
	if (is_stopped(execution)) {
		take_stopped(execution, end, output_bytes, failure);
		return;
	}
	if (failure)
		r = take_failure(execution, end->fail, output_bytes, failure);
	else
		r = take_end(execution, end, output_bytes);
	if (r == 0 && stage_of(execution)->kind == NC_STAGE_FETCH) {
		nc_engine_aside(execution, true, keep_program, go_on);
		return;
	}
	if (r == -EAGAIN) {
		execution->at = 0;
		begin_stage(execution);
	} else if (r == 0)
		go_on(execution);
	else
		finish(execution);
}

/* Whether an interpreter that waits will do for it; not a second time if that failed. */
static bool can_take(const struct nc_execution *execution)
{
	return stage_of(execution)->packs && execution->tier == NC_TIER_CONTAINER &&
	       !execution->reach && execution->request.binds.count == 0 &&
	       execution->environment.dir_fd < 0 && !execution->retried;
}

static void begin_stage(struct nc_execution *execution)
{
	struct nc_hub *hub = nc_engine_hub(execution->engine);
	const struct nc_stage *stage = stage_of(execution);
	struct nc_command_spec spec = {.context = execution,
		.started = on_started,
		.printed = on_printed,
		.told = on_told,
		.ended = on_ended};
	struct nacre_err err = {0};
	int r;

	if (stage->first) {
		execution->box_id =
			can_take(execution)
				? nc_pool_take(nc_engine_pool(execution->engine), execution)
				: 0;
		execution->took = execution->box_id > 0;
		if (!execution->took)
			execution->box_id = nc_hub_box_id(hub, nc_execution_tier(execution));
		execution->last_box_id = execution->box_id;
	}
	if (stage->kind == NC_STAGE_FETCH || stage->kind == NC_STAGE_CAPTURE) {
		nc_unpack_done(&execution->unpack);
		execution->unpack_error = 0;
		nc_unpack_init(&execution->unpack, NC_TAKEN_MAX);
	}
	r = nc_execution_order(execution, &spec);
	if (r == 0)
		r = nc_hub_start(hub, &spec, &execution->command, &err);
	if (r == 0 && is_stopped(execution))
		nc_vigil_expect_end(execution, on_late);
	if (r == 0)
		return;
	if (stage->first)
		execution->box_id = 0;
	(void)nc_execution_fail(execution, "internal_error", "%s", err.message);
	finish(execution);
}

/* The build cache is there; or it is not, and compiling takes longer. */
static void on_warmth(void *context, struct nc_build_result *result)
{
	struct nc_execution *execution = context;

	execution->build = NULL;
	execution->warmth = result->environment;
	nc_environment_init(&result->environment);
	if (execution->cancelled) {
		(void)nc_execution_fail(execution, "cancelled", "It was cancelled");
		finish(execution);
		return;
	}
	begin_stage(execution);
}

/* The language of a step whose compiler is to run and has a cache; NC_LANGUAGE_INVALID: none. */
static enum nc_language warmth_language(const struct nc_execution *execution)
{
	for (size_t i = 0; i < execution->request.n_steps; i++)
		if (nc_warmer_of(execution->step[i].runtime->language) &&
			!execution->step[i].from_cache)
			return execution->step[i].runtime->language;
	return NC_LANGUAGE_INVALID;
}

static void work_on_build(struct nc_execution *execution)
{
	nc_build_work(execution->build);
}

static void go_on_with_build(struct nc_execution *execution)
{
	if (!nc_engine_ends(execution->engine))
		nc_build_worked(execution->build);
}

static void put_build_aside(void *context)
{
	struct nc_execution *execution = context;

	nc_engine_aside(
		execution, !nc_engine_ends(execution->engine), work_on_build, go_on_with_build);
}

static int start_build(struct nc_execution *execution, enum nc_language language,
	const struct nc_request_words *packages,
	void (*done)(void *context, struct nc_build_result *result))
{
	const struct nc_engine_setup *setup = nc_engine_setup(execution->engine);
	const struct nc_build_spec spec = {.environments = setup->environments,
		.loop = setup->loop,
		.hub = nc_engine_hub(execution->engine),
		.holder = setup->holder,
		.network = setup->network,
		.tenant = execution->request.tenant,
		.language = language,
		.packages = packages ? packages->words : NULL,
		.n_packages = packages ? packages->count : 0,
		.context = execution,
		.aside = put_build_aside,
		.progress = execution->listener.progress ? on_progress : NULL,
		.done = done};

	return nc_build_start(&spec, &execution->build);
}

/* Not where it would have no room: it would be made again for each program, and thrown away. */
static void get_warmth(struct nc_execution *execution)
{
	const struct nc_environments *all = nc_engine_setup(execution->engine)->environments;
	enum nc_language language = warmth_language(execution);

	if (language < 0 || !all || nc_environments_each(all) < WARMTH_ROOM ||
		start_build(execution, language, NULL, on_warmth) < 0)
		begin_stage(execution);
}

/* The packages are there, or will not be. */
static void on_packages(void *context, struct nc_build_result *result)
{
	struct nc_execution *execution = context;

	execution->build = NULL;
	if (result->status) {
		(void)nc_execution_fail(execution, result->status, "%s", result->err.message);
		finish(execution);
		return;
	}
	execution->packages = json_incref(result->packages);
	execution->environment_built = result->built;
	execution->environment = result->environment;
	nc_environment_init(&result->environment);
	get_warmth(execution);
}

static void get_packages(struct nc_execution *execution)
{
	if (start_build(execution, execution->packages_language, &execution->request.packages,
		    on_packages) == 0)
		return;
	(void)nc_execution_fail(execution, "internal_error", "Out of memory");
	finish(execution);
}

/* Whether a compiler has anything to do with it: what it made may be at hand, and is large. */
static bool is_compiled(const struct nc_execution *execution)
{
	for (size_t i = 0; i < execution->request.n_steps; i++)
		if (execution->step[i].runtime->compile.argv)
			return true;
	return false;
}

static void on_found(struct nc_execution *execution)
{
	if (nc_engine_ends(execution->engine))
		return;
	if (execution->cancelled)
		(void)nc_execution_fail(execution, "cancelled", "It was cancelled");
	if (execution->status || nc_execution_plan(execution) < 0)
		finish(execution);
	else if (execution->request.packages.count > 0)
		get_packages(execution);
	else
		get_warmth(execution);
}

void nc_execution_begin(struct nc_execution *execution)
{
	if (execution->cancelled)
		(void)nc_execution_fail(execution, "cancelled", "It was cancelled");
	if (execution->status || execution->kept)
		finish(execution);
	else
		nc_engine_aside(execution, is_compiled(execution), nc_programs_find, on_found);
}

void nc_execution_free(struct nc_execution *execution)
{
	for (size_t i = 0; i < execution->request.n_steps; i++) {
		struct nc_step_state *step = &execution->step[i];

		nc_report_free(step->report);
		nc_buf_done(&step->input);
		free(step->program);
		free(step->hooks);
		for (enum nc_stream j = 0; j < NC_STREAM_MAX; j++)
			nc_output_done(&step->output[j]);
	}
	nc_vigil_end(execution);
	nc_buf_done(&execution->argv.buf);
	nc_buf_done(&execution->env.buf);
	nc_buf_done(&execution->stream);
	free(execution->inserts);
	free(execution->reader);
	nc_buf_done(&execution->said);
	nc_unpack_done(&execution->unpack);
	nc_request_done(&execution->request);
	json_decref(execution->kept);
	json_decref(execution->reply);
	nc_buf_done(&execution->text);
	free(execution->line);
	free(execution->code);
	(void)nc_fd_close(execution->code_fd);
	json_decref(execution->packages);
	nc_environment_close(&execution->environment);
	nc_environment_close(&execution->warmth);
	nc_build_drop(execution->build);
	nc_access_free(execution->reach);
	free(execution);
}
