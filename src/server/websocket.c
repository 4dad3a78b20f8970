/* Frames of WebSockets. */
#include "server/websocket.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/hash.h"
#include "base/text.h"

#define FIN 0x80U
#define RESERVED 0x70U
#define MASKED 0x80U

void nc_ws_reader_init(struct nc_ws_reader *reader, bool masked, size_t max)
{
	*reader = (struct nc_ws_reader){.masked = masked, .message = NC_BUF(max)};
}

void nc_ws_reader_done(struct nc_ws_reader *reader)
{
	nc_buf_done(&reader->message);
}

static int fail(struct nc_ws_reader *reader, unsigned int code)
{
	reader->fault = code;
	return -EPROTO;
}

static bool is_control(unsigned int kind)
{
	return kind >= NC_WS_CLOSE;
}

/* Bytes of a head, as far as its first two tell. */
static size_t head_wanted(const struct nc_ws_reader *reader)
{
	unsigned int length = reader->head[1] & 0x7fU;

	if (reader->head_size < 2)
		return 2;
	return 2 + (length == 126 ? 2U : length == 127 ? 8U : 0U) + (reader->masked ? 4U : 0U);
}

static uint64_t length_of(const struct nc_ws_reader *reader)
{
	unsigned int length = reader->head[1] & 0x7fU;
	size_t n = length == 126 ? 2 : length == 127 ? 8 : 0;
	uint64_t value = 0;

	for (size_t i = 0; i < n; i++)
		value = value << 8 | reader->head[2 + i];
	return n ? value : length;
}

/* Whether its first two bytes are those of a frame from the other side. */
static bool is_ours(const struct nc_ws_reader *reader)
{
	return !(reader->head[0] & RESERVED) && !(reader->head[1] & MASKED) != reader->masked;
}

/* The head of a frame is whole: whether it may stand here. */
static int begin_frame(struct nc_ws_reader *reader)
{
	unsigned int first = reader->head[0], kind = first & 0x0fU;
	unsigned int short_length = reader->head[1] & 0x7fU;
	uint64_t length = length_of(reader);

	if ((short_length == 126 && length < 126) || (short_length == 127 && length < 65536))
		return fail(reader, NC_WS_PROTOCOL); /* there is a shorter way to say it */
	if (kind != NC_WS_MORE && kind != NC_WS_TEXT && kind != NC_WS_BINARY &&
		kind != NC_WS_CLOSE && kind != NC_WS_PING && kind != NC_WS_PONG)
		return fail(reader, NC_WS_PROTOCOL);
	if (is_control(kind) && (!(first & FIN) || length > NC_WS_CONTROL_MAX))
		return fail(reader, NC_WS_PROTOCOL);
	if (!is_control(kind) && (kind == NC_WS_MORE) != (reader->begun != NC_WS_MORE))
		return fail(reader, NC_WS_PROTOCOL);
	if (!is_control(kind) && length > reader->message.max - reader->message.size)
		return fail(reader, NC_WS_TOO_LARGE);
	if (!is_control(kind) && kind != NC_WS_MORE)
		reader->begun = (enum nc_ws_kind)kind;
	reader->control_size = 0;
	reader->left = length;
	reader->at = 0;
	return 0;
}

static bool is_text(const char *text, size_t size)
{
	for (size_t i = 0, n; i < size; i += n) {
		n = nc_text_utf8(text + i, size - i);
		if (n == 0)
			return false;
	}
	return true;
}

static bool is_good_code(unsigned int code)
{
	return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
	       (code >= 3000 && code <= 4999);
}

unsigned int nc_ws_code_of(const struct nc_ws_reader *reader)
{
	return reader->size < 2 ? 0
				: (unsigned int)(unsigned char)reader->data[0] << 8 |
					  (unsigned char)reader->data[1];
}

static int check_message(struct nc_ws_reader *reader)
{
	if (reader->kind == NC_WS_TEXT && !is_text(reader->data, reader->size))
		return fail(reader, NC_WS_NOT_TEXT);
	if (reader->kind != NC_WS_CLOSE || reader->size == 0)
		return 0;
	if (reader->size < 2 || !is_good_code(nc_ws_code_of(reader)))
		return fail(reader, NC_WS_PROTOCOL);
	return is_text(reader->data + 2, reader->size - 2) ? 0 : fail(reader, NC_WS_NOT_TEXT);
}

/* The data of a frame are whole. */
static int end_frame(struct nc_ws_reader *reader)
{
	unsigned int kind = reader->head[0] & 0x0fU;
	bool last = reader->head[0] & FIN;

	reader->head_size = 0;
	if (is_control(kind)) {
		reader->kind = (enum nc_ws_kind)kind;
		reader->data = reader->control;
		reader->size = reader->control_size;
	} else if (last) {
		reader->kind = reader->begun;
		reader->data = nc_buf_text(&reader->message);
		reader->size = reader->message.size;
		reader->begun = NC_WS_MORE;
	} else {
		return 0;
	}
	reader->whole = true;
	return check_message(reader);
}

