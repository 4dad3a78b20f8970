/* Two ends of a relay's connection, in memory: flow control, numbers, connections that are lost,
 * and lies. */
#include "unit.h"

#include <string.h>

#include "base/clock.h"
#include "base/span.h"
#include "base/text.h"
#include "wire/link.h"

#define SINKS 8

/* What has come at one end. */
struct end {
	struct nc_link link;
	struct nc_link_user user;
	size_t n_messages;
	char last[64]; /* message */
	struct nc_carry list[NC_WIRE_FDS_MAX];
	size_t n_list;
	size_t appetite; /* bytes that are taken at once; SIZE_MAX - 1: never any more */
};

static struct sink {
	uint64_t size;
	bool is_over, is_wrong; /* wrong: not the bytes that number_at() tells */
} sinks[SINKS];

static size_t *appetite_of[SINKS];

static unsigned char number_at(uint64_t offset)
{
	return (unsigned char)(offset * 7 + offset / 251);
}

static int on_message(void *context, const unsigned char *data, size_t size,
	const struct nc_carry *list, size_t n, bool *ret_full)
{
	struct end *end = context;

	(void)ret_full;
	end->n_messages++;
	end->n_list = n;
	memcpy(end->list, list, n * sizeof(*list));
	memset(end->last, 0, sizeof(end->last));
	memcpy(end->last, data, size < sizeof(end->last) ? size : sizeof(end->last) - 1);
	for (size_t i = 0; i < n; i++)
		if (list[i].stream > 0)
			nc_link_find(&end->link, list[i].stream)->fd = (int)i;
	return 0;
}

static ssize_t on_deliver(struct nc_link_stream *stream, const unsigned char *data, size_t size)
{
	struct sink *sink = &sinks[stream->fd];
	const size_t appetite = appetite_of[stream->fd] ? *appetite_of[stream->fd] : SIZE_MAX;

	if (appetite == SIZE_MAX - 1)
		return -1;
	if (size > appetite)
		size = appetite;
	for (size_t i = 0; i < size; i++)
		sink->is_wrong |= data[i] != number_at(sink->size++);
	return (ssize_t)size;
}

static void on_over(struct nc_link_stream *stream)
{
	if (stream->fd >= 0)
		sinks[stream->fd].is_over = true;
}

static void begin(struct end *end, bool near)
{
	*end = (struct end){.appetite = SIZE_MAX};
	end->user = (struct nc_link_user){end, on_message, on_deliver, on_over};
	nc_link_init(&end->link, near, near ? 77 : 0, &end->user);
	end->link.now_ns = end->link.begun_ns = 1;
}

static struct end *begin_both(void)
{
	struct end *ends = calloc(2, sizeof(*ends));

	assert_non_null(ends);
	memset(sinks, 0, sizeof(sinks));
	memset(appetite_of, 0, sizeof(appetite_of));
	begin(&ends[0], true);
	begin(&ends[1], false);
	return ends;
}

static void done_both(struct end *ends)
{
	nc_link_done(&ends[0].link);
	nc_link_done(&ends[1].link);
	free(ends);
}

/* At most max bytes from one to the other. How many. */
static size_t move(struct end *from, struct end *to, size_t max)
{
	struct iovec parts[2];
	ssize_t n = nc_link_output(&from->link, parts);
	size_t moved = 0;

	assert_true(n >= 0);
	for (size_t i = 0; i < 2; i++) {
		const size_t size = parts[i].iov_len < max - moved ? parts[i].iov_len : max - moved;
		size_t used;

		if (size == 0)
			continue;
		assert_int_equal(nc_link_input(&to->link, parts[i].iov_base, size, &used), 0);
		assert_int_equal(used, size);
		moved += size;
	}
	nc_link_sent(&from->link, moved);
	return moved;
}

static void settle(struct end *ends)
{
	while (move(&ends[0], &ends[1], SIZE_MAX) + move(&ends[1], &ends[0], SIZE_MAX) > 0)
		;
}

/* A message with one stream, which we send or receive. */
static struct nc_link_stream *open_stream(struct end *end, bool sends)
{
	struct nc_link_stream *stream = nc_link_open(&end->link, sends);
	const struct nc_carry carry = {sends ? NC_CARRY_FROM : NC_CARRY_INTO, 0, stream->id};

