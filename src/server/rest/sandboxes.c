/* Sandboxes over HTTP: their lives, and what runs in them. Files are in sandbox_files.c. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/sandbox.h"
#include "server/account.h"
#include "server/feed.h"
#include "server/intake.h"
#include "server/jobs.h"
#include "server/reply.h"
#include "server/rest/desk.h"
#include "server/rest/rest.h"
#include "server/snapshots.h"

#define LIST_MAX 1000U
/* Of a page, or one sandbox more: it is written in one turn of the loop. */
#define LIST_SIZE_MAX (512U * 1024)
/* In one turn. */
#define DESTROYED_MAX 64U

/* ---- who waits ---- */

/* A sandbox that has not got its files is none. */
static void drop_unfinished(struct nc_wait *wait)
{
	struct nc_sandbox *sandbox = nc_sandbox_find(wait->server->sandboxes, NULL, wait->sandbox);

	if (sandbox)
		nc_sandbox_destroy(sandbox);
	wait->sandbox[0] = '\0';
}

static void on_gone(struct nc_exchange *exchange)
{
	struct nc_wait *wait = exchange->keeper;

	if (wait->process)
		(void)nc_process_kill(wait->process); /* it was his alone */
	if (wait->sandbox[0])
		drop_unfinished(wait);
	nc_wait_free(wait);
}

struct nc_wait *nc_wait_new(struct nc_server *server, struct nc_exchange *exchange)
{
	struct nc_wait *wait = calloc(1, sizeof(*wait));

	if (!wait) {
		nc_problem(exchange, 503, "no_memory", NULL, "Try again later", "Out of memory");
		return NULL;
	}
	*wait = (struct nc_wait){.server = server, .exchange = exchange, .next = server->waits};
	server->waits = wait;
	exchange->keeper = wait;
	exchange->gone = on_gone;
	return wait;
}

static void close_timer(uv_handle_t *handle)
{
	free(handle);
}

static void wait_done(struct nc_wait *wait)
{
	if (wait->timer)
		uv_close((uv_handle_t *)wait->timer, close_timer);
	nc_draft_free(wait->draft);
	json_decref(wait->list);
	free(wait);
}

void nc_wait_free(struct nc_wait *wait)
{
	struct nc_wait **place = &wait->server->waits;

	while (*place != wait)
		place = &(*place)->next;
	*place = wait->next;
	wait->exchange->keeper = NULL;
	wait->exchange->gone = NULL;
	nc_sandboxes_forget(wait->server->sandboxes, wait);
	wait_done(wait);
}

void nc_waits_drop(struct nc_server *server)
{
	while (server->waits) { /* their exchanges are gone already */
		struct nc_wait *wait = server->waits;

		server->waits = wait->next;
		wait_done(wait);
	}
}

/* The exchange of who waited, who waits no more. */
static struct nc_exchange *settle(struct nc_wait *wait)
{
	struct nc_exchange *exchange = wait->exchange;

	nc_wait_free(wait);
	return exchange;
}

/* ---- quotas: a sandbox is open as an execution is, for as long as it lives ---- */

static struct nc_quota_share share_of(const struct nc_box_limits *limits)
{
	return (struct nc_quota_share){limits->memory_bytes, limits->disk_bytes};
}

/* For those whose answer is no HTTP; server->refusal has all of it. */
static int over_quota(const struct nc_server *server, int error, struct nacre_err *err)
{
	const struct nc_quota_refusal *refusal = &server->refusal;

	return nc_err_set(err, error == -ERANGE ? error : -EDQUOT,
		"The quota of the tenant is used up: %s is %llu",
		refusal->quota ? refusal->quota : "tenants", (unsigned long long)refusal->limit);
}

static int admit(void *context, const char *tenant, const struct nc_box_limits *limits,
	struct nacre_err *err)
{
	struct nc_server *server = context;
	struct nc_quota_share share = share_of(limits);
	int r;

	server->refusal = (struct nc_quota_refusal){0};
	r = nc_quota_check(server->quotas, &server->config->serve, tenant, &share, nc_clock_ns(),
		&server->refusal);
	if (r < 0)
		return over_quota(server, r, err);
	nc_quota_open(server->quotas, tenant, &share);
	return 0;
}

/* Its commands: what they use is their tenant's as each ends. */
static void on_answered(void *context, int64_t ticket, int error);

static int admit_command(void *context, const char *tenant, struct nacre_err *err)
{
	struct nc_server *server = context;
	int r;

	server->refusal = (struct nc_quota_refusal){0};
	r = nc_quota_check_cpu(
		server->quotas, &server->config->serve, tenant, nc_clock_ns(), &server->refusal);
	return r < 0 ? over_quota(server, r, err) : 0;
}

