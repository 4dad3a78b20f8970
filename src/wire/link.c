/* One end of the connection between two relays. */
#include "wire/link.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define IN_MAX (NC_RELAY_HEAD + NC_RELAY_MESSAGE_MAX)
/* As much is put together at once, and a little more. */
#define BYTES_ENOUGH (64U * 1024)
/* Bytes of streams that are copied for that; more are sent from where they are. */
#define COPY_MAX 4096U
#define BYTES_MAX (BYTES_ENOUGH + 512U * 1024)
#define LAZY_NS NC_NS_PER_S
/* Messages that are acknowledged at once; before that it can wait. */
#define UNTOLD_MAX 32U
/* Frames for streams that are gone, which came before that was known. */
#define PATIENCE (NC_RELAY_STREAMS_MAX * 2 * NC_RELAY_HEAD)

/* NOLINTBEGIN(bugprone-macro-parentheses): a name cannot be in parentheses */
#define EACH_STREAM(link, stream)                                                                  \
	for (struct nc_link_stream *stream = next_open(link, NULL); stream;                        \
		stream = next_open(link, stream))
/* NOLINTEND(bugprone-macro-parentheses) */

static struct nc_link_stream *next_open(
	const struct nc_link *link, const struct nc_link_stream *stream)
{
	size_t i = stream ? (size_t)(stream - link->streams) + 1 : 0;

	while (i < NC_RELAY_STREAMS_MAX && link->streams[i].id == 0)
		i++;
	return i < NC_RELAY_STREAMS_MAX ? (struct nc_link_stream *)(uintptr_t)&link->streams[i]
					: NULL;
}

void nc_link_init(
	struct nc_link *link, bool near, uint64_t session, const struct nc_link_user *user)
{
	*link = (struct nc_link){.user = user,
		.near = near,
		.session = session,
		.last_id = near ? UINT32_MAX : 0, /* the first ones are 1 and 2 */
		.their_id = near ? 0 : UINT32_MAX,
		.patience = PATIENCE,
		.in = NC_BUF(IN_MAX),
		.bytes = NC_BUF(BYTES_MAX)};
	link->out.end = &link->out.first;
}

static void drop_letters(struct nc_link *link, uint64_t number);

void nc_link_done(struct nc_link *link)
{
	drop_letters(link, link->out.next);
	for (size_t i = 0; i < NC_RELAY_STREAMS_MAX; i++)
		nc_freep(&link->streams[i].ring);
	nc_freep(&link->tail_ring);
	nc_buf_done(&link->in);
	nc_buf_done(&link->bytes);
}

/* ---- streams ---- */

static uint32_t window_of(const struct nc_link *link, const struct nc_link_stream *stream)
{
	return stream < link->streams + NC_RELAY_WIDE ? NC_RELAY_WINDOW_WIDE : NC_RELAY_WINDOW;
}

static struct nc_link_stream *stream_new(struct nc_link *link, uint32_t id, bool sends)
{
	struct nc_link_stream *stream = link->streams;

	while (stream->id > 0)
		if (++stream == link->streams + NC_RELAY_STREAMS_MAX)
			return NULL;
	*stream = (struct nc_link_stream){.id = id,
		.sends = sends,
		.fd = -EBADF,
		.window = window_of(link, stream),
		.credit = NC_RELAY_WINDOW};
	return stream;
}

static void stream_free(struct nc_link *link, struct nc_link_stream *stream)
{
	if (link->tail_stream == stream)
		link->tail_ring = take_ptr(stream->ring);
	if (link->data_stream == stream)
		link->data_stream = NULL;
	nc_freep(&stream->ring);
	stream->id = 0;
}

struct nc_link_stream *nc_link_find(struct nc_link *link, uint32_t id)
{
	EACH_STREAM (link, stream)
		if (stream->id == id)
			return stream;
	return NULL;
}

/* Odd numbers are the near end's. */
static bool is_ours(const struct nc_link *link, uint32_t id)
{
	return (id % 2 == 1) == link->near;
}

static bool is_gone(const struct nc_link *link, uint32_t id)
{
	const uint32_t last = is_ours(link, id) ? link->last_id : link->their_id;

	return last != UINT32_MAX && id <= last;
}

