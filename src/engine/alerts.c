/* What the threat detector says about an execution. */
#include "engine/alerts.h"

#include "base/clock.h"
#include "base/json.h"
#include "box/outcome.h"
#include "engine/denials.h"
#include "engine/sandbox_parts.h"

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

static uint64_t cpu_us(const struct nc_box_usage *usage)
{
	return usage->cpu_user_us + usage->cpu_system_us;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* How fast things went at their fastest. */
static void count_rates(const struct nc_rate *output, const struct nc_rate *memory,
	const struct nc_forks *forks, struct nc_signals *signals)
{
	uint64_t *value = signals->value;

	value[NC_SIGNAL_MEMORY_RATE] = greater(value[NC_SIGNAL_MEMORY_RATE], memory->peak >> 20);
	value[NC_SIGNAL_FORK_RATE] = greater(value[NC_SIGNAL_FORK_RATE], forks->peak);
	value[NC_SIGNAL_OUTPUT_RATE] = greater(value[NC_SIGNAL_OUTPUT_RATE], output->peak >> 20);
}

/* What the hook inside of the interpreter told. */
static void count_step(const struct nc_step_state *step, struct nc_signals *signals)
{
	uint64_t *value = signals->value;
	struct nc_hook_counts counts = {0};

	if (step->hooks)
		nc_hooks_count(step->hooks, &counts);
	value[NC_SIGNAL_LANGUAGE_REFUSALS] += counts.refusals;
	value[NC_SIGNAL_SECRETS_PROBED] += counts.secrets;
	value[NC_SIGNAL_START_RATE] = greater(value[NC_SIGNAL_START_RATE], step->start_rate.peak);
	count_rates(&step->output_rate, &step->memory_rate, &step->forks, signals);
}

/* What is known of every end. */
static void count_end(
	const struct nc_box_end *end, uint64_t output_bytes, struct nc_signals *signals)
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
	value[NC_SIGNAL_CPU_SECONDS] = cpu_us(usage) / 1000000;
}

/* The same of an execution, with all that its steps told. */
static void count(const struct nc_execution *execution, const struct nc_box_end *end,
	uint64_t output_bytes, struct nc_signals *signals)
{
	count_end(end, output_bytes, signals);
	signals->value[NC_SIGNAL_DECOYS_TOUCHED] = execution->decoys_touched;
	for (size_t i = 0; i < execution->request.n_steps; i++)
		count_step(&execution->step[i], signals);
}

/* And of a command in a sandbox. */
static void count_command(const struct nc_process *process, const struct nc_box_end *end,
	uint64_t output_bytes, struct nc_signals *signals)
{
	count_end(end, output_bytes, signals);
	signals->value[NC_SIGNAL_DECOYS_TOUCHED] = process->decoys_touched;
	count_rates(&process->output_rate, &process->memory_rate, &process->forks, signals);
}

static size_t judge(const struct nc_terms *terms, const struct nc_signals *signals,
	struct nc_alert ret_alerts[static NC_SIGNAL_MAX])
{
	uint64_t thresholds[NC_SIGNAL_MAX] = {0};

	for (size_t i = 0; terms && i < NC_SIGNAL_MAX; i++)
		thresholds[i] = terms->values.alert[i].number;
	return nc_threat_judge(signals, thresholds, ret_alerts);
}

size_t nc_alerts_now(
	struct nc_execution *execution, struct nc_alert ret_alerts[static NC_SIGNAL_MAX])
{
	struct nc_step_state *step = &execution->step[execution->stages[execution->at].step];
	struct nc_box_end so_far = step->so_far;
	struct nc_signals signals = {0};
	struct nc_hook_counts counts = {0};
	uint64_t now_ns = nc_clock_ns();
	uint64_t printed =
		step->output[NC_STREAM_OUTPUT].bytes + step->output[NC_STREAM_ERROR].bytes;

	if (step->hooks)
		nc_hooks_count(step->hooks, &counts);
	nc_rate_add(&step->start_rate, now_ns, counts.starts);
	nc_rate_add(&step->output_rate, now_ns, printed);
	for (size_t i = 0; i < execution->request.n_steps; i++)
		if (execution->step[i].has_run)
			so_far.usage.cpu_user_us += cpu_us(&execution->step[i].end.usage);
	count(execution, &so_far, printed, &signals);
	return judge(execution->terms, &signals, ret_alerts);
}

size_t nc_alerts_of_command_now(
	struct nc_process *process, struct nc_alert ret_alerts[static NC_SIGNAL_MAX])
{
	struct nc_signals signals = {0};

	uint64_t printed =
		process->output[NC_STREAM_OUTPUT].bytes + process->output[NC_STREAM_ERROR].bytes;

	nc_rate_add(&process->output_rate, nc_clock_ns(), printed);
	count_command(process, &process->so_far, printed, &signals);
	return judge(process->sandbox->terms, &signals, ret_alerts);
}

static json_t *alerts_json(const struct nc_terms *terms, const struct nc_signals *signals)
{
	cleanup_json json_t *list = json_array();
	struct nc_alert alerts[NC_SIGNAL_MAX];
	size_t n_alerts = judge(terms, signals, alerts);

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

json_t *nc_alerts_json(
	const struct nc_execution *execution, const struct nc_box_end *end, uint64_t output_bytes)
{
	struct nc_signals signals = {0};

	count(execution, end, output_bytes, &signals);
	return alerts_json(execution->terms, &signals);
}

json_t *nc_alerts_of_command(const struct nc_process *process)
{
	struct nc_signals signals = {0};

	count_command(process, &process->end, process->output_bytes, &signals);
	return alerts_json(process->sandbox->terms, &signals);
}
