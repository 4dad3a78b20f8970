/* The body of a request, read where it may take its time. */
#include "server/intake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/analysts.h"
#include "server/reply.h"
#include "server/spool.h"

/* Less is read at once: it takes less time than handing it over. */
#define AT_ONCE_MAX (32U * 1024)
/* What is read of more than this takes several times its size: one at a time. */
#define LARGE_MIN (512U << 10)

struct nc_intake {
	uv_work_t work;
	struct nc_intake *next; /* of the server's */
	struct nc_server *server;
	struct nc_exchange *exchange; /* NULL: nobody waits any more */
	const struct nc_intake_plan *plan;
	struct nc_buf body;
	int body_fd; /* or it is in this file; -EBADF: it is not */
	size_t size;
	void *what;
	struct nc_study study;
	bool works; /* in its thread */
	bool large; /* and no other large one of its tenant is taken in while it is */
	bool reads; /* it has the place for reading such */
	bool waits; /* for its tenant's turn, or that place */
};

static void unlink_intake(struct nc_intake *intake)
{
	struct nc_intake **place = &intake->server->intakes;

	while (*place && *place != intake)
		place = &(*place)->next;
	if (*place)
		*place = intake->next;
}

static void begin_next(struct nc_server *server, const char *last_tenant);

static void intake_free(struct nc_intake *intake)
{
	struct nc_server *server = intake->large ? intake->server : NULL;

	if (intake->exchange) {
		intake->exchange->keeper = NULL;
		intake->exchange->gone = NULL;
		unlink_intake(intake);
	}
	nc_analysts_forget(&intake->study);
	nc_study_done(&intake->study);
	if (intake->what)
		intake->plan->forget(intake->what);
	nc_buf_done(&intake->body);
	(void)nc_fd_close(intake->body_fd);
	free(intake);
	if (server)
		begin_next(server, "");
}

/* The exchange is let go of before it is answered: it may be gone afterwards. */
static void finish(struct nc_intake *intake)
{
	struct nc_exchange *exchange = intake->exchange;
	struct nc_server *server = intake->server;

	exchange->keeper = NULL;
	exchange->gone = NULL;
	unlink_intake(intake);
	intake->exchange = NULL;
	intake->plan->then(server, exchange, intake->what, &intake->study);
	intake_free(intake);
}

static void fail(struct nc_intake *intake, int error)
{
	struct nc_exchange *exchange = intake->exchange;

	intake_free(intake);
	nc_problem(exchange, 503, error == -EAGAIN ? "busy" : "no_memory", NULL, "Try again later",
		error == -EAGAIN ? "Too many programs wait to be analysed" : "Out of memory");
	nc_reply_retry(exchange, 1);
}

static void on_studied(void *context)
{
	finish(context);
}

/* The body is read. */
static void go_on(struct nc_intake *intake)
{
	struct nc_server *server = intake->server;
	struct nc_exchange *exchange = intake->exchange;
	int r;

	if (!intake->what) {
		fail(intake, -ENOMEM);
		return;
	}
	if (intake->plan->list &&
		!intake->plan->list(server, exchange, intake->what, &intake->study)) {
		intake_free(intake);
		return;
	}
	if (intake->study.count == 0) {
		finish(intake);
		return;
	}
	r = nc_analysts_ask(
		server->analysts, exchange->caller.tenant, &intake->study, on_studied, intake);
	if (r < 0)
		fail(intake, r);
}

/* ---- in a thread of libuv's ---- */

static bool begin_work(struct nc_intake *intake);

/* Whether a large one of the tenant's was read, and is not done with: it takes its memory. */
static bool has_large(const struct nc_server *server, const char *tenant)
{
	for (const struct nc_intake *at = server->intakes; at; at = at->next)
		if (at->large && nc_streq(at->exchange->caller.tenant, tenant))
			return true;
	return false;
}

/* A large one may be read: the next is of another tenant than the last, if there is one. */
static void begin_next(struct nc_server *server, const char *last_tenant)
{
	struct nc_intake *oldest = NULL, *other = NULL; /* the list begins with the newest */

	for (struct nc_intake *at = server->reads_large ? NULL : server->intakes; at;
		at = at->next) {
		if (!at->waits || has_large(server, at->exchange->caller.tenant))
			continue;
		oldest = at;
		if (!nc_streq(at->exchange->caller.tenant, last_tenant))
			other = at;
	}
	if (other)
		oldest = other;
	if (!oldest)
		return;
	oldest->waits = false;
	if (!begin_work(oldest))
		fail(oldest, -ENOMEM);
}

