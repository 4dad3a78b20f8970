/* Answering an exchange. */
#include "server/reply.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/json.h"
#include "base/text.h"
#include "server/replay.h"
#include "server/sheet.h"

#define JSON_TYPE "application/json"
#define PROBLEM_TYPE "application/problem+json"
#define STREAM_BLOCK 16384
/* Smaller is not worth it, larger would hold up everybody else. */
#define GZIP_LEAST 1024U
#define GZIP_MOST (512U * 1024)
#define GZIP_LEVEL 1
/* zlib's windowBits: 15, and a gzip head instead of its own */
#define GZIP_WINDOW (15 + 16)

static const char *title_of(unsigned int status)
{
	const char *phrase = MHD_get_reason_phrase_for(status);

	return phrase ? phrase : "Error";
}

/* All replies have these. */
static void answer(struct nc_exchange *exchange, unsigned int status, struct MHD_Response *response,
	const char *type)
{
	if (!response) { /* no memory even for an excuse */
		response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
		status = 500;
		exchange->closes = true;
	}
	exchange->status = status;
	exchange->response = response;
	if (type)
		nc_reply_header(exchange, "Content-Type", type);
	nc_reply_header(exchange, "X-Request-Id", exchange->id);
	nc_reply_header(exchange, "X-Content-Type-Options", "nosniff");
	nc_reply_header(exchange, "Cache-Control", "no-store");
	if (exchange->origin) {
		nc_reply_header(exchange, "Access-Control-Allow-Origin", exchange->origin);
		nc_reply_header(exchange, "Access-Control-Expose-Headers",
			"Location, Retry-After, X-Request-Id, Idempotency-Replayed");
		nc_reply_header(exchange, "Vary", "Origin");
	}
	nc_exchange_answered(exchange);
}

/* Whether the client names gzip and does not refuse it with q=0. */
static bool takes_gzip(const struct nc_exchange *exchange)
{
	const char *accepted = nc_exchange_header(exchange, "Accept-Encoding");
	const char *at = accepted ? strcasestr(accepted, "gzip") : NULL;

	if (!at)
		return false;
	at += strlen("gzip");
	at += strspn(at, " ");
	if (*at != ';')
		return *at == ',' || *at == '\0';
	at = strcasestr(at, "q=");
	return !at || strtod(at + 2, NULL) > 0;
}

/* Fresh memory; NULL: it is not smaller, or there is none. */
static void *gzip(const void *data, size_t size, size_t *ret_size)
{
	z_stream stream = {0};
	size_t most = size - size / 16;
	void *out = malloc(most);
	int r;

	if (!out || deflateInit2(&stream, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8,
			    Z_DEFAULT_STRATEGY) != Z_OK) {
		free(out);
		return NULL;
	}
	stream.next_in = (Bytef *)(uintptr_t)data;
	stream.avail_in = (uInt)size;
	stream.next_out = out;
	stream.avail_out = (uInt)most;
	r = deflate(&stream, Z_FINISH);
	*ret_size = stream.total_out;
	(void)deflateEnd(&stream);
	if (r == Z_STREAM_END)
		return out;
	free(out);
	return NULL;
}

/* Takes over data, which came from malloc(). */
static void send_bytes(struct nc_exchange *exchange, unsigned int status, const char *type,
	void *data, size_t size)
{
	struct MHD_Response *response;
	size_t small_size = 0;
	void *small = NULL;

	if (size >= GZIP_LEAST && size <= GZIP_MOST && takes_gzip(exchange))
		small = gzip(data, size, &small_size);
	if (exchange->replay)
		nc_replay_keep(exchange, status, type, data, size);
	if (small) {
		free(data);
		data = small;
		size = small_size;
	}
	exchange->reply_size = size;
	response = MHD_create_response_from_buffer(size, data, MHD_RESPMEM_MUST_FREE);
	if (!response)
		free(data);
	else if (small)
		(void)MHD_add_response_header(response, "Content-Encoding", "gzip");
	if (response && size >= GZIP_LEAST)
		(void)MHD_add_response_header(response, "Vary", "Accept-Encoding");
	answer(exchange, status, response, type);
}

