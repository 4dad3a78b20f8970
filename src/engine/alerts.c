/* What the threat detector says about an execution. */
#include "engine/alerts.h"

#include "base/json.h"
#include "box/outcome.h"
#include "engine/denials.h"
#include "policy/threat.h"

static uint64_t per_second(uint64_t amount, uint64_t wall_ns)
{
	/* what is over in a moment has no rate worth speaking of */
	return wall_ns < 1000000000 ? amount : (uint64_t)((double)amount * 1e9 / (double)wall_ns);
}

/* Refused calls: how many, how many at the walls, and of how many kinds those were. */
static void count_calls(const struct nc_box_end *end, struct nc_signals *signals)
{
	const char *kinds[NC_DENIED_MAX];
	uint64_t n_kinds = 0;

	for (size_t i = 0; i < end->n_denied; i++) {
		struct nc_denial denial;
		size_t known = 0;

		nc_denial_of_call(nc_outcome_call(&end->denied[i]), nc_denials_box(end),
			end->denied[i].count, &denial);
		signals->value[NC_SIGNAL_REFUSED_CALLS] += denial.count;
		if (!nc_threat_is_wall(denial.rule))
			continue;
		signals->value[NC_SIGNAL_WALL_CALLS] += denial.count;
		/* rules are texts of one table */
		while (known < n_kinds && kinds[known] != denial.rule)
			known++;
		if (known == n_kinds)
			kinds[n_kinds++] = denial.rule;
	}
	signals->value[NC_SIGNAL_WALL_KINDS] = n_kinds;
}

static void count(const struct nc_box_end *end, uint64_t output_bytes, struct nc_signals *signals)
{
	const struct nc_box_usage *usage = &end->usage;
	uint64_t *value = signals->value;

	count_calls(end, signals);
	value[NC_SIGNAL_PROCESSES_REFUSED] = usage->pids_refused;
	value[NC_SIGNAL_MEMORY_KILLS] = usage->oom_kills;
	value[NC_SIGNAL_LIMITS_HIT] = (uint64_t)__builtin_popcount(end->hit);
	value[NC_SIGNAL_OUTPUT_RATE] = per_second(output_bytes, usage->wall_ns) >> 20;
	value[NC_SIGNAL_WRITE_RATE] = per_second(usage->io_written_bytes, usage->wall_ns) >> 20;
	value[NC_SIGNAL_SWITCH_RATE] = per_second(usage->context_switches, usage->wall_ns);
	value[NC_SIGNAL_CPU_SECONDS] = (usage->cpu_user_us + usage->cpu_system_us) / 1000000;
}

json_t *nc_alerts_json(
	const struct nc_box_end *end, uint64_t output_bytes, const struct nc_terms *terms)
{
	cleanup_json json_t *list = json_array();
	struct nc_alert alerts[NC_SIGNAL_MAX];
	struct nc_signals signals = {0};
	uint64_t thresholds[NC_SIGNAL_MAX] = {0};
	size_t n_alerts;

	for (size_t i = 0; terms && i < NC_SIGNAL_MAX; i++)
		thresholds[i] = terms->values.alert[i].number;
	count(end, output_bytes, &signals);
	n_alerts = nc_threat_judge(&signals, thresholds, alerts);
	for (size_t i = 0; list && i < n_alerts; i++)
		if (json_array_append_new(list,
			    json_pack("{s:s, s:s, s:I, s:I, s:s}", "id", alerts[i].id, "severity",
				    nc_severity_names[alerts[i].severity], "value",
				    (json_int_t)alerts[i].value, "threshold",
				    (json_int_t)alerts[i].threshold, "reason", alerts[i].reason)) <
			0)
			return NULL;
	return take_ptr(list);
}