static int add_data(struct nc_ws_reader *reader, const char *data, size_t size)
{
	const unsigned char *mask =
		reader->masked ? reader->head + reader->head_size - 4 : reader->head;
	bool control = is_control(reader->head[0] & 0x0fU);
	char chunk[512];

	while (size > 0) {
		size_t n = size < sizeof(chunk) ? size : sizeof(chunk);

		for (size_t i = 0; i < n; i++)
			chunk[i] = (char)(data[i] ^
					  (reader->masked ? (char)mask[(reader->at + i) % 4] : 0));
		if (control) {
			memcpy(reader->control + reader->control_size, chunk, n);
			reader->control_size += n;
		} else {
			nc_buf_add(&reader->message, chunk, n);
		}
		reader->at += n;
		reader->left -= n;
		data += n;
		size -= n;
	}
	return reader->message.error < 0 ? fail(reader, NC_WS_TOO_LARGE) : 0;
}

static size_t least(uint64_t a, size_t b)
{
	return a < b ? (size_t)a : b;
}

ssize_t nc_ws_take(struct nc_ws_reader *reader, const char *data, size_t size)
{
	size_t used = 0, n;
	int r = 0;

	if (reader->fault)
		return -EPROTO;
	if (reader->whole && !is_control(reader->kind))
		reader->message.size = 0;
	reader->whole = false;
	while (r == 0 && !reader->whole && used < size) {
		if (reader->head_size < head_wanted(reader)) {
			reader->head[reader->head_size++] = (unsigned char)data[used++];
			/* before more of it is waited for */
			if (reader->head_size == 2 && !is_ours(reader))
				r = fail(reader, NC_WS_PROTOCOL);
			if (r < 0 || reader->head_size < head_wanted(reader))
				continue;
			r = begin_frame(reader);
		} else {
			n = least(reader->left, size - used);
			r = add_data(reader, data + used, n);
			used += n;
		}
		if (r == 0 && reader->left == 0)
			r = end_frame(reader);
	}
	return r < 0 ? r : (ssize_t)used;
}

void nc_ws_put(struct nc_buf *out, enum nc_ws_kind kind, const void *head, size_t head_size,
	const void *data, size_t size, const unsigned char *mask)
{
	unsigned char first[NC_WS_HEAD_MAX] = {(unsigned char)(FIN | (unsigned int)kind)};
	uint64_t length = head_size + size;
	size_t n = length < 126 ? 0 : length < 65536 ? 2 : 8, begin;

	first[1] = (unsigned char)((mask ? MASKED : 0) | (n == 0 ? length : n == 2 ? 126U : 127U));
	for (size_t i = 0; i < n; i++)
		first[2 + i] = (unsigned char)(length >> 8 * (n - 1 - i));
	if (mask)
		memcpy(first + 2 + n, mask, 4);
	nc_buf_add(out, first, 2 + n + (mask ? 4 : 0));
	begin = out->size;
	nc_buf_add(out, head, head_size);
	nc_buf_add(out, data, size);
	for (size_t i = begin; mask && out->error == 0 && i < out->size; i++)
		out->data[i] = (char)(out->data[i] ^ (char)mask[(i - begin) % 4]);
}

void nc_ws_put_close(
	struct nc_buf *out, unsigned int code, const char *reason, const unsigned char *mask)
{
	unsigned char head[2] = {(unsigned char)(code >> 8), (unsigned char)code};

	nc_ws_put(out, NC_WS_CLOSE, head, code ? 2 : 0, reason,
		code ? strnlen(reason, NC_WS_CONTROL_MAX - 2) : 0, mask);
}

int nc_ws_accept(const char *key, char out[static NC_WS_ACCEPT_SIZE])
{
	static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	unsigned char digest[NC_SHA1_SIZE];
	cleanup_free char *decoded = NULL, *encoded = NULL;
	char text[64];
	size_t size = 0, at;

	if (strlen(key) != 24 || nc_base64_decode(key, 24, &decoded, &size, &at) < 0 || size != 16)
		return -EINVAL;
	(void)snprintf(text, sizeof(text), "%s%s", key, guid);
	nc_sha1(text, strlen(text), digest);
	if (nc_base64_encode((const char *)digest, sizeof(digest), &encoded) < 0)
		return -ENOMEM;
	(void)snprintf(out, NC_WS_ACCEPT_SIZE, "%s", encoded);
	return 0;
}