static void release(void *context, const char *tenant, const struct nc_box_limits *limits)
{
	struct nc_server *server = context;
	struct nc_quota_share share = share_of(limits);

	nc_quota_close(server->quotas, tenant, &share);
}

/* It was admitted by the daemon before, and counts on. */
static void resume(void *context, const char *tenant, const struct nc_box_limits *limits)
{
	struct nc_server *server = context;
	struct nc_quota_share share = share_of(limits);

	nc_quota_open(server->quotas, tenant, &share);
}

static void command_ended(void *context, const char *tenant, const json_t *told)
{
	nc_account_end(context, NC_METRICS_OF_COMMAND, tenant, told);
}

void nc_sandboxes_under_quota(struct nc_server *server)
{
	const struct nc_sandboxes_gate gate = {server, admit, release, resume, admit_command,
		on_answered, command_ended, server->analysts};

	nc_sandboxes_guard(server->sandboxes, &gate);
}

/* ---- finding ---- */

const char *nc_rest_tenant(const struct nc_exchange *exchange)
{
	return exchange->caller.role == NC_ROLE_ADMIN ? NULL : exchange->caller.tenant;
}

struct nc_sandbox *nc_rest_sandbox(struct nc_server *server, struct nc_exchange *exchange)
{
	struct nc_sandbox *sandbox =
		nc_sandbox_find(server->sandboxes, nc_rest_tenant(exchange), exchange->part[0]);

	if (!sandbox && nc_sandboxes_await(
				server->sandboxes, nc_rest_tenant(exchange), exchange->part[0])) {
		nc_problem(exchange, 503, "unavailable", NULL, "Try again later",
			"What holds the sandbox has not come back yet");
		nc_reply_retry(exchange, 1);
	} else if (!sandbox) {
		nc_problem(exchange, 404, "no_sandbox", NULL, "Make one: POST /v1/sandboxes",
			"There is no such sandbox, or not any more");
	}
	return sandbox;
}

struct nc_process *nc_rest_process(struct nc_server *server, struct nc_exchange *exchange)
{
	struct nc_sandbox *sandbox = nc_rest_sandbox(server, exchange);
	struct nc_process *process = sandbox ? nc_process_find(sandbox, exchange->part[1]) : NULL;

	if (sandbox && !process)
		nc_problem(exchange, 404, "no_command", NULL, NULL,
			"There is no such command in the sandbox, or not any more");
	return process;
}

static void refuse_json(struct nc_exchange *exchange, const struct nacre_err *err)
{
	nc_problem(exchange, 400, "bad_request", "", "See /docs", "%s", err->message);
}

json_t *nc_rest_body(struct nc_exchange *exchange)
{
	struct nc_read_json *read = nc_read_json(nc_buf_text(&exchange->body), exchange->body.size);
	json_t *body = read ? take_ptr(read->value) : NULL;

	if (!read)
		nc_problem(exchange, 503, "no_memory", NULL, "Try again later", "Out of memory");
	else if (!body)
		refuse_json(exchange, &read->err);
	if (read)
		nc_read_json_forget(read);
	return body;
}

static void refuse(const struct nc_server *server, struct nc_exchange *exchange, int r,
	const struct nc_faults *faults, const struct nacre_err *err)
{
	if (r == -EINVAL && faults->count > 0)
		nc_problem_with(exchange, 400, "bad_request", faults->fault[0].pointer,
			"See /docs, or docs/sandboxes.md", faults->fault[0].message,
			json_pack("{s:o}", "faults", nc_faults_json(faults)));
	else if (r == -EDQUOT || r == -ERANGE)
		nc_quota_answer(exchange, r, &server->refusal);
	else if (r == -EPERM)
		nc_problem(exchange, 403, "policy", NULL, NULL, "%s", err->message);
	else
		nc_problem_err(exchange, err);
}

/* ---- sandboxes ---- */

static void answer_made(struct nc_exchange *exchange, const struct nc_sandbox *sandbox)
{
	char location[96];

	(void)snprintf(location, sizeof(location), "/v1/sandboxes/%s", nc_sandbox_id(sandbox));
	nc_reply_json(exchange, 201, nc_sandbox_json(sandbox));
	nc_reply_header(exchange, "Location", location);
}

