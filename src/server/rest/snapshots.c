/* Snapshots of sandboxes: what their users wrote is kept, and put into others. */
#include "server/snapshots.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "engine/access.h"
#include "engine/work.h"
#include "server/reply.h"
#include "server/rest/desk.h"
#include "server/rest/rest.h"

#define WALL_MS (600U * 1000)

const struct nc_snapshot *nc_rest_snapshot(
	struct nc_server *server, struct nc_exchange *exchange, const char *id)
{
	const struct nc_snapshot *snapshot =
		server->snapshots
			? nc_snapshot_find(server->snapshots, nc_rest_tenant(exchange), id)
			: NULL;

	if (!snapshot)
		nc_problem(exchange, 404, "no_snapshot", NULL,
			"Make one: POST /v1/sandboxes/{id}/snapshots",
			"There is no such snapshot, or not any more");
	return snapshot;
}

static void on_done(void *context, const char *sandbox, int error, const char *data, size_t size)
{
	struct nc_wait *wait = context;

	(void)sandbox;
	wait->files(wait, error, data, size);
}

static struct nc_exchange *settle(struct nc_wait *wait)
{
	struct nc_exchange *exchange = wait->exchange;

	nc_wait_free(wait);
	return exchange;
}

/* ---- to keep ---- */

static void on_printed(void *context, const char *data, size_t size)
{
	struct nc_wait *wait = context;
	const struct nc_quota_refusal storage = {
		.quota = "storage_mb", .limit = nc_draft_max(wait->draft) >> 20};
	int r = nc_draft_add(wait->draft, data, size);

	/* and nacre-files ends */
	if (r == -EDQUOT || r == -ERANGE)
		nc_quota_answer(settle(wait), r, &storage);
	else if (r < 0)
		nc_rest_refuse_file(settle(wait), r, "", 0);
}

static void on_kept(void *context, int error, const struct nc_snapshot *snapshot)
{
	struct nc_wait *wait = context;
	struct nc_server *server = wait->server;
	struct nc_exchange *exchange;
	char location[96];

	wait->draft = NULL;
	exchange = settle(wait);
	if (error < 0) {
		nc_rest_refuse_file(exchange, error, "", 0);
		return;
	}
	nc_engine_note(server->setup.engine, "snapshot.created", nc_snapshot_json(snapshot));
	(void)snprintf(location, sizeof(location), "/v1/snapshots/%s", snapshot->id);
	nc_reply_json(exchange, 201, nc_snapshot_json(snapshot));
	nc_reply_header(exchange, "Location", location);
}

static void on_saved(struct nc_wait *wait, int error, const char *said, size_t size)
{
	if (error == 0)
		nc_draft_keep(wait->draft, wait->server->setup.loop, on_kept, wait);
	else
		nc_rest_refuse_file(settle(wait), error, said, size);
}

static int begin_saving(
	struct nc_wait *wait, struct nc_sandbox *sandbox, const char *name, struct nacre_err *err)
{
	struct nc_server *server = wait->server;
	const char *tenant = nc_sandbox_tenant(sandbox);
	char max[24];
	const char *const words[] = {"save", max, NC_ACCESS_TRUSTED, NULL};
	const struct nc_file_work work = {.words = words,
		.wall_ms = WALL_MS,
		.context = wait,
		.printed = on_printed,
		.done = on_done};
	struct nc_file_task *task;
	int r = nc_draft_new(server->snapshots, tenant, name, nc_sandbox_id(sandbox),
		nc_quota_storage(&server->config->serve, tenant), &wait->draft, err);

	(void)snprintf(max, sizeof(max), "%llu", NC_SNAPSHOT_MAX);
	wait->files = on_saved;
	return r < 0 ? r : nc_sandbox_stream(sandbox, &work, &task, err);
}

/* The one text of a body; NULL: it was answered. */
static const char *text_of(
	struct nc_exchange *exchange, const json_t *body, const char *key, const char *preset)
{
	const json_t *value = json_object_get(body, key);
	const char *text = value ? json_string_value(value) : preset;

	if (json_is_object(body) && text && strlen(text) <= NC_REQUEST_LABEL_MAX &&
		json_object_size(body) == (value != NULL))
		return text;
	nc_problem(exchange, 400, "bad_request", "", NULL,
		"Expected an object with '%s' alone, a text of at most %u bytes", key,
		NC_REQUEST_LABEL_MAX);
	return NULL;
}

