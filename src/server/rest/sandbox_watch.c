/* What happens to files of a sandbox, as events: nacre-files looks, inside. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "server/feed.h"
#include "server/reply.h"
#include "server/rest/desk.h"
#include "server/rest/rest.h"

/* Of one sandbox: each is a process in it. */
#define WATCHES_EACH 4U
#define WALL_MS (24U * 3600 * 1000)
/* One record: two paths, and what is before them. */
#define RECORD_MAX (2U * (NC_PATH_MAX + 1) + 4)

/* One client that watches. */
struct nc_watch {
	struct nc_watch *next, **place;
	struct nc_server *server;
	struct nc_exchange *exchange; /* that is not answered yet; or NULL */
	char sandbox[NC_ID_SIZE];
	char tenant[NC_REQUEST_NAME_MAX + 1];
	struct nc_buf record; /* as far as it has come */
	struct nc_feed feed;
	size_t size; /* of its events */
};

static void watch_free(struct nc_watch *watch)
{
	*watch->place = watch->next;
	if (watch->next)
		watch->next->place = watch->place;
	if (watch->server->sandboxes)
		nc_sandboxes_forget(watch->server->sandboxes, watch); /* and nacre-files ends */
	nc_feed_done(&watch->feed);
	nc_buf_done(&watch->record);
	free(watch);
}

void nc_watches_drop(struct nc_server *server)
{
	while (server->watches)
		watch_free(server->watches);
}

/* Whose client has gone is over; and when we stop, everybody's. */
void nc_watches_tick(struct nc_server *server)
{
	for (struct nc_watch *watch = server->watches, *next; watch; watch = next) {
		next = watch->next;
		if (!watch->exchange && (!watch->feed.watchers || server->drains))
			watch_free(watch);
	}
}

static void on_gone(struct nc_exchange *exchange)
{
	watch_free(exchange->keeper);
}

/* ---- what nacre-files tells ---- */

static void begin(struct nc_watch *watch)
{
	struct nc_exchange *exchange = take_ptr(watch->exchange);

	if (!exchange)
		return;
	exchange->keeper = NULL;
	exchange->gone = NULL;
	nc_feed_watch(&watch->feed, exchange, 0);
}

/* One record, which is whole: "c d path", or "v f from" and, behind a NUL, "to". */
static void tell(struct nc_watch *watch, const char *record)
{
	static const struct {
		char letter;
		const char *name;
	} events[] = {{'s', "ready"}, {'c', "created"}, {'m', "modified"}, {'r', "removed"},
		{'v', "moved"}, {'o', "overflow"}};
	const char *path = record + 4, *to = record[0] == 'v' ? path + strlen(path) + 1 : path;
	json_t *value = json_pack("{s:o, s:s}", "path", nc_json_text(to, strlen(to)), "type",
		record[2] == 'd' ? "directory" : "file");

	if (record[0] == 'v' && value)
		(void)json_object_set_new(value, "from", nc_json_text(path, strlen(path)));
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		if (events[i].letter != record[0])
			continue;
		begin(watch);
		nc_feed_tell(&watch->feed, events[i].name, value);
		return;
	}
	json_decref(value);
}

/* Whether the bytes so far are a record. */
static bool is_whole(const struct nc_buf *record)
{
	const char *first = memchr(record->data, '\0', record->size);

	return record->data[record->size - 1] == '\0' &&
	       (record->data[0] != 'v' || first < record->data + record->size - 1);
}

static void on_printed(void *context, const char *data, size_t size)
{
	struct nc_watch *watch = context;

	for (size_t i = 0; i < size; i++) {
		nc_buf_add(&watch->record, data + i, 1);
		if (watch->record.error < 0 || (data[i] == '\0' && watch->record.size < 5)) {
			nc_buf_done(&watch->record); /* that is no record */
			continue;
		}
		if (data[i] != '\0' || !is_whole(&watch->record))
			continue;
		tell(watch, watch->record.data);
		watch->record.size = 0;
	}
}

