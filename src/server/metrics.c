/* What is counted, for Prometheus. */
#include "server/metrics.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/rule_ids.h"
#include "base/text.h"

#define BUCKETS_MAX 18
#define LABEL_MAX 64U

enum kind { COUNTER, GAUGE, HISTOGRAM };

struct metric {
	const char *name, *help;
	enum kind kind;
	const char *labels[NC_METRIC_LABELS];
	const double *buckets; /* ending in INFINITY */
};

static const double seconds[] = {
	0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, INFINITY};
static const double short_seconds[] = {
	0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, INFINITY};
/* From what nobody notices to what nobody waits for. */
static const double wait_seconds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
	0.5, 1, 2.5, 5, 10, 30, 60, 300, INFINITY};
static const double bytes[] = {1 << 20, 4 << 20, 16 << 20, 32 << 20, 64 << 20, 128 << 20, 256 << 20,
	512 << 20, 1024.0 * (1 << 20), 4096.0 * (1 << 20), INFINITY};

static const struct metric metrics_table[NC_METRIC_MAX] = {
	[NC_METRIC_EXECUTIONS] = {"nacre_executions_total", "Executions that have ended", COUNTER,
		{"language", "tier", "status"}},
	[NC_METRIC_FAILED] = {"nacre_executions_failed_total",
		"Executions that Nacre failed; those of a daemon that was killed are counted by "
		"the next one",
		COUNTER, {"status"}},
	[NC_METRIC_DURATION] = {"nacre_execution_duration_seconds", "Wall time of executions",
		HISTOGRAM, {"language"}, seconds},
	[NC_METRIC_CPU] = {"nacre_execution_cpu_seconds_total", "CPU time of executions", COUNTER},
	[NC_METRIC_MEMORY_PEAK] = {"nacre_execution_memory_peak_bytes",
		"Most memory that an execution used", HISTOGRAM, {NULL}, bytes},
	[NC_METRIC_OUTPUT] = {"nacre_execution_output_bytes_total", "What executions printed",
		COUNTER},
	[NC_METRIC_COMMANDS] = {"nacre_commands_total",
		"Commands in sandboxes that have ended, or that the policy refused", COUNTER,
		{"status"}},
	[NC_METRIC_COMMAND_DURATION] = {"nacre_command_duration_seconds",
		"Wall time of commands in sandboxes", HISTOGRAM, {NULL}, seconds},
	[NC_METRIC_COMMAND_CPU] = {"nacre_command_cpu_seconds_total",
		"CPU time of commands in sandboxes", COUNTER},
	[NC_METRIC_COMMAND_MEMORY_PEAK] = {"nacre_command_memory_peak_bytes",
		"Most memory that a command in a sandbox used", HISTOGRAM, {NULL}, bytes},
	[NC_METRIC_COMMAND_OUTPUT] = {"nacre_command_output_bytes_total",
		"What commands in sandboxes printed", COUNTER},
	[NC_METRIC_DENIALS] = {"nacre_denials_total", "What was refused, by rule and layer",
		COUNTER, {"rule", "layer"}},
	[NC_METRIC_RISK] = {"nacre_executions_by_risk_total",
		"Executions by the risk that the policy found", COUNTER, {"risk"}},
	[NC_METRIC_COMMAND_RISK] = {"nacre_commands_by_risk_total",
		"Commands in sandboxes by the risk that the policy found", COUNTER, {"risk"}},
	[NC_METRIC_THREATS] = {"nacre_threats_total", "What the threat detector found", COUNTER,
		{"signal"}},
	[NC_METRIC_AUTH] = {"nacre_auth_total", "Requests by what became of their key", COUNTER,
		{"outcome"}},
	[NC_METRIC_START] = {"nacre_box_start_seconds", "From the order to the start of a program",
		HISTOGRAM, {NULL}, short_seconds},
	[NC_METRIC_QUEUE_WAIT] = {"nacre_queue_wait_seconds", "From the request to its turn",
		HISTOGRAM, {NULL}, wait_seconds},
	[NC_METRIC_QUEUE] = {"nacre_queue_depth", "Executions that wait", GAUGE},
	[NC_METRIC_POOL] = {"nacre_pool_boxes", "Boxes that are to be ready, by what waits in them",
		GAUGE, {"with"}},
	[NC_METRIC_HTTP] = {"nacre_http_requests_total", "Requests that were answered", COUNTER,
		{"route", "method", "status"}},
	[NC_METRIC_HTTP_ERRORS] = {"nacre_http_server_errors_total",
		"Requests that were answered with a status of 500 or more", COUNTER, {"route"}},
	[NC_METRIC_HTTP_DURATION] = {"nacre_http_request_duration_seconds",
		"From the first line of a request to the end of its reply", HISTOGRAM, {"route"},
		seconds},
	[NC_METRIC_HTTP_OPEN] = {"nacre_http_requests_open", "Requests that are open", GAUGE},
	[NC_METRIC_CONNECTIONS] = {"nacre_http_connections", "Connections", GAUGE},
	[NC_METRIC_RUNNING] = {"nacre_executions_running", "Executions that run", GAUGE},
	[NC_METRIC_ALLOWED_MEMORY] = {"nacre_allowed_memory_bytes",
		"Memory that those that run are allowed", GAUGE},
	[NC_METRIC_ALLOWED_CPU] = {"nacre_allowed_cpu_cores",
		"Cores that those that run are allowed", GAUGE},
	[NC_METRIC_SANDBOXES] = {"nacre_sandboxes", "Sandboxes", GAUGE},
	[NC_METRIC_SANDBOXES_LOST] = {"nacre_sandboxes_lost_total",
		"Sandboxes of the daemon before whose boxes nobody has", COUNTER},
	[NC_METRIC_COMMANDS_RUNNING] = {"nacre_commands_running", "Commands in sandboxes that run",
		GAUGE},
	[NC_METRIC_SANDBOX_MEMORY] = {"nacre_sandboxes_allowed_memory_bytes",
		"Memory that sandboxes are allowed", GAUGE},
	[NC_METRIC_SANDBOX_CPU] = {"nacre_sandboxes_allowed_cpu_cores",
		"Cores that sandboxes are allowed", GAUGE},
	[NC_METRIC_JOBS] = {"nacre_jobs", "Executions that are known by their id", GAUGE},
	[NC_METRIC_DISK_SIZE] = {"nacre_state_disk_size_bytes", "File system of the state", GAUGE},
	[NC_METRIC_DISK_FREE] = {"nacre_state_disk_free_bytes", "What is free on it", GAUGE},
	[NC_METRIC_PROCESS_CPU] = {"process_cpu_seconds_total", "CPU time of the daemon", COUNTER},
	[NC_METRIC_PROCESS_MEMORY] = {"process_resident_memory_bytes", "Memory of the daemon",
		GAUGE},
	[NC_METRIC_UPTIME] = {"nacre_uptime_seconds", "Since the daemon began", GAUGE},
	[NC_METRIC_LONGEST_TURN] = {"nacre_loop_longest_turn_seconds",
		"Most CPU time that the event loop spent in one turn, since the daemon began",
		GAUGE},
	[NC_METRIC_SLOW_TURNS] = {"nacre_loop_slow_turns_total",
		"Turns of the event loop that took more than 20 ms of CPU time", COUNTER},
	[NC_METRIC_AIDE_UP] = {"nacre_aide_up", "Whether a process beside the daemon lives", GAUGE,
		{"aide"}},
	[NC_METRIC_AIDE_DEATHS] = {"nacre_aide_deaths_total",
		"How often it died and was started again", COUNTER, {"aide"}},
	[NC_METRIC_ALERTS] = {"nacre_alert_firing", "Whether an alert fires", GAUGE,
		{"alert", "kind"}},
	[NC_METRIC_NET_CONNECTIONS] = {"nacre_network_connections_total",
		"Connections of boxes to their doors", COUNTER},
	[NC_METRIC_NET_REQUESTS] = {"nacre_network_requests_total",
		"Requests at doors: let through, denied, let through and failed", COUNTER,
		{"outcome"}},
	[NC_METRIC_NET_BYTES] = {"nacre_network_bytes_total", "What went through doors", COUNTER,
		{"direction"}},
	[NC_METRIC_TRACE_SPANS] = {"nacre_trace_spans_total", "Spans that were handed over",
		COUNTER},
	[NC_METRIC_TRACE_DROPPED] = {"nacre_trace_spans_dropped_total",
		"Spans that were lost, since those before them were not taken yet", COUNTER},
	[NC_METRIC_BUILD] = {"nacre_build_info", "Which version this is", GAUGE, {"version"}},
};