static struct nc_link_stream *open_next(struct nc_link *link, bool ours, bool sends)
{
	uint32_t *last = ours ? &link->last_id : &link->their_id;
	struct nc_link_stream *stream = stream_new(link, *last + 2, sends);

	if (stream)
		*last = stream->id;
	return stream;
}

struct nc_link_stream *nc_link_open(struct nc_link *link, bool sends)
{
	struct nc_link_stream *stream = open_next(link, true, sends);

	assert(stream);
	return stream;
}

/* An acknowledgement waits: not for long if this is pressing. */
static void note(struct nc_link *link, bool presses)
{
	link->urgent |= presses;
	if (link->lazy_ns == 0)
		link->lazy_ns = link->now_ns > 0 ? link->now_ns : 1;
}

static void stream_over(struct nc_link *link, struct nc_link_stream *stream, bool presses)
{
	link->user->over(stream);
	stream->fd = -EBADF;
	if (link->data_stream == stream)
		link->data_stream = NULL;
	nc_freep(&stream->ring);
	stream->first = stream->last;
	stream->is_over = true;
	note(link, presses);
}

void nc_link_reset(struct nc_link *link, struct nc_link_stream *stream)
{
	/* what is on its way */
	if (!stream->ended)
		link->patience += (int64_t)(stream->credit - stream->last) * 2 + PATIENCE;
	stream_over(link, stream, true);
}

/* After more was delivered. */
static void progress(struct nc_link *link, struct nc_link_stream *stream)
{
	if (stream->ended && stream->first == stream->last) {
		stream_over(link, stream, false);
		return;
	}
	if (stream->first == stream->sent)
		return;
	stream->tells = true;
	note(link, stream->first - stream->sent >= stream->window / 2 ||
			   stream->credit - stream->last < NC_RELAY_WINDOW / 2);
}

/* Both sides of the ring's end. */
static size_t copy_in(struct nc_link_stream *stream, const unsigned char *data, size_t size)
{
	const size_t at = stream->last & (stream->window - 1);
	const size_t part = size < stream->window - at ? size : stream->window - at;

	assert(stream->last + size - stream->first <= stream->window);
	memcpy(stream->ring + at, data, part);
	memcpy(stream->ring, data + part, size - part);
	return size;
}

static bool has_ring(struct nc_link_stream *stream)
{
	if (!stream->ring)
		stream->ring = malloc(stream->window);
	return stream->ring;
}

void nc_link_flush(struct nc_link *link, struct nc_link_stream *stream)
{
	while (nc_link_waits(stream)) {
		const size_t at = stream->first & (stream->window - 1);
		const size_t left = (size_t)(stream->last - stream->first);
		const size_t part = left < stream->window - at ? left : stream->window - at;
		const ssize_t n = link->user->deliver(stream, stream->ring + at, part);

		if (n < 0) {
			nc_link_reset(link, stream);
			return;
		}
		stream->first += (size_t)n;
		if ((size_t)n < part)
			break;
	}
	progress(link, stream);
}

/* Bytes that are new: to whom they belong, or into the ring. */
static int receive(
	struct nc_link *link, struct nc_link_stream *stream, const unsigned char *data, size_t size)
{
	ssize_t n = 0;

	if (stream->first == stream->last)
		n = link->user->deliver(stream, data, size);
	if (n < 0) {
		stream->last += size;
		nc_link_reset(link, stream);
		return 0;
	}
	if ((size_t)n < size) {
		if (!has_ring(stream))
			return -ENOMEM;
		stream->last += (size_t)n;
		stream->first += (size_t)n;
		stream->last += copy_in(stream, data + n, size - (size_t)n);
	} else {
		stream->first = stream->last += size;
	}
	progress(link, stream);
	return 0;
}

size_t nc_link_space(struct nc_link_stream *stream, unsigned char **ret_at)
{
	const size_t at = stream->last & (stream->window - 1);
	const size_t room = stream->window - (size_t)(stream->last - stream->first);

	if (stream->ended || room == 0 || !has_ring(stream))
		return 0;
	*ret_at = stream->ring + at;
	return room < stream->window - at ? room : stream->window - at;
}