static void on_done(void *context, const char *sandbox, int error, const char *said, size_t size)
{
	struct nc_watch *watch = context;
	struct nc_exchange *exchange = take_ptr(watch->exchange);

	(void)sandbox;
	if (exchange) { /* it never began */
		exchange->keeper = NULL;
		exchange->gone = NULL;
		watch_free(watch);
		nc_rest_refuse_file(exchange, error < 0 ? error : -EIO, said, size);
		return;
	}
	nc_feed_tell(&watch->feed, "end",
		json_pack("{s:o}", "reason",
			error < 0 ? json_string(nc_errno_text(error)) : json_null()));
	watch->feed.ended = true;
	nc_feed_wake(&watch->feed);
}

/* ---- the route ---- */

static size_t count_of(const struct nc_server *server, const char *sandbox)
{
	size_t n = 0;

	for (const struct nc_watch *watch = server->watches; watch; watch = watch->next)
		n += nc_streq(watch->sandbox, sandbox) && !watch->feed.ended;
	return n;
}

/* Whether the tenant has no place for one more, or nobody has. */
static bool is_full(const struct nc_server *server, const char *tenant)
{
	size_t all = 0, same = 0;

	for (const struct nc_watch *watch = server->watches; watch; watch = watch->next) {
		all++;
		same += nc_streq(watch->tenant, tenant);
	}
	return all >= NC_WATCHES_MAX || same >= NC_WATCHES_EACH;
}

static struct nc_watch *watch_new(
	struct nc_server *server, struct nc_exchange *exchange, const struct nc_sandbox *sandbox)
{
	struct nc_watch *watch = calloc(1, sizeof(*watch));

	if (!watch) {
		nc_problem(exchange, 503, "no_memory", NULL, "Try again later", "Out of memory");
		return NULL;
	}
	watch->server = server;
	watch->exchange = exchange;
	watch->record = (struct nc_buf)NC_BUF(RECORD_MAX);
	memcpy(watch->sandbox, nc_sandbox_id(sandbox), sizeof(watch->sandbox));
	(void)snprintf(watch->tenant, sizeof(watch->tenant), "%s", exchange->caller.tenant);
	nc_feed_init(&watch->feed, &watch->size);
	watch->next = server->watches;
	watch->place = &server->watches;
	if (watch->next)
		watch->next->place = &watch->next;
	server->watches = watch;
	exchange->keeper = watch;
	exchange->gone = on_gone;
	return watch;
}

static bool may_watch(
	const struct nc_server *server, struct nc_exchange *exchange, struct nc_sandbox *sandbox)
{
	if (!nc_sandbox_is_home(sandbox))
		nc_problem(exchange, 501, "not_supported", NULL, NULL,
			"Without control groups nothing could be done beside a watch");
	else if (count_of(server, nc_sandbox_id(sandbox)) >= WATCHES_EACH)
		nc_problem(exchange, 409, "busy", NULL, "End one of them",
			"%u clients watch files of the sandbox already", WATCHES_EACH);
	else if (is_full(server, exchange->caller.tenant)) {
		nc_problem(exchange, 503, "busy", NULL, "End one of them, or try again later",
			"Too many clients watch files of sandboxes");
		nc_reply_retry(exchange, 1);
	} else
		return true;
	return false;
}

NC_REST(files_watch)
{
	struct nc_sandbox *sandbox = nc_rest_sandbox(server, exchange);
	cleanup_free char *path = sandbox ? nc_rest_path(exchange, "path") : NULL;
	const char *deep = path ? nc_exchange_query(exchange, "recursive") : NULL;
	const char *const words[] = {
		"watch", deep && nc_streq(deep, "true") ? "1" : "0", path, NULL};
	struct nc_watch *watch = path && may_watch(server, exchange, sandbox)
					 ? watch_new(server, exchange, sandbox)
					 : NULL;
	const struct nc_file_work work = {.words = words,
		.wall_ms = WALL_MS,
		.idles = true,
		.context = watch,
		.printed = on_printed,
		.done = on_done};
	struct nc_file_task *task;
	struct nacre_err err = {0};

	if (!watch || nc_sandbox_stream(sandbox, &work, &task, &err) == 0)
		return;
	exchange->keeper = NULL;
	exchange->gone = NULL;
	watch_free(watch);
	nc_problem_err(exchange, &err);
}
