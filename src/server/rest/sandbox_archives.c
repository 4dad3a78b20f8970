/*
 * Files of a sandbox that come out, and archives of them in and out: read, packed and unpacked
 * inside it by nacre-files. They pass through here piece by piece; whoever is slow makes the other
 * side wait. A sparse file may be of any size and cost nothing, so no more is held of one than
 * WAITING_MAX, and there are so many of a tenant and in all.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/text.h"
#include "server/reply.h"
#include "server/rest/desk.h"
#include "server/rest/rest.h"

#define TAR_TYPE "application/x-tar"
#define FILE_TYPE "application/octet-stream"
#define WALL_MS (3600U * 1000)
/* What is kept for a client that is slow; beyond the first the box waits. */
#define WAITING_HIGH (128U * 1024)
#define WAITING_MAX (WAITING_HIGH + 128U * 1024)

/* One archive on its way. */
struct nc_transfer {
	struct nc_transfer *next, **place;
	struct nc_server *server;
	struct nc_exchange *exchange;
	struct nc_file_task *task; /* NULL: nacre-files has ended */
	int error;		   /* as it ended */
	bool whole;		   /* the body, of one that goes in */
	struct nc_buf waiting;	   /* for the client, of one that comes out */
	size_t at;		   /* sent of it */
	const char *type;	   /* of what comes out */
	bool answered, held;
};

static void transfer_free(struct nc_transfer *transfer)
{
	*transfer->place = transfer->next;
	if (transfer->next)
		transfer->next->place = transfer->place;
	if (transfer->server->sandboxes)
		nc_sandboxes_forget(transfer->server->sandboxes, transfer);
	nc_buf_done(&transfer->waiting);
	free(transfer);
}

void nc_transfers_drop(struct nc_server *server)
{
	while (server->transfers)
		transfer_free(server->transfers);
}

/* The exchange of one that is over. */
static struct nc_exchange *settle(struct nc_transfer *transfer)
{
	struct nc_exchange *exchange = transfer->exchange;

	exchange->keeper = NULL;
	exchange->gone = NULL;
	transfer_free(transfer);
	return exchange;
}

static void on_gone(struct nc_exchange *exchange)
{
	transfer_free(exchange->keeper);
}

/* Whether the caller may have one more; else it is answered. */
static bool has_place(const struct nc_server *server, struct nc_exchange *exchange)
{
	size_t all = 0, same = 0;

	for (const struct nc_transfer *other = server->transfers; other; other = other->next) {
		all++;
		same += nc_streq(other->exchange->caller.tenant, exchange->caller.tenant);
	}
	if (all < NC_TRANSFERS_MAX && same < NC_TRANSFERS_EACH)
		return true;
	nc_problem(exchange, 503, "busy", NULL, "Try again later",
		"%zu files and archives are on their way at once", all);
	nc_reply_retry(exchange, 1);
	return false;
}

static struct nc_transfer *transfer_new(
	struct nc_server *server, struct nc_exchange *exchange, const char *type)
{
	struct nc_transfer *transfer;

	if (!has_place(server, exchange))
		return NULL;
	transfer = calloc(1, sizeof(*transfer));
	if (!transfer) {
		nc_problem(exchange, 503, "no_memory", NULL, "Try again later", "Out of memory");
		return NULL;
	}
	*transfer = (struct nc_transfer){.server = server,
		.exchange = exchange,
		.type = type,
		.next = server->transfers,
		.place = &server->transfers,
		.waiting = NC_BUF(WAITING_MAX)};
	if (transfer->next)
		transfer->next->place = &transfer->next;
	server->transfers = transfer;
	exchange->keeper = transfer;
	exchange->gone = on_gone;
	return transfer;
}

static void begin(
	struct nc_transfer *transfer, struct nc_sandbox *sandbox, const struct nc_file_work *work)
{
	struct nacre_err err = {0};

	if (nc_sandbox_stream(sandbox, work, &transfer->task, &err) < 0)
		nc_problem_err(settle(transfer), &err);
}

/* ---- out ---- */

static void hold(struct nc_transfer *transfer, bool held)
{
	if (transfer->task && transfer->held != held)
		nc_file_hold(transfer->task, held);
	transfer->held = held;
}

static ssize_t pull(void *source, char *data, size_t size)
{
	struct nc_transfer *transfer = source;
	size_t left = transfer->waiting.size - transfer->at;
	size_t n = left < size ? left : size;

	if (n > 0)
		memcpy(data, transfer->waiting.data + transfer->at, n);
	transfer->at += n;
	if (n == left) {
		transfer->waiting.size = 0;
		transfer->at = 0;
		hold(transfer, false);
	}
	if (n > 0 || transfer->task)
		return (ssize_t)n;
	/* a client that counts on a whole archive must not take this for one */
	return transfer->error < 0 || transfer->waiting.error < 0 ? -2 : -1;
}

