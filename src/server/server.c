/* The daemon. */
#include "server/server.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/analysts.h"
#include "policy/book.h"
#include "server/aides.h"
#include "server/alerts.h"
#include "server/archive.h"
#include "server/certificate.h"
#include "server/gate.h"
#include "server/intake.h"
#include "server/jobs.h"
#include "server/listen.h"
#include "server/ready.h"
#include "server/replay.h"
#include "server/reply.h"
#include "server/rest/desk.h"
#include "server/snapshots.h"
#include "server/socket.h"
#include "server/tally.h"
#include "server/tls.h"
#include "server/tracer.h"
#include "server/turns.h"
#include "server/writing.h"

#define TICK_MS 1000
/* Without a request, until free memory is given back. */
#define QUIET_TICKS 5
#define DRAIN_TICK_MS 50
/* The body of a request that takes none: an empty object, with some blanks. */
#define NOTHING_MAX 64U
/* After that what still runs is cancelled, and has so long to be settled. */
#define CANCELLED_NS (10 * NC_NS_PER_S)
/* Leaving: without a request on its way for so long we go; what is on its way when no execution
 * runs any more (a command of a sandbox, a stream) is waited for so long. */
#define QUIET_NS (100 * NC_NS_PER_MS)
#define LINGER_NS (2 * NC_NS_PER_S)
/* Without a spawner there is only to answer. */
#define LAST_NS (2 * NC_NS_PER_S)

/* Files as they were read at one time. */
struct nc_generation {
	struct nc_generation *next; /* older */
	struct nc_config config;
	struct nc_book *policies;
};

/* ---- a request ---- */

static void refuse_method(struct nc_exchange *exchange, const char *allow)
{
	if (!*allow) {
		nc_problem(exchange, 404, "no_route", NULL, "See /docs", "There is no such path");
		return;
	}
	if (nc_streq(exchange->method, "OPTIONS"))
		nc_reply_empty(exchange, 204);
	else
		nc_problem(
			exchange, 405, "bad_method", NULL, "See /docs", "The path knows %s", allow);
	nc_reply_header(exchange, "Allow", allow);
}

/* What a browser asks before it lets a page of others ask. */
static void answer_preflight(struct nc_exchange *exchange, const char *allow)
{
	nc_reply_empty(exchange, 204);
	nc_reply_header(exchange, "Access-Control-Allow-Methods", allow);
	nc_reply_header(exchange, "Access-Control-Allow-Headers",
		"Authorization, X-API-Key, Content-Type, Idempotency-Key, Last-Event-ID");
	nc_reply_header(exchange, "Access-Control-Max-Age", "600");
}

static bool is_json(const struct nc_exchange *exchange)
{
	const char *type = nc_exchange_header(exchange, "Content-Type");
	size_t size = type ? strcspn(type, "; ") : 0;

	return size == strlen("application/json") &&
	       strncasecmp(type, "application/json", size) == 0;
}

static bool has_length(const struct nc_exchange *exchange)
{
	return nc_exchange_header(exchange, "Content-Length") ||
	       nc_exchange_header(exchange, "Transfer-Encoding");
}

static bool is_too_often(struct nc_server *server, struct nc_exchange *exchange)
{
	struct nc_quota_refusal refusal = {0};
	int r = nc_quota_request(server->quotas, &server->config->serve, exchange->caller.tenant,
		nc_clock_ns(), &refusal);

	if (r == 0)
		return false;
	nc_problem(exchange, 429, "rate", refusal.quota, "Ask less often",
		"The tenant may ask %llu times a minute", (unsigned long long)refusal.limit);
	nc_reply_retry(exchange, refusal.retry_seconds ? refusal.retry_seconds : 60);
	return true;
}

static void refuse_role(struct nc_exchange *exchange)
{
	nc_problem(exchange, 403, "role", NULL, "Use a key with that role: nacre key create",
		"This needs the role %s; the key has %s", nc_role_names[exchange->route->role],
		nc_role_names[exchange->caller.role]);
}