void nc_reply_bytes(struct nc_exchange *exchange, unsigned int status, const char *type,
	const void *data, size_t size)
{
	char *copy = malloc(size + 1);

	if (!copy) {
		answer(exchange, status, NULL, NULL);
		return;
	}
	memcpy(copy, data, size);
	send_bytes(exchange, status, type, copy, size);
}

/* A reply of three parts, of which libmicrohttpd has the first and the last in its own memory. */
struct parts {
	struct nc_sheet *sheet;
	char short_ones[];
};

static void parts_free(void *cls)
{
	struct parts *parts = cls;

	nc_sheet_unref(parts->sheet);
	free(parts);
}

static struct MHD_Response *response_of(
	const char *before, struct nc_sheet *sheet, const char *behind)
{
	const size_t first = strlen(before), last = strlen(behind);
	struct parts *parts = malloc(sizeof(*parts) + first + last + 1);
	struct MHD_IoVec pieces[3];
	struct MHD_Response *response;
	unsigned int n = 0;

	if (!parts)
		return NULL;
	parts->sheet = nc_sheet_ref(sheet);
	memcpy(parts->short_ones, before, first);
	memcpy(parts->short_ones + first, behind, last);
	if (first > 0)
		pieces[n++] = (struct MHD_IoVec){parts->short_ones, first};
	pieces[n++] = (struct MHD_IoVec){sheet->text.data, sheet->text.size};
	if (last > 0)
		pieces[n++] = (struct MHD_IoVec){parts->short_ones + first, last};
	response = MHD_create_response_from_iovec(pieces, n, parts_free, parts);
	if (!response)
		parts_free(parts);
	return response;
}

static void reply_value(
	struct nc_exchange *exchange, unsigned int status, const char *type, json_t *value)
{
	char *text = value ? json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;

	json_decref(value);
	if (!text)
		answer(exchange, status, NULL, NULL);
	else
		send_bytes(exchange, status, type, text, strlen(text));
}

void nc_reply_json(struct nc_exchange *exchange, unsigned int status, json_t *value)
{
	reply_value(exchange, status, JSON_TYPE, value);
}

void nc_reply_sheet(struct nc_exchange *exchange, unsigned int status, const char *before,
	struct nc_sheet *sheet, const char *behind)
{
	nc_buf_cleanup struct nc_buf whole = NC_BUF(NC_REPLAY_SIZE_MAX);

	if (!sheet) {
		answer(exchange, status, NULL, NULL);
		return;
	}
	exchange->reply_size = strlen(before) + sheet->text.size + strlen(behind);
	/* what is small may be compressed, or kept for whoever asks again */
	if (exchange->reply_size <= (exchange->replay ? NC_REPLAY_SIZE_MAX : GZIP_MOST)) {
		nc_buf_adds(&whole, before);
		nc_buf_add(&whole, sheet->text.data, sheet->text.size);
		nc_buf_adds(&whole, behind);
		nc_reply_bytes(exchange, status, JSON_TYPE, nc_buf_text(&whole), whole.size);
		return;
	}
	if (exchange->replay)
		nc_replay_keep(exchange, status, JSON_TYPE, NULL, exchange->reply_size);
	answer(exchange, status, response_of(before, sheet, behind), JSON_TYPE);
}

void nc_reply_empty(struct nc_exchange *exchange, unsigned int status)
{
	answer(exchange, status, MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT),
		NULL);
}

void nc_problem_with(struct nc_exchange *exchange, unsigned int status, const char *code,
	const char *field, const char *remedy, const char *detail, json_t *more)
{
	json_t *problem = json_pack("{s:s, s:s, s:i, s:o, s:s, s:s?, s:s?, s:s}", "type",
		"about:blank", "title", title_of(status), "status", (int)status, "detail",
		nc_json_text(detail, strlen(detail)), "code", code, "field", field, "remedy",
		remedy, "request_id", exchange->id);

	if (problem && more)
		(void)json_object_update(problem, more);
	json_decref(more);
	reply_value(exchange, status, PROBLEM_TYPE, problem);
}