void nc_link_filled(struct nc_link_stream *stream, size_t size)
{
	stream->last += size;
}

void nc_link_end(struct nc_link_stream *stream)
{
	stream->ended = true;
}

bool nc_link_is_drained(const struct nc_link *link)
{
	EACH_STREAM (link, stream)
		if (stream->sends && !stream->end_sent)
			return false;
	return !link->out.unsent && nc_link_has_sent(link);
}

/* ---- messages that we send ---- */

bool nc_link_has_room(const struct nc_link *link, size_t n_streams)
{
	size_t n = 0;

	EACH_STREAM (link, stream)
		n++;
	return n + n_streams <= NC_RELAY_STREAMS_MAX && link->out.size <= NC_RELAY_UNACKED_MAX;
}

int nc_link_post(
	struct nc_link *link, const void *data, size_t size, const struct nc_carry *list, size_t n)
{
	struct nc_link_letter *letter =
		malloc(sizeof(*letter) + NC_RELAY_HEAD + 1 + 6 * NC_WIRE_FDS_MAX + size);
	struct nc_relay_frame frame = {.type = NC_RELAY_MESSAGE, .number = link->out.next};
	size_t list_size;

	assert(size <= NC_WIRE_MESSAGE_MAX && n <= NC_WIRE_FDS_MAX);
	if (!letter)
		return -ENOMEM;
	*letter = (struct nc_link_letter){.since_ns = link->now_ns, .before_id = link->last_id};
	for (size_t i = n; i > 0; i--) /* the first stream that it opens */
		if (list[i - 1].stream > 0)
			letter->before_id = list[i - 1].stream - 2;
	list_size = nc_relay_put_carries(letter->data + NC_RELAY_HEAD, list, n);
	memcpy(letter->data + NC_RELAY_HEAD + list_size, data, size);
	frame.size = (uint32_t)(list_size + size);
	nc_relay_put_head(letter->data, &frame);
	letter->size = NC_RELAY_HEAD + frame.size;
	*link->out.end = letter;
	link->out.end = &letter->next;
	if (!link->out.unsent)
		link->out.unsent = letter;
	link->out.next++;
	link->out.size += letter->size;
	return 0;
}

static void drop_letters(struct nc_link *link, uint64_t number)
{
	while (link->out.begin < number) {
		struct nc_link_letter *letter = link->out.first;

		assert(letter);
		link->out.first = letter->next;
		if (link->out.unsent == letter) { /* sent on the connection before */
			link->out.unsent = letter->next;
			link->out.sent++;
		}
		if (!link->out.first)
			link->out.end = &link->out.first;
		link->out.size -= letter->size;
		link->out.begin++;
		free(letter);
	}
}

/* ---- output ---- */

static void put_head(struct nc_link *link, enum nc_relay_type type, uint32_t stream,
	uint64_t number, size_t size)
{
	const struct nc_relay_frame frame = {type, stream, number, (uint32_t)size};
	unsigned char head[NC_RELAY_HEAD];

	nc_relay_put_head(head, &frame);
	nc_buf_add(&link->bytes, head, sizeof(head));
}

static void put(struct nc_link *link, enum nc_relay_type type, uint32_t stream, uint64_t number)
{
	put_head(link, type, stream, number, 0);
}

/* Whether the other end has heard of it, or will before anything that is put now. */
static bool is_announced(const struct nc_link *link, uint32_t id)
{
	return !is_ours(link, id) || !link->out.unsent ||
	       (link->out.unsent->before_id != UINT32_MAX && id <= link->out.unsent->before_id);
}

static void put_acknowledgements(struct nc_link *link)
{
	bool later = false;

	if (link->in_told < link->in_next)
		put(link, NC_RELAY_ACK, 0, link->in_told = link->in_next);
	EACH_STREAM (link, stream) {
		if (stream->sends)
			continue;
		if (!is_announced(link, stream->id)) {
			later |= stream->tells;
		} else if (stream->is_over) {
			put(link, NC_RELAY_RESET, stream->id, 0);
			stream_free(link, stream);
		} else if (stream->tells) {
			stream->tells = false;
			stream->sent = stream->first;
			stream->credit = stream->first + stream->window;
			put(link, NC_RELAY_ACK, stream->id, stream->first);
			put(link, NC_RELAY_CREDIT, stream->id, stream->credit);
		}
	}
	while (link->n_gone > 0)
		put(link, NC_RELAY_RESET, link->gone[--link->n_gone], 0);
	link->urgent = later;
	link->lazy_ns = 0;
}

