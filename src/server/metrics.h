/*
 * What is counted, for Prometheus: the four families of seed 001. One table (metrics.c) names each
 * metric with its labels and buckets; deploy/ has the rules and the dashboard that use them.
 */
#ifndef NC_METRICS_H
#define NC_METRICS_H

#include <jansson.h>

#include "base/buf.h"

enum nc_metric {
	/* execution */
	NC_METRIC_EXECUTIONS, /* language, tier, status */
	NC_METRIC_FAILED,     /* status: by our own fault */
	NC_METRIC_DURATION,   /* language */
	NC_METRIC_CPU,
	NC_METRIC_MEMORY_PEAK,
	NC_METRIC_OUTPUT,
	/* the same of commands in sandboxes */
	NC_METRIC_COMMANDS, /* status */
	NC_METRIC_COMMAND_DURATION,
	NC_METRIC_COMMAND_CPU,
	NC_METRIC_COMMAND_MEMORY_PEAK,
	NC_METRIC_COMMAND_OUTPUT,
	/* security */
	NC_METRIC_DENIALS, /* rule, layer */
	NC_METRIC_RISK,	   /* risk */
	NC_METRIC_COMMAND_RISK,
	NC_METRIC_THREATS, /* signal */
	NC_METRIC_AUTH,	   /* outcome */
	/* performance */
	NC_METRIC_START,
	NC_METRIC_QUEUE_WAIT,
	NC_METRIC_QUEUE,
	NC_METRIC_POOL,
	NC_METRIC_HTTP,		 /* route, method, status */
	NC_METRIC_HTTP_ERRORS,	 /* route */
	NC_METRIC_HTTP_DURATION, /* route */
	NC_METRIC_HTTP_OPEN,
	NC_METRIC_CONNECTIONS,
	/* resource */
	NC_METRIC_RUNNING,
	NC_METRIC_ALLOWED_MEMORY,
	NC_METRIC_ALLOWED_CPU,
	NC_METRIC_SANDBOXES,
	NC_METRIC_SANDBOXES_LOST,
	NC_METRIC_COMMANDS_RUNNING,
	NC_METRIC_SANDBOX_MEMORY,
	NC_METRIC_SANDBOX_CPU,
	NC_METRIC_JOBS,
	NC_METRIC_DISK_SIZE,
	NC_METRIC_DISK_FREE,
	NC_METRIC_PROCESS_CPU,
	NC_METRIC_PROCESS_MEMORY,
	NC_METRIC_UPTIME,
	NC_METRIC_LONGEST_TURN,
	NC_METRIC_SLOW_TURNS,
	NC_METRIC_AIDE_UP,     /* aide */
	NC_METRIC_AIDE_DEATHS, /* aide */
	NC_METRIC_ALERTS,      /* alert, kind */
	NC_METRIC_NET_CONNECTIONS,
	NC_METRIC_NET_REQUESTS, /* outcome */
	NC_METRIC_NET_BYTES,	/* direction */
	NC_METRIC_TRACE_SPANS,
	NC_METRIC_TRACE_DROPPED,
	NC_METRIC_BUILD, /* version */
	NC_METRIC_MAX,
};

#define NC_METRIC_LABELS 3

struct nc_metrics;

/*
 * NULL: no memory. Counters and histograms whose labels are known are there from the start, with 0:
 * of one that appears with its first count, Prometheus sees no increase.
 */
struct nc_metrics *nc_metrics_new(void);
void nc_metrics_free(struct nc_metrics *metrics);

/*
 * Adds to a counter, sets a gauge, observes for a histogram. labels has as many words as the metric
 * has labels; NULL for none.
 */
void nc_metrics_add(
	struct nc_metrics *metrics, enum nc_metric metric, double value, const char *const *labels);
void nc_metrics_set(
	struct nc_metrics *metrics, enum nc_metric metric, double value, const char *const *labels);

/* The sum over all labels of a counter or of what a histogram saw, and how often. */
double nc_metrics_sum(const struct nc_metrics *metrics, enum nc_metric metric);
/* The same of those whose label number `label` is word. */
double nc_metrics_sum_of(
	const struct nc_metrics *metrics, enum nc_metric metric, size_t label, const char *word);
double nc_metrics_count(const struct nc_metrics *metrics, enum nc_metric metric);

enum nc_metrics_of {
	NC_METRICS_OF_EXECUTION,
	NC_METRICS_OF_COMMAND, /* in a sandbox */
	NC_METRICS_OF_MAX,
};

/* Everything that is told of one that has ended: a reply of the engine, or nc_process_json(). */
void nc_metrics_end(struct nc_metrics *metrics, enum nc_metrics_of kind, const json_t *told);

/* The text format, version 0.0.4. */
void nc_metrics_text(const struct nc_metrics *metrics, struct nc_buf *out);

#endif