/* Clients that always send JSON send an empty object. */
static bool takes_nothing(const struct nc_route *route)
{
	return route->body_max == 0 && !nc_streq(route->method, "GET");
}

static bool is_nothing(const struct nc_exchange *exchange)
{
	const char *text = nc_buf_text(&exchange->body), *blank = " \t\r\n";

	text += strspn(text, blank);
	if (*text == '{')
		text += 1 + strspn(text + 1, blank);
	else
		return !*text;
	return *text == '}' && !text[1 + strspn(text + 1, blank)];
}

static size_t on_head(void *context, struct nc_exchange *exchange)
{
	struct nc_server *server = context;
	char allow[64];
	const struct nc_route *route = nc_route_find(nc_routes, exchange, allow, sizeof(allow));

	exchange->route = route;
	nc_tracer_take(server->tracer, exchange, server->config->serve.tracing.sample.number);
	exchange->early = route && route->flags & NC_ROUTE_STREAM;
	if (!nc_gate_pass(server, exchange))
		return 0;
	if (!route && nc_streq(exchange->method, "OPTIONS") && exchange->origin && *allow)
		answer_preflight(exchange, allow);
	else if (!route)
		refuse_method(exchange, allow);
	else if (exchange->is_head && route->flags & NC_ROUTE_SOCKET)
		refuse_method(exchange, route->method);
	else if (exchange->caller.role < route->role)
		refuse_role(exchange);
	else if (server->drains && !(route->flags & NC_ROUTE_DRAINS)) {
		nc_problem(exchange, 503, "stopping", NULL, "Try again", "We are stopping");
		nc_reply_retry(exchange, 5);
	} else if (!(route->flags & NC_ROUTE_FREE) && is_too_often(server, exchange)) {
		return 0;
	} else if (route->body_max > 0 && !has_length(exchange)) {
		nc_problem(exchange, 411, "length_required", "Content-Length",
			"Send Content-Length, 0 for no body", "There is no length");
	} else if (route->flags & NC_ROUTE_JSON && !is_json(exchange)) {
		nc_problem(exchange, 415, "not_json", "Content-Type",
			"Send Content-Type: application/json", "The body has to be JSON");
	}
	if (exchange->status == 0 && route && route->flags & NC_ROUTE_CREATES)
		nc_replay_expect(exchange);
	exchange->spools = route && route->flags & NC_ROUTE_SPOOLS;
	exchange->body.wipes = route && route->flags & NC_ROUTE_JSON; /* it may bring secrets */
	if (!route)
		return 0;
	return takes_nothing(route) ? NOTHING_MAX : route->body_max;
}

static void on_whole(void *context, struct nc_exchange *exchange)
{
	struct nc_server *server = context;

	server->quiet_ticks = 0;
	if (takes_nothing(exchange->route) && !is_nothing(exchange)) {
		nc_problem(exchange, 400, "bad_request", NULL, "Send no body, or {}",
			"This takes no body");
		return;
	}
	if (exchange->route->flags & NC_ROUTE_CREATES &&
		!nc_replay_begin(server->replays, exchange))
		return;
	exchange->route->run(server, exchange);
}

