/* Alerts. */
#include "server/alerts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statfs.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "server/tally.h"

#define TICKS 5U
/* Samples of a minute. */
#define RING (60U / TICKS + 1)
/* Who is to be told of an alert waits so long for the disk at the most. */
#define KEEP_TICKS 5U

/* What rates are made from. */
struct sample {
	double denials, threats, auth_failures, errors;
	double start_sum, start_count, queue_sum, queue_count;
};

struct state {
	char name[NC_REQUEST_NAME_MAX + 1];
	uint64_t since_ns; /* of the measure being above; 0: it is not */
	bool fires;
	unsigned int untold; /* seconds for which who is to be told may still wait; 0: is told */
	double value;
	char changed[NC_CLOCK_STAMP_SIZE]; /* when it began or ceased to fire; "": never */
};

struct nc_alerts {
	struct nc_server *server;
	unsigned int ticks;
	struct sample ring[RING];
	size_t n_samples;
	struct state states[NC_CONFIG_MAP_MAX];
	size_t n_states;
	uint64_t lost_before; /* executions of earlier daemons, that are no news */
};

struct nc_alerts *nc_alerts_new(struct nc_server *server)
{
	struct nc_alerts *alerts = calloc(1, sizeof(*alerts));

	if (!alerts)
		return NULL;
	alerts->server = server;
	alerts->lost_before = nc_tally_lost(server->tally);
	return alerts;
}

void nc_alerts_free(struct nc_alerts *alerts)
{
	free(alerts);
}

int nc_alerts_check(const struct nc_serve_config *config, struct nacre_err *err)
{
	char quoted[NC_TEXT_QUOTED_MAX];

	for (size_t i = 0; i < config->alerts.count; i++) {
		const struct nc_map_entry *entry = &config->alerts.entries[i];
		const struct nc_alert_values *rule = entry->values;

		if (!rule->measure.given || !rule->above.given || !rule->kind.given)
			return nc_err_set(err, -EINVAL,
				"serve.yaml:%u: alerts.%s: expected kind, measure and above",
				entry->line, nc_text_quote(quoted, entry->name));
	}
	return 0;
}

static double failures(const struct nc_server *server)
{
	return nc_metrics_sum(server->metrics, NC_METRIC_AUTH) -
	       nc_metrics_sum_of(server->metrics, NC_METRIC_AUTH, 0, "key") -
	       nc_metrics_sum_of(server->metrics, NC_METRIC_AUTH, 0, "local");
}

static void take_sample(struct nc_alerts *alerts)
{
	const struct nc_metrics *metrics = alerts->server->metrics;

	alerts->ring[alerts->n_samples++ % RING] = (struct sample){
		.denials = nc_metrics_sum(metrics, NC_METRIC_DENIALS),
		.threats = nc_metrics_sum(metrics, NC_METRIC_THREATS),
		.auth_failures = failures(alerts->server),
		.errors = nc_metrics_sum_of(metrics, NC_METRIC_FAILED, 0, "internal_error") +
			  (double)(nc_tally_lost(alerts->server->tally) - alerts->lost_before),
		.start_sum = nc_metrics_sum(metrics, NC_METRIC_START),
		.start_count = nc_metrics_count(metrics, NC_METRIC_START),
		.queue_sum = nc_metrics_sum(metrics, NC_METRIC_QUEUE_WAIT),
		.queue_count = nc_metrics_count(metrics, NC_METRIC_QUEUE_WAIT),
	};
}

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

static double mean(double sum, double count)
{
	return count > 0 ? sum / count : 0;
}

static double disk_percent(const struct nc_server *server)
{
	struct statfs disk;

	if (server->setup.state_fd < 0 || fstatfs(server->setup.state_fd, &disk) < 0)
		return 0;
	return percent((double)(disk.f_blocks - disk.f_bavail), (double)disk.f_blocks);
}

static double measure(const struct nc_alerts *alerts, enum nc_alert_measure which)
{
	static const struct sample none;
	const struct nc_server *server = alerts->server;
	const struct sample *now = &alerts->ring[(alerts->n_samples - 1) % RING];
	const struct sample *then =
		alerts->n_samples < RING ? &none : &alerts->ring[alerts->n_samples % RING];
	struct nc_engine_load load;

	nc_engine_load(server->setup.engine, &load);
	switch (which) {
	case NC_MEASURE_DENIALS:
		return now->denials - then->denials;
	case NC_MEASURE_THREATS:
		return now->threats - then->threats;
	case NC_MEASURE_AUTH_FAILURES:
		return now->auth_failures - then->auth_failures;
	case NC_MEASURE_ERRORS:
		return now->errors - then->errors;
	case NC_MEASURE_START:
		return mean(now->start_sum - then->start_sum, now->start_count - then->start_count);
	case NC_MEASURE_QUEUE_WAIT:
		return mean(now->queue_sum - then->queue_sum, now->queue_count - then->queue_count);
	case NC_MEASURE_QUEUE:
		return (double)load.queued;
	case NC_MEASURE_RUNNING:
		return percent((double)load.running, (double)server->setup.max_running);
	case NC_MEASURE_MEMORY:
		return percent((double)load.memory_bytes, (double)server->setup.memory_bytes);
	case NC_MEASURE_DISK:
		return disk_percent(server);
	case NC_MEASURE_MAX:
		break;
	}
	return 0;
}