static void unplug(void *source)
{
	transfer_free(source);
}

/* The first bytes are there: from now on nothing can be refused any more. */
static void answer(struct nc_transfer *transfer)
{
	transfer->answered = true;
	nc_reply_stream(transfer->exchange, transfer->type, transfer, pull, unplug);
}

/* All of it is there before anything was sent: the connection can go on after it. */
static void answer_whole(struct nc_transfer *transfer)
{
	nc_buf_cleanup struct nc_buf whole = transfer->waiting;
	const char *type = transfer->type;

	transfer->waiting = (struct nc_buf)NC_BUF(0);
	nc_reply_bytes(settle(transfer), 200, type, nc_buf_text(&whole), whole.size);
}

static void on_printed(void *context, const char *data, size_t size)
{
	struct nc_transfer *transfer = context;

	nc_buf_add(&transfer->waiting, data, size);
	if (transfer->waiting.size >= WAITING_HIGH)
		hold(transfer, true);
	if (transfer->answered)
		nc_exchange_wake(transfer->exchange);
	else if (transfer->held)
		answer(transfer);
}

static void on_come(void *context, const char *sandbox, int error, const char *said, size_t size)
{
	struct nc_transfer *transfer = context;

	(void)sandbox;
	transfer->task = NULL;
	transfer->error = error;
	if (transfer->answered)
		nc_exchange_wake(transfer->exchange);
	else if (error < 0)
		nc_rest_refuse_file(settle(transfer), error, said, size);
	else
		answer_whole(transfer);
}

/* words have the path that was asked for, which is filled in, as their last. */
static void bring(struct nc_server *server, struct nc_exchange *exchange, const char *type,
	const char **words, size_t n_words)
{
	struct nc_sandbox *sandbox = nc_rest_sandbox(server, exchange);
	cleanup_free char *path = sandbox ? nc_rest_path(exchange, "path") : NULL;
	struct nc_transfer *transfer = path ? transfer_new(server, exchange, type) : NULL;
	const struct nc_file_work work = {.words = words,
		.wall_ms = WALL_MS,
		.context = transfer,
		.printed = on_printed,
		.done = on_come};

	words[n_words - 1] = path;
	if (transfer)
		begin(transfer, sandbox, &work);
}

NC_REST(archives_pack)
{
	char max[24];
	const char *words[] = {"pack", max, NULL, NULL};

	(void)snprintf(max, sizeof(max), "%llu", NC_ARCHIVE_MAX);
	bring(server, exchange, TAR_TYPE, words, 3);
}

NC_REST(files_read)
{
	const char *words[] = {"read", NULL, NULL};

	bring(server, exchange, FILE_TYPE, words, 2);
}

/* ---- in ---- */

/* Both the body and nacre-files have ended. */
static void answer_unpacked(struct nc_transfer *transfer)
{
	if (transfer->whole && !transfer->task)
		nc_reply_empty(settle(transfer), 204);
}

static void on_unpacked(
	void *context, const char *sandbox, int error, const char *said, size_t size)
{
	struct nc_transfer *transfer = context;

	(void)sandbox;
	transfer->task = NULL;
	if (error < 0) {
		nc_rest_refuse_file(settle(transfer), error, said, size);
		return;
	}
	nc_exchange_wake(transfer->exchange); /* what fills its last block may follow */
	answer_unpacked(transfer);
}

static void on_writable(void *context)
{
	const struct nc_transfer *transfer = context;

	nc_exchange_wake(transfer->exchange);
}

static size_t take(struct nc_exchange *exchange, const char *data, size_t size)
{
	const struct nc_transfer *transfer = exchange->keeper;

	return transfer->task ? nc_file_write(transfer->task, data, size) : size;
}

static void finish(struct nc_exchange *exchange)
{
	struct nc_transfer *transfer = exchange->keeper;

	transfer->whole = true;
	if (transfer->task)
		nc_file_end_input(transfer->task);
	answer_unpacked(transfer);
}

NC_REST(archives_unpack)
{
	struct nc_sandbox *sandbox = nc_rest_sandbox(server, exchange);
	cleanup_free char *path = sandbox ? nc_rest_path(exchange, "path") : NULL;
	struct nc_transfer *transfer = path ? transfer_new(server, exchange, NULL) : NULL;
	const char *const words[] = {"unpack", path, NULL};
	const struct nc_file_work work = {.words = words,
		.output_max = 4096,
		.wall_ms = WALL_MS,
		.interactive = true,
		.context = transfer,
		.done = on_unpacked,
		.writable = on_writable};

	if (!transfer)
		return;
	exchange->sink = take;
	exchange->finish = finish;
	begin(transfer, sandbox, &work);
}
