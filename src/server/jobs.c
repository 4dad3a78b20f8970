/* Executions that were asked for over HTTP. */
#include "server/jobs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/owner.h"
#include "engine/request.h"
#include "server/account.h"
#include "server/aides.h"
#include "server/feed.h"
#include "server/reply.h"
#include "server/sheet.h"
#include "server/tally.h"
#include "server/tracer.h"
#include "watch/record.h"

/* The longest status of a reply has 21 characters. */
#define STATUS_SIZE 32
/* How long a job with events goes on when nobody listens. */
#define ALONE_NS (30 * NC_NS_PER_S)

/* An exchange that is answered when the job has ended. */
struct waiter {
	struct waiter *next;
	struct nc_job *job;
	struct nc_exchange *exchange;
	uint64_t until_ns; /* 0: for ever */
	bool whole;	   /* answered with the job, not with its reply */
};

struct nc_job {
	struct nc_jobs *jobs;
	struct nc_job *next; /* older */
	char id[NC_ID_SIZE], request[NC_ID_SIZE];
	char tenant[NC_REQUEST_NAME_MAX + 1];
	char name[NC_REQUEST_NAME_MAX + 1]; /* the request's own id; "": it has none */
	char created[NC_CLOCK_STAMP_SIZE];
	unsigned int flags;
	struct nc_execution *execution; /* NULL: it has ended */
	struct nc_quota_share share;
	struct nc_exchange *asking; /* while it is submitted */
	struct nc_trace trace;
	char status[STATUS_SIZE]; /* of the reply; "": it has not ended */
	json_t *reply;		  /* while it ends */
	struct nc_sheet *sheet; /* the same as text, a tenth of the tree's size; NULL: no memory */
	struct nc_feed feed;
	struct waiter *waiters;
	bool is_kept; /* its text counts */
};

struct nc_jobs {
	struct nc_server *server;
	struct nc_job *first;
	size_t count, n_open, kept_size;
};

static const char *const stream_names[NC_STREAM_MAX] = {"stdout", "stderr"};

struct nc_jobs *nc_jobs_new(struct nc_server *server)
{
	struct nc_jobs *jobs = calloc(1, sizeof(*jobs));

	if (jobs)
		jobs->server = server;
	return jobs;
}

void nc_job_watch(struct nc_job *job, struct nc_exchange *exchange, uint64_t last)
{
	nc_feed_watch(&job->feed, exchange, last);
}

/* ---- what is kept ---- */

static void job_free(struct nc_job *job)
{
	nc_feed_done(&job->feed);
	while (job->waiters) { /* when all of it ends: their exchanges are gone already */
		struct waiter *waiter = job->waiters;

		job->waiters = waiter->next;
		free(waiter);
	}
	if (job->is_kept)
		job->jobs->kept_size -= job->sheet->text.size;
	json_decref(job->reply);
	nc_sheet_unref(job->sheet);
	free(job);
}

static void forget(struct nc_jobs *jobs, struct nc_job **place)
{
	struct nc_job *job = *place;

	*place = job->next;
	jobs->count--;
	job_free(job);
}

static void forget_job(struct nc_job *job)
{
	struct nc_job **place = &job->jobs->first;

	while (*place != job)
		place = &(*place)->next;
	forget(job->jobs, place);
}

/* Forgets the oldest that have ended until there is room. */
static void make_room(struct nc_jobs *jobs)
{
	while (jobs->count >= NC_HTTP_JOBS_MAX || jobs->kept_size > NC_JOBS_KEPT_MAX) {
		struct nc_job **oldest = NULL;

		for (struct nc_job **at = &jobs->first; *at; at = &(*at)->next)
			if (!(*at)->execution && !(*at)->feed.watchers && !(*at)->waiters)
				oldest = at;
		if (!oldest)
			return;
		forget(jobs, oldest);
	}
}

void nc_jobs_free(struct nc_jobs *jobs)
{
	while (jobs && jobs->first)
		forget(jobs, &jobs->first);
	free(jobs);
}

/* ---- the engine tells ---- */

static void on_printed(void *context, enum nc_stream stream, const char *data, size_t size)
{
	struct nc_job *job = context;

	nc_feed_output(&job->feed, stream_names[stream], data, size);
}