struct series {
	char label[NC_METRIC_LABELS][LABEL_MAX + 1];
	double value; /* or the sum of a histogram */
	double count[BUCKETS_MAX];
};

struct family {
	struct series *series;
	size_t n_series;
};

struct nc_metrics {
	struct family family[NC_METRIC_MAX];
};

void nc_metrics_free(struct nc_metrics *metrics)
{
	for (size_t i = 0; metrics && i < NC_METRIC_MAX; i++)
		free(metrics->family[i].series);
	free(metrics);
}

static size_t n_labels(const struct metric *metric)
{
	size_t n = 0;

	while (n < NC_METRIC_LABELS && metric->labels[n])
		n++;
	return n;
}

/* NOLINTBEGIN(clang-analyzer-core.CallAndMessage): who adds has as many labels as its metric */
static bool has_labels(const struct series *series, size_t n, const char *const *labels)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(series->label[i], labels[i], LABEL_MAX) != 0)
			return false;
	return true;
}

/* The series of these labels; that of "other" when there are too many; NULL: no memory. */
static struct series *find(
	struct nc_metrics *metrics, enum nc_metric which, const char *const *labels)
{
	static const char *const others[NC_METRIC_LABELS] = {"other", "other", "other"};
	struct family *family = &metrics->family[which];
	size_t n = n_labels(&metrics_table[which]);
	struct series *more;