static void on_over(void *context, struct nc_exchange *exchange)
{
	struct nc_server *server = context;
	double seconds = (double)(nc_clock_ns() - exchange->began_ns) / 1e9;
	const char *route = exchange->route ? exchange->route->pattern : "none";
	char status[16];
	const char *labels[] = {route, exchange->route ? exchange->route->method : "other", status};

	nc_replay_end(exchange);
	/* a client that left before there was an answer counts as one that closed */
	(void)snprintf(status, sizeof(status), "%u",
		exchange->status    ? exchange->status
		: exchange->refused ? exchange->refused
				    : 499);
	nc_metrics_add(server->metrics, NC_METRIC_HTTP, 1, labels);
	if (exchange->status >= 500)
		nc_metrics_add(server->metrics, NC_METRIC_HTTP_ERRORS, 1, labels);
	nc_metrics_add(server->metrics, NC_METRIC_HTTP_DURATION, seconds, labels);
	nc_tracer_request(server->tracer, exchange);
	if (!nc_log_wants(NC_LOG_INFO))
		return;
	nc_log(NC_LOG_INFO, "Request", NC_LOG_TEXT("request", exchange->id),
		NC_LOG_TEXT("method", exchange->method ? exchange->method : "?"),
		NC_LOG_TEXT("route", route), NC_LOG_TEXT("trace", exchange->trace),
		NC_LOG_INT("status", exchange->status),
		NC_LOG_INT("microseconds", (int64_t)(seconds * 1e6)),
		NC_LOG_TEXT("tenant", exchange->caller.tenant),
		NC_LOG_TEXT("key_id", exchange->caller.key));
}

static void on_refused(void *context, unsigned int status)
{
	struct nc_server *server = context;
	char text[16];
	const char *labels[] = {"none", "other", text};

	(void)snprintf(text, sizeof(text), "%u", status);
	nc_metrics_add(server->metrics, NC_METRIC_HTTP, 1, labels);
}

/* ---- time ---- */

static void generation_free(struct nc_generation *generation)
{
	nc_book_free(generation->policies);
	nc_config_done(&generation->config);
	free(generation);
}

/* Nothing runs that was begun with older files: they can go. */
static void retire(struct nc_server *server)
{
	while (server->generation && server->generation->next && nc_jobs_open(server->jobs) == 0 &&
		nc_analysts_open(server->analysts) == 0 &&
		nc_sandboxes_count(server->sandboxes) == 0) {
		struct nc_generation *old = server->generation->next;

		server->generation->next = old->next;
		generation_free(old);
	}
}

/* Commands that nobody waits for have no time of their own: they may be servers. */
static void cancel_all(struct nc_server *server, bool idle)
{
	if (!idle)
		nc_log(NC_LOG_WARNING, "Time to stop is over, cancelling",
			NC_LOG_INT("executions", (int64_t)nc_jobs_open(server->jobs)));
	nc_jobs_cancel_all(server->jobs);
	nc_sandboxes_end(server->sandboxes, server->orphaned);
}

static void end_drain(struct nc_server *server)
{
	uint64_t now = nc_clock_ns();
	bool idle = nc_jobs_open(server->jobs) == 0 && nc_http_open(server->http) == 0;

	if (!idle && now < server->drain_until_ns)
		return;
	if (!server->cancelled) {
		cancel_all(server, idle);
		server->cancelled = true;
		server->drain_until_ns = now + CANCELLED_NS;
		return;
	}
	if (nc_sandboxes_count(server->sandboxes) > 0 && now < server->drain_until_ns)
		return;
	(void)uv_timer_stop(server->tick);
	server->setup.stopped(server->setup.context);
}

static void on_tick(uv_timer_t *timer);

static int listen_again(struct nc_server *server)
{
	const struct nc_server_setup *setup = &server->setup;

	return nc_listeners_new(setup->loop, setup->listen_fds, setup->n_listen_fds, server->http,
		setup->tls, &server->listeners);
}

static void stay(struct nc_server *server)
{
	server->leaves = false;
	nc_http_close_behind(server->http, false);
	if (listen_again(server) < 0)
		nc_log(NC_LOG_ERROR, "Out of memory: nobody is listened to");
	(void)uv_timer_start(server->tick, on_tick, TICK_MS, TICK_MS);
	server->setup.stays(server->setup.context);
}

/* Whether all that was said to others has reached them. */
static bool is_heard(const struct nc_server *server)
{
	return !nc_engine_is_behind(server->setup.engine) &&
	       nc_engine_has_room(server->setup.engine);
}