static void on_progress(void *context, const char *text)
{
	struct nc_job *job = context;

	nc_feed_tell(&job->feed, "progress", json_pack("{s:s}", "text", text));
}

/* It was not executed, or not to its end, by no fault of the caller's. */
static void refuse(json_t *reply, struct nc_exchange *exchange, const char *status)
{
	const char *error = json_string_value(json_object_get(reply, "error"));

	nc_problem_with(exchange, 503, nc_streq(status, "lost") ? "lost" : "not_executed", NULL,
		"Try again later", error ? error : "It could not be executed",
		json_pack("{s:O}", "reply", reply));
	nc_reply_retry(exchange, 1);
}

static void answer(struct waiter *waiter)
{
	struct nc_job *job = waiter->job;
	struct nc_exchange *exchange = waiter->exchange;
	exchange->keeper = NULL;
	if (waiter->whole)
		nc_job_answer(job, exchange, 200);
	else if (nc_streq(job->status, "internal_error") || nc_streq(job->status, "lost"))
		refuse(job->reply, exchange, job->status);
	else
		nc_reply_sheet(exchange, 200, "", job->sheet, "");
	free(waiter);
}

static void log_end(const struct nc_job *job)
{
	const json_t *error = json_object_get(json_object_get(job->reply, "receipt"), "error");

	nc_log(NC_LOG_INFO, "Execution ended", NC_LOG_TEXT("execution", job->id),
		NC_LOG_TEXT("request", job->request), NC_LOG_TEXT("tenant", job->tenant),
		NC_LOG_TEXT("status", job->status));
	if (!json_is_string(error))
		return;
	nc_log(NC_LOG_ERROR, "Execution is not recorded", NC_LOG_TEXT("execution", job->id),
		NC_LOG_TEXT("reason", json_string_value(error)));
}

/* What is asked for, now or later, is the text, which may have been written already. */
static void write_text(struct nc_job *job, struct nc_buf *text)
{
	if (text->size == 0) {
		text->max = NC_REPLY_TEXT_MAX;
		nc_json_dump(job->reply, text);
	}
	job->sheet = nc_sheet_new(text);
}

/* For those who ask later. */
static void keep(struct nc_job *job)
{
	job->is_kept = job->sheet;
	if (job->is_kept)
		job->jobs->kept_size += job->sheet->text.size;
	json_decref(job->reply);
	job->reply = NULL;
}

static void on_done(void *context, json_t *reply, struct nc_buf *text)
{
	struct nc_job *job = context;
	struct nc_jobs *jobs = job->jobs;
	struct nc_server *server = jobs->server;
	const uint64_t box = nc_execution_box(job->execution);

	job->execution = NULL;
	job->feed.ended = true;
	jobs->n_open--;
	job->reply = reply ? reply
			   : json_pack("{s:s, s:s, s:s}", "id", job->id, "status", "internal_error",
				     "error", "Out of memory");
	(void)snprintf(job->status, sizeof(job->status), "%s",
		json_string_value(json_object_get(job->reply, "status")) ?: "internal_error");
	nc_quota_close(server->quotas, job->tenant, &job->share);
	nc_account_end(server, NC_METRICS_OF_EXECUTION, job->tenant, job->reply);
	if (nc_streq(job->status, "lost"))
		nc_tally_lose(server->tally, 1);
	nc_tracer_execution(server->tracer, &job->trace, job->id, box, job->reply);
	log_end(job);
	write_text(job, text);
	if (job->flags & NC_JOB_EVENTS)
		nc_feed_sheet(&job->feed, "done", job->sheet);
	while (job->waiters) {
		struct waiter *waiter = job->waiters;

		job->waiters = waiter->next;
		answer(waiter);
	}
	nc_feed_wake(&job->feed);
	if (job->flags & NC_JOB_WAITED) {
		forget_job(job);
		return;
	}
	keep(job);
	make_room(jobs);
}

/* ---- beginning ---- */