/* The files of its snapshot are there. */
static void on_filled(struct nc_wait *wait, int error, const char *said, size_t size)
{
	struct nc_sandbox *sandbox = nc_sandbox_find(wait->server->sandboxes, NULL, wait->sandbox);

	if (error < 0 || !sandbox) {
		drop_unfinished(wait);
		nc_rest_refuse_file(settle(wait), error < 0 ? error : -ENOENT, said, size);
		return;
	}
	wait->sandbox[0] = '\0';
	nc_sandbox_filled(sandbox);
	answer_made(settle(wait), sandbox);
}

static void fill(struct nc_wait *wait, struct nc_sandbox *sandbox)
{
	const struct nc_snapshot *snapshot = nc_snapshot_find(wait->server->snapshots,
		nc_rest_tenant(wait->exchange), nc_sandbox_snapshot(sandbox));
	struct nacre_err err = {0};

	(void)snprintf(wait->sandbox, sizeof(wait->sandbox), "%s", nc_sandbox_id(sandbox));
	wait->files = on_filled;
	if (!snapshot)
		(void)nc_err_set(&err, -ENOENT, "The snapshot was deleted");
	else
		(void)nc_rest_restore(wait, sandbox, snapshot, &err);
	if (err.code < 0) {
		drop_unfinished(wait);
		nc_problem_err(settle(wait), &err);
	}
}

static void on_made(void *context, struct nc_sandbox *sandbox, const struct nacre_err *failure)
{
	struct nc_wait *wait = context;

	if (failure)
		nc_problem_err(settle(wait), failure);
	else if (*nc_sandbox_snapshot(sandbox))
		fill(wait, sandbox);
	else
		answer_made(settle(wait), sandbox);
}

NC_REST(sandboxes_create)
{
	static struct nc_faults faults; /* large, and of this call alone */
	cleanup_json json_t *body =
		nc_jobs_have_room(server, exchange) ? nc_rest_body(exchange) : NULL;
	const char *snapshot = json_string_value(json_object_get(body, "snapshot"));
	struct nacre_err err = {0};
	struct nc_wait *wait;
	int r;

	if (!body || (snapshot && !nc_rest_snapshot(server, exchange, snapshot)))
		return;
	wait = nc_wait_new(server, exchange);
	if (!wait)
		return;
	faults = (struct nc_faults){0};
	r = nc_sandbox_create(server->sandboxes, exchange->caller.tenant,
		exchange->caller.role == NC_ROLE_ADMIN, body, on_made, wait, &faults, &err);
	if (r < 0)
		refuse(server, settle(wait), r, &faults, &err);
}

struct listing {
	json_t *list;
	const char *state, *name, *value, *after;
	size_t limit, size;
	bool past; /* the one that it begins behind */
	bool more; /* than are listed */
};

static bool list_one(void *context, struct nc_sandbox *sandbox)
{
	struct listing *listing = context;
	bool past = listing->past;

	if (!past)
		listing->past = nc_streq(nc_sandbox_id(sandbox), listing->after);
	if (!past || (listing->state && !nc_streq(nc_sandbox_state(sandbox), listing->state)) ||
		(listing->name && !nc_sandbox_has_label(sandbox, listing->name, listing->value)))
		return true;
	listing->more =
		json_array_size(listing->list) >= listing->limit || listing->size >= LIST_SIZE_MAX;
	if (listing->more || json_array_append_new(listing->list, nc_sandbox_json(sandbox)) < 0)
		return false;
	listing->size += json_dumpb(
		json_array_get(listing->list, json_array_size(listing->list) - 1), NULL, 0, 0);
	return true;
}

NC_REST(sandboxes_list)
{
	struct listing listing = {.list = json_array()};
	json_t *next = json_null();
	char state[16] = "", label[2 * NC_REQUEST_LABEL_MAX] = "", after[NC_ID_SIZE] = "";
	const char *text;
	char *equals;
	uint64_t limit;

	if (!nc_rest_number(exchange, "limit", 100, LIST_MAX, &limit)) {
		json_decref(listing.list);
		return;
	}
	listing.limit = limit;
	/* each is good until the next is asked for */
	if ((text = nc_exchange_query(exchange, "state")))
		listing.state = (snprintf(state, sizeof(state), "%s", text), state);
	if ((text = nc_exchange_query(exchange, "label"))) {
		(void)snprintf(label, sizeof(label), "%s", text);
		equals = strchr(label, '=');
		if (equals)
			*equals++ = '\0';
		listing.name = label;
		listing.value = equals ? equals : "";
	}
	if ((text = nc_exchange_query(exchange, "after")))
		listing.after = (snprintf(after, sizeof(after), "%s", text), after);
	listing.past = !listing.after;
	nc_sandboxes_visit(server->sandboxes, nc_rest_tenant(exchange), list_one, &listing);
	if (listing.more)
		next = json_object_get(
			json_array_get(listing.list, json_array_size(listing.list) - 1), "id");
	nc_reply_json(
		exchange, 200, json_pack("{s:o, s:O}", "sandboxes", listing.list, "next", next));
}

