/* The threat detector on an execution that runs. */
#include "engine/vigil.h"

#include <stdlib.h>

#include "engine/alerts.h"

/* How often it is looked at. */
#define LOOK_MS 250

static bool is_to_end(const struct nc_execution *execution, const struct nc_alert *alert)
{
	return execution->terms->values.respond[alert->severity].number == NC_RESPOND_END &&
	       execution->terms->values.mode.number != NC_MODE_AUDIT;
}

static void on_look(uv_timer_t *timer)
{
	struct nc_execution *execution = timer->data;
	struct nc_alert alerts[NC_SIGNAL_MAX];
	size_t count = nc_alerts_now(execution, alerts);

	for (size_t i = 0; execution->command && i < count; i++) {
		if (!is_to_end(execution, &alerts[i]))
			continue;
		(void)nc_execution_fail(execution, "blocked", "The policy '%s' ended it: %s [%s]",
			execution->terms->policy, alerts[i].reason, alerts[i].id);
		nc_command_cancel(execution->command);
		nc_vigil_end(execution);
		return;
	}
}

void nc_vigil_begin(struct nc_execution *execution)
{
	uv_timer_t *timer = execution->watch ? NULL : calloc(1, sizeof(*timer));

	if (!timer)
		return;
	timer->data = execution;
	(void)uv_timer_init(nc_engine_setup(execution->engine)->loop, timer); /* cannot fail */
	(void)uv_timer_start(timer, on_look, LOOK_MS, LOOK_MS);		      /* nor can this */
	execution->watch = timer;
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
