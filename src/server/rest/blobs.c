/* What the history keeps of code and output: read piece by piece, no faster than the client takes
 * it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "server/archive.h"
#include "server/reply.h"
#include "server/rest/rest.h"

#define TYPE "application/octet-stream"

struct blob {
	struct nc_server *server;
	struct nc_exchange *exchange;
	char id[NC_HTTP_PART_MAX + 1], which[NC_HTTP_PART_MAX + 1];
	char *piece;
	size_t piece_size, piece_at; /* sent of it */
	size_t at, whole;	     /* where the next piece begins, and the end of the last */
	bool answered, asked, failed;
};

static void blob_free(struct blob *blob)
{
	nc_archive_forget(blob->server->archive, blob);
	free(blob->piece);
	free(blob);
}

static void on_gone(struct nc_exchange *exchange)
{
	blob_free(exchange->keeper);
}

static void unplug(void *source)
{
	blob_free(source);
}

static void on_piece(void *context, const json_t *answer);

static int ask(struct blob *blob)
{
	json_t *question = json_pack("{s:s, s:s, s:s, s:I}", "op", "blob", "id", blob->id, "which",
		blob->which, "at", (json_int_t)blob->at);
	int r;

	/* who is no admin sees what is his tenant's */
	if (question && blob->exchange->caller.role < NC_ROLE_ADMIN &&
		json_object_set_new(
			question, "tenant", json_string(blob->exchange->caller.tenant)) < 0) {
		json_decref(question);
		question = NULL;
	}
	r = nc_archive_ask(
		blob->server->archive, blob->exchange->caller.tenant, question, on_piece, blob);
	blob->asked = r == 0;
	return r;
}

static ssize_t pull(void *source, char *data, size_t size)
{
	struct blob *blob = source;
	size_t n = blob->piece_size - blob->piece_at;

	if (n > 0) {
		n = n < size ? n : size;
		memcpy(data, blob->piece + blob->piece_at, n);
		blob->piece_at += n;
		return (ssize_t)n;
	}
	if (blob->at == blob->whole)
		return -1;
	if (!blob->failed && !blob->asked && ask(blob) < 0)
		blob->failed = true;
	return blob->failed ? -2 : 0;
}

/* -EPROTO: the answer is none. */
static int take_piece(struct blob *blob, const json_t *answer)
{
	const char *text = json_string_value(json_object_get(answer, "base64"));
	size_t at;

	free(blob->piece);
	blob->piece = NULL;
	blob->piece_size = blob->piece_at = 0;
	if (!text || nc_base64_decode(text, strlen(text), &blob->piece, &blob->piece_size, &at) < 0)
		return -EPROTO;
	blob->whole = (size_t)json_integer_value(json_object_get(answer, "size"));
	blob->at += blob->piece_size;
	return blob->at > blob->whole || (blob->piece_size == 0 && blob->at < blob->whole) ? -EPROTO
											   : 0;
}

/* The first piece, or why there is none. */
static void answer_first(struct blob *blob, const json_t *answer)
{
	struct nc_exchange *exchange = blob->exchange;

	exchange->keeper = NULL;
	exchange->gone = NULL;
	if (!nc_rest_is_answer(exchange, answer)) {
		blob_free(blob);
	} else if (take_piece(blob, answer) < 0) {
		blob_free(blob);
		nc_problem(exchange, 500, "internal_error", NULL, NULL, "Out of memory");
	} else if (blob->at == blob->whole) {
		nc_reply_bytes(
			exchange, 200, TYPE, blob->piece ? blob->piece : "", blob->piece_size);
		blob_free(blob);
	} else {
		blob->answered = true;
		nc_reply_stream(exchange, TYPE, blob, pull, unplug);
	}
}

static void on_piece(void *context, const json_t *answer)
{
	struct blob *blob = context;

	blob->asked = false;
	if (!blob->answered) {
		answer_first(blob, answer);
		return;
	}
	if (!answer || take_piece(blob, answer) < 0)
		blob->failed = true;
	nc_exchange_wake(blob->exchange);
}

NC_REST(history_blob)
{
	struct blob *blob = server->archive ? calloc(1, sizeof(*blob)) : NULL;
	struct nacre_err err = {0};
	int r = server->archive ? -ENOMEM : -ECONNRESET;

	if (blob) {
		blob->server = server;
		blob->exchange = exchange;
		memcpy(blob->id, exchange->part[0], sizeof(blob->id));
		memcpy(blob->which, exchange->part[1], sizeof(blob->which));
		r = ask(blob);
	}
	if (r < 0) {
		free(blob);
		nc_err_set(&err, r, "The history cannot be read now");
		nc_problem_err(exchange, &err);
		return;
	}
	exchange->keeper = blob;
	exchange->gone = on_gone;
}