NC_REST(sandboxes_get)
{
	const struct nc_sandbox *sandbox = nc_rest_sandbox(server, exchange);

	if (sandbox)
		nc_reply_json(exchange, 200, nc_sandbox_json(sandbox));
}

NC_REST(sandboxes_destroy)
{
	struct nc_sandbox *sandbox = nc_rest_sandbox(server, exchange);

	if (!sandbox)
		return;
	nc_sandbox_destroy(sandbox);
	nc_reply_empty(exchange, 204);
}

static bool destroy_one(void *context, struct nc_sandbox *sandbox)
{
	nc_sandbox_destroy(sandbox);
	return ++*(size_t *)context < DESTROYED_MAX;
}

/* Each is written down: hundreds are not for one turn of the loop. */
static void destroy_some(uv_timer_t *timer)
{
	struct nc_wait *wait = timer->data;
	size_t n = 0;

	nc_sandboxes_visit(wait->server->sandboxes, wait->exchange->caller.tenant, destroy_one, &n);
	wait->open += n;
	if (n == DESTROYED_MAX) {
		/* with 0 it would be the same turn */
		(void)uv_timer_start(timer, destroy_some, 1, 0);
		return;
	}
	n = wait->open;
	nc_reply_json(settle(wait), 200, json_pack("{s:I}", "destroyed", (json_int_t)n));
}

/* Those of the caller's tenant, also an administrator's. */
NC_REST(sandboxes_destroy_all)
{
	struct nc_wait *wait = nc_wait_new(server, exchange);

	if (!wait)
		return;
	wait->timer = calloc(1, sizeof(*wait->timer));
	if (!wait->timer) {
		nc_problem(
			settle(wait), 503, "no_memory", NULL, "Try again later", "Out of memory");
		return;
	}
	(void)uv_timer_init(server->setup.loop, wait->timer); /* cannot fail */
	wait->timer->data = wait;
	destroy_some(wait->timer);
}

NC_REST(sandboxes_timeout)
{
	struct nc_sandbox *sandbox = nc_rest_sandbox(server, exchange);
	cleanup_json json_t *body = sandbox ? nc_rest_body(exchange) : NULL;
	const json_t *seconds = json_object_get(body, "timeout");
	struct nacre_err err = {0};

	if (!body)
		return;
	if (!json_is_integer(seconds) || json_integer_value(seconds) < 1)
		nc_problem(exchange, 400, "bad_request", "/timeout", NULL,
			"Expected a whole number of seconds");
	else if (nc_sandbox_extend(sandbox, (uint64_t)json_integer_value(seconds), &err) < 0)
		nc_problem_err(exchange, &err);
	else
		nc_reply_json(exchange, 200, nc_sandbox_json(sandbox));
}

NC_REST(sandboxes_network)
{
	static struct nc_faults faults;
	struct nc_sandbox *sandbox = nc_rest_sandbox(server, exchange);
	cleanup_json json_t *body = sandbox ? nc_rest_body(exchange) : NULL;
	struct nacre_err err = {0};
	int r;

	if (!body)
		return;
	faults = (struct nc_faults){0};
	r = nc_sandbox_network(
		sandbox, exchange->caller.role == NC_ROLE_ADMIN, body, &faults, &err);
	if (r < 0)
		refuse(server, exchange, r, &faults, &err);
	else
		nc_reply_json(exchange, 200, nc_sandbox_json(sandbox));
}

static void reply_with(struct nc_exchange *exchange, unsigned int status, json_t *reply)
{
	if (reply)
		nc_reply_json(exchange, status, reply);
	else
		nc_reply_empty(exchange, status);
}

/*
 * What is acknowledged has been done: not before whoever holds the box has answered. Takes over
 * reply, which may be NULL.
 */
static void acknowledge(struct nc_server *server, struct nc_exchange *exchange, int64_t ticket,
	unsigned int status, json_t *reply)
{
	struct nacre_err err = {0};
	struct nc_wait *wait = NULL;

	if (ticket == 0) {
		reply_with(exchange, status, reply);
		return;
	}
	if (ticket < 0) {
		json_decref(reply);
		nc_err_errno(&err, (int)ticket, "Ask whoever holds the sandbox");
		nc_problem_err(exchange, &err);
		return;
	}
	wait = nc_wait_new(server, exchange);
	if (wait) {
		wait->acknowledges = status;
		wait->ticket = ticket;
		wait->list = reply;
	} else {
		json_decref(reply);
	}
}