void nc_problem(struct nc_exchange *exchange, unsigned int status, const char *code,
	const char *field, const char *remedy, const char *format, ...)
{
	char detail[512];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(detail, sizeof(detail), format, args);
	va_end(args);
	nc_problem_with(exchange, status, code, field, remedy, detail, NULL);
}

void nc_problem_err(struct nc_exchange *exchange, const struct nacre_err *err)
{
	static const struct {
		int error;
		unsigned int status;
		const char *code, *remedy;
	} known[] = {
		{-ENOENT, 404, "not_found", NULL},
		{-EINVAL, 400, "bad_request", NULL},
		{-EBUSY, 409, "busy", "Try again later"},
		{-EAGAIN, 503, "busy", "Try again later"},
		{-ENOMEM, 503, "no_memory", "Try again later"},
		{-EMFILE, 503, "no_descriptors", "Try again later"},
		{-EOPNOTSUPP, 501, "not_supported", NULL},
		{-ECONNRESET, 503, "unavailable", "Try again later"},
		{-ENOSPC, 507, "no_space", NULL},
		{-E2BIG, 413, "too_large", "Send less"},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].error != err->code)
			continue;
		nc_problem(exchange, known[i].status, known[i].code, NULL, known[i].remedy, "%s",
			err->message);
		if (known[i].status == 503)
			nc_reply_retry(exchange, 1);
		return;
	}
	nc_problem(exchange, 500, "internal_error", NULL, NULL, "%s", err->message);
}

void nc_reply_stream(struct nc_exchange *exchange, const char *type, void *source,
	ssize_t (*pull)(void *source, char *data, size_t size), void (*unplug)(void *source))
{
	exchange->source = source;
	exchange->pull = pull;
	exchange->unplug = unplug;
	exchange->closes = true; /* a proxy may wait for the end of it */
	answer(exchange, 200,
		MHD_create_response_from_callback(
			MHD_SIZE_UNKNOWN, STREAM_BLOCK, nc_exchange_pull, exchange, NULL),
		type);
}

void nc_reply_upgrade(struct nc_exchange *exchange, const char *protocol, void *source,
	void (*upgraded)(void *source, int fd, const char *data, size_t size),
	void (*unplug)(void *source))
{
	struct MHD_Response *response =
		MHD_create_response_for_upgrade(nc_exchange_upgrade, exchange);

	exchange->source = source;
	exchange->unplug = unplug;
	if (response)
		exchange->upgraded = upgraded;
	answer(exchange, MHD_HTTP_SWITCHING_PROTOCOLS, response, NULL);
	nc_reply_header(exchange, "Upgrade", protocol);
}

void nc_reply_header(struct nc_exchange *exchange, const char *name, const char *value)
{
	if (exchange->response)
		(void)MHD_add_response_header(exchange->response, name, value);
	if (exchange->replay && nc_streq(name, "Location"))
		nc_replay_locate(exchange, value);
}

void nc_reply_retry(struct nc_exchange *exchange, unsigned int seconds)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%u", seconds);
	nc_reply_header(exchange, "Retry-After", text);
}

void nc_reply_bare(unsigned int status, struct nc_buf *out)
{
	static const struct {
		unsigned int status;
		const char *code, *detail;
	} known[] = {
		{408, "timeout", "The request did not come in time"},
		{413, "too_large", "The body is longer than this takes"},
		{503, "busy", "Too much is open at once"},
	};
	char body[512] = "";

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].status == status)
			(void)snprintf(body, sizeof(body),
				"{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%u,"
				"\"detail\":\"%s\",\"code\":\"%s\",\"field\":null,"
				"\"remedy\":\"Try again\",\"request_id\":null}",
				title_of(status), status, known[i].detail, known[i].code);
	nc_buf_addf(out,
		"HTTP/1.1 %u %s\r\nContent-Type: " PROBLEM_TYPE "\r\nContent-Length: %zu\r\n"
		"%sConnection: close\r\n\r\n%s",
		status, title_of(status), strlen(body), status == 503 ? "Retry-After: 1\r\n" : "",
		body);
}