	assert_int_equal(nc_link_post(&end->link, "open", 4, &carry, 1), 0);
	return stream;
}

/* As much as it takes, up to this offset. */
static void fill(struct nc_link_stream *stream, uint64_t until)
{
	unsigned char *at;
	size_t room;

	while (stream->last < until && (room = nc_link_space(stream, &at)) > 0) {
		if (room > until - stream->last)
			room = (size_t)(until - stream->last);
		for (size_t i = 0; i < room; i++)
			at[i] = number_at(stream->last + i);
		nc_link_filled(stream, room);
	}
}

static void messages_pass_both_ways(void **state)
{
	struct end *ends = begin_both();
	uint64_t next_ns;

	(void)state;
	assert_int_equal(nc_link_post(&ends[0].link, "question", 8, NULL, 0), 0);
	settle(ends);
	assert_int_equal(nc_link_post(&ends[1].link, "answer", 6, NULL, 0), 0);
	settle(ends);
	assert_string_equal(ends[1].last, "question");
	assert_string_equal(ends[0].last, "answer");
	/* the question was acknowledged with the answer, which itself waits for company */
	assert_null(ends[0].link.out.first);
	assert_non_null(ends[1].link.out.first);
	assert_int_equal(nc_link_tick(&ends[0].link, &next_ns), 0);
	assert_int_equal(next_ns, 1 + NC_NS_PER_S);
	ends[0].link.now_ns = next_ns;
	assert_int_equal(nc_link_tick(&ends[0].link, &next_ns), 0);
	settle(ends);
	assert_null(ends[1].link.out.first);
	done_both(ends);
}

static void who_is_silent_is_given_up(void **state)
{
	struct end *ends = begin_both();
	uint64_t next_ns;

	(void)state;
	ends[0].link.now_ns = NC_RELAY_PATIENCE_MS * NC_NS_PER_MS;
	assert_int_equal(nc_link_tick(&ends[0].link, &next_ns), 0);
	ends[0].link.now_ns++;
	assert_int_equal(nc_link_tick(&ends[0].link, &next_ns), -ETIMEDOUT); /* no greeting */
	settle(ends);
	assert_int_equal(nc_link_tick(&ends[0].link, &next_ns), 0);
	assert_int_equal(next_ns, 0);
	assert_int_equal(nc_link_post(&ends[0].link, "question", 8, NULL, 0), 0);
	ends[0].link.now_ns += NC_RELAY_PATIENCE_MS * NC_NS_PER_MS - 1;
	assert_int_equal(nc_link_tick(&ends[0].link, &next_ns), 0);
	ends[0].link.now_ns++;
	assert_int_equal(nc_link_tick(&ends[0].link, &next_ns), -ETIMEDOUT);
	done_both(ends);
}

static void a_stream_comes_whole(void **state)
{
	const uint64_t size = 3U << 20;
	struct end *ends = begin_both();
	struct nc_link_stream *stream = open_stream(&ends[0], true);

	(void)state;
	while (stream->last < size) {
		fill(stream, size);
		settle(ends);
	}
	nc_link_end(stream);
	settle(ends);
	assert_int_equal(sinks[0].size, size);
	assert_false(sinks[0].is_wrong);
	assert_true(sinks[0].is_over);
	/* it is gone at both ends, once an acknowledgement has found company */
	assert_int_equal(nc_link_post(&ends[1].link, "x", 1, NULL, 0), 0);
	settle(ends);
	assert_int_equal(stream->id, 0);
	assert_null(nc_link_find(&ends[1].link, 1));
	done_both(ends);
}

static void who_does_not_read_is_not_sent_more_than_a_window(void **state)
{
	struct end *ends = begin_both();
	struct nc_link_stream *stream = open_stream(&ends[0], true), *theirs;
	size_t none = 0;

	(void)state;
	appetite_of[0] = &none;
	for (int i = 0; i < 10; i++) {
		fill(stream, UINT64_MAX);
		settle(ends);
	}
	theirs = nc_link_find(&ends[1].link, stream->id);
	assert_int_equal(stream->last, NC_RELAY_WINDOW_WIDE); /* kept */
	assert_int_equal(theirs->last, NC_RELAY_WINDOW);      /* the credit of the beginning */
	none = 1000;
	nc_link_flush(&ends[1].link, theirs);
	assert_int_equal(sinks[0].size, 1000);
	none = SIZE_MAX;
	nc_link_flush(&ends[1].link, theirs);
	settle(ends);
	assert_int_equal(sinks[0].size, stream->last);
	assert_int_equal(stream->last, NC_RELAY_WINDOW_WIDE);
	fill(stream, UINT64_MAX); /* there is room again */
	assert_true(stream->last > NC_RELAY_WINDOW_WIDE);
	assert_false(sinks[0].is_wrong);
	done_both(ends);
}