static uint64_t sendable(const struct nc_link_stream *stream)
{
	const uint64_t end = stream->last < stream->credit ? stream->last : stream->credit;

	return end > stream->sent && !stream->waits ? end - stream->sent : 0;
}

static bool ends_now(const struct nc_link_stream *stream)
{
	return stream->ended && !stream->end_sent && !stream->waits && stream->sent == stream->last;
}

static bool has_more(const struct nc_link *link)
{
	if (link->urgent || link->out.unsent || !link->said)
		return true;
	EACH_STREAM (link, stream)
		if (stream->sends && (stream->asks || ends_now(stream) || sendable(stream) > 0))
			return true;
	return false;
}

static void put_piece(struct nc_link *link, struct nc_link_stream *stream)
{
	const size_t at = stream->sent & (stream->window - 1);
	uint64_t size = sendable(stream);

	if (size > NC_RELAY_PIECE_MAX)
		size = NC_RELAY_PIECE_MAX;
	if (size > stream->window - at)
		size = stream->window - at;
	if (size > COPY_MAX) {
		put_head(link, NC_RELAY_DATA, stream->id, stream->sent, (size_t)size);
		link->tail = stream->ring + at;
		link->tail_size = (size_t)size;
		link->tail_stream = stream;
	} else if (size > 0 || stream->asks) {
		put_head(link, NC_RELAY_DATA, stream->id, stream->sent, (size_t)size);
		nc_buf_add(&link->bytes, stream->ring + at, (size_t)size);
	}
	stream->asks = false;
	stream->sent += size;
	if (stream->sent_max < stream->sent)
		stream->sent_max = stream->sent;
	if (ends_now(stream) && link->tail_size == 0) {
		put(link, NC_RELAY_END, stream->id, stream->last);
		stream->end_sent = true;
	}
}

/* A piece of each stream in turn, for as long as there is one. */
static void put_streams(struct nc_link *link)
{
	size_t idle = 0;

	while (idle < NC_RELAY_STREAMS_MAX && link->bytes.size < BYTES_ENOUGH &&
		link->tail_size == 0) {
		const size_t before = link->bytes.size;
		struct nc_link_stream *stream = &link->streams[link->turn];

		link->turn = (link->turn + 1) % NC_RELAY_STREAMS_MAX;
		if (stream->id > 0 && stream->sends)
			put_piece(link, stream);
		idle = link->bytes.size > before ? 0 : idle + 1;
	}
}

static void put_together(struct nc_link *link)
{
	if (!link->said) {
		put(link, NC_RELAY_HELLO, NC_RELAY_VERSION, link->session);
		link->said = true;
	}
	put_acknowledgements(link);
	while (link->out.unsent && link->bytes.size < BYTES_ENOUGH) {
		nc_buf_add(&link->bytes, link->out.unsent->data, link->out.unsent->size);
		link->out.unsent = link->out.unsent->next;
		if (link->out.sent_max < ++link->out.sent)
			link->out.sent_max = link->out.sent;
	}
	if (!link->out.unsent)
		put_streams(link);
}

static void drop_tail(struct nc_link *link)
{
	nc_freep(&link->tail_ring);
	link->tail_stream = NULL;
	link->tail_size = 0;
}

bool nc_link_has_sent(const struct nc_link *link)
{
	return link->bytes_sent == link->bytes.size && link->tail_size == 0;
}