	assert(labels || n == 0);
	for (size_t i = 0; i < family->n_series; i++)
		if (has_labels(&family->series[i], n, labels))
			return &family->series[i];
	if (family->n_series == NC_METRIC_SERIES_MAX)
		return &family->series[NC_METRIC_SERIES_MAX - 1];
	if (family->n_series == NC_METRIC_SERIES_MAX - 1)
		labels = others;
	more = reallocarray(family->series, family->n_series + 1, sizeof(*more));
	if (!more)
		return NULL;
	family->series = more;
	more += family->n_series++;
	*more = (struct series){0};
	for (size_t i = 0; i < n; i++)
		(void)snprintf(more->label[i], sizeof(more->label[i]), "%s", labels[i]);
	return more;
}
/* NOLINTEND(clang-analyzer-core.CallAndMessage) */

/* What is known before it happens. */
static void begin_series(struct nc_metrics *metrics)
{
	static const struct {
		enum nc_metric metric;
		const char *word;
	} known[] = {
#define SIGNAL(name, id) {NC_METRIC_THREATS, id},
		NC_SIGNAL_IDS(SIGNAL)
#undef SIGNAL
			{NC_METRIC_FAILED, "internal_error"},
		{NC_METRIC_FAILED, "lost"},
		{NC_METRIC_AUTH, "key"},
		{NC_METRIC_AUTH, "local"},
		{NC_METRIC_AUTH, "bad_key"},
		{NC_METRIC_AUTH, "no_key"},
		{NC_METRIC_AUTH, "no_token"},
		{NC_METRIC_AUTH, "not_local"},
		{NC_METRIC_AUTH, "foreign_host"},
		{NC_METRIC_AUTH, "foreign_origin"},
	};

	for (size_t i = 0; i < NC_METRIC_MAX; i++)
		if (n_labels(&metrics_table[i]) == 0 && metrics_table[i].kind != GAUGE)
			(void)find(metrics, (enum nc_metric)i, NULL);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		(void)find(metrics, known[i].metric, &known[i].word);
}

struct nc_metrics *nc_metrics_new(void)
{
	struct nc_metrics *metrics = calloc(1, sizeof(*metrics));

	if (metrics)
		begin_series(metrics);
	return metrics;
}