static void on_answered(void *context, int64_t ticket, int error)
{
	const struct nc_server *server = context;
	struct nacre_err err = {0};

	for (struct nc_wait *next, *wait = server->waits; wait; wait = next) {
		const unsigned int status = wait->acknowledges;

		next = wait->next;
		if (!status || !nc_hub_is_ticket(ticket, wait->ticket))
			continue;
		if (error == 0 || error == -ESRCH) { /* it has ended, which was wanted or is told */
			json_t *reply = take_ptr(wait->list);

			reply_with(settle(wait), status, reply);
		} else {
			nc_err_errno(&err, error, "Ask whoever holds the sandbox");
			nc_problem_err(settle(wait), &err);
		}
	}
}

static void pause_it(struct nc_server *server, struct nc_exchange *exchange, bool paused)
{
	struct nc_sandbox *sandbox = nc_rest_sandbox(server, exchange);
	struct nacre_err err = {0};
	int64_t ticket;

	if (!sandbox)
		return;
	ticket = nc_sandbox_pause(sandbox, paused, false, &err);
	if (ticket < 0)
		nc_problem_err(exchange, &err);
	else
		acknowledge(server, exchange, ticket, 200, nc_sandbox_json(sandbox));
}

NC_REST(sandboxes_pause)
{
	pause_it(server, exchange, true);
}

NC_REST(sandboxes_resume)
{
	pause_it(server, exchange, false);
}

static void on_stats(void *context, const json_t *stats)
{
	struct nc_exchange *exchange = settle(context);

	if (stats)
		nc_reply_json(exchange, 200, json_deep_copy(stats));
	else
		nc_problem(exchange, 404, "no_sandbox", NULL, NULL, "The sandbox has ended");
}

NC_REST(sandboxes_stats)
{
	struct nc_sandbox *sandbox = nc_rest_sandbox(server, exchange);
	struct nc_wait *wait = sandbox ? nc_wait_new(server, exchange) : NULL;

	if (wait && nc_sandbox_stats(sandbox, on_stats, wait) < 0)
		nc_problem(settle(wait), 503, "no_memory", NULL, NULL, "Out of memory");
}

/* ---- stats and health of all ---- */

void nc_wait_all_done(struct nc_wait *wait)
{
	json_t *list = wait->list;
	const char *name = wait->name;

	if (wait->open > 0)
		return;
	wait->list = NULL;
	nc_reply_json(settle(wait), 200, json_pack("{s:o}", name, list));
}

static void on_one_stats(void *context, const json_t *stats)
{
	struct nc_wait *wait = context;

	if (stats)
		(void)json_array_append_new(wait->list, json_deep_copy(stats));
	wait->open--;
	nc_wait_all_done(wait);
}

static bool ask_one(void *context, struct nc_sandbox *sandbox)
{
	struct nc_wait *wait = context;

	if (nc_sandbox_stats(sandbox, on_one_stats, wait) == 0)
		wait->open++;
	return true;
}

void nc_wait_for_all(struct nc_server *server, struct nc_exchange *exchange, const char *name,
	bool (*ask)(void *context, struct nc_sandbox *sandbox))
{
	struct nc_wait *wait = nc_wait_new(server, exchange);

	if (!wait)
		return;
	wait->name = name;
	wait->list = json_array();
	wait->open = 1; /* ours, until all are asked */
	nc_sandboxes_visit(server->sandboxes, nc_rest_tenant(exchange), ask, wait);
	wait->open--;
	nc_wait_all_done(wait);
}

NC_REST(sandboxes_stats_all)
{
	nc_wait_for_all(server, exchange, "stats", ask_one);
}

/* ---- events of commands ---- */

/* Commands whose events are kept, with those that have ended; and the bytes of all. */
#define CHANNELS_MAX 1024U
#define CHANNELS_SIZE_MAX (64U << 20)

struct nc_channel {
	struct nc_channel *next; /* older */
	struct nc_server *server;
	char process[NC_ID_SIZE];
	struct nc_feed feed;
	struct nc_exchange *exchange; /* to be told that it was begun; or NULL */
};

static void channel_free(struct nc_channel *channel)
{
	if (channel->server->sandboxes)
		nc_sandboxes_forget(channel->server->sandboxes, channel);
	nc_feed_done(&channel->feed);
	free(channel);
}

