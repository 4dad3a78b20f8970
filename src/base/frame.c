/* Frames on a byte stream. */
#include "base/frame.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

static void put_size(char *out, size_t size)
{
	for (size_t i = 0; i < NC_FRAME_HEAD_SIZE; i++)
		out[i] = (char)(unsigned char)(size >> (8 * i));
}

static size_t get_size(const unsigned char *head)
{
	size_t size = 0;

	for (size_t i = 0; i < NC_FRAME_HEAD_SIZE; i++)
		size |= (size_t)head[i] << (8 * i);
	return size;
}

static int take_head(
	struct nc_frame_in *in, const char *data, size_t size, size_t *used, struct nacre_err *err)
{
	while (in->head_size < NC_FRAME_HEAD_SIZE) {
		if (*used == size)
			return 0;
		in->head[in->head_size++] = (unsigned char)data[(*used)++];
	}
	in->wanted = get_size(in->head);
	if (in->wanted > in->max)
		return nc_err_set(err, -EMSGSIZE, "A frame of %zu bytes; at most %zu are taken",
			in->wanted, in->max);
	in->body.max = in->max;
	return 1;
}

static int parse(struct nc_frame_in *in, json_t **ret_object, struct nacre_err *err)
{
	const char *text = nc_buf_text(&in->body);
	cleanup_json json_t *value = NULL;
	size_t values = nc_json_count(text, in->body.size);
	int r;

	if (values > in->max_values)
		return nc_err_set(err, -EMSGSIZE,
			"A frame of about %zu values; at most %zu are taken", values,
			in->max_values);
	r = nc_json_parse(text, in->body.size, &value, err);
	if (r < 0)
		return nc_err_wrap(err, "A frame");
	if (!json_is_object(value))
		return nc_err_set(err, -EINVAL, "A frame is no JSON object");
	*ret_object = take_ptr(value);
	return 1;
}

int nc_frame_take(struct nc_frame_in *in, const char *data, size_t size, size_t *ret_used,
	json_t **ret_object, struct nacre_err *err)
{
	size_t used = 0, room;
	int r = take_head(in, data, size, &used, err);

	if (r < 0)
		return r;
	if (r > 0) {
		room = in->wanted - in->body.size;
		room = size - used < room ? size - used : room;
		nc_buf_add(&in->body, data + used, room);
		if (in->body.error < 0)
			return nc_err_errno(err, in->body.error, "Take a frame");
		used += room;
	}
	*ret_used = used;
	if (r == 0 || in->body.size < in->wanted)
		return 0;
	r = parse(in, ret_object, err);
	nc_frame_in_done(in);
	return r;
}

void nc_frame_in_done(struct nc_frame_in *in)
{
	nc_buf_done(&in->body);
	in->head_size = 0;
}

/* What is sent goes when it is the greater part, so that each byte is moved once; or for room. */
static void compact(struct nc_frame_out *out, size_t wanted)
{
	size_t left = nc_frame_unsent(out);

	if (out->sent == 0 || (out->sent <= left && out->buf.max - out->buf.size >= wanted))
		return;
	memmove(out->buf.data, out->buf.data + out->sent, left);
	out->buf.size = left;
	out->sent = 0;
}

struct dump {
	struct nc_buf *buf;
	size_t max_size; /* of buf */
};

static int dump_piece(const char *text, size_t size, void *context)
{
	struct dump *dump = context;

	if (size > dump->max_size - dump->buf->size)
		return -1;
	nc_buf_add(dump->buf, text, size);
	return dump->buf->error;
}

int nc_frame_put(struct nc_frame_out *out, json_t *object, size_t max)
{
	cleanup_json json_t *owned = object;
	struct nc_buf *buf = &out->buf;
	struct dump dump = {.buf = buf};
	size_t start, room;
	int r;

	if (!owned)
		return -ENOMEM;
	compact(out, max + NC_FRAME_HEAD_SIZE);
	start = buf->size;
	room = buf->max - start;
	if (room < NC_FRAME_HEAD_SIZE)
		return -ENOBUFS;
	room -= NC_FRAME_HEAD_SIZE;
	dump.max_size = start + NC_FRAME_HEAD_SIZE + (max < room ? max : room);
	nc_buf_add(buf, (char[NC_FRAME_HEAD_SIZE]){0}, NC_FRAME_HEAD_SIZE);
	r = json_dump_callback(owned, dump_piece, &dump, JSON_COMPACT);
	if (r == 0 && buf->error == 0) {
		put_size(buf->data + start, buf->size - start - NC_FRAME_HEAD_SIZE);
		return 0;
	}
	r = buf->error < 0 ? -ENOMEM : max <= room ? -EMSGSIZE : -ENOBUFS;
	buf->error = 0;
	buf->size = start;
	return r;
}

int nc_frame_send(struct nc_frame_out *out, int fd)
{
	while (nc_frame_unsent(out) > 0) {
		struct iovec piece = {out->buf.data + out->sent, nc_frame_unsent(out)};
		const struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
		/* not send(), which the worker's filter does not know */
		ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		out->sent += (size_t)n;
	}
	nc_frame_out_done(out);
	return 1;
}

void nc_frame_out_done(struct nc_frame_out *out)
{
	nc_buf_done(&out->buf);
	out->sent = 0;
}
