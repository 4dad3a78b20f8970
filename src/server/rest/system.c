/* The daemon itself: version, health, metrics, alerts. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "engine/execution.h"
#include "engine/network.h"
#include "engine/sandbox.h"
#include "server/aides.h"
#include "server/alerts.h"
#include "server/jobs.h"
#include "server/ready.h"
#include "server/reply.h"
#include "server/rest/rest.h"
#include "server/tally.h"
#include "server/turns.h"

#define METRICS_MAX (4U * 1024 * 1024)

NC_REST(version)
{
	(void)server;
	nc_reply_json(exchange, 200,
		json_pack(
			"{s:s, s:s, s:s}", "name", "nacre", "version", NACRE_VERSION, "api", "v1"));
}

NC_REST(health)
{
	(void)server;
	nc_reply_json(exchange, 200, json_pack("{s:s}", "status", "ok"));
}

static void on_ready(void *context, const char *failure, double seconds)
{
	struct nc_exchange *exchange = context;

	if (failure) {
		nc_problem(exchange, 503, "not_ready", NULL, "See the log of the daemon", "%s",
			failure);
		nc_reply_retry(exchange, 5);
	} else {
		nc_reply_json(exchange, 200,
			json_pack("{s:s, s:f, s:o}", "status", "ready", "box_seconds", seconds,
				"tiers", nc_ready_tiers(exchange->keeper)));
	}
}

static void on_gone(struct nc_exchange *exchange)
{
	nc_ready_forget(exchange->keeper, exchange);
}

NC_REST(ready)
{
	if (server->drains) {
		nc_problem(exchange, 503, "stopping", NULL, "Try again", "We are stopping");
		nc_reply_retry(exchange, 5);
		return;
	}
	exchange->keeper = server->ready;
	exchange->gone = on_gone;
	nc_ready_ask(server->ready, on_ready, exchange);
}

static void set_network(struct nc_server *server)
{
	const struct nc_network_totals totals =
		nc_network_totals(nc_engine_setup(server->setup.engine)->network);
	struct nc_metrics *metrics = server->metrics;

	nc_metrics_set(metrics, NC_METRIC_NET_CONNECTIONS, (double)totals.connections, NULL);
	nc_metrics_set(metrics, NC_METRIC_NET_REQUESTS, (double)totals.requests,
		(const char *[]){"let_through"});
	nc_metrics_set(
		metrics, NC_METRIC_NET_REQUESTS, (double)totals.denied, (const char *[]){"denied"});
	nc_metrics_set(
		metrics, NC_METRIC_NET_REQUESTS, (double)totals.failed, (const char *[]){"failed"});
	nc_metrics_set(
		metrics, NC_METRIC_NET_BYTES, (double)totals.bytes_up, (const char *[]){"up"});
	nc_metrics_set(
		metrics, NC_METRIC_NET_BYTES, (double)totals.bytes_down, (const char *[]){"down"});
}

static void set_usage(struct nc_server *server)
{
	struct nc_metrics *metrics = server->metrics;
	struct rusage usage;
	struct statfs disk;
	char text[64] = "";
	unsigned long long pages = 0;

	if (getrusage(RUSAGE_SELF, &usage) == 0)
		nc_metrics_set(metrics, NC_METRIC_PROCESS_CPU,
			(double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
				(double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
			NULL);
	if (server->setup.statm_fd >= 0 &&
		pread(server->setup.statm_fd, text, sizeof(text) - 1, 0) > 0 &&
		sscanf(text, "%*u %18llu", &pages) == 1)
		nc_metrics_set(metrics, NC_METRIC_PROCESS_MEMORY,
			(double)pages * (double)sysconf(_SC_PAGESIZE), NULL);
	if (server->setup.state_fd >= 0 && fstatfs(server->setup.state_fd, &disk) == 0) {
		nc_metrics_set(metrics, NC_METRIC_DISK_SIZE,
			(double)disk.f_blocks * (double)disk.f_bsize, NULL);
		nc_metrics_set(metrics, NC_METRIC_DISK_FREE,
			(double)disk.f_bavail * (double)disk.f_bsize, NULL);
	}
}

NC_REST(metrics)
{
	static const char *const version[] = {NACRE_VERSION};
	nc_buf_cleanup struct nc_buf text = NC_BUF(METRICS_MAX);
	struct nc_metrics *metrics = server->metrics;
	struct nc_sandboxes_load boxes;
	struct nc_engine_load load;

	nc_engine_load(server->setup.engine, &load);
	nc_metrics_set(metrics, NC_METRIC_QUEUE, (double)load.queued, NULL);
	nc_metrics_set(metrics, NC_METRIC_POOL, load.ready_python, (const char *[]){"python"});
	nc_metrics_set(metrics, NC_METRIC_POOL, load.ready_node, (const char *[]){"node"});
	nc_metrics_set(metrics, NC_METRIC_POOL, load.ready_neutral, (const char *[]){"nothing"});
	nc_metrics_set(metrics, NC_METRIC_RUNNING, (double)load.running, NULL);
	nc_metrics_set(metrics, NC_METRIC_ALLOWED_MEMORY, (double)load.memory_bytes, NULL);
	nc_metrics_set(metrics, NC_METRIC_ALLOWED_CPU, (double)load.cpu_milli / 1000, NULL);
	nc_sandboxes_load(server->sandboxes, &boxes);
	nc_metrics_set(metrics, NC_METRIC_SANDBOXES, (double)boxes.sandboxes, NULL);
	nc_metrics_set(metrics, NC_METRIC_SANDBOXES_LOST, (double)boxes.lost, NULL);
	nc_metrics_set(metrics, NC_METRIC_COMMANDS_RUNNING, (double)boxes.commands, NULL);
	nc_metrics_set(metrics, NC_METRIC_SANDBOX_MEMORY, (double)boxes.memory_bytes, NULL);
	nc_metrics_set(metrics, NC_METRIC_SANDBOX_CPU, (double)boxes.cpu_milli / 1000, NULL);
	nc_metrics_set(metrics, NC_METRIC_JOBS, (double)nc_jobs_count(server->jobs), NULL);
	nc_metrics_set(metrics, NC_METRIC_HTTP_OPEN, (double)nc_http_open(server->http), NULL);
	nc_metrics_set(
		metrics, NC_METRIC_CONNECTIONS, (double)nc_http_connections(server->http), NULL);
	nc_metrics_set(
		metrics, NC_METRIC_UPTIME, (double)(nc_clock_ns() - server->began_ns) / 1e9, NULL);
	nc_metrics_set(metrics, NC_METRIC_LONGEST_TURN,
		(double)nc_turns_longest_ns(server->turns) / 1e9, NULL);
	nc_metrics_set(metrics, NC_METRIC_SLOW_TURNS, (double)nc_turns_slow(server->turns), NULL);
	nc_metrics_set(metrics, NC_METRIC_FAILED, (double)nc_tally_lost(server->tally),
		(const char *[]){"lost"});
	nc_metrics_set(metrics, NC_METRIC_BUILD, 1, version);
	nc_aides_count(server->aides);
	set_network(server);
	set_usage(server);
	nc_metrics_text(metrics, &text);
	if (text.error < 0)
		nc_problem(exchange, 500, "internal_error", NULL, NULL, "Out of memory");
	else
		nc_reply_bytes(exchange, 200, "text/plain; version=0.0.4; charset=utf-8", text.data,
			text.size);
}

NC_REST(alerts)
{
	nc_reply_json(exchange, 200, json_pack("{s:o}", "alerts", nc_alerts_list(server->alerts)));
}

NC_REST(token)
{
	nc_reply_json(exchange, 200, json_pack("{s:s}", "token", server->token));
}