NC_REST(snapshots_create)
{
	static const struct nc_quota_refusal many = {
		.quota = "snapshots", .limit = NC_SNAPSHOTS_EACH};
	struct nc_sandbox *sandbox = nc_rest_sandbox(server, exchange);
	cleanup_json json_t *body = sandbox ? nc_rest_body(exchange) : NULL;
	const char *name = body ? text_of(exchange, body, "name", "") : NULL;
	struct nc_wait *wait = name ? nc_wait_new(server, exchange) : NULL;
	struct nacre_err err = {0};

	if (!wait)
		return;
	if (begin_saving(wait, sandbox, name, &err) == 0)
		return;
	if (err.code == -EDQUOT)
		nc_quota_answer(settle(wait), err.code, &many);
	else
		nc_problem_err(settle(wait), &err);
}

/* ---- to use ---- */

int nc_rest_restore(struct nc_wait *wait, struct nc_sandbox *sandbox,
	const struct nc_snapshot *snapshot, struct nacre_err *err)
{
	static const char *const words[] = {"restore", NC_ACCESS_TRUSTED, NULL};
	cleanup_close int fd = nc_snapshot_open(wait->server->snapshots, snapshot);
	const struct nc_file_work work = {.words = words,
		.output_max = 4096,
		.wall_ms = WALL_MS,
		.input_fd = fd,
		.context = wait,
		.done = on_done};
	int r;

	if (fd < 0)
		return nc_err_errno(err, fd, "Read the snapshot");
	if (nc_sandbox_running(sandbox) > 0)
		return nc_err_set(err, -EBUSY, "Commands run in the sandbox: end them first");
	r = nc_sandbox_files(sandbox, &work, err);
	if (r == 0)
		nc_engine_note(wait->server->setup.engine, "sandbox.restored",
			json_pack("{s:s, s:s, s:s}", "sandbox", nc_sandbox_id(sandbox), "tenant",
				nc_sandbox_tenant(sandbox), "snapshot", snapshot->id));
	return r;
}

static void on_restored(struct nc_wait *wait, int error, const char *said, size_t size)
{
	struct nc_sandbox *sandbox =
		nc_sandbox_find(wait->server->sandboxes, NULL, wait->exchange->part[0]);
	struct nc_exchange *exchange = settle(wait);

	if (sandbox)
		nc_sandbox_restored(sandbox);
	if (error < 0)
		nc_rest_refuse_file(exchange, error, said, size);
	else
		nc_reply_empty(exchange, 204);
}

NC_REST(snapshots_restore)
{
	struct nc_sandbox *sandbox = nc_rest_sandbox(server, exchange);
	cleanup_json json_t *body = sandbox ? nc_rest_body(exchange) : NULL;
	const char *id = body ? text_of(exchange, body, "snapshot", NULL) : NULL;
	const struct nc_snapshot *snapshot = id ? nc_rest_snapshot(server, exchange, id) : NULL;
	struct nc_wait *wait = snapshot ? nc_wait_new(server, exchange) : NULL;
	struct nacre_err err = {0};

	if (!wait)
		return;
	wait->files = on_restored;
	if (nc_rest_restore(wait, sandbox, snapshot, &err) < 0)
		nc_problem_err(settle(wait), &err);
}

/* ---- what there is ---- */

NC_REST(snapshots_list)
{
	json_t *list = server->snapshots
			       ? nc_snapshots_json(server->snapshots, nc_rest_tenant(exchange))
			       : json_array();

	nc_reply_json(exchange, 200, json_pack("{s:o}", "snapshots", list));
}

NC_REST(snapshots_get)
{
	const struct nc_snapshot *snapshot = nc_rest_snapshot(server, exchange, exchange->part[0]);

	if (snapshot)
		nc_reply_json(exchange, 200, nc_snapshot_json(snapshot));
}

NC_REST(snapshots_remove)
{
	const struct nc_snapshot *snapshot = nc_rest_snapshot(server, exchange, exchange->part[0]);
	struct nacre_err err = {0};
	json_t *told;
	int r;

	if (!snapshot)
		return;
	told = nc_snapshot_json(snapshot);
	r = nc_snapshot_remove(server->snapshots, snapshot);
	if (r < 0) {
		json_decref(told);
		(void)nc_err_errno(&err, r, "Delete the snapshot");
		nc_problem_err(exchange, &err);
		return;
	}
	nc_engine_note(server->setup.engine, "snapshot.deleted", told);
	nc_reply_empty(exchange, 204);
}