static void who_reads_no_more_ends_the_stream(void **state)
{
	struct end *ends = begin_both();
	struct nc_link_stream *stream = open_stream(&ends[0], true);
	size_t never = SIZE_MAX - 1;

	(void)state;
	settle(ends);
	stream->fd = 5;
	appetite_of[0] = &never;
	fill(stream, 100000);
	settle(ends);
	assert_true(sinks[5].is_over); /* whoever writes there is told */
	assert_int_equal(stream->id, 0);
	assert_null(nc_link_find(&ends[1].link, 1));
	done_both(ends);
}

static void both_ends_of_streams_can_be_the_receivers(void **state)
{
	struct end *ends = begin_both();
	struct nc_link_stream *theirs;

	(void)state;
	(void)open_stream(&ends[0], false);
	settle(ends);
	theirs = nc_link_find(&ends[1].link, 1);
	assert_true(theirs->sends);
	nc_link_find(&ends[0].link, 1)->fd = 3;
	fill(theirs, 100000);
	nc_link_end(theirs);
	settle(ends);
	assert_int_equal(sinks[3].size, 100000);
	assert_true(sinks[3].is_over && !sinks[3].is_wrong);
	(void)open_stream(&ends[1], true); /* with a number of its own */
	settle(ends);
	assert_non_null(nc_link_find(&ends[0].link, 2));
	done_both(ends);
}

static void there_are_no_more_streams_than_may_be(void **state)
{
	struct end *ends = begin_both();
	size_t n = 0;

	(void)state;
	for (; nc_link_has_room(&ends[0].link, 1); n++)
		(void)open_stream(&ends[0], true);
	settle(ends);
	assert_int_equal(n, NC_RELAY_STREAMS_MAX);
	assert_int_equal(ends[1].n_messages, n);
	done_both(ends);
}

static unsigned int next_random(unsigned int *state)
{
	*state = *state * 1103515245U + 12345U;
	return *state >> 16;
}

/* The connection is cut anywhere, again and again: nothing is lost, and nothing comes twice. */
static void a_connection_can_be_made_anew(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 200; seed++) {
		const uint64_t size = 700000 + seed;
		struct end *ends = begin_both();
		struct nc_link_stream *ours = open_stream(&ends[0], true), *theirs;
		unsigned int random = seed;
		size_t n = 1, answers = 0, appetite = SIZE_MAX;

		(void)open_stream(&ends[0], false);
		appetite_of[0] = &appetite;
		for (int turn = 0; turn < 1000000 && !(sinks[0].is_over && sinks[3].is_over);
			turn++) {
			if (ours->id == 1 && !ours->ended) {
				fill(ours, size);
				if (ours->last == size)
					nc_link_end(ours);
			}
			theirs = nc_link_find(&ends[1].link, 3);
			if (nc_link_find(&ends[0].link, 3))
				nc_link_find(&ends[0].link, 3)->fd = 3;
			if (theirs)
				theirs->fd = 6;
			if (theirs && !theirs->ended) {
				fill(theirs, size);
				if (theirs->last == size)
					nc_link_end(theirs);
			}
			if (n < 20) {
				assert_int_equal(nc_link_post(&ends[0].link, "m", 1, NULL, 0), 0);
				n++;
			}
			if (answers < 20 && ends[1].n_messages > answers) {
				assert_int_equal(nc_link_post(&ends[1].link, "a", 1, NULL, 0), 0);
				answers++;
			}
			(void)move(&ends[0], &ends[1], 1 + next_random(&random) % 40000);
			(void)move(&ends[1], &ends[0], 1 + next_random(&random) % 40000);
			appetite = next_random(&random) % 3 ? next_random(&random) : 0;
			if (nc_link_find(&ends[1].link, 1) &&
				nc_link_waits(nc_link_find(&ends[1].link, 1)))
				nc_link_flush(&ends[1].link, nc_link_find(&ends[1].link, 1));
			if (next_random(&random) % 10 == 0) {
				nc_link_renew(&ends[0].link);
				nc_link_renew(&ends[1].link);
			}
		}
		ends[0].link.urgent = ends[1].link.urgent = true; /* nothing waits for company */
		settle(ends);
		assert_int_equal(sinks[0].size, size);
		assert_int_equal(sinks[3].size, size);
		assert_true(sinks[0].is_over && sinks[3].is_over);
		assert_false(sinks[0].is_wrong || sinks[3].is_wrong);
		assert_int_equal(ends[1].n_messages, n + 1);
		assert_int_equal(ends[0].n_messages, answers);
		assert_int_equal(ours->id, 0);
		done_both(ends);
	}
}