bool nc_jobs_have_room(const struct nc_server *server, struct nc_exchange *exchange)
{
	if (!nc_aides_record(server->aides)) {
		nc_problem(exchange, 503, "no_recorder", NULL, "Try again later",
			"nacre-recorder has died and is started again: nothing could be recorded");
		nc_reply_retry(exchange, 1);
		return false;
	}
	if (!nc_engine_has_room(server->setup.engine)) {
		nc_problem(exchange, 503, "busy", NULL, "Try again later",
			"More is asked for than is recorded at once");
		nc_reply_retry(exchange, 1);
		return false;
	}
	if (!server->archive || !nc_record_is_full(server->setup.state_fd))
		return true;
	nc_problem(exchange, 507, "state_full", NULL,
		"Make room on the disk of the state directory",
		"The disk of the state directory is full: nothing could be recorded");
	nc_reply_retry(exchange, 10);
	return false;
}

void *nc_jobs_read(const char *text, size_t size)
{
	struct nc_read_request *read = calloc(1, sizeof(*read));

	if (read)
		read->result = nc_request_parse(text, size, &read->request, &read->faults);
	return read;
}

void *nc_jobs_read_file(int fd, size_t size)
{
	struct nc_read_request *read = calloc(1, sizeof(*read));

	if (read)
		read->result = nc_request_parse_file(fd, size, &read->request, &read->faults);
	else
		(void)nc_fd_close(fd);
	return read;
}

void nc_jobs_forget(void *what)
{
	struct nc_read_request *read = what;

	nc_request_done(&read->request);
	free(read);
}

bool nc_jobs_list(
	struct nc_server *server, struct nc_exchange *exchange, void *what, struct nc_study *study)
{
	const struct nc_caller *caller = &exchange->caller;
	struct nc_read_request *read = what;
	struct nc_request *request = &read->request;
	struct nacre_err ignored = {0};

	if (read->result == -EINVAL)
		nc_problem_with(exchange, 400, "bad_request", read->faults.fault[0].pointer,
			"See /docs, or docs/requests.md", read->faults.fault[0].message,
			json_pack("{s:o}", "faults", nc_faults_json(&read->faults)));
	else if (read->result < 0)
		nc_problem(exchange, 503, "no_memory", NULL, "Try again later", "Out of memory");
	else if (request->tenant[0] && !nc_streq(request->tenant, caller->tenant))
		nc_problem(exchange, 403, "foreign_tenant", "/tenant", "Leave it out",
			"The tenant comes from the key");
	if (exchange->status)
		return false;
	/* the tenant is the caller's and nobody else's */
	(void)snprintf(request->tenant, sizeof(request->tenant), "%s", caller->tenant);
	request->network.trusted = caller->role == NC_ROLE_ADMIN;
	/* a policy that is not there is an answer of the engine's */
	(void)nc_engine_study(server->setup.engine, request, study, &ignored);
	return true;
}

static bool is_over_quota(
	struct nc_server *server, struct nc_exchange *exchange, const struct nc_quota_share *share)
{
	struct nc_quota_refusal refusal = {0};
	int r = nc_quota_check(server->quotas, &server->config->serve, exchange->caller.tenant,
		share, nc_clock_ns(), &refusal);

	if (r < 0)
		nc_quota_answer(exchange, r, &refusal);
	return r < 0;
}

static struct nc_job *job_new(
	struct nc_jobs *jobs, const struct nc_exchange *exchange, unsigned int flags)
{
	struct nc_job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->jobs = jobs;
	job->flags = flags;
	nc_feed_init(&job->feed, &jobs->kept_size);
	nc_clock_stamp(job->created);
	nc_trace_begin(&job->trace, exchange);
	(void)snprintf(job->tenant, sizeof(job->tenant), "%s", exchange->caller.tenant);
	(void)snprintf(job->request, sizeof(job->request), "%s", exchange->id);
	return job;
}

/* It is asked for what it may have before it is begun: a refused one takes it from nobody. */
static int admit(void *context, const struct nc_box_limits *limits)
{
	struct nc_job *job = context;

	job->share = (struct nc_quota_share){
		.memory_bytes = limits->memory_bytes, .disk_bytes = limits->disk_bytes};
	return is_over_quota(job->jobs->server, job->asking, &job->share) ? -EDQUOT : 0;
}