ssize_t nc_link_output(struct nc_link *link, struct iovec ret_parts[static 2])
{
	if (nc_link_has_sent(link)) {
		link->bytes_sent = link->bytes.size = 0;
		if (!link->bye_said && has_more(link))
			put_together(link);
		if (link->bye_wanted && !link->bye_said && link->tail_size == 0) {
			put(link, NC_RELAY_END, 0, link->bye);
			link->bye_said = true;
		}
	}
	ret_parts[0] = (struct iovec){
		link->bytes.data + link->bytes_sent, link->bytes.size - link->bytes_sent};
	ret_parts[1] = (struct iovec){(void *)(uintptr_t)link->tail, link->tail_size};
	return link->bytes.error < 0 ? link->bytes.error
				     : (ssize_t)(ret_parts[0].iov_len + ret_parts[1].iov_len);
}

void nc_link_sent(struct nc_link *link, size_t size)
{
	const size_t left = link->bytes.size - link->bytes_sent;
	const size_t n = size < left ? size : left;

	link->bytes_sent += n;
	link->tail += size - n;
	link->tail_size -= size - n;
	if (link->tail_size == 0)
		drop_tail(link);
}

void nc_link_bye(struct nc_link *link, enum nc_bye bye)
{
	if (!link->bye_wanted)
		link->bye = bye;
	link->bye_wanted = true;
}

/* ---- input ---- */

static int refuse(struct nc_link *link, const char *why)
{
	link->why = why;
	return -EPROTO;
}

static int take_hello(struct nc_link *link, const struct nc_relay_frame *frame)
{
	if (link->greeted)
		return refuse(link, "It greets twice");
	if (frame->stream != NC_RELAY_VERSION)
		return refuse(link, "It speaks another version");
	if (link->near ? frame->number != link->session &&
				 (frame->number != 0 || link->in_next > 0 || link->out.begin > 0)
		       : frame->number == 0 ||
				 (link->session > 0 && frame->number != link->session))
		return refuse(link, "It is another's connection");
	link->session = link->near ? link->session : frame->number;
	link->greeted = true;
	return 0;
}

/* The streams of a message from the other end, numbered as they must be. */
static int open_theirs(struct nc_link *link, const struct nc_carry *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const bool both = list[i].kind == NC_CARRY_BOTH;

		if (list[i].stream == 0)
			continue;
		if (list[i].stream != link->their_id + 2)
			return refuse(link, "It numbers its streams wrongly");
		if (link->their_id != UINT32_MAX && link->their_id > UINT32_MAX - 8)
			return refuse(link, "It has used up its streams");
		if (!open_next(link, false, list[i].kind == NC_CARRY_INTO) ||
			(both && !open_next(link, false, true)))
			return refuse(link, "It opens too many streams");
	}
	return 0;
}

static int take_message(struct nc_link *link, const struct nc_relay_frame *frame,
	const unsigned char *body, bool *ret_full)
{
	struct nc_carry list[NC_WIRE_FDS_MAX];
	size_t n;
	int used, r;

	if (frame->number < link->in_next && frame->number < link->in_seen)
		return 0; /* again, after the connection was lost */
	if (frame->number != link->in_next)
		return refuse(link, "It numbers its messages wrongly");
	used = nc_relay_get_carries(body, frame->size, list, &n);
	if (used < 0 || frame->size - (size_t)used > NC_WIRE_MESSAGE_MAX)
		return refuse(link, "It sends a broken message");
	r = open_theirs(link, list, n);
	if (r < 0)
		return r;
	link->in_next++;
	note(link, link->in_next - link->in_told >= UNTOLD_MAX);
	return link->user->message(
		link->user->context, body + used, frame->size - (size_t)used, list, n, ret_full);
}

static int lose_patience(struct nc_link *link, int64_t bytes)
{
	link->patience -= bytes;
	return link->patience < 0 ? refuse(link, "It goes on about streams that are gone") : 0;
}

/* For a stream that is gone: it may not know that yet. */
static int take_late(struct nc_link *link, const struct nc_relay_frame *frame)
{
	int r;

	if (!is_gone(link, frame->stream))
		return refuse(link, "It sends to a stream that there never was");
	r = lose_patience(link, (int64_t)frame->size + NC_RELAY_HEAD);
	if (r < 0)
		return r;
	if (frame->type == NC_RELAY_DATA && frame->size == 0 &&
		link->n_gone < NC_RELAY_STREAMS_MAX) {
		link->gone[link->n_gone++] = frame->stream;
		link->urgent = true;
	}
	link->data_stream = NULL;
	link->data_left = frame->size;
	return 0;
}