static void another_connection_is_not_taken_for_it(void **state)
{
	struct end *ends = begin_both(), *others = begin_both();
	struct iovec parts[2];
	size_t used;

	(void)state;
	assert_int_equal(nc_link_post(&ends[0].link, "m", 1, NULL, 0), 0);
	settle(ends);
	others[0].link.session = 78;
	(void)nc_link_output(&others[0].link, parts);
	nc_link_renew(&ends[1].link);
	assert_int_equal(
		nc_link_input(&ends[1].link, parts[0].iov_base, parts[0].iov_len, &used), -EPROTO);
	assert_string_equal(ends[1].link.why, "It is another's connection");
	/* nor is a far end that has forgotten it */
	(void)nc_link_output(&others[1].link, parts);
	nc_link_renew(&ends[0].link);
	assert_int_equal(
		nc_link_input(&ends[0].link, parts[0].iov_base, parts[0].iov_len, &used), -EPROTO);
	done_both(ends);
	done_both(others);
}

/* ---- lies ---- */

struct lie {
	const char *why; /* NULL: it is none */
	struct nc_relay_frame frames[3];
	const char *body; /* of the last one, filled up with zeros */
};

#define HI                                                                                         \
	{                                                                                          \
		NC_RELAY_HELLO, NC_RELAY_VERSION, 0, 0                                             \
	}
#define MESSAGE(number, size)                                                                      \
	{                                                                                          \
		NC_RELAY_MESSAGE, 0, number, size                                                  \
	}