static void end_leave(struct nc_server *server)
{
	const uint64_t now = nc_clock_ns();

	if (nc_jobs_open(server->jobs) > 0)
		server->open_ns = now;
	if (nc_http_busy(server->http) > 0 || !is_heard(server))
		server->busy_ns = now;
	if (now - server->open_ns >= LINGER_NS ||
		(server->open_ns != now && now - server->busy_ns >= QUIET_NS)) {
		(void)uv_timer_stop(server->tick);
		server->setup.stopped(server->setup.context);
	} else if (now >= server->drain_until_ns) {
		stay(server);
	}
}

/*
 * What many clients at once have taken lies free between what is kept, where free() returns nothing
 * to the system: it goes back once nobody has asked for a while.
 */
static void give_back(struct nc_server *server)
{
	struct mallinfo2 before;

	if (nc_jobs_open(server->jobs) > 0 || server->quiet_ticks++ != QUIET_TICKS)
		return;
	before = mallinfo2();
	(void)malloc_trim(0);
	nc_log(NC_LOG_DEBUG, "Free memory went back to the system",
		NC_LOG_INT("used", (int64_t)before.uordblks),
		NC_LOG_INT("free", (int64_t)before.fordblks));
}

/* Those of a daemon that was killed, of which the recorder tells. */
static void count_lost(struct nc_server *server)
{
	static const char *const labels[] = {"none", "none", "lost"};
	const uint64_t lost = nc_engine_lost(server->setup.engine), more = lost - server->lost;

	if (more == 0)
		return;
	server->lost = lost;
	nc_tally_lose(server->tally, more);
	nc_metrics_add(server->metrics, NC_METRIC_EXECUTIONS, (double)more, labels);
}

static void on_tick(uv_timer_t *timer)
{
	struct nc_server *server = timer->data;

	nc_aides_tick(server->aides);
	count_lost(server);
	nc_tally_tick(server->tally);
	nc_analysts_tick(server->analysts);
	if (server->archive)
		nc_archive_tick(server->archive);
	nc_jobs_tick(server->jobs);
	nc_sandboxes_tick(server->sandboxes);
	nc_tracer_tick(server->tracer);
	nc_sockets_tick(server);
	nc_watches_tick(server);
	if (server->drains) {
		end_drain(server);
		return;
	}
	if (server->leaves) {
		end_leave(server);
		return;
	}
	nc_listeners_tick(server->listeners);
	if (server->setup.tls)
		nc_tls_tick(server->setup.tls);
	nc_alerts_tick(server->alerts);
	retire(server);
	give_back(server);
}

void nc_server_drain(struct nc_server *server)
{
	if (server->drains)
		return;
	server->drains = true;
	server->leaves = false;
	server->drain_until_ns =
		nc_clock_ns() + server->config->serve.drain_seconds.number * NC_NS_PER_S;
	nc_log(NC_LOG_INFO, "Stopping",
		NC_LOG_INT("executions", (int64_t)nc_jobs_open(server->jobs)));
	nc_sockets_close(server);
	nc_http_drain(server->http);
	(void)uv_timer_start(server->tick, on_tick, DRAIN_TICK_MS, DRAIN_TICK_MS);
}

void nc_server_leave(struct nc_server *server)
{
	const uint64_t now = nc_clock_ns();

	if (server->drains)
		return;
	server->leaves = true;
	server->busy_ns = server->open_ns = now;
	server->drain_until_ns = now + server->config->serve.drain_seconds.number * NC_NS_PER_S;
	nc_log(NC_LOG_INFO, "Leaving to a new version",
		NC_LOG_INT("executions", (int64_t)nc_jobs_open(server->jobs)),
		NC_LOG_INT("sandboxes", (int64_t)nc_sandboxes_count(server->sandboxes)));
	nc_listeners_free(take_ptr(server->listeners));
	nc_http_close_behind(server->http, true);
	(void)uv_timer_start(server->tick, on_tick, DRAIN_TICK_MS, DRAIN_TICK_MS);
}