static int take_data(struct nc_link *link, const struct nc_relay_frame *frame)
{
	struct nc_link_stream *stream = nc_link_find(link, frame->stream);
	uint64_t again;

	link->data_again = 0;
	if (!stream || stream->is_over)
		return take_late(link, frame);
	if (stream->sends || frame->number > stream->last)
		return refuse(link, "It leaves bytes out");
	again = stream->last - frame->number;
	again = again < frame->size ? again : frame->size;
	if (again > 0 && frame->number + again > stream->sent_max)
		return refuse(link, "It sends bytes again");
	if (again < frame->size && (stream->ended || frame->number + frame->size > stream->credit))
		return refuse(link, "It sends more than its credit");
	if (frame->size == 0) {
		stream->tells = true;
		note(link, true);
	}
	link->data_stream = stream;
	link->data_left = frame->size;
	link->data_again = (size_t)again;
	return 0;
}

static int take_end(struct nc_link *link, const struct nc_relay_frame *frame)
{
	struct nc_link_stream *stream;

	if (frame->stream == 0) {
		if (frame->number >= NC_BYE_MAX)
			return refuse(link, "It says farewell in an unknown way");
		link->bye_heard = true;
		link->their_bye = (enum nc_bye)frame->number;
		return 0;
	}
	stream = nc_link_find(link, frame->stream);
	if (!stream || stream->is_over)
		return take_late(link, frame);
	if (stream->sends || frame->number != stream->last)
		return refuse(link, "It ends a stream where it does not end");
	stream->ended = true;
	progress(link, stream);
	return 0;
}

/* About what we send: it can be of no stream that is gone, since it is the other end that says so.
 */
static int take_answer(struct nc_link *link, const struct nc_relay_frame *frame)
{
	struct nc_link_stream *stream;

	if (frame->stream == 0) {
		if (frame->number < link->out.begin || frame->number > link->out.sent_max)
			return refuse(link, "It acknowledges what was not sent");
		drop_letters(link, frame->number);
		return 0;
	}
	stream = nc_link_find(link, frame->stream);
	/* a second time, if it was asked for it after the connection had been lost */
	if (!stream && frame->type == NC_RELAY_RESET && is_gone(link, frame->stream))
		return lose_patience(link, NC_RELAY_HEAD);
	if (!stream || !stream->sends)
		return refuse(link, "It answers for a stream that it does not have");
	stream->waits = false;
	if (frame->type == NC_RELAY_RESET) {
		link->user->over(stream);
		stream_free(link, stream);
	} else if (frame->type == NC_RELAY_CREDIT) {
		if (frame->number < stream->credit)
			return refuse(link, "It takes credit back");
		stream->credit = frame->number;
	} else {
		if (frame->number < stream->first || frame->number > stream->sent_max)
			return refuse(link, "It acknowledges what was not sent");
		stream->first = frame->number;
		if (stream->sent < stream->first)
			stream->sent = stream->first;
	}
	return 0;
}

static int take_frame(struct nc_link *link, const struct nc_relay_frame *frame,
	const unsigned char *body, bool *ret_full)
{
	if (frame->type == NC_RELAY_HELLO)
		return take_hello(link, frame);
	if (frame->type == NC_RELAY_MESSAGE)
		return take_message(link, frame, body, ret_full);
	return frame->type == NC_RELAY_END ? take_end(link, frame) : take_answer(link, frame);
}

/* The bytes of a frame of data, as they come. */
static int take_bytes(struct nc_link *link, const unsigned char *data, size_t size, size_t *used)
{
	const size_t n = size < link->data_left ? size : link->data_left;
	const size_t skip = n < link->data_again ? n : link->data_again;

	*used += n;
	link->data_left -= n;
	link->data_again -= skip;
	return link->data_stream && n > skip
		       ? receive(link, link->data_stream, data + skip, n - skip)
		       : 0;
}

size_t nc_link_straight(const struct nc_link *link, struct nc_link_stream **ret_stream)
{
	*ret_stream = link->data_stream;
	return link->data_stream && link->data_again == 0 &&
			       link->data_stream->first == link->data_stream->last
		       ? link->data_left
		       : 0;
}