static const struct lie lies[] = {
	{NULL, {HI}, ""},
	{NULL, {HI, {NC_RELAY_DATA, 3, 0, 100}}, ""},
	{NULL, {HI, {NC_RELAY_DATA, 3, 0, 100}, {NC_RELAY_END, 3, 100, 0}}, ""},
	{NULL, {HI, {NC_RELAY_DATA, 3, 0, NC_RELAY_WINDOW}}, ""},
	{NULL, {HI, {NC_RELAY_CREDIT, 1, UINT64_MAX, 0}}, ""},
	{NULL, {HI, {NC_RELAY_ACK, 1, 10, 0}, {NC_RELAY_RESET, 1, 0, 0}}, ""},
	{NULL, {HI, {NC_RELAY_RESET, 1, 0, 0}, {NC_RELAY_RESET, 1, 0, 0}}, ""},
	{"It answers for a stream that it does not have", {HI, {NC_RELAY_RESET, 5, 0, 0}}, ""},
	{NULL, {HI, MESSAGE(0, 2)}, "\0x"},
	{NULL, {HI, MESSAGE(0, 8)}, "\1\1\0\2\0\0\0x"},
	{"It greets twice", {HI, HI}, ""},
	{"It speaks another version", {{NC_RELAY_HELLO, 9, 0, 0}}, ""},
	{"It is another's connection", {{NC_RELAY_HELLO, NC_RELAY_VERSION, 5, 0}}, ""},
	{"It does not greet first", {MESSAGE(0, 2)}, "\0x"},
	{"It does not greet first", {{NC_RELAY_DATA, 3, 0, 1}}, "x"},
	{"It numbers its messages wrongly", {HI, MESSAGE(1, 2)}, "\0x"},
	{"It numbers its messages wrongly", {HI, MESSAGE(UINT64_MAX, 2)}, "\0x"},
	{"It numbers its messages wrongly", {HI, MESSAGE(0, 2), MESSAGE(0, 2)}, "\0x"},
	{"It sends a broken message", {HI, MESSAGE(0, 0)}, ""},
	{"It sends a broken message", {HI, MESSAGE(0, 3)}, "\xff\1\1"},
	{"It sends a broken message", {HI, MESSAGE(0, 8)}, "\1\7\0\0\0\0\0x"},
	{"It sends a broken message", {HI, MESSAGE(0, 8)}, "\1\4\0\0\0\0\0x"},
	{"It sends a broken message", {HI, MESSAGE(0, NC_WIRE_MESSAGE_MAX + 2)}, ""},
	{"It numbers its streams wrongly", {HI, MESSAGE(0, 8)}, "\1\1\0\1\0\0\0x"},
	{"It numbers its streams wrongly", {HI, MESSAGE(0, 8)}, "\1\1\0\4\0\0\0x"},
	{"It numbers its streams wrongly", {HI, MESSAGE(0, 8)}, "\1\1\0\xff\xff\xff\xffx"},
	{"It sends to a stream that there never was", {HI, {NC_RELAY_DATA, 5, 0, 1}}, "x"},
	{"It sends to a stream that there never was", {HI, {NC_RELAY_END, 2, 0, 0}}, ""},
	{"It leaves bytes out", {HI, {NC_RELAY_DATA, 3, 1, 1}}, "x"},
	{"It leaves bytes out", {HI, {NC_RELAY_DATA, 3, UINT64_MAX, 1}}, "x"},
	{"It leaves bytes out", {HI, {NC_RELAY_DATA, 1, 0, 1}}, "x"},
	{"It sends bytes again", {HI, {NC_RELAY_DATA, 3, 0, 100}, {NC_RELAY_DATA, 3, 50, 10}}, ""},
	{"It sends bytes again", {HI, {NC_RELAY_DATA, 3, 0, 100}, {NC_RELAY_DATA, 3, 50, 100}}, ""},
	{"It sends more than its credit", {HI, {NC_RELAY_DATA, 3, 0, NC_RELAY_WINDOW + 1}}, ""},
	{"It ends a stream where it does not end", {HI, {NC_RELAY_END, 3, 1, 0}}, ""},
	{"It ends a stream where it does not end", {HI, {NC_RELAY_END, 1, 10, 0}}, ""},
	{"It acknowledges what was not sent", {HI, {NC_RELAY_ACK, 1, 11, 0}}, ""},
	{"It acknowledges what was not sent", {HI, {NC_RELAY_ACK, 1, UINT64_MAX, 0}}, ""},
	{"It acknowledges what was not sent",
		{HI, {NC_RELAY_ACK, 1, 10, 0}, {NC_RELAY_ACK, 1, 9, 0}}, ""},
	{"It acknowledges what was not sent", {HI, {NC_RELAY_ACK, 0, 3, 0}}, ""},
	{"It answers for a stream that it does not have", {HI, {NC_RELAY_ACK, 3, 0, 0}}, ""},
	{"It answers for a stream that it does not have", {HI, {NC_RELAY_ACK, 9, 0, 0}}, ""},
	{"It answers for a stream that it does not have", {HI, {NC_RELAY_RESET, 3, 0, 0}}, ""},
	{"It answers for a stream that it does not have", {HI, {NC_RELAY_CREDIT, 2, 9, 0}}, ""},
	{"It takes credit back", {HI, {NC_RELAY_CREDIT, 1, 0, 0}}, ""},
	{"It says farewell in an unknown way", {HI, {NC_RELAY_END, 0, 7, 0}}, ""},
	{"It sends what is no frame", {HI, {NC_RELAY_DATA, 0, 0, 1}}, "x"},
	{"It sends what is no frame", {HI, {NC_RELAY_TYPE_MAX, 1, 0, 0}}, ""},
	{"It sends what is no frame", {HI, {0, 1, 0, 0}}, ""},
	{"It sends what is no frame", {HI, {NC_RELAY_RESET, 0, 0, 0}}, ""},
	{"It sends what is no frame", {HI, MESSAGE(0, NC_RELAY_MESSAGE_MAX + 1)}, ""},
	{"It sends what is no frame", {HI, {NC_RELAY_DATA, 3, 0, NC_RELAY_PIECE_MAX + 1}}, ""},
	{"It sends what is no frame", {HI, {NC_RELAY_ACK, 1, 0, 1}}, "x"},
};

