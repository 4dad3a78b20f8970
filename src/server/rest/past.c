/* The past: history and audit, from the process that reads them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/text.h"
#include "server/archive.h"
#include "server/reply.h"
#include "server/rest/rest.h"

#define PAGE_MAX 1000U

static void on_gone(struct nc_exchange *exchange)
{
	nc_archive_forget(exchange->keeper, exchange);
}

/* Asks for the exchange; takes over the question. */
static void ask(struct nc_server *server, struct nc_exchange *exchange, json_t *question,
	nc_archive_answer answer)
{
	struct nacre_err err = {0};
	int r = -ECONNRESET;

	/* who is no admin sees what is his tenant's */
	if (question && exchange->caller.role < NC_ROLE_ADMIN &&
		json_object_set_new(question, "tenant", json_string(exchange->caller.tenant)) < 0) {
		json_decref(question);
		question = NULL;
	}
	if (server->archive)
		r = nc_archive_ask(
			server->archive, exchange->caller.tenant, question, answer, exchange);
	else
		json_decref(question);
	if (r < 0) {
		nc_err_set(&err, r, "The history cannot be read now");
		nc_problem_err(exchange, &err);
		return;
	}
	exchange->keeper = server->archive;
	exchange->gone = on_gone;
}

bool nc_rest_is_answer(struct nc_exchange *exchange, const json_t *answer)
{
	const char *message = json_string_value(json_object_get(answer, "error"));
	struct nacre_err err = {0};

	if (answer && !message)
		return true;
	nc_err_set(&err,
		answer ? (int)json_integer_value(json_object_get(answer, "code")) : -ECONNRESET,
		"%s", message ? message : "The history cannot be read now");
	nc_problem_err(exchange, &err);
	return false;
}

static json_t *without_number(const json_t *answer)
{
	json_t *copy = json_copy((json_t *)(uintptr_t)answer);

	if (copy)
		(void)json_object_del(copy, "n");
	return copy;
}

static void on_plain(void *context, const json_t *answer)
{
	if (nc_rest_is_answer(context, answer))
		nc_reply_json(context, 200, without_number(answer));
}

/* The next page begins behind the last of this one. */
static void on_list(void *context, const json_t *answer)
{
	struct nc_exchange *exchange = context;
	const json_t *rows = json_object_get(answer, "executions");
	size_t n = json_array_size(rows);
	uint64_t limit = 100;
	json_t *reply, *next = json_null();

	if (!nc_rest_is_answer(exchange, answer))
		return;
	(void)nc_parse_u64(nc_exchange_query(exchange, "limit") ?: "100", 1, PAGE_MAX, &limit);
	if (n > 0 && (n == limit || json_is_true(json_object_get(answer, "more"))))
		next = json_object_get(json_array_get(rows, n - 1), "seq");
	reply = json_pack("{s:O, s:O}", "executions", rows, "next", next);
	nc_reply_json(exchange, 200, reply);
}

/* "2h", or a time; false: it was answered. */
static bool add_since(struct nc_exchange *exchange, json_t *question)
{
	const char *text = nc_exchange_query(exchange, "since");
	char stamp[NC_CLOCK_STAMP_NS_SIZE];
	struct tm parts;
	uint64_t ns;
	time_t then;

	if (!text)
		return true;
	if (nc_parse_duration(text, &ns) == 0) {
		then = (time_t)((nc_clock_real_ns() - ns) / NC_NS_PER_S);
		(void)strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", gmtime_r(&then, &parts));
	} else if (strlen(text) >= 4 && strlen(text) < sizeof(stamp) &&
		   strspn(text, "0123456789-T:.Z") == strlen(text)) {
		(void)snprintf(stamp, sizeof(stamp), "%s", text);
		stamp[strcspn(stamp, "Z")] = '\0';
	} else {
		nc_problem(exchange, 400, "bad_query", "since", NULL,
			"Expected a time such as 2026-11-16T03:00:00Z or a span such as 2h");
		return false;
	}
	return json_object_set_new(question, "since", json_string(stamp)) == 0;
}

static void add_words(struct nc_exchange *exchange, json_t *question)
{
	static const char *const names[] = {"status", "language", "tenant"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *text = nc_exchange_query(exchange, names[i]);

		if (text)
			(void)json_object_set_new(
				question, names[i], nc_json_text(text, strlen(text)));
	}
}

NC_REST(history_list)
{
	cleanup_json json_t *question = NULL;
	uint64_t limit, before;

	if (!nc_rest_number(exchange, "limit", 100, PAGE_MAX, &limit) ||
		!nc_rest_number(exchange, "before", 0, INT64_MAX, &before))
		return;
	if (limit == 0)
		limit = 1;
	question = json_pack("{s:s, s:I, s:I}", "op", "list", "limit", (json_int_t)limit, "before",
		(json_int_t)before);
	if (!question || !add_since(exchange, question)) {
		if (exchange->status == 0)
			nc_problem(exchange, 500, "internal_error", NULL, NULL, "Out of memory");
		return;
	}
	add_words(exchange, question);
	ask(server, exchange, take_ptr(question), on_list);
}

static void on_show(void *context, const json_t *answer)
{
	const json_t *rows = json_object_get(answer, "executions");

	if (nc_rest_is_answer(context, answer))
		nc_reply_json(context, 200, json_incref(json_array_get(rows, 0)));
}

NC_REST(history_get)
{
	ask(server, exchange, json_pack("{s:s, s:s}", "op", "show", "id", exchange->part[0]),
		on_show);
}

/* A job that this daemon does not know: one that it has forgotten, or that died with the one
 * before.
 */
static void on_job(void *context, const json_t *answer)
{
	struct nc_exchange *exchange = context;
	const json_t *rows = json_object_get(answer, "executions");
	const json_t *row = json_array_get(rows, 0);
	const char *status = json_string_value(json_object_get(row, "status"));
	const json_t *opened = json_object_get(row, "opened");
	const char *tenant = json_string_value(json_object_get(row, "tenant"));
	const char *name = json_string_value(json_object_get(row, "request_id"));

	if (!row || !status)
		nc_rest_no_job(exchange);
	else
		nc_reply_json(exchange, 200,
			json_pack("{s:O, s:s?, s:s, s:s, s:O, s:s, s:n}", "id",
				json_object_get(row, "id"), "request_id",
				name && *name ? name : NULL, "state",
				nc_streq(status, "running") ? "running" : "done", "status", status,
				"created",
				json_is_string(opened) ? opened : json_object_get(row, "time"),
				"tenant", tenant ? tenant : "", "reply"));
}

void nc_rest_past_job(struct nc_server *server, struct nc_exchange *exchange)
{
	if (server->archive)
		ask(server, exchange,
			json_pack("{s:s, s:s}", "op", "show", "id", exchange->part[0]), on_job);
	else
		nc_rest_no_job(exchange);
}

NC_REST(audit_head)
{
	ask(server, exchange, json_pack("{s:s}", "op", "head"), on_plain);
}

NC_REST(audit_verify)
{
	const char *head = nc_exchange_query(exchange, "head");

	ask(server, exchange, json_pack("{s:s, s:s*}", "op", "verify", "head", head), on_plain);
}