/* Those who waited are told; whoever comes now is left to the one who comes after us. */
static void on_lost(void *context)
{
	struct nc_server *server = context;

	nc_log(NC_LOG_ERROR,
		"The process that holds the boxes has died: answering what is open, and ending");
	nc_listeners_free(take_ptr(server->listeners));
	server->orphaned = true;
	nc_server_drain(server);
	server->drain_until_ns = nc_clock_ns() + LAST_NS;
}

/* ---- reading again ---- */

void nc_server_log(const struct nc_config *config)
{
	const struct nc_value *level = &config->main.log.level;

	nc_log_setup(STDERR_FILENO, level->line ? (enum nc_log_level)level->number : NC_LOG_INFO,
		(enum nc_log_format)config->main.log.format.number);
}

int nc_server_reload(struct nc_server *server, struct nacre_err *err)
{
	struct nc_generation *fresh = calloc(1, sizeof(*fresh));
	int r;

	if (!fresh)
		return nc_err_set(err, -ENOMEM, "Out of memory");
	r = nc_config_load(&fresh->config, server->setup.config_dir, err);
	if (r == 0)
		r = nc_alerts_check(&fresh->config.serve, err);
	if (r == 0 && nc_book_new(&fresh->config, &fresh->policies) < 0)
		r = nc_err_set(err, -ENOMEM, "Out of memory");
	if (r == 0)
		r = nc_book_add_all(fresh->policies, err);
	if (r < 0) {
		generation_free(fresh);
		return r;
	}
	fresh->next = server->generation;
	server->generation = fresh;
	server->config = &fresh->config;
	server->policies = fresh->policies;
	nc_engine_reconfigure(server->setup.engine, server->config, server->policies);
	nc_server_log(server->config);
	server->keys_seen_ns = 0;
	return 0;
}

/* ---- the whole ---- */

static void close_tick(uv_handle_t *handle)
{
	free(handle);
}

static int make_parts(struct nc_server *server)
{
	server->metrics = nc_metrics_new();
	server->quotas = nc_quotas_new();
	server->replays = nc_replays_new();
	server->jobs = nc_jobs_new(server);
	server->tally = nc_tally_new(server->setup.loop, server->setup.tally_fd);
	server->alerts = server->tally ? nc_alerts_new(server) : NULL;
	server->aides = nc_aides_new(server);
	server->tracer =
		server->metrics ? nc_tracer_new(server->setup.exporter_fd, server->metrics) : NULL;
	server->ready = nc_ready_new(server->setup.engine);
	server->turns = nc_turns_new(server->setup.loop);
	server->tick = calloc(1, sizeof(*server->tick));
	if (server->tick) {
		(void)uv_timer_init(server->setup.loop, server->tick); /* cannot fail */
		server->tick->data = server;
	}
	return server->metrics && server->quotas && server->replays && server->jobs &&
			       server->alerts && server->aides && server->tracer && server->ready &&
			       server->turns && server->tick
		       ? 0
		       : -ENOMEM;
}

/* A route that has never failed is there, with 0. */
static void begin_routes(struct nc_server *server)
{
	for (const struct nc_route *route = nc_routes; route->method; route++)
		nc_metrics_set(server->metrics, NC_METRIC_HTTP_ERRORS, 0, &route->pattern);
}

static int make_token(struct nc_server *server)
{
	unsigned char bytes[NC_SHA256_SIZE];
	int r = nc_random(bytes, sizeof(bytes));

	if (r == 0)
		nc_sha256_hex(bytes, server->token);
	return r;
}

static int begin_tls(struct nc_server *server)
{
	const struct nc_server_setup *setup = &server->setup;

	nc_tls_begin(setup->tls, setup->loop, server->http, setup->head_ms);
	server->certificates = nc_certificates_new(setup->loop, setup->tls, setup->certifier_fd);
	return server->certificates ? 0 : -ENOMEM;
}