void nc_metrics_add(
	struct nc_metrics *metrics, enum nc_metric metric, double value, const char *const *labels)
{
	const double *buckets = metrics_table[metric].buckets;
	struct series *series = find(metrics, metric, labels);

	if (!series)
		return;
	series->value += value;
	for (size_t i = 0; buckets; i++)
		if (value <= buckets[i]) {
			series->count[i]++;
			break;
		}
}

void nc_metrics_set(
	struct nc_metrics *metrics, enum nc_metric metric, double value, const char *const *labels)
{
	struct series *series = find(metrics, metric, labels);

	if (series)
		series->value = value;
}

double nc_metrics_sum(const struct nc_metrics *metrics, enum nc_metric metric)
{
	double sum = 0;

	for (size_t i = 0; i < metrics->family[metric].n_series; i++)
		sum += metrics->family[metric].series[i].value;
	return sum;
}

double nc_metrics_sum_of(
	const struct nc_metrics *metrics, enum nc_metric metric, size_t label, const char *word)
{
	double sum = 0;

	for (size_t i = 0; i < metrics->family[metric].n_series; i++)
		if (nc_streq(metrics->family[metric].series[i].label[label], word))
			sum += metrics->family[metric].series[i].value;
	return sum;
}

double nc_metrics_count(const struct nc_metrics *metrics, enum nc_metric metric)
{
	double sum = 0;

	for (size_t i = 0; i < metrics->family[metric].n_series; i++)
		for (size_t j = 0; j < BUCKETS_MAX; j++)
			sum += metrics->family[metric].series[i].count[j];
	return sum;
}

/* ---- what a reply tells ---- */

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "none";
}

static double number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static void count_denials(struct nc_metrics *metrics, const json_t *denials)
{
	for (size_t i = 0; i < json_array_size(denials); i++) {
		const json_t *denial = json_array_get(denials, i);
		const char *labels[] = {text_of(denial, "rule"), text_of(denial, "layer")};

		nc_metrics_add(metrics, NC_METRIC_DENIALS, 1, labels);
	}
}

static void count_threats(struct nc_metrics *metrics, const json_t *alerts)
{
	for (size_t i = 0; i < json_array_size(alerts); i++) {
		const char *labels[] = {text_of(json_array_get(alerts, i), "id")};

		nc_metrics_add(metrics, NC_METRIC_THREATS, 1, labels);
	}
}

/* What each kind counts of itself; the rest is counted of all. */
static const struct {
	enum nc_metric count, duration, cpu, memory_peak, output, risk;
	const char *by[NC_METRIC_LABELS]; /* the labels of count, as members */
} kinds[NC_METRICS_OF_MAX] = {
	[NC_METRICS_OF_EXECUTION] = {NC_METRIC_EXECUTIONS, NC_METRIC_DURATION, NC_METRIC_CPU,
		NC_METRIC_MEMORY_PEAK, NC_METRIC_OUTPUT, NC_METRIC_RISK,
		{"language", "tier", "status"}},
	[NC_METRICS_OF_COMMAND] = {NC_METRIC_COMMANDS, NC_METRIC_COMMAND_DURATION,
		NC_METRIC_COMMAND_CPU, NC_METRIC_COMMAND_MEMORY_PEAK, NC_METRIC_COMMAND_OUTPUT,
		NC_METRIC_COMMAND_RISK, {"status"}},
};

/* An execution that had no box, and a command that never ran, have used none. */
static bool had_box(enum nc_metrics_of kind, const json_t *told)
{
	return kind == NC_METRICS_OF_EXECUTION ? json_is_string(json_object_get(told, "tier"))
					       : json_object_get(told, "usage") != NULL;
}

