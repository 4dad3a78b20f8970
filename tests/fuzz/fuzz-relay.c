/*
 * Reads hostile bytes as what the other end of a relay says, to one that has sent a stream and
 * receives others. The first byte says which end we are and how hungry the readers are, the second
 * how many bytes come at a time, and whether the connection is made anew in between.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "wire/link.h"

static struct nc_link relay;
static size_t appetite;

static int on_message(void *context, const unsigned char *data, size_t size,
	const struct nc_carry *list, size_t n, bool *ret_full)
{
	(void)context, (void)data, (void)ret_full;
	assert(size <= NC_WIRE_MESSAGE_MAX && n <= NC_WIRE_FDS_MAX);
	for (size_t i = 0; i < n; i++)
		if (list[i].stream > 0)
			assert(nc_link_find(&relay, list[i].stream));
	return 0;
}

static ssize_t on_deliver(struct nc_link_stream *stream, const unsigned char *data, size_t size)
{
	volatile unsigned char sum = 0;

	assert(stream->id > 0 && !stream->sends);
	for (size_t i = 0; i < size; i++)
		sum = (unsigned char)(sum + data[i]);
	return appetite == 0 ? -1 : (ssize_t)(size < appetite ? size : appetite);
}

static void on_over(struct nc_link_stream *stream)
{
	assert(stream->id > 0);
}

static void check(void)
{
	size_t rings = 0;

	for (size_t i = 0; i < NC_RELAY_STREAMS_MAX; i++) {
		const struct nc_link_stream *stream = &relay.streams[i];

		if (stream->id == 0)
			continue;
		rings += stream->ring ? stream->window : 0;
		assert(stream->first <= stream->last);
		assert(stream->last - stream->first <= stream->window);
		assert(stream->sends ? stream->sent <= stream->last
				     : stream->last <= stream->credit);
	}
	assert(rings <= NC_RELAY_WIDE * NC_RELAY_WINDOW_WIDE +
				(NC_RELAY_STREAMS_MAX - NC_RELAY_WIDE) * NC_RELAY_WINDOW);
}

static int say(void)
{
	struct iovec parts[2];
	ssize_t n = nc_link_output(&relay, parts);

	assert(n >= 0);
	nc_link_sent(&relay, (size_t)n);
	return n > 0;
}

static void send_something(void)
{
	struct nc_carry list[2] = {{NC_CARRY_FROM, 0, 0}, {NC_CARRY_INTO, 0, 0}};
	unsigned char *at;

	for (size_t i = 0; i < 2; i++) {
		struct nc_link_stream *stream = nc_link_open(&relay, i == 0);

		list[i].stream = stream->id;
		if (i == 0 && nc_link_space(stream, &at) >= 10000) {
			memset(at, 0, 10000);
			nc_link_filled(stream, 10000);
		}
	}
	assert(nc_link_post(&relay, "m", 1, list, 2) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct nc_link_user user = {
		.message = on_message, .deliver = on_deliver, .over = on_over};
	size_t step, used;
	bool renews;

	if (size < 2)
		return 0;
	nc_link_init(&relay, data[0] & 1, data[0] & 1 ? 1 : 0, &user);
	appetite = (size_t)(data[0] >> 1) * 100;
	step = 1 + (size_t)(data[1] & 0x7f) * 50;
	renews = data[1] & 0x80;
	relay.now_ns = 1;
	send_something();
	while (say())
		;
	for (size_t at = 2; at < size; at += used) {
		if (nc_link_input(&relay, data + at, size - at < step ? size - at : step, &used) <
				0 ||
			relay.bye_heard)
			break;
		check();
		relay.now_ns += 1000000000;
		(void)nc_link_tick(&relay, &(uint64_t){0});
		for (size_t i = 0; appetite > 0 && i < NC_RELAY_STREAMS_MAX; i++)
			if (relay.streams[i].id > 0 && nc_link_waits(&relay.streams[i]))
				nc_link_flush(&relay, &relay.streams[i]);
		(void)say();
		check();
		if (renews && at % 5 == 0)
			nc_link_renew(&relay);
	}
	nc_link_done(&relay);
	return 0;
}