static int submit(struct nc_job *job, struct nc_request *request, struct nc_study *study,
	struct nacre_err *err)
{
	const struct nc_listener listener = {.context = job,
		.admit = admit,
		.printed = job->flags & NC_JOB_EVENTS ? on_printed : NULL,
		.progress = job->flags & NC_JOB_EVENTS ? on_progress : NULL,
		.done = on_done};
	struct nc_engine *engine = job->jobs->server->setup.engine;
	int r;

	(void)snprintf(job->name, sizeof(job->name), "%s", request->id);
	r = nc_engine_submit(engine, request, study->terms ? study : NULL, -EBADF, &listener,
		&job->execution, err);

	if (r < 0)
		return r;
	(void)snprintf(job->id, sizeof(job->id), "%s", nc_execution_id(job->execution));
	return 0;
}

bool nc_jobs_admit(struct nc_jobs *jobs, struct nc_exchange *exchange)
{
	return nc_jobs_have_room(jobs->server, exchange) &&
	       !is_over_quota(jobs->server, exchange, NULL);
}

struct nc_job *nc_jobs_begin(struct nc_jobs *jobs, struct nc_exchange *exchange,
	struct nc_request *request, struct nc_study *study, unsigned int flags)
{
	struct nacre_err err = {0};
	struct nc_job *job;
	int r;

	make_room(jobs);
	job = jobs->count < NC_HTTP_JOBS_MAX ? job_new(jobs, exchange, flags) : NULL;
	if (!job) {
		nc_problem(
			exchange, 503, "busy", NULL, "Try again later", "Too many jobs are open");
		nc_reply_retry(exchange, 1);
		return NULL;
	}
	job->asking = exchange;
	r = submit(job, request, study, &err);
	job->asking = NULL;
	if (r < 0) {
		if (r != -EDQUOT) /* else it is answered */
			nc_problem_err(exchange, &err);
		free(job);
		return NULL;
	}
	job->next = jobs->first;
	jobs->first = job;
	jobs->count++;
	jobs->n_open++;
	nc_quota_open(jobs->server->quotas, job->tenant, &job->share);
	nc_log(NC_LOG_INFO, "Execution asked for", NC_LOG_TEXT("execution", job->id),
		NC_LOG_TEXT("request", job->request), NC_LOG_TEXT("tenant", job->tenant),
		NC_LOG_TEXT("trace", exchange->trace));
	if (flags & NC_JOB_EVENTS)
		nc_feed_tell(&job->feed, "job", json_pack("{s:s}", "id", job->id));
	return job;
}

/* ---- asking ---- */

static bool is_of(const struct nc_job *job, const struct nc_caller *caller)
{
	return nc_owner_sees(
		NC_STORE_JOBS, job->tenant, caller->role == NC_ROLE_ADMIN ? NULL : caller->tenant);
}

struct nc_job *nc_jobs_find(struct nc_jobs *jobs, const struct nc_caller *caller, const char *id)
{
	struct nc_job *named = NULL; /* the newest that the caller has called so */

	for (struct nc_job *job = jobs->first; job; job = job->next) {
		if (nc_streq(job->id, id))
			return is_of(job, caller) ? job : NULL;
		if (!named && nc_streq(job->name, id) && is_of(job, caller))
			named = job;
	}
	return named;
}

const char *nc_job_id(const struct nc_job *job)
{
	return job->id;
}

static const char *state_of(const struct nc_job *job)
{
	return !job->execution				? "done"
	       : nc_execution_has_begun(job->execution) ? "running"
							: "queued";
}

static json_t *job_json(const struct nc_job *job)
{
	return json_pack("{s:s, s:s?, s:s, s:s?, s:s, s:s}", "id", job->id, "request_id",
		job->name[0] ? job->name : NULL, "state", state_of(job), "status",
		job->status[0] ? job->status : NULL, "created", job->created, "tenant",
		job->tenant);
}

