/* Frames: put together from any pieces, bounded, and never half added. */
#include "base/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "unit.h"

static struct nc_frame_in a_reader(void)
{
	return (struct nc_frame_in){.max = 1000, .max_values = 50};
}

/* A frame of text with the right head; returns its size. */
static size_t write_frame(char *out, const char *text)
{
	size_t size = strlen(text);

	memcpy(out, (char[]){(char)size, (char)(size >> 8), 0, 0}, 4);
	memcpy(out + 4, text, size);
	return size + 4;
}

static void takes_frames_from_pieces_of_any_size(void **state)
{
	char bytes[256];
	size_t size = write_frame(bytes, "{\"n\":1}");

	(void)state;
	size += write_frame(bytes + size, "{\"n\":2,\"x\":[1,\"}\"]}");
	for (size_t piece = 1; piece <= size; piece++) {
		struct nc_frame_in in = a_reader();
		json_int_t found = 0;

		for (size_t at = 0; at < size;) {
			size_t room = size - at < piece ? size - at : piece, used = 0;
			cleanup_json json_t *object = NULL;
			struct nacre_err err = {0};
			int r = nc_frame_take(&in, bytes + at, room, &used, &object, &err);

			assert_true(r == 0 || r == 1);
			assert_true(r == 1 || used == room);
			at += used;
			if (r == 1)
				assert_int_equal(
					json_integer_value(json_object_get(object, "n")), ++found);
		}
		assert_int_equal(found, 2);
		assert_false(nc_frame_is_open(&in));
		nc_frame_in_done(&in);
	}
}

static void refuses(const char *bytes, size_t size, int code, const char *message)
{
	struct nc_frame_in in = a_reader();
	struct nacre_err err = {0};
	json_t *object = NULL;
	size_t used = 0;

	assert_int_equal(nc_frame_take(&in, bytes, size, &used, &object, &err), code);
	assert_int_equal(err.code, code);
	assert_non_null(strstr(err.message, message));
	assert_null(object);
	nc_frame_in_done(&in);
}

static void refuses_what_is_too_large_or_no_object(void **state)
{
	char bytes[512];
	char many[200] = "{\"a\":[";

	(void)state;
	/* at once, before any of it is kept */
	refuses("\xe9\x03\x00\x00", 4, -EMSGSIZE, "1001 bytes");
	refuses("\xff\xff\xff\xff", 4, -EMSGSIZE, "4294967295 bytes");
	refuses("\x00\x00\x00\x00", 4, -EINVAL, "Invalid JSON");
	refuses(bytes, write_frame(bytes, "[1]"), -EINVAL, "no JSON object");
	refuses(bytes, write_frame(bytes, "{\"a\":1"), -EINVAL, "Invalid JSON");
	refuses(bytes, write_frame(bytes, "{\"a\":1,\"a\":2}"), -EINVAL, "Invalid JSON");
	for (size_t i = 0; i < 60; i++)
		memcpy(many + strlen(many), "1,", 3);
	memcpy(many + strlen(many), "1]}", 4);
	refuses(bytes, write_frame(bytes, many), -EMSGSIZE, "values");
}

static void a_frame_that_began_is_open(void **state)
{
	struct nc_frame_in in = a_reader();
	struct nacre_err err = {0};
	json_t *object = NULL;
	size_t used;

	(void)state;
	assert_int_equal(nc_frame_take(&in, "\x07", 1, &used, &object, &err), 0);
	assert_true(nc_frame_is_open(&in));
	assert_int_equal(nc_frame_take(&in, "\x00\x00\x00{\"n", 6, &used, &object, &err), 0);
	assert_true(nc_frame_is_open(&in));
	nc_frame_in_done(&in);
	assert_false(nc_frame_is_open(&in));
}

static void puts_all_of_a_frame_or_nothing(void **state)
{
	struct nc_frame_out out = {.buf = NC_BUF(64)};

	(void)state;
	assert_int_equal(nc_frame_put(&out, NULL, 10), -ENOMEM);
	assert_int_equal(nc_frame_put(&out, json_pack("{s:s}", "a", "0123456789"), 17), -EMSGSIZE);
	assert_int_equal(nc_frame_unsent(&out), 0);
	assert_int_equal(nc_frame_put(&out, json_pack("{s:s}", "a", "0123456789"), 18), 0);
	assert_int_equal(nc_frame_unsent(&out), 22);
	assert_memory_equal(out.buf.data, "\x12\x00\x00\x00{\"a\":\"0123456789\"}", 22);
	assert_int_equal(nc_frame_put(&out, json_pack("{s:s}", "a", "0123456789"), 100), 0);
	/* room for 20 more, head included */
	assert_int_equal(nc_frame_put(&out, json_pack("{s:s}", "a", "012345678"), 100), -ENOBUFS);
	assert_int_equal(nc_frame_unsent(&out), 44);
	assert_int_equal(nc_frame_put(&out, json_pack("{s:s}", "a", "01234567"), 100), 0);
	assert_int_equal(nc_frame_unsent(&out), 64);
	assert_int_equal(nc_frame_put(&out, json_object(), 100), -ENOBUFS);
	nc_frame_out_done(&out);
	assert_int_equal(nc_frame_put(&out, json_object(), 100), 0);
	nc_frame_out_done(&out);
}

/* The other side reads now and then; everything arrives, in order. */
static void sends_through_a_full_socket(void **state)
{
	struct nc_frame_out out = {.buf = NC_BUF(4U << 20)};
	struct nc_frame_in in = {.max = 1 << 20, .max_values = 50};
	char chunk[5000], text[3001];
	json_int_t sent = 0, received = 0;
	int ends[2], r = 0;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
	while (received < 2000) {
		ssize_t n;

		for (int i = 0; sent < 2000 && i < 3; i++)
			assert_int_equal(
				nc_frame_put(&out, json_pack("{s:I, s:s}", "n", ++sent, "t", text),
					1 << 20),
				0);
		r = nc_frame_send(&out, ends[0]);
		assert_true(r >= 0);
		assert_int_equal(r == 1, nc_frame_unsent(&out) == 0);
		n = read(ends[1], chunk, sizeof(chunk));
		for (size_t at = 0, used; n > 0 && at < (size_t)n; at += used) {
			cleanup_json json_t *object = NULL;
			struct nacre_err err = {0};

			r = nc_frame_take(&in, chunk + at, (size_t)n - at, &used, &object, &err);
			assert_true(r >= 0);
			if (r == 1)
				assert_int_equal(json_integer_value(json_object_get(object, "n")),
					++received);
		}
	}
	(void)close(ends[1]);
	assert_int_equal(nc_frame_put(&out, json_object(), 100), 0);
	assert_int_equal(nc_frame_send(&out, ends[0]), -EPIPE); /* and no SIGPIPE */
	(void)close(ends[0]);
	nc_frame_out_done(&out);
	nc_frame_in_done(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_frames_from_pieces_of_any_size),
		cmocka_unit_test(refuses_what_is_too_large_or_no_object),
		cmocka_unit_test(a_frame_that_began_is_open),
		cmocka_unit_test(puts_all_of_a_frame_or_nothing),
		cmocka_unit_test(sends_through_a_full_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