void nc_link_passed(struct nc_link *link, size_t size)
{
	struct nc_link_stream *stream = link->data_stream;

	link->data_left -= size;
	stream->first = stream->last += size;
	progress(link, stream);
}

/* Adds to the frame that is not whole, up to as many bytes as wanted. Whether it has them. */
static bool gather(
	struct nc_link *link, size_t wanted, const unsigned char *data, size_t size, size_t *used)
{
	size_t n = wanted > link->in.size ? wanted - link->in.size : 0;

	n = n < size - *used ? n : size - *used;
	nc_buf_add(&link->in, data + *used, n);
	*used += n;
	return link->in.size >= wanted;
}

int nc_link_input(struct nc_link *link, const unsigned char *data, size_t size, size_t *ret_used)
{
	bool full = false;
	size_t used = 0;
	int r = 0;

	while (r == 0 && !full && !link->bye_heard && used < size) {
		const unsigned char *head;
		struct nc_relay_frame frame;

		if (link->data_left > 0) {
			r = take_bytes(link, data + used, size - used, &used);
			continue;
		}
		if (!gather(link, NC_RELAY_HEAD, data, size, &used))
			break;
		head = (const unsigned char *)link->in.data;
		if (nc_relay_get_head(head, &frame) < 0)
			return refuse(link, "It sends what is no frame");
		if (frame.type != NC_RELAY_HELLO && !link->greeted)
			return refuse(link, "It does not greet first");
		if (frame.type == NC_RELAY_DATA) {
			r = take_data(link, &frame);
			link->in.size = 0;
			link->n_frames++;
			continue;
		}
		if (!gather(link, NC_RELAY_HEAD + frame.size, data, size, &used))
			break;
		r = take_frame(link, &frame, (unsigned char *)link->in.data + NC_RELAY_HEAD, &full);
		link->in.size = 0;
		link->n_frames++;
	}
	*ret_used = used;
	return link->in.error < 0 ? link->in.error : r;
}

/* ---- time, and connections that are lost ---- */

void nc_link_renew(struct nc_link *link)
{
	link->said = link->greeted = link->bye_said = false;
	link->begun_ns = link->now_ns;
	link->bytes.size = link->bytes_sent = link->in.size = 0;
	drop_tail(link);
	link->data_left = link->data_again = link->n_gone = 0;
	link->data_stream = NULL;
	link->patience += PATIENCE;
	link->out.unsent = link->out.first;
	link->out.sent = link->out.begin;
	link->in_seen = link->in_next;
	link->in_told = link->in_next > 0 ? link->in_next - 1 : 0;
	EACH_STREAM (link, stream) {
		if (stream->sends) {
			stream->sent = stream->first;
			stream->end_sent = false;
			stream->asks = stream->waits = true;
		} else if (!stream->is_over) {
			stream->sent_max = stream->last;
		}
	}
	link->urgent = true;
}

static void sooner(uint64_t *next_ns, uint64_t ns)
{
	if (*next_ns == 0 || ns < *next_ns)
		*next_ns = ns;
}

int nc_link_tick(struct nc_link *link, uint64_t *ret_next_ns)
{
	const uint64_t patience_ns = NC_RELAY_PATIENCE_MS * NC_NS_PER_MS;
	const struct nc_link_letter *oldest = link->out.first;
	uint64_t next_ns = 0;

	if (!link->greeted)
		next_ns = link->begun_ns + patience_ns;
	else if (oldest)
		next_ns = patience_ns +
			  (oldest->since_ns > link->begun_ns ? oldest->since_ns : link->begun_ns);
	if (next_ns > 0 && link->now_ns >= next_ns) {
		link->why = "It has not answered for too long";
		return -ETIMEDOUT;
	}
	if (link->lazy_ns > 0 && link->now_ns >= link->lazy_ns + LAZY_NS)
		link->urgent = true;
	else if (link->lazy_ns > 0)
		sooner(&next_ns, link->lazy_ns + LAZY_NS);
	*ret_next_ns = next_ns;
	return 0;
}
