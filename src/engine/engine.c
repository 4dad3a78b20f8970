/*
 * The engine: who may run, and when.
 *
 * Waiting executions stand in one list in the order of their arrival. The next one is the one of
 * highest priority; among equals it is one of the tenant that has the least running, so that a
 * tenant with a thousand requests holds up no other; among those the oldest. It runs when there is
 * room for its memory and one more box; nobody overtakes it then, or large ones would never run.
 */
#include "engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/chronicle.h"
#include "engine/owner.h"
#include "engine/pool.h"
#include "engine/results.h"
#include "engine/study.h"
#include "engine/work.h"
#include "tier/poll.h"
#include "watch/record.h"

struct nc_engine {
	struct nc_engine_setup setup;
	struct nc_hub *hub;
	struct nc_chronicle *chronicle; /* NULL: nothing is recorded */
	struct nc_pool *pool;		/* NULL: nothing is started ahead of need */
	uv_idle_t *turn;		/* begins what is waiting, from the loop */
	struct nc_execution *queue, **queue_end;
	struct nc_execution *running;
	struct nc_engine_load load;
	size_t n_aside; /* executions that a thread works on */
	bool ends;
};

const struct nc_engine_setup *nc_engine_setup(const struct nc_engine *engine)
{
	return &engine->setup;
}

bool nc_engine_ends(const struct nc_engine *engine)
{
	return engine->ends;
}

void nc_engine_note(struct nc_engine *engine, const char *event, json_t *body)
{
	nc_chronicle_note(engine->chronicle, NC_RECORD_AUDIT, event, body);
}

void nc_engine_warn(struct nc_engine *engine, const char *id, const json_t *told)
{
	if (engine->chronicle)
		nc_chronicle_warn(engine->chronicle, id, told);
}

struct nc_hub *nc_engine_hub(const struct nc_engine *engine)
{
	return engine->hub;
}

struct nc_pool *nc_engine_pool(const struct nc_engine *engine)
{
	return engine->pool;
}

int nc_engine_terms(struct nc_engine *engine, const char *policy, const char *tenant,
	const struct nc_terms **ret_terms, struct nacre_err *err)
{
	const struct nc_engine_setup *setup = &engine->setup;
	const char *usual = setup->policy ? setup->policy : nc_book_usual(setup->policies);

	return nc_book_terms(setup->policies, *policy ? policy : usual, tenant, ret_terms, err);
}

/* ---- aside ---- */

struct aside {
	uv_work_t request;
	struct nc_execution *execution;
	void (*work)(struct nc_execution *execution);
	void (*then)(struct nc_execution *execution);
};

static void work_aside(uv_work_t *request)
{
	struct aside *aside = request->data;

	(void)setpriority(PRIO_PROCESS, 0, NC_ASIDE_NICE);
	aside->work(aside->execution);
}

static void on_worked(uv_work_t *request, int status)
{
	struct aside *aside = request->data;
	struct nc_execution *execution = aside->execution;
	void (*then)(struct nc_execution * execution) = aside->then;

	(void)status; /* nobody cancels it */
	free(aside);
	execution->engine->n_aside--;
	then(execution);
}

void nc_engine_aside(struct nc_execution *execution, bool heavy,
	void (*work)(struct nc_execution *execution), void (*then)(struct nc_execution *execution))
{
	struct nc_engine *engine = execution->engine;
	struct aside *aside = heavy && engine->setup.threads ? calloc(1, sizeof(*aside)) : NULL;

	if (aside) {
		*aside = (struct aside){
			.request.data = aside, .execution = execution, .work = work, .then = then};
		if (uv_queue_work(engine->setup.loop, &aside->request, work_aside, on_worked) ==
			0) {
			engine->n_aside++;
			return;
		}
		free(aside);
	}
	work(execution);
	then(execution);
}

/* ---- whose turn it is ---- */

/* What a tenant's executions have of what all share. */
struct held {
	size_t running;
	uint64_t memory_bytes, cpu_milli;
};