static void read_body(struct nc_intake *intake)
{
	if (intake->body_fd >= 0)
		intake->what = intake->plan->read_file(take_fd(intake->body_fd), intake->size);
	else
		intake->what = intake->plan->read(nc_buf_text(&intake->body), intake->size);
	nc_buf_done(&intake->body);
}

static void work(uv_work_t *request)
{
	(void)setpriority(PRIO_PROCESS, 0, NC_ASIDE_NICE);
	read_body(request->data);
}

/* Another tenant's may be read. */
static void end_reading(struct nc_intake *intake)
{
	struct nc_server *server = intake->server;
	char tenant[NC_REQUEST_NAME_MAX + 1];

	intake->reads = false;
	if (!server) /* that has gone */
		return;
	server->reads_large = false;
	(void)snprintf(tenant, sizeof(tenant), "%s",
		intake->exchange ? intake->exchange->caller.tenant : "");
	begin_next(server, tenant);
}

static void on_worked(uv_work_t *request, int status)
{
	struct nc_intake *intake = request->data;

	(void)status;
	intake->works = false;
	if (intake->reads)
		end_reading(intake);
	if (intake->exchange)
		go_on(intake);
	else
		intake_free(intake);
}

/* ---- on the loop ---- */

/* Nobody waits: what is not begun never is; what is goes when it is done. */
static void abandon(struct nc_intake *intake)
{
	unlink_intake(intake);
	intake->exchange = NULL;
	if (intake->works)
		(void)uv_cancel((uv_req_t *)&intake->work);
	else
		intake_free(intake);
}

static void on_gone(struct nc_exchange *exchange)
{
	abandon(exchange->keeper);
}

/* In a thread; false: there is no memory for that. */
static bool begin_work(struct nc_intake *intake)
{
	struct nc_server *server = intake->server;

	intake->works = uv_queue_work(server->setup.loop, &intake->work, work, on_worked) == 0;
	intake->large = intake->reads = intake->works && intake->size > LARGE_MIN;
	server->reads_large = server->reads_large || intake->reads;
	return intake->works;
}

void nc_intake_begin(
	struct nc_server *server, struct nc_exchange *exchange, const struct nc_intake_plan *plan)
{
	struct nc_intake *intake = calloc(1, sizeof(*intake));

	if (!intake) {
		nc_problem(exchange, 503, "no_memory", NULL, "Try again later", "Out of memory");
		return;
	}
	*intake = (struct nc_intake){.server = server,
		.next = server->intakes,
		.exchange = exchange,
		.plan = plan,
		.body = exchange->body,
		.body_fd = -EBADF,
		.size = exchange->body.size,
		.work.data = intake};
	exchange->body = (struct nc_buf)NC_BUF(0);
	if (exchange->spool)
		intake->body_fd = nc_spool_take(exchange->spool, &intake->size);
	server->intakes = intake;
	exchange->keeper = intake;
	exchange->gone = on_gone;
	intake->waits = intake->size > LARGE_MIN &&
			(server->reads_large || has_large(server, exchange->caller.tenant));
	if (intake->waits || (intake->size > AT_ONCE_MAX && begin_work(intake)))
		return;
	read_body(intake);
	go_on(intake);
}

void nc_intakes_drop(struct nc_server *server)
{
	while (server->intakes) {
		struct nc_intake *intake = server->intakes;
		bool works = intake->works;

		abandon(intake);
		if (works) /* it is freed when its thread is done */
			intake->server = NULL;
	}
}

/* ---- JSON ---- */

void *nc_read_json(const char *text, size_t size)
{
	struct nc_read_json *read = calloc(1, sizeof(*read));

	if (!read)
		return NULL;
	if (size == 0)
		read->value = json_object();
	else if (nc_json_count(text, size) > NC_REQUEST_VALUES_MAX)
		nc_err_set(&read->err, -E2BIG, "The body has too many values");
	else
		(void)nc_json_parse(text, size, &read->value, &read->err);
	return read;
}

void nc_read_json_forget(void *what)
{
	struct nc_read_json *read = what;

	json_decref(read->value);
	free(read);
}
