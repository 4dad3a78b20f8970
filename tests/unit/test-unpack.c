/* Files that come out of a box: whole streams, streams in pieces, and what only looks like one. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/limits.h"
#include "box/unpack.h"

static void add_head(struct nc_buf *stream, struct nc_pack_head head, const char *path)
{
	unsigned char bytes[NC_PACK_HEAD_SIZE];

	head.path_size = (uint16_t)strlen(path);
	nc_pack_put_head(bytes, &head);
	nc_buf_add(stream, bytes, sizeof(bytes));
	nc_buf_adds(stream, path);
}

static void fill(struct nc_buf *stream)
{
	nc_pack_add(stream, "a.txt", "hello", 5, false);
	nc_pack_add(stream, "dir/tool", "\0x", 2, true);
	nc_pack_add(stream, "empty", "", 0, false);
	add_head(stream, (struct nc_pack_head){.kind = NC_PACK_SKIPPED, .size = 99, .error = EFBIG},
		"big");
	nc_pack_end(stream);
}

static void assert_filled(const struct nc_unpack *unpack)
{
	assert_true(unpack->ended);
	assert_int_equal(unpack->error, 0);
	assert_int_equal(unpack->n_files, 4);
	assert_string_equal(unpack->files[0].path, "a.txt");
	assert_memory_equal(unpack->files[0].data, "hello", 5);
	assert_false(unpack->files[0].executable);
	assert_memory_equal(unpack->files[1].data, "\0x", 2);
	assert_true(unpack->files[1].executable);
	assert_int_equal(unpack->files[2].size, 0);
	assert_int_equal(unpack->files[2].error, 0);
	assert_int_equal(unpack->files[3].error, EFBIG);
	assert_int_equal(unpack->files[3].size, 99);
}

static void a_stream_comes_apart_in_pieces_of_any_size(void **state)
{
	nc_buf_cleanup struct nc_buf stream = NC_BUF(4096);

	(void)state;
	fill(&stream);
	for (size_t piece = 1; piece <= stream.size; piece++) {
		struct nc_unpack unpack;

		nc_unpack_init(&unpack, 7);
		for (size_t at = 0; at < stream.size; at += piece)
			assert_int_equal(
				nc_unpack_add(&unpack, stream.data + at,
					stream.size - at < piece ? stream.size - at : piece),
				0);
		assert_filled(&unpack);
		nc_unpack_done(&unpack);
	}
}

static void a_stream_that_was_cut_has_not_ended(void **state)
{
	nc_buf_cleanup struct nc_buf stream = NC_BUF(4096);

	(void)state;
	fill(&stream);
	for (size_t size = 0; size < stream.size; size++) {
		struct nc_unpack unpack;

		nc_unpack_init(&unpack, 100);
		assert_int_equal(nc_unpack_add(&unpack, stream.data, size), 0);
		assert_false(unpack.ended);
		nc_unpack_done(&unpack);
	}
}

static void refuse(const struct nc_buf *stream, size_t max, int error)
{
	struct nc_unpack unpack;

	nc_unpack_init(&unpack, max);
	assert_int_equal(nc_unpack_add(&unpack, stream->data, stream->size), error);
	nc_unpack_done(&unpack);
}

static void hostile_streams_are_refused(void **state)
{
	static const char *const paths[] = {"/etc/passwd", "../x", "a/../b", "a//b", ".", "a/"};
	nc_buf_cleanup struct nc_buf stream = NC_BUF(1U << 20);

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		nc_buf_done(&stream);
		nc_pack_add(&stream, paths[i], "x", 1, false);
		refuse(&stream, 100, -EBADMSG);
	}
	nc_buf_done(&stream);
	nc_pack_end(&stream);
	nc_buf_adds(&stream, "more");
	refuse(&stream, 100, -EBADMSG);
	nc_buf_done(&stream);
	add_head(&stream, (struct nc_pack_head){.kind = NC_PACK_FILE, .size = UINT64_MAX}, "x");
	refuse(&stream, 100, -EFBIG);
	nc_buf_done(&stream);
	nc_pack_add(&stream, "a", "123", 3, false);
	nc_pack_add(&stream, "b", "123", 3, false);
	refuse(&stream, 5, -EFBIG);
	nc_buf_done(&stream);
	for (size_t i = 0; i <= NC_CAPTURE_FILES_MAX; i++)
		nc_pack_add(&stream, "x", "", 0, false);
	refuse(&stream, 100, -EBADMSG);
	nc_buf_done(&stream);
	nc_buf_add(&stream, "\1\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0a\0b", 19); /* a NUL in the path */
	refuse(&stream, 100, -EBADMSG);
}

static void why_it_is_not_all_is_passed_on(void **state)
{
	nc_buf_cleanup struct nc_buf stream = NC_BUF(4096);
	struct nc_unpack unpack;

	(void)state;
	add_head(&stream, (struct nc_pack_head){.kind = NC_PACK_END, .error = EMFILE}, "");
	nc_unpack_init(&unpack, 100);
	assert_int_equal(nc_unpack_add(&unpack, stream.data, stream.size), 0);
	assert_true(unpack.ended);
	assert_int_equal(unpack.error, EMFILE);
	nc_unpack_done(&unpack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stream_comes_apart_in_pieces_of_any_size),
		cmocka_unit_test(a_stream_that_was_cut_has_not_ended),
		cmocka_unit_test(hostile_streams_are_refused),
		cmocka_unit_test(why_it_is_not_all_is_passed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
