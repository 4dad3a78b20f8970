/* Executions: one that is waited for, jobs, and their events. */
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "server/feed.h"
#include "server/intake.h"
#include "server/jobs.h"
#include "server/reply.h"
#include "server/rest/rest.h"

#define LIST_MAX 1000U
#define WAIT_MAX_S 3600U

bool nc_rest_number(struct nc_exchange *exchange, const char *name, uint64_t preset, uint64_t max,
	uint64_t *ret_value)
{
	const char *text = nc_exchange_query(exchange, name);

	*ret_value = preset;
	if (!text || nc_parse_u64(text, 0, max, ret_value) == 0)
		return true;
	nc_problem(exchange, 400, "bad_query", name, NULL, "Expected a whole number from 0 to %llu",
		(unsigned long long)max);
	return false;
}

/* Whether it asks for events: by its Accept header, or by "stream": true. */
static bool wants_events(const struct nc_exchange *exchange, const struct nc_request *request)
{
	const char *accept = nc_exchange_header(exchange, "Accept");

	return request->stream || (accept && strcasestr(accept, "text/event-stream"));
}

static void execute(
	struct nc_server *server, struct nc_exchange *exchange, void *what, struct nc_study *study)
{
	struct nc_request *request = &((struct nc_read_request *)what)->request;
	bool events = wants_events(exchange, request);
	unsigned int flags = !events		? NC_JOB_WAITED
			     : exchange->replay ? NC_JOB_EVENTS
						: NC_JOB_EVENTS | NC_JOB_HEARD;
	struct nc_job *job = nc_jobs_begin(server->jobs, exchange, request, study, flags);
	char location[96];

	if (!job)
		return;
	if (events && exchange->replay) {
		/* who sends it again is led to the same events */
		(void)snprintf(location, sizeof(location), "/v1/jobs/%s/events", nc_job_id(job));
		nc_reply_json(exchange, 303, json_pack("{s:s}", "id", nc_job_id(job)));
		nc_reply_header(exchange, "Location", location);
	} else if (events) {
		nc_job_watch(job, exchange, 0);
	} else {
		nc_job_reply(job, exchange);
	}
}

NC_REST(execute)
{
	static const struct nc_intake_plan plan = {
		nc_jobs_read, nc_jobs_forget, nc_jobs_list, execute, nc_jobs_read_file};

	if (nc_jobs_admit(server->jobs, exchange))
		nc_intake_begin(server, exchange, &plan);
}

static void create_job(
	struct nc_server *server, struct nc_exchange *exchange, void *what, struct nc_study *study)
{
	struct nc_job *job = nc_jobs_begin(server->jobs, exchange,
		&((struct nc_read_request *)what)->request, study, NC_JOB_EVENTS);
	char location[96];

	if (!job)
		return;
	(void)snprintf(location, sizeof(location), "/v1/jobs/%s", nc_job_id(job));
	nc_job_answer(job, exchange, 202);
	nc_reply_header(exchange, "Location", location);
}

NC_REST(jobs_create)
{
	static const struct nc_intake_plan plan = {
		nc_jobs_read, nc_jobs_forget, nc_jobs_list, create_job, nc_jobs_read_file};

	if (nc_jobs_admit(server->jobs, exchange))
		nc_intake_begin(server, exchange, &plan);
}

NC_REST(jobs_list)
{
	const char *state = nc_exchange_query(exchange, "state");
	char wanted[16] = "";
	uint64_t limit;

	if (state && (strlen(state) >= sizeof(wanted) ||
			     (!nc_streq(state, "queued") && !nc_streq(state, "running") &&
				     !nc_streq(state, "done")))) {
		nc_problem(exchange, 400, "bad_query", "state", NULL,
			"Expected queued, running or done");
		return;
	}
	if (state)
		(void)snprintf(wanted, sizeof(wanted), "%s", state);
	if (!nc_rest_number(exchange, "limit", 100, LIST_MAX, &limit))
		return;
	nc_reply_json(exchange, 200,
		json_pack("{s:o}", "jobs",
			nc_jobs_json(server->jobs, &exchange->caller, wanted, limit)));
}

void nc_rest_no_job(struct nc_exchange *exchange)
{
	nc_problem(exchange, 404, "no_job", NULL, "Look at /v1/history",
		"There is no such job, or not any more");
}

static struct nc_job *find(struct nc_server *server, struct nc_exchange *exchange)
{
	struct nc_job *job = nc_jobs_find(server->jobs, &exchange->caller, exchange->part[0]);

	if (!job)
		nc_rest_no_job(exchange);
	return job;
}

NC_REST(jobs_get)
{
	const struct nc_job *job = nc_jobs_find(server->jobs, &exchange->caller, exchange->part[0]);

	if (job)
		nc_job_answer(job, exchange, 200);
	else
		nc_rest_past_job(server, exchange);
}

NC_REST(jobs_wait)
{
	struct nc_job *job = nc_jobs_find(server->jobs, &exchange->caller, exchange->part[0]);
	uint64_t seconds;

	if (!job)
		nc_rest_past_job(server, exchange);
	else if (nc_rest_number(exchange, "timeout", 30, WAIT_MAX_S, &seconds))
		nc_job_wait(job, exchange, seconds * 1000);
}

NC_REST(jobs_events)
{
	struct nc_job *job = find(server, exchange);
	uint64_t last;

	if (job && nc_feed_position(exchange, &last))
		nc_job_watch(job, exchange, last);
}

NC_REST(jobs_cancel)
{
	struct nc_job *job = find(server, exchange);

	if (!job)
		return;
	nc_job_cancel(job);
	nc_job_tell(job, exchange, 202);
}