static struct held held_by(const struct nc_engine *engine, const char *tenant)
{
	struct held held = {0};

	for (const struct nc_execution *e = engine->running; e; e = e->next) {
		if (!nc_streq(e->request.tenant, tenant))
			continue;
		held.running++;
		held.memory_bytes += e->limits.memory_bytes;
		held.cpu_milli += e->limits.cpu_milli;
	}
	return held;
}

/*
 * Whether it may run whatever memory and processors others are allowed: a tenant's only one, and no
 * larger than what each would have if all places were taken. Else a single execution of another
 * tenant that is allowed all there is would keep everybody waiting for as long as it runs.
 */
static bool is_owed(const struct nc_engine *engine, const struct nc_execution *execution,
	const struct held *held)
{
	const struct nc_engine_setup *setup = &engine->setup;
	const struct nc_box_limits *limits = &execution->limits;

	return *execution->request.tenant && held->running == 0 &&
	       (!setup->memory_bytes ||
		       limits->memory_bytes <= setup->memory_bytes / setup->max_running) &&
	       (!setup->cpu_milli || limits->cpu_milli <= setup->cpu_milli / setup->max_running);
}

/* Whether the tenant has not its share already; where there are no keys there is one tenant. */
static bool may_run_more(const struct nc_engine *engine, const struct nc_execution *execution,
	const struct held *held)
{
	const struct nc_engine_setup *setup = &engine->setup;
	const struct nc_engine_load *load = &engine->load;

	return !*execution->request.tenant || is_owed(engine, execution, held) ||
	       (nc_share_allows(held->running, load->running, setup->max_running) &&
		       (!setup->memory_bytes || nc_share_allows(held->memory_bytes,
							load->memory_bytes, setup->memory_bytes)) &&
		       (!setup->cpu_milli || nc_share_allows(held->cpu_milli, load->cpu_milli,
						     setup->cpu_milli)));
}

/* Refused, cancelled or known: all that is left to do is the reply. */
static bool needs_no_box(const struct nc_execution *execution)
{
	return execution->status || execution->cancelled || execution->kept;
}

/* The place in the queue of who is next; NULL: nobody may. */
static struct nc_execution **find_next(struct nc_engine *engine)
{
	struct nc_execution **best = NULL;
	size_t best_running = 0;

	for (struct nc_execution **at = &engine->queue; *at; at = &(*at)->next) {
		const char *tenant = (*at)->request.tenant;
		const struct held held = held_by(engine, tenant);
		const size_t running = held.running;

		if ((*at)->looks)
			continue;
		if (needs_no_box(*at))
			return at;
		if (engine->load.running > 0 && !may_run_more(engine, *at, &held))
			continue;
		if (best && (*at)->request.priority < (*best)->request.priority)
			continue;
		if (best && (*at)->request.priority == (*best)->request.priority &&
			running >= best_running)
			continue;
		best = at;
		best_running = running;
	}
	return best;
}

static bool has_room(const struct nc_engine *engine, const struct nc_execution *execution)
{
	const struct nc_engine_setup *setup = &engine->setup;
	const struct held held = held_by(engine, execution->request.tenant);

	if (engine->chronicle && nc_chronicle_is_behind(engine->chronicle))
		return false;
	/* what is too large for ever runs alone, rather than never */
	if (engine->load.running == 0 || needs_no_box(execution))
		return true;
	if (is_owed(engine, execution, &held))
		return engine->load.running < setup->max_running;
	if (setup->memory_bytes &&
		engine->load.memory_bytes + execution->limits.memory_bytes > setup->memory_bytes)
		return false;
	if (setup->cpu_milli &&
		engine->load.cpu_milli + execution->limits.cpu_milli > setup->cpu_milli)
		return false;
	return engine->load.running < setup->max_running;
}

static struct nc_execution *unqueue(struct nc_engine *engine, struct nc_execution **place)
{
	struct nc_execution *execution = *place;