void nc_job_answer(const struct nc_job *job, struct nc_exchange *exchange, unsigned int status)
{
	nc_buf_cleanup struct nc_buf head = NC_BUF(4096);
	cleanup_json json_t *value = job_json(job);

	if (job->execution || !job->sheet) {
		(void)json_object_set_new(value, "reply", json_null());
		nc_reply_json(exchange, status, take_ptr(value));
		return;
	}
	nc_json_dump(value, &head);
	if (head.error < 0) {
		nc_reply_json(exchange, status, NULL);
		return;
	}
	head.data[head.size - 1] = ',';
	nc_buf_adds(&head, "\"reply\":");
	nc_reply_sheet(exchange, status, nc_buf_text(&head), job->sheet, "}");
}

void nc_job_tell(const struct nc_job *job, struct nc_exchange *exchange, unsigned int status)
{
	nc_reply_json(exchange, status, job_json(job));
}

json_t *nc_jobs_json(
	const struct nc_jobs *jobs, const struct nc_caller *caller, const char *state, size_t limit)
{
	cleanup_json json_t *list = json_array();

	for (const struct nc_job *job = jobs->first; job && json_array_size(list) < limit;
		job = job->next)
		if (is_of(job, caller) && (!*state || nc_streq(state, state_of(job))) &&
			json_array_append_new(list, job_json(job)) < 0)
			return NULL;
	return take_ptr(list);
}

/* ---- waiting ---- */

static void on_gone(struct nc_exchange *exchange)
{
	struct waiter *waiter = exchange->keeper;
	struct nc_job *job = waiter->job;
	struct waiter **place = &job->waiters;

	while (*place != waiter)
		place = &(*place)->next;
	*place = waiter->next;
	free(waiter);
	if (job->flags & NC_JOB_WAITED && !job->waiters && job->execution) {
		nc_log(NC_LOG_INFO, "Client hung up, cancelling", NC_LOG_TEXT("execution", job->id),
			NC_LOG_TEXT("request", exchange->id));
		nc_engine_cancel(job->execution);
	}
}

static void wait_for(
	struct nc_job *job, struct nc_exchange *exchange, uint64_t until_ns, bool whole)
{
	struct waiter *waiter = calloc(1, sizeof(*waiter));

	if (!waiter) {
		nc_problem(exchange, 500, "internal_error", NULL, NULL, "Out of memory");
		return;
	}
	*waiter = (struct waiter){
		.job = job, .exchange = exchange, .until_ns = until_ns, .whole = whole};
	if (!job->execution || (until_ns && until_ns <= nc_clock_ns())) {
		answer(waiter);
		return;
	}
	waiter->next = job->waiters;
	job->waiters = waiter;
	exchange->keeper = waiter;
	exchange->gone = on_gone;
}

void nc_job_reply(struct nc_job *job, struct nc_exchange *exchange)
{
	wait_for(job, exchange, 0, false);
}

void nc_job_wait(struct nc_job *job, struct nc_exchange *exchange, uint64_t timeout_ms)
{
	wait_for(job, exchange, nc_clock_ns() + timeout_ms * NC_NS_PER_MS, true);
}

void nc_job_cancel(struct nc_job *job)
{
	if (job->execution)
		nc_engine_cancel(job->execution);
}

size_t nc_jobs_count(const struct nc_jobs *jobs)
{
	return jobs->count;
}

size_t nc_jobs_open(const struct nc_jobs *jobs)
{
	return jobs->n_open;
}

void nc_jobs_cancel_all(struct nc_jobs *jobs)
{
	for (struct nc_job *job = jobs->first; job; job = job->next)
		nc_job_cancel(job);
}

void nc_jobs_tick(struct nc_jobs *jobs)
{
	uint64_t now = nc_clock_ns();

	for (struct nc_job *job = jobs->first; job; job = job->next) {
		struct waiter **place = &job->waiters;

		while (*place) {
			struct waiter *waiter = *place;

			if (waiter->until_ns == 0 || waiter->until_ns > now) {
				place = &waiter->next;
				continue;
			}
			*place = waiter->next;
			answer(waiter);
		}
		if (job->flags & NC_JOB_HEARD && job->execution && job->feed.alone_ns &&
			now - job->feed.alone_ns > ALONE_NS) {
			nc_log(NC_LOG_INFO, "Nobody listens, cancelling",
				NC_LOG_TEXT("execution", job->id));
			job->feed.alone_ns = 0;
			nc_engine_cancel(job->execution);
		}
	}
}