void nc_metrics_end(struct nc_metrics *metrics, enum nc_metrics_of kind, const json_t *told)
{
	const json_t *usage = json_object_get(told, "usage");
	const json_t *timings = json_object_get(told, "timings");
	const char *by[NC_METRIC_LABELS] = {NULL};
	const char *risk[] = {text_of(told, "risk")}, *status[] = {text_of(told, "status")};

	for (size_t i = 0; i < NC_METRIC_LABELS && kinds[kind].by[i]; i++)
		by[i] = text_of(told, kinds[kind].by[i]);
	nc_metrics_add(metrics, kinds[kind].count, 1, by);
	if (kind == NC_METRICS_OF_EXECUTION && nc_streq(status[0], "internal_error"))
		nc_metrics_add(metrics, NC_METRIC_FAILED, 1, status);
	nc_metrics_add(metrics, kinds[kind].risk, 1, risk);
	if (timings)
		nc_metrics_add(metrics, NC_METRIC_QUEUE_WAIT, number(timings, "queued"), NULL);
	/* the reply of an earlier one: what that did was counted then */
	if (json_is_true(json_object_get(told, "cached")))
		return;
	nc_metrics_add(metrics, kinds[kind].duration, number(usage, "wall_seconds"), by);
	nc_metrics_add(metrics, kinds[kind].cpu,
		number(usage, "cpu_user_seconds") + number(usage, "cpu_system_seconds"), NULL);
	nc_metrics_add(metrics, kinds[kind].output, number(usage, "output_bytes"), NULL);
	if (had_box(kind, told))
		nc_metrics_add(
			metrics, kinds[kind].memory_peak, number(usage, "memory_peak_bytes"), NULL);
	if (kind == NC_METRICS_OF_EXECUTION && had_box(kind, told))
		nc_metrics_add(metrics, NC_METRIC_START, number(usage, "birth_seconds"), NULL);
	count_denials(metrics, json_object_get(told, "denials"));
	count_threats(metrics, json_object_get(told, "alerts"));
}

/* ---- the text ---- */

static void add_escaped(struct nc_buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			nc_buf_addf(out, "\\%c", *text);
		else
			nc_buf_addf(out, "%c", (unsigned char)*text < ' ' ? '?' : *text);
	}
}

static void add_labels(struct nc_buf *out, const struct metric *metric, const struct series *series,
	const char *le)
{
	size_t n = n_labels(metric);

	if (n == 0 && !le)
		return;
	nc_buf_adds(out, "{");
	for (size_t i = 0; i < n; i++) {
		nc_buf_addf(out, "%s%s=\"", i ? "," : "", metric->labels[i]);
		add_escaped(out, series->label[i]);
		nc_buf_adds(out, "\"");
	}
	if (le)
		nc_buf_addf(out, "%sle=\"%s\"", n ? "," : "", le);
	nc_buf_adds(out, "}");
}

static void add_histogram(
	struct nc_buf *out, const struct metric *metric, const struct series *series)
{
	double sum = 0;

	for (size_t i = 0;; i++) {
		char le[32] = "+Inf";

		sum += series->count[i];
		if (!isinf(metric->buckets[i]))
			(void)snprintf(le, sizeof(le), "%.10g", metric->buckets[i]);
		nc_buf_addf(out, "%s_bucket", metric->name);
		add_labels(out, metric, series, le);
		nc_buf_addf(out, " %.17g\n", sum);
		if (isinf(metric->buckets[i]))
			break;
	}
	nc_buf_addf(out, "%s_sum", metric->name);
	add_labels(out, metric, series, NULL);
	nc_buf_addf(out, " %.17g\n%s_count", series->value, metric->name);
	add_labels(out, metric, series, NULL);
	nc_buf_addf(out, " %.17g\n", sum);
}

void nc_metrics_text(const struct nc_metrics *metrics, struct nc_buf *out)
{
	static const char *const words[] = {"counter", "gauge", "histogram"};

	for (size_t i = 0; i < NC_METRIC_MAX; i++) {
		const struct metric *metric = &metrics_table[i];
		const struct family *family = &metrics->family[i];

		nc_buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help,
			metric->name, words[metric->kind]);
		for (size_t j = 0; j < family->n_series; j++) {
			if (metric->kind == HISTOGRAM) {
				add_histogram(out, metric, &family->series[j]);
				continue;
			}
			nc_buf_adds(out, metric->name);
			add_labels(out, metric, &family->series[j], NULL);
			nc_buf_addf(out, " %.17g\n", family->series[j].value);
		}
	}
}