	*place = execution->next;
	if (engine->queue_end == &execution->next)
		engine->queue_end = place;
	engine->load.queued--;
	return execution;
}

static void admit(struct nc_engine *engine, struct nc_execution *execution)
{
	execution->next = engine->running;
	engine->running = execution;
	engine->load.running++;
	engine->load.memory_bytes += execution->limits.memory_bytes;
	engine->load.cpu_milli += execution->limits.cpu_milli;
	execution->admitted_ns = nc_clock_ns();
	execution->started_ns = nc_clock_real_ns();
	if (engine->chronicle)
		nc_chronicle_begin(engine->chronicle, execution);
	nc_execution_begin(execution);
}

static void on_turn(uv_idle_t *turn)
{
	struct nc_engine *engine = turn->data;
	struct nc_execution **next = find_next(engine);

	if (!next || !has_room(engine, *next)) {
		(void)uv_idle_stop(turn);
		return;
	}
	admit(engine, unqueue(engine, next));
}

static void take_turns(struct nc_engine *engine)
{
	(void)uv_idle_start(engine->turn, on_turn); /* fails for a NULL callback only */
}

/* ---- the end ---- */

/* It is recorded, or never will be: the reply may go. */
static void on_written(struct nc_execution *execution, json_t *receipt)
{
	json_t *reply = take_ptr(execution->reply);
	struct nc_buf *text = &execution->text;

	if (text->size > 0) { /* it is behind the last member, and before the bracket */
		text->data[text->size - 1] = ',';
		nc_buf_adds(text, "\"receipt\":");
		nc_json_dump(receipt, text);
		nc_buf_adds(text, "}");
	}
	if (reply && json_object_set_new(reply, "receipt", receipt) < 0) {
		json_decref(reply);
		reply = NULL;
	} else if (!reply) {
		json_decref(receipt);
	}
	if (execution->engine->ends) {
		json_decref(reply);
	} else {
		execution->listener.done(execution->listener.context, reply, text);
		take_turns(execution->engine);
	}
	nc_execution_free(execution);
}

static void on_closed(struct nc_execution *execution)
{
	struct nc_engine *engine = execution->engine;

	if (engine->ends)
		nc_execution_free(execution);
	else if (engine->chronicle && execution->reply)
		nc_chronicle_end(engine->chronicle, execution, execution->reply);
	else
		on_written(execution, json_null());
}

void nc_engine_finished(struct nc_execution *execution)
{
	struct nc_engine *engine = execution->engine;
	struct nc_execution **place = &engine->running;

	while (*place && *place != execution)
		place = &(*place)->next;
	if (*place) {
		*place = execution->next;
		engine->load.running--;
		engine->load.memory_bytes -= execution->limits.memory_bytes;
		engine->load.cpu_milli -= execution->limits.cpu_milli;
	}
	if (engine->ends) {
		nc_execution_free(execution);
		return;
	}
	take_turns(engine);
	/* what is to be kept looks for room among all that is */
	nc_engine_aside(execution, nc_execution_is_large(execution) || nc_results_wants(execution),
		nc_execution_close, on_closed);
}

/* Whether there was an equal one is known: it may have its turn. */
static void on_looked(struct nc_execution *execution)
{
	execution->looks = false;
	take_turns(execution->engine);
}

int nc_engine_study(struct nc_engine *engine, const struct nc_request *request,
	struct nc_study *study, struct nacre_err *err)
{
	int r = nc_engine_terms(engine, request->policy, request->tenant, &study->terms, err);

	for (size_t i = 0; r == 0 && i < request->n_steps; i++) {
		const struct nc_request_step *step = &request->step[i];

		nc_study_add(study, step->language, step->file, step->code, step->code_size);
	}
	return r;
}