static struct state *state_of(struct nc_alerts *alerts, const char *name)
{
	struct state *state = alerts->states;

	for (size_t i = 0; i < alerts->n_states; i++, state++)
		if (nc_streq(state->name, name))
			return state;
	if (alerts->n_states == NC_CONFIG_MAP_MAX)
		return NULL;
	alerts->n_states++;
	*state = (struct state){.fires = nc_tally_fires(alerts->server->tally, name)};
	(void)snprintf(state->name, sizeof(state->name), "%s", name);
	return state;
}

/* To the courier, who may be busy: then it is lost, and the log says so. */
static void tell(const struct nc_alerts *alerts, const struct state *state,
	const struct nc_alert_values *rule)
{
	int fd = alerts->server->setup.courier_fd;
	char id[NC_ID_SIZE];
	cleanup_json json_t *message = NULL;
	cleanup_free char *text = NULL;

	if (fd < 0 || nc_id_new("al", id) < 0)
		return;
	message = json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:s}", "id", id, "alert",
		state->name, "kind", nc_alert_kind_names[rule->kind.number], "measure",
		nc_alert_measure_names[rule->measure.number], "state",
		state->fires ? "firing" : "over", "value", state->value, "above",
		(double)rule->above.number / 1000, "time", state->changed);
	text = message ? json_dumps(message, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
	if (!text || send(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		nc_log(NC_LOG_ERROR, "An alert was not told to webhooks",
			NC_LOG_TEXT("alert", state->name));
}

static void judge(struct nc_alerts *alerts, const char *name, const struct nc_alert_values *rule)
{
	struct state *state = state_of(alerts, name);
	const char *labels[] = {name, nc_alert_kind_names[rule->kind.number]};
	uint64_t now = nc_clock_ns();
	bool fires;

	if (!state)
		return;
	state->value = measure(alerts, (enum nc_alert_measure)rule->measure.number);
	if (state->value * 1000 <= (double)rule->above.number)
		state->since_ns = 0;
	else if (state->since_ns == 0)
		state->since_ns = now;
	/* one that fired in a daemon before us does not wait once more */
	fires = state->since_ns &&
		(state->fires || now - state->since_ns >= rule->for_seconds.number * NC_NS_PER_S);
	nc_metrics_set(alerts->server->metrics, NC_METRIC_ALERTS, fires, labels);
	if (fires == state->fires)
		return;
	state->fires = fires;
	nc_tally_set(alerts->server->tally, name, fires);
	nc_clock_stamp(state->changed);
	nc_log(NC_LOG_WARNING, fires ? "Alert" : "Alert is over", NC_LOG_TEXT("alert", name),
		NC_LOG_TEXT("kind", labels[1]),
		NC_LOG_TEXT("measure", nc_alert_measure_names[rule->measure.number]),
		NC_LOG_INT("value_milli", (int64_t)(state->value * 1000)));
	state->untold = KEEP_TICKS;
}

/*
 * Webhooks are told once the next daemon would know, so that it can tell that the alert is over if
 * this one dies. A disk that hangs silences no alert.
 */
static void tell_webhooks(struct nc_alerts *alerts, const struct nc_map *rules)
{
	const bool is_behind = nc_tally_is_behind(alerts->server->tally);

	for (size_t i = 0; i < rules->count; i++) {
		struct state *state = state_of(alerts, rules->entries[i].name);

		if (!state || state->untold == 0 || (is_behind && --state->untold > 0))
			continue;
		state->untold = 0;
		tell(alerts, state, rules->entries[i].values);
	}
}

void nc_alerts_tick(struct nc_alerts *alerts)
{
	const struct nc_map *rules = &alerts->server->config->serve.alerts;

	tell_webhooks(alerts, rules);
	if (alerts->ticks++ % TICKS != 0)
		return;
	take_sample(alerts);
	for (size_t i = 0; i < rules->count; i++)
		judge(alerts, rules->entries[i].name, rules->entries[i].values);
}

json_t *nc_alerts_list(const struct nc_alerts *alerts)
{
	const struct nc_map *rules = &alerts->server->config->serve.alerts;
	cleanup_json json_t *list = json_array();

	for (size_t i = 0; list && i < rules->count; i++) {
		const struct nc_alert_values *rule = rules->entries[i].values;
		const struct state *state =
			state_of((struct nc_alerts *)(uintptr_t)alerts, rules->entries[i].name);

		if (json_array_append_new(
			    list, json_pack("{s:s, s:s, s:s, s:f, s:I, s:b, s:f, s:s?}", "name",
					  rules->entries[i].name, "kind",
					  nc_alert_kind_names[rule->kind.number], "measure",
					  nc_alert_measure_names[rule->measure.number], "above",
					  (double)rule->above.number / 1000, "for_seconds",
					  (json_int_t)rule->for_seconds.number, "firing",
					  state && state->fires, "value",
					  state ? state->value : 0.0, "changed",
					  state && state->changed[0] ? state->changed : NULL)) < 0)
			return NULL;
	}
	return take_ptr(list);
}
