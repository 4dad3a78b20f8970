/* The threat detector on an execution that runs. */
#include "engine/vigil.h"

#include <stdlib.h>

#include "base/clock.h"
#include "engine/alerts.h"
#include "engine/work.h"
#include "kernel/cgroup_box.h"

/* How often it is looked at. */
#define LOOK_MS 250
/* How long the end of what was killed may take to be told. */
#define END_MS 5000

static enum nc_policy_response response(const struct nc_terms *terms, const struct nc_alert *alert)
{
	if (terms->values.mode.number == NC_MODE_AUDIT)
		return NC_RESPOND_REPORT;
	return (enum nc_policy_response)terms->values.respond[alert->severity].number;
}

enum nc_policy_response nc_vigil_judge(const struct nc_terms *terms, const struct nc_alert *alerts,
	size_t count, const struct nc_alert **ret_worst)
{
	enum nc_policy_response most = NC_RESPOND_REPORT;

	*ret_worst = NULL;
	for (size_t i = 0; i < count; i++)
		if (response(terms, &alerts[i]) > most) {
			*ret_worst = &alerts[i];
			most = response(terms, *ret_worst);
		}
	return most;
}

static void end_it(struct nc_execution *execution, const char *did, const struct nc_alert *alert)
{
	if (alert->signal == NC_SIGNAL_MAX)
		(void)nc_execution_fail(execution, "blocked", "Its network's terms %s it: %s [%s]",
			did, alert->reason, alert->id);
	else
		(void)nc_execution_fail(execution, "blocked", "The policy '%s' %s it: %s [%s]",
			execution->terms->policy, did, alert->reason, alert->id);
	nc_execution_stop(execution);
}

/* A box that stands still has no time of its own: ours ends it. */
static void on_time_up(uv_timer_t *timer)
{
	struct nc_execution *execution = timer->data;

	end_it(execution, "froze", &execution->frozen_for);
}

static void watch(
	struct nc_execution *execution, uv_timer_cb call, uint64_t after_ms, uint64_t every_ms)
{
	uv_timer_t *timer = execution->watch;

	if (!timer) {
		timer = calloc(1, sizeof(*timer));
		if (!timer)
			return;
		timer->data = execution;
		(void)uv_timer_init(
			nc_engine_setup(execution->engine)->loop, timer); /* cannot fail */
		execution->watch = timer;
	}
	(void)uv_timer_start(timer, call, after_ms, every_ms); /* nor can this */
}

static void freeze(struct nc_execution *execution, const struct nc_alert *alert)
{
	uint64_t used_ms = (nc_clock_ns() - execution->prepared_ns) / 1000000;
	uint64_t wall_ms = execution->limits.wall_ms;

	execution->frozen_for = *alert;
	(void)nc_hub_freeze(nc_engine_hub(execution->engine), execution->box_id, true);
	if (execution->listener.progress)
		execution->listener.progress(execution->listener.context, alert->reason);
	watch(execution, on_time_up, wall_ms > used_ms ? wall_ms - used_ms : 1, 0);
}

static void respond(
	struct nc_execution *execution, const struct nc_alert *alert, enum nc_policy_response how)
{
	const struct nc_engine_setup *setup = nc_engine_setup(execution->engine);

	/* what cannot be stopped is not let go on */
	if (how == NC_RESPOND_FREEZE && nc_holder_terms(setup->holder, execution->tier)->stops)
		freeze(execution, alert);
	else
		end_it(execution, "ended", alert);
}

/* Once, and to what runs: who is frozen or being ended has had his answer. */
static bool may_respond(const struct nc_execution *execution)
{
	return execution->watch && execution->command && !execution->frozen_for.id &&
	       !execution->cancelled && !execution->status;
}

void nc_vigil_over(void *context, enum nc_reason reason, enum nc_policy_over how)
{
	struct nc_execution *execution = context;
	const struct nc_alert alert = {.signal = NC_SIGNAL_MAX,
		.id = nc_reason_id(reason),
		.reason = nc_reason_text(reason)};

	if (may_respond(execution))
		respond(execution, &alert,
			how == NC_OVER_FREEZE ? NC_RESPOND_FREEZE : NC_RESPOND_END);
}

/* What it uses is told, and then judged. */
static void on_look(uv_timer_t *timer)
{
	struct nc_execution *execution = timer->data;

	(void)nc_hub_ask(nc_engine_hub(execution->engine), execution->box_id);
}

void nc_vigil_look(struct nc_execution *execution)
{
	struct nc_alert alerts[NC_SIGNAL_MAX];
	const struct nc_alert *worst;
	size_t count = nc_alerts_now(execution, alerts);
	enum nc_policy_response most = nc_vigil_judge(execution->terms, alerts, count, &worst);

	if (worst && may_respond(execution))
		respond(execution, worst, most);
}

void nc_vigil_begin(struct nc_execution *execution)
{
	if (!execution->watch)
		watch(execution, on_look, LOOK_MS, LOOK_MS);
}

void nc_vigil_expect_end(struct nc_execution *execution, void (*late)(uv_timer_t *timer))
{
	watch(execution, late, END_MS, 0);
}

static void free_timer(uv_handle_t *handle)
{
	free(handle);
}

void nc_vigil_end(struct nc_execution *execution)
{
	if (execution->watch)
		uv_close((uv_handle_t *)execution->watch, free_timer);
	execution->watch = NULL;
}