static int begin(struct nc_server *server)
{
	const struct nc_server_setup *setup = &server->setup;
	const struct nc_http_setup http = {.loop = setup->loop,
		.head_ms = setup->head_ms,
		.body_ms = setup->body_ms,
		.idle_ms = setup->idle_ms,
		.spool_fd = setup->spool_fd,
		.context = server,
		.head = on_head,
		.whole = on_whole,
		.done = on_over,
		.refused = on_refused};
	int r = make_parts(server);

	if (r == 0) {
		begin_routes(server);
		r = make_token(server);
	}
	if (r == 0)
		r = nc_analysts_new(
			setup->loop, setup->keeper.place_fd[NC_AIDE_ANALYST], &server->analysts);
	if (r == 0 && setup->archive_fd >= 0)
		r = nc_archive_new(setup->loop, setup->archive_fd, &server->archive);
	if (r == 0 && setup->snapshots_fd >= 0)
		r = nc_snapshots_new(setup->snapshots_fd, &server->snapshots);
	if (r == 0)
		r = nc_http_new(&http, &server->http);
	if (r == 0 && setup->tls)
		r = begin_tls(server);
	if (r == 0)
		r = nc_listeners_new(setup->loop, setup->listen_fds, setup->n_listen_fds,
			server->http, setup->tls, &server->listeners);
	if (r == 0) {
		nc_sandboxes_under_quota(server);
		nc_channels_resume(server);
		nc_engine_watch(setup->engine, on_lost, server);
		(void)uv_timer_start(server->tick, on_tick, TICK_MS, TICK_MS);
	}
	return r;
}

int nc_server_new(
	const struct nc_server_setup *setup, struct nc_server **ret_server, struct nacre_err *err)
{
	struct nc_server *server = calloc(1, sizeof(*server));
	int r;

	if (!server)
		return nc_err_set(err, -ENOMEM, "Out of memory");
	server->setup = *setup;
	server->sandboxes = setup->sandboxes;
	server->config = setup->config;
	server->policies = setup->policies;
	server->began_ns = nc_clock_ns();
	r = nc_alerts_check(&setup->config->serve, err);
	if (r == 0)
		r = nc_keys_read(setup->serve_fd, &server->keys, err);
	if (r == 0) {
		r = begin(server);
		if (r < 0)
			nc_err_errno(err, r, "Begin to serve");
	}
	if (r < 0)
		nc_server_free(server);
	else
		*ret_server = server;
	return r;
}

void nc_server_free(struct nc_server *server)
{
	if (!server)
		return;
	server->sandboxes = NULL; /* they have gone before */
	nc_listeners_free(server->listeners);
	nc_intakes_drop(server);
	nc_writings_drop(server);
	nc_http_free(server->http);
	if (server->setup.tls)
		nc_tls_end(server->setup.tls);
	nc_certificates_free(server->certificates);
	nc_archive_free(server->archive);
	nc_jobs_free(server->jobs);
	nc_waits_drop(server);
	nc_transfers_drop(server);
	nc_watches_drop(server);
	nc_channels_drop(server);
	nc_analysts_free(server->analysts);
	nc_snapshots_free(server->snapshots);
	nc_ready_free(server->ready);
	nc_turns_free(server->turns);
	nc_replays_free(server->replays);
	nc_aides_free(server->aides);
	nc_alerts_free(server->alerts);
	nc_tally_free(server->tally);
	nc_tracer_free(server->tracer);
	nc_quotas_free(server->quotas);
	nc_metrics_free(server->metrics);
	nc_keys_done(&server->keys);
	if (server->tick)
		uv_close((uv_handle_t *)server->tick, close_tick);
	while (server->generation) {
		struct nc_generation *old = server->generation;

		server->generation = old->next;
		generation_free(old);
	}
	free(server);
}