void nc_channels_drop(struct nc_server *server)
{
	while (server->channels) {
		struct nc_channel *channel = server->channels;

		server->channels = channel->next;
		channel_free(channel);
	}
}

/* Forgets the oldest that has ended, if there are too many. */
static void make_room(struct nc_server *server)
{
	struct nc_channel **oldest = NULL;
	size_t n = 0;

	for (struct nc_channel **place = &server->channels; *place; place = &(*place)->next, n++)
		if ((*place)->feed.ended && !(*place)->feed.watchers && !(*place)->exchange)
			oldest = place;
	if (oldest && (n >= CHANNELS_MAX || server->channels_size > CHANNELS_SIZE_MAX)) {
		struct nc_channel *channel = *oldest;

		*oldest = channel->next;
		channel_free(channel);
	}
}

static struct nc_channel *channel_new(struct nc_server *server)
{
	struct nc_channel *channel = calloc(1, sizeof(*channel));

	make_room(server);
	if (!channel)
		return NULL;
	channel->server = server;
	nc_feed_init(&channel->feed, &server->channels_size);
	channel->next = server->channels;
	return server->channels = channel;
}

static void channel_drop(struct nc_channel *channel)
{
	struct nc_channel **place = &channel->server->channels;

	while (*place != channel)
		place = &(*place)->next;
	*place = channel->next;
	channel_free(channel);
}

static void channel_printed(void *context, enum nc_stream stream, const char *data, size_t size)
{
	struct nc_channel *channel = context;

	nc_feed_output(
		&channel->feed, stream == NC_STREAM_OUTPUT ? "stdout" : "stderr", data, size);
}

static void answer_begun(struct nc_channel *channel);

static void channel_ended(void *context, struct nc_process *process)
{
	struct nc_channel *channel = context;

	if (channel->exchange) /* it has not even begun */
		answer_begun(channel);
	channel->feed.ended = true;
	nc_feed_tell(&channel->feed, "end", nc_process_json(process, false));
	nc_feed_wake(&channel->feed);
}

/* Events of a command that the daemon before has begun: their numbers go on, the old ones are gone.
 */
static bool resume_channel(void *context, struct nc_process *process)
{
	struct nc_channel *channel =
		nc_process_is_background(process) ? channel_new(context) : NULL;
	const struct nc_process_listener listener = {
		.context = channel, .printed = channel_printed, .ended = channel_ended};

	if (!channel)
		return true;
	(void)snprintf(channel->process, sizeof(channel->process), "%s", nc_process_id(process));
	channel->feed.n_events = nc_process_pieces(process);
	if (nc_process_runs(process))
		nc_process_listen(process, &listener);
	else
		channel_ended(channel, process);
	return true;
}

static bool resume_channels(void *context, struct nc_sandbox *sandbox)
{
	nc_processes_visit(sandbox, resume_channel, context);
	return true;
}

void nc_channels_resume(struct nc_server *server)
{
	nc_sandboxes_visit(server->sandboxes, NULL, resume_channels, server);
}

/* ---- commands ---- */

static void on_ended(void *context, struct nc_process *process)
{
	const struct nacre_err *failure = nc_process_failure(process);

	/* a program that is not there is the caller's affair, a host that has no room is not */
	if (failure && (failure->code == -EAGAIN || failure->code == -ENOMEM ||
			       failure->code == -EMFILE || failure->code == -ECONNRESET))
		nc_problem_err(settle(context), failure);
	else
		nc_reply_json(settle(context), 200, nc_process_json(process, true));
}

/* What is acknowledged holds, though we die: it is not before it has begun, or could not. */
static void answer_begun(struct nc_channel *channel)
{
	struct nc_exchange *exchange = take_ptr(channel->exchange);
	const struct nc_sandbox *sandbox =
		nc_sandbox_find(channel->server->sandboxes, NULL, exchange->part[0]);
	const struct nc_process *process =
		sandbox ? nc_process_find(sandbox, channel->process) : NULL;

	exchange->keeper = NULL;
	exchange->gone = NULL;
	if (process)
		nc_reply_json(exchange, 202, nc_process_json(process, false));
	else
		nc_problem(exchange, 404, "no_sandbox", NULL, NULL, "The sandbox has ended");
}

static void channel_begun(void *context)
{
	struct nc_channel *channel = context;

	if (channel->exchange)
		answer_begun(channel);
}