/* Whether the queue is, or the tenant's share of it. */
static bool is_full(const struct nc_engine *engine, const char *tenant)
{
	size_t own = 0;

	if (engine->load.queued >= engine->setup.max_queued)
		return true;
	if (!*tenant || engine->load.queued < engine->setup.max_queued / 2)
		return false;
	for (const struct nc_execution *e = engine->queue; e; e = e->next)
		own += nc_streq(e->request.tenant, tenant);
	return !nc_share_allows(own, engine->load.queued, engine->setup.max_queued);
}

/* Whether something may begin. The queue has room, and so has the disk where its end is recorded.
 */
static int check_room(const struct nc_engine *engine, const char *tenant, struct nacre_err *err)
{
	if (is_full(engine, tenant))
		return nc_err_set(err, -EAGAIN, "The queue is full: %zu wait; try again later",
			engine->load.queued);
	if (engine->setup.record && nc_record_is_full(engine->setup.state_fd))
		return nc_err_set(err, -ENOSPC,
			"The disk of the state directory is full: nothing could be recorded");
	return 0;
}

int nc_engine_submit(struct nc_engine *engine, struct nc_request *request, struct nc_study *study,
	int input_fd, const struct nc_listener *listener, struct nc_execution **ret_execution,
	struct nacre_err *err)
{
	struct nc_execution *execution = calloc(1, sizeof(*execution));
	int r = execution ? check_room(engine, request->tenant, err)
			  : nc_err_errno(err, -ENOMEM, "Take the request");

	if (!execution || r < 0) {
		free(execution);
		nc_request_done(request);
		return r;
	}
	*execution = (struct nc_execution){.engine = engine,
		.request = *request,
		.listener = *listener,
		.input_fd = input_fd,
		.code_fd = -EBADF,
		.submitted_ns = nc_clock_ns()};
	*request = (struct nc_request){0};
	for (size_t i = 0; i < execution->request.n_steps; i++)
		for (enum nc_stream j = 0; j < NC_STREAM_MAX; j++)
			nc_output_init(&execution->step[i].output[j], NC_INLINE_MAX);
	nc_environment_init(&execution->environment);
	nc_environment_init(&execution->warmth);
	if (nc_id_new("ex", execution->id) < 0) {
		nc_execution_free(execution);
		return nc_err_set(err, -EIO, "Make an id");
	}
	nc_execution_prepare(execution, study);
	r = listener->admit ? listener->admit(listener->context, &execution->limits) : 0;
	if (r < 0) {
		nc_execution_free(execution);
		return nc_err_set(err, r, "It may not have what it asks for");
	}
	if (!execution->status && nc_results_wants(execution)) {
		execution->looks = true;
		nc_engine_aside(execution, true, nc_results_find, on_looked);
	}
	/* whoever is told that it will run finds it in the history, whatever becomes of us */
	if (engine->chronicle)
		nc_chronicle_begin(engine->chronicle, execution);
	*engine->queue_end = execution;
	engine->queue_end = &execution->next;
	engine->load.queued++;
	take_turns(engine);
	*ret_execution = execution;
	return 0;
}

void nc_engine_cancel(struct nc_execution *execution)
{
	if (execution->cancelled)
		return;
	execution->cancelled = true;
	if (execution->command)
		nc_execution_stop(execution);
	else if (execution->build)
		nc_build_cancel(execution->build);
	else
		take_turns(execution->engine);
}

const char *nc_execution_id(const struct nc_execution *execution)
{
	return execution->id;
}

bool nc_execution_has_begun(const struct nc_execution *execution)
{
	return execution->admitted_ns > 0;
}

uint64_t nc_execution_box(const struct nc_execution *execution)
{
	return execution->last_box_id;
}

void nc_engine_reconfigure(
	struct nc_engine *engine, const struct nc_config *config, struct nc_book *policies)
{
	engine->setup.config = config;
	engine->setup.policies = policies;
	nc_pool_warm(engine->pool, &config->serve);
}

void nc_engine_watch(struct nc_engine *engine, void (*lost)(void *context), void *context)
{
	nc_hub_on_lost(engine->hub, lost, context);
}

