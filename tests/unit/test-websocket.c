/* Frames of WebSockets: what one side writes the other reads, in whatever pieces, and no more. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "server/websocket.h"

static const unsigned char mask[4] = {0x12, 0xff, 0x00, 0x80};

/* Reads one message, so many bytes at a time. */
static ssize_t read_all(struct nc_ws_reader *reader, const struct nc_buf *in, size_t step)
{
	size_t at = 0;

	while (at < in->size && !reader->whole) {
		ssize_t n = nc_ws_take(
			reader, in->data + at, in->size - at < step ? in->size - at : step);

		if (n < 0)
			return n;
		at += (size_t)n;
	}
	return (ssize_t)at;
}

static void messages_come_back(void **state)
{
	static const size_t sizes[] = {0, 1, 124, 125, 126, 127, 65534, 65535, 65536, 70000};
	static char data[70000];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7);
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		for (size_t step = 1; step < 200000; step = step * 9 + 4) {
			for (int masked = 0; masked < 2; masked++) {
				nc_buf_cleanup struct nc_buf out = NC_BUF(1U << 20);
				nc_cleanup(nc_ws_reader_done) struct nc_ws_reader reader;

				nc_ws_reader_init(&reader, masked, 70001);
				nc_ws_put(&out, NC_WS_BINARY, "\1", 1, data, sizes[k],
					masked ? mask : NULL);
				assert_int_equal(read_all(&reader, &out, step), out.size);
				assert_true(reader.whole);
				assert_int_equal(reader.kind, NC_WS_BINARY);
				assert_int_equal(reader.size, sizes[k] + 1);
				assert_int_equal(reader.data[0], 1);
				assert_memory_equal(reader.data + 1, data, sizes[k]);
			}
		}
	}
}

static unsigned int fault_of(const void *bytes, size_t size, bool masked)
{
	nc_cleanup(nc_ws_reader_done) struct nc_ws_reader reader;
	ssize_t n;

	nc_ws_reader_init(&reader, masked, 1000);
	n = nc_ws_take(&reader, bytes, size);
	assert_true(n == -EPROTO || n <= (ssize_t)size);
	assert_int_equal(n < 0, reader.fault != 0);
	if (reader.fault)
		assert_int_equal(nc_ws_take(&reader, "x", 1), -EPROTO);
	return reader.fault;
}

#define FAULT(bytes, masked) fault_of(bytes, sizeof(bytes) - 1, masked)

static void what_is_no_frame_is_refused(void **state)
{
	(void)state;
	assert_int_equal(FAULT("\x81\x01x", true), NC_WS_PROTOCOL);
	assert_int_equal(FAULT("\x81\x81\1\2\3\4x", false), NC_WS_PROTOCOL);
	assert_int_equal(FAULT("\x81\x01x", false), 0);
	assert_int_equal(FAULT("\xc1\x01x", false), NC_WS_PROTOCOL);
	assert_int_equal(FAULT("\x83\x01x", false), NC_WS_PROTOCOL);
	assert_int_equal(FAULT("\x80\x01x", false), NC_WS_PROTOCOL);
	assert_int_equal(FAULT("\x09\x01x", false), NC_WS_PROTOCOL);
	assert_int_equal(FAULT("\x89\x7e\x00\x7e", false), NC_WS_PROTOCOL);
	assert_int_equal(FAULT("\x82\x7e\x00\x05", false), NC_WS_PROTOCOL);
	assert_int_equal(FAULT("\x82\x7f\0\0\0\0\0\0\xff\xff", false), NC_WS_PROTOCOL);
	assert_int_equal(FAULT("\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", false), NC_WS_TOO_LARGE);
	assert_int_equal(FAULT("\x82\x7e\x03\xe9", false), NC_WS_TOO_LARGE);
	assert_int_equal(FAULT("\x81\x01\xff", false), NC_WS_NOT_TEXT);
	assert_int_equal(FAULT("\x82\x01\xff", false), 0);
	assert_int_equal(FAULT("\x88\x01\x03", false), NC_WS_PROTOCOL);
	assert_int_equal(FAULT("\x88\x02\x03\xee", false), NC_WS_PROTOCOL);
	assert_int_equal(FAULT("\x88\x03\x03\xe8\xff", false), NC_WS_NOT_TEXT);
	assert_int_equal(FAULT("\x88\x02\x03\xe8", false), 0);
}

static void fragments_are_one_message(void **state)
{
	static const char bytes[] = "\x01\x02he\x89\x01!\x00\x00\x80\x03llo\x88\x00";
	nc_cleanup(nc_ws_reader_done) struct nc_ws_reader reader;
	size_t at = 0, messages = 0;

	(void)state;
	nc_ws_reader_init(&reader, false, 5);
	while (at < sizeof(bytes) - 1) {
		ssize_t n = nc_ws_take(&reader, bytes + at, sizeof(bytes) - 1 - at);

		assert_true(n > 0);
		at += (size_t)n;
		if (!reader.whole)
			continue;
		assert_int_equal(reader.kind, messages == 0   ? NC_WS_PING
					      : messages == 1 ? NC_WS_TEXT
							      : NC_WS_CLOSE);
		if (messages++ == 1)
			assert_memory_equal(reader.data, "hello", 5);
	}
	assert_int_equal(messages, 3);
	assert_int_equal(nc_ws_code_of(&reader), 0);
}

static void a_key_is_answered(void **state)
{
	char accept[NC_WS_ACCEPT_SIZE];

	(void)state; /* the example of RFC 6455 */
	assert_int_equal(nc_ws_accept("dGhlIHNhbXBsZSBub25jZQ==", accept), 0);
	assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
	assert_int_equal(nc_ws_accept("dGhlIHNhbXBsZSBub25jZQ", accept), -EINVAL);
	assert_int_equal(nc_ws_accept("dGhlIHNhbXBsZSBub25jZQAA", accept), -EINVAL);
	assert_int_equal(nc_ws_accept("", accept), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_come_back),
		cmocka_unit_test(what_is_no_frame_is_refused),
		cmocka_unit_test(fragments_are_one_message),
		cmocka_unit_test(a_key_is_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