/* He was not told that it has begun, and with his key sends it again: it would run twice. */
static void on_channel_gone(struct nc_exchange *exchange)
{
	struct nc_channel *channel = exchange->keeper;
	const struct nc_sandboxes *all = channel->server->sandboxes;
	const struct nc_sandbox *sandbox =
		all ? nc_sandbox_find(all, NULL, exchange->part[0]) : NULL;
	struct nc_process *process = sandbox ? nc_process_find(sandbox, channel->process) : NULL;

	channel->exchange = NULL;
	if (process && exchange->replay)
		(void)nc_process_kill(process);
}

static void run_in_background(struct nc_server *server, struct nc_exchange *exchange,
	struct nc_sandbox *sandbox, json_t *body, const struct nc_study_text *found)
{
	static struct nc_faults faults;
	struct nc_channel *channel = channel_new(server);
	const struct nc_process_listener listener = {.context = channel,
		.begun = channel_begun,
		.printed = channel_printed,
		.ended = channel_ended};
	struct nc_process *process;
	struct nacre_err err = {0};
	int r;

	if (!channel) {
		nc_problem(exchange, 503, "no_memory", NULL, "Try again later", "Out of memory");
		return;
	}
	faults = (struct nc_faults){0};
	r = nc_sandbox_exec(sandbox, body, found, &listener, &process, &faults, &err);
	if (r < 0) {
		channel_drop(channel);
		refuse(server, exchange, r, &faults, &err);
		return;
	}
	(void)snprintf(channel->process, sizeof(channel->process), "%s", nc_process_id(process));
	channel->exchange = exchange;
	exchange->keeper = channel;
	exchange->gone = on_channel_gone;
}

NC_REST(commands_events)
{
	const struct nc_process *process = nc_rest_process(server, exchange);
	struct nc_channel *channel = server->channels;
	uint64_t last;

	while (process && channel && !nc_streq(channel->process, nc_process_id(process)))
		channel = channel->next;
	if (process && !channel)
		nc_problem(exchange, 409, "no_events", NULL, "Start it with \"background\": true",
			"The command was waited for, or its events are forgotten");
	else if (process && nc_feed_position(exchange, &last))
		nc_feed_watch(&channel->feed, exchange, last);
}

/* The body of a command: its JSON, and the line of shell that it comes to. */
struct command {
	struct nc_read_json *read;
	struct nc_buf line;
	struct nc_faults faults;
	struct nacre_err err;
	int result;
};

static void forget_command(void *what)
{
	struct command *command = what;

	if (command->read)
		nc_read_json_forget(command->read);
	nc_buf_done(&command->line);
	free(command);
}

static void *read_command(const char *text, size_t size)
{
	struct command *command = calloc(1, sizeof(*command));

	if (!command)
		return NULL;
	command->line = (struct nc_buf)NC_BUF(NC_SANDBOX_LINE_MAX);
	command->read = nc_read_json(text, size);
	command->result = !command->read ? -ENOMEM
			  : command->read->value
				  ? nc_sandbox_line(command->read->value, &command->line,
					    &command->faults, &command->err)
				  : 0;
	return command;
}

static bool list_command_line(
	struct nc_server *server, struct nc_exchange *exchange, void *what, struct nc_study *study)
{
	struct command *command = what;
	const struct nc_sandbox *sandbox;

	if (command->result == -ENOMEM && !command->read)
		nc_problem(exchange, 503, "no_memory", NULL, "Try again later", "Out of memory");
	else if (!command->read->value)
		refuse_json(exchange, &command->read->err);
	else if (command->result < 0)
		refuse(server, exchange, command->result, &command->faults, &command->err);
	sandbox = exchange->status ? NULL : nc_rest_sandbox(server, exchange);
	if (!sandbox)
		return false;
	study->terms = nc_sandbox_terms(sandbox);
	nc_study_add(study, NC_SHELL, NULL, nc_buf_text(&command->line), command->line.size);
	return true;
}

static void run_command(
	struct nc_server *server, struct nc_exchange *exchange, void *what, struct nc_study *study)
{
	static struct nc_faults faults;
	struct nc_sandbox *sandbox = nc_rest_sandbox(server, exchange);
	json_t *body = ((struct command *)what)->read->value;
	bool background = json_is_true(json_object_get(body, "background"));
	struct nc_wait *wait = sandbox && !background ? nc_wait_new(server, exchange) : NULL;
	const struct nc_process_listener listener = {.context = wait, .ended = on_ended};
	struct nc_process *process;
	struct nacre_err err = {0};
	int r;

	if (sandbox && background)
		run_in_background(server, exchange, sandbox, body, &study->text[0]);
	if (!wait)
		return;
	faults = (struct nc_faults){0};
	r = nc_sandbox_exec(sandbox, body, &study->text[0], &listener, &process, &faults, &err);
	if (r < 0)
		refuse(server, settle(wait), r, &faults, &err);
	else
		wait->process = process;
}