/* To a near end that has sent ten bytes of stream 1, and receives stream 3. */
static int tell(struct end *end, const struct lie *lie, size_t step)
{
	static unsigned char bytes[NC_RELAY_MESSAGE_MAX + 4096];
	size_t size = 0, used;
	int r = 0;

	memset(bytes, 0, sizeof(bytes));
	for (size_t i = 0; i < 3; i++) {
		const bool is_last =
			i == 2 || (lie->frames[i + 1].type == 0 && lie->frames[i + 1].stream == 0);

		nc_relay_put_head(bytes + size, &lie->frames[i]);
		size += NC_RELAY_HEAD;
		if (is_last && lie->frames[i].size > 0 && lie->body[0] == '\0')
			bytes[size + 1] = (unsigned char)lie->body[1];
		else
			memcpy(bytes + size, lie->body,
				lie->frames[i].size < 8 ? lie->frames[i].size : 8);
		if (size + lie->frames[i].size <= sizeof(bytes))
			size += lie->frames[i].size;
		if (is_last)
			break;
	}
	for (size_t at = 0; r == 0 && at < size; at += step)
		r = nc_link_input(
			&end->link, bytes + at, size - at < step ? size - at : step, &used);
	return r;
}

static void lies_are_found(void **state)
{
	(void)state;
	for (size_t i = 0; i < unit_count(lies); i++)
		for (size_t step = 1; step < 100000; step += 99998) {
			struct end *end = begin_both();
			struct nc_link_stream *stream = open_stream(end, true);
			struct iovec parts[2];
			int r;

			(void)open_stream(end, false);
			fill(stream, 10);
			nc_link_sent(&end->link, (size_t)nc_link_output(&end->link, parts));
			nc_link_find(&end->link, 3)->fd = 3;
			r = tell(end, &lies[i], step);
			if (r != (lies[i].why ? -EPROTO : 0) ||
				(lies[i].why && !nc_streq(end->link.why, lies[i].why)))
				fail_msg("lie %zu (%s): %d, %s", i,
					lies[i].why ? lies[i].why : "none", r,
					end->link.why ? end->link.why : "no reason");
			done_both(end);
		}
}

/* Streams that are gone cost what was on its way, and no more. */
static void who_sends_on_to_nobody_is_hung_up_on(void **state)
{
	const struct nc_relay_frame data = {NC_RELAY_DATA, 3, 0, 100};
	static unsigned char bytes[NC_RELAY_HEAD + 100];
	struct end *end = begin_both();
	struct iovec parts[2];
	size_t used, n = 0;

	(void)state;
	(void)open_stream(end, true);
	(void)open_stream(end, false);
	nc_link_find(&end->link, 3)->fd = 3;
	nc_link_sent(&end->link, (size_t)nc_link_output(&end->link, parts));
	assert_int_equal(tell(end, &lies[0], 100), 0);
	nc_link_reset(&end->link, nc_link_find(&end->link, 3));
	nc_link_sent(&end->link, (size_t)nc_link_output(&end->link, parts));
	nc_relay_put_head(bytes, &data);
	while (nc_link_input(&end->link, bytes, sizeof(bytes), &used) == 0)
		n++;
	assert_true(n * 100 > NC_RELAY_WINDOW && n * 100 < 20 * NC_RELAY_WINDOW);
	assert_string_equal(end->link.why, "It goes on about streams that are gone");
	done_both(end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_pass_both_ways),
		cmocka_unit_test(who_is_silent_is_given_up),
		cmocka_unit_test(a_stream_comes_whole),
		cmocka_unit_test(who_does_not_read_is_not_sent_more_than_a_window),
		cmocka_unit_test(who_reads_no_more_ends_the_stream),
		cmocka_unit_test(both_ends_of_streams_can_be_the_receivers),
		cmocka_unit_test(there_are_no_more_streams_than_may_be),
		cmocka_unit_test(a_connection_can_be_made_anew),
		cmocka_unit_test(another_connection_is_not_taken_for_it),
		cmocka_unit_test(lies_are_found),
		cmocka_unit_test(who_sends_on_to_nobody_is_hung_up_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