bool nc_engine_is_behind(const struct nc_engine *engine)
{
	return nc_hub_is_behind(engine->hub);
}

bool nc_engine_records(const struct nc_engine *engine)
{
	return engine->chronicle && nc_chronicle_is_up(engine->chronicle);
}

bool nc_engine_has_recorder(const struct nc_engine *engine)
{
	return engine->chronicle && nc_chronicle_is_met(engine->chronicle);
}

uint64_t nc_engine_lost(const struct nc_engine *engine)
{
	return engine->chronicle ? nc_chronicle_lost(engine->chronicle) : 0;
}

bool nc_engine_has_room(const struct nc_engine *engine)
{
	return !engine->chronicle || nc_chronicle_has_room(engine->chronicle);
}

/* It is told that they go on, though the one before is gone. */
static void begin_again(struct nc_engine *engine, struct nc_execution *list)
{
	for (struct nc_execution *execution = list; execution; execution = execution->next) {
		execution->is_open = false;
		nc_chronicle_begin(engine->chronicle, execution);
	}
}

int nc_engine_meet_recorder(struct nc_engine *engine, int fd)
{
	int r = nc_chronicle_meet(engine->chronicle, fd);

	if (r < 0)
		return r;
	begin_again(engine, engine->running);
	begin_again(engine, engine->queue);
	nc_chronicle_resume(engine->chronicle);
	return 0;
}

void nc_engine_unrecorded(struct nc_engine *engine)
{
	nc_chronicle_give_up(engine->chronicle);
}

void nc_engine_load(const struct nc_engine *engine, struct nc_engine_load *ret_load)
{
	*ret_load = engine->load;
	nc_pool_load(engine->pool, ret_load);
}

static void close_turn(uv_handle_t *handle)
{
	free(handle);
}

int nc_engine_new(const struct nc_engine_setup *setup, struct nc_engine **ret_engine)
{
	struct nc_engine *engine = calloc(1, sizeof(*engine));
	uv_idle_t *turn = calloc(1, sizeof(*turn));
	int r = engine && turn ? nc_hub_new(nc_loop_of_uv(setup->loop), setup->holder, &engine->hub)
			       : -ENOMEM;

	if (r < 0) {
		free(engine);
		free(turn);
		return r;
	}
	engine->setup = *setup;
	engine->turn = turn;
	engine->queue_end = &engine->queue;
	turn->data = engine;
	(void)uv_idle_init(setup->loop, turn); /* cannot fail */
	if (setup->record)
		r = nc_chronicle_new(setup->loop, setup->record, setup->record_returns, on_written,
			setup->say, &engine->chronicle);
	if (r == 0 && setup->warm && nc_holder_terms(setup->holder, NC_TIER_CONTAINER)->warms)
		r = nc_pool_new(setup->loop, engine->hub, &setup->config->serve, setup->meminfo_fd,
			setup->say, &engine->pool);
	if (r < 0)
		nc_engine_free(engine);
	else
		*ret_engine = engine;
	return r;
}

void nc_engine_stop(struct nc_engine *engine)
{
	engine->ends = true;
	while (engine->n_aside > 0)
		(void)uv_run(engine->setup.loop, UV_RUN_ONCE);
}

void nc_engine_free(struct nc_engine *engine)
{
	if (!engine)
		return;
	nc_engine_stop(engine);
	while (engine->queue)
		nc_execution_free(unqueue(engine, &engine->queue));
	nc_pool_free(engine->pool);
	nc_hub_free(engine->hub); /* tells those that run, which ends them */
	nc_chronicle_free(engine->chronicle);
	while (engine->running) { /* those that wait for another's packages */
		struct nc_execution *execution = engine->running;

		engine->running = execution->next;
		nc_execution_free(execution);
	}
	uv_close((uv_handle_t *)engine->turn, close_turn);
	free(engine);
}