NC_REST(commands_create)
{
	static const struct nc_intake_plan plan = {
		read_command, forget_command, list_command_line, run_command};

	if (nc_rest_sandbox(server, exchange) && nc_jobs_have_room(server, exchange))
		nc_intake_begin(server, exchange, &plan);
}

static bool list_command(void *context, struct nc_process *process)
{
	return json_array_append_new(context, nc_process_json(process, false)) == 0;
}

NC_REST(commands_list)
{
	const struct nc_sandbox *sandbox = nc_rest_sandbox(server, exchange);
	json_t *list;

	if (!sandbox)
		return;
	list = json_array();
	nc_processes_visit(sandbox, list_command, list);
	nc_reply_json(exchange, 200, json_pack("{s:o}", "commands", list));
}

NC_REST(commands_get)
{
	const struct nc_process *process = nc_rest_process(server, exchange);

	if (process)
		nc_reply_json(exchange, 200, nc_process_json(process, true));
}

NC_REST(commands_kill)
{
	struct nc_process *process = nc_rest_process(server, exchange);

	if (!process)
		return;
	acknowledge(
		server, exchange, nc_process_kill(process), 202, nc_process_json(process, false));
}

int nc_rest_signal(const json_t *body)
{
	const json_t *value = json_object_get(body, "signal");
	const char *name = json_string_value(value);
	json_int_t number = json_integer_value(value);

	for (int i = 1; name && i < 32; i++)
		if (sigabbrev_np(i) && (nc_streq(name, sigabbrev_np(i)) ||
					       (strncmp(name, "SIG", 3) == 0 &&
						       nc_streq(name + 3, sigabbrev_np(i)))))
			return i;
	return !name && number >= 1 && number <= 64 ? (int)number : -EINVAL;
}

NC_REST(commands_signal)
{
	struct nc_process *process = nc_rest_process(server, exchange);
	cleanup_json json_t *body = process ? nc_rest_body(exchange) : NULL;
	int number = nc_rest_signal(body);

	if (!body)
		return;
	if (number < 0) {
		nc_problem(exchange, 400, "bad_request", "/signal", NULL,
			"Expected a signal, such as \"TERM\" or 15");
		return;
	}
	acknowledge(server, exchange, nc_process_signal(process, number), 202,
		nc_process_json(process, false));
}

/* Raw bytes; with ?end=true nothing follows. What does not fit now is said, and for the next try.
 */
NC_REST(commands_input)
{
	struct nc_process *process = nc_rest_process(server, exchange);
	const char *end = nc_exchange_query(exchange, "end");
	ssize_t n;

	if (!process)
		return;
	n = nc_process_write(process, nc_buf_text(&exchange->body), exchange->body.size);
	if (n < 0) {
		nc_problem(exchange, 409, "no_input", NULL,
			"Start it with \"keep_input\" or \"terminal\"",
			"The command has ended, or takes no input");
		return;
	}
	/* no 5xx: who sends all of it again by itself would send a part twice */
	if ((size_t)n < exchange->body.size) {
		nc_problem_with(exchange, 409, "input_full", NULL,
			"Send the rest, from byte `taken` on, once the command has read",
			"The command does not read as fast: only a part was taken",
			json_pack("{s:I}", "taken", (json_int_t)n));
		return;
	}
	if (end && nc_streq(end, "true"))
		nc_process_end_input(process);
	nc_reply_json(exchange, 200, json_pack("{s:I}", "taken", (json_int_t)n));
}

NC_REST(commands_resize)
{
	struct nc_process *process = nc_rest_process(server, exchange);
	cleanup_json json_t *body = process ? nc_rest_body(exchange) : NULL;
	json_int_t rows = json_integer_value(json_object_get(body, "rows"));
	json_int_t columns = json_integer_value(json_object_get(body, "columns"));
	int64_t ticket = 0;

	if (!body)
		return;
	if (rows < 1 || rows > 1000 || columns < 1 || columns > 1000)
		nc_problem(exchange, 400, "bad_request", "/rows", NULL,
			"Expected rows and columns from 1 to 1000");
	else
		ticket = nc_process_resize(process, (unsigned short)rows, (unsigned short)columns);
	if (ticket < 0)
		nc_problem(exchange, 409, "no_terminal", NULL, "Start it with \"terminal\": true",
			"The command has no terminal, or has ended");
	else if (ticket > 0)
		acknowledge(server, exchange, ticket, 204, NULL);
}
