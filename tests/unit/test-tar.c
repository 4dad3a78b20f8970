/* Heads of archives: members come back as they went, and nothing else passes for one. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/tar.h"

/* Reads the first member of an archive. */
static int read_first(
	const struct nc_buf *archive, struct nc_tar_reader *reader, size_t *ret_blocks)
{
	int r = 0;
	size_t at = 0;

	nc_tar_reader_init(reader);
	for (; r == 0 && at + NC_TAR_BLOCK <= archive->size; at += NC_TAR_BLOCK)
		r = nc_tar_take(reader, (const unsigned char *)archive->data + at);
	*ret_blocks = at / NC_TAR_BLOCK;
	return r;
}

static void members_come_back(void **state)
{
	static struct nc_tar_member members[] = {
		{.kind = NC_TAR_FILE, .path = "a", .mode = 0644, .size = 5, .mtime_s = 1700000000},
		{.kind = NC_TAR_FILE, .path = "large", .mode = 0755, .size = 1ULL << 40},
		{.kind = NC_TAR_DIR, .path = "d", .mode = 0700},
		{.kind = NC_TAR_SYMLINK, .path = "s", .target = "../../x", .mode = 0777},
		{.kind = NC_TAR_LINK, .path = "d/l", .target = "a"},
		{.kind = NC_TAR_FIFO, .path = "p", .mode = 0600},
		{.kind = NC_TAR_FILE, .path = "", .mode = 0600},
		{.kind = NC_TAR_SYMLINK, .path = "t", .target = ""},
	};
	static struct nc_tar_reader reader;

	(void)state;
	/* names of all lengths around those that fit, and around the digits of their count */
	for (size_t length = 1; length <= NC_PATH_MAX; length += length < 300 ? 1 : 97) {
		for (size_t k = 0; k < length; k++)
			members[6].path[k] = k % 200 == 199 ? '/' : 'n';
		memcpy(members[7].target, members[6].path, length);
		if (members[6].path[length - 1] == '/')
			continue;
		for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
			const struct nc_tar_member *member = &members[i];
			nc_buf_cleanup struct nc_buf archive = NC_BUF(1U << 20);
			size_t blocks;

			nc_tar_put(&archive, member);
			assert_int_equal(archive.error, 0);
			assert_int_equal(archive.size % NC_TAR_BLOCK, 0);
			assert_int_equal(read_first(&archive, &reader, &blocks), 1);
			assert_int_equal(blocks, archive.size / NC_TAR_BLOCK);
			assert_int_equal(reader.member.kind, member->kind);
			assert_string_equal(reader.member.path, member->path);
			assert_string_equal(reader.member.target, member->target);
			assert_int_equal(reader.member.size, member->size);
			assert_int_equal(reader.member.mode, member->mode);
			assert_int_equal(reader.member.mtime_s, member->mtime_s);
			nc_tar_reader_done(&reader);
		}
	}
}

static void an_end_has_two_blocks(void **state)
{
	static struct nc_tar_reader reader;
	nc_buf_cleanup struct nc_buf archive = NC_BUF(4096);
	unsigned char bad[NC_TAR_BLOCK] = "x";

	(void)state;
	nc_tar_put(&archive, &(struct nc_tar_member){.kind = NC_TAR_END});
	assert_int_equal(archive.size, 2 * NC_TAR_BLOCK);
	nc_tar_reader_init(&reader);
	assert_int_equal(nc_tar_take(&reader, (unsigned char *)archive.data), 0);
	assert_int_equal(nc_tar_take(&reader, bad), -EBADMSG);
	nc_tar_reader_done(&reader);
	nc_tar_reader_init(&reader);
	assert_int_equal(nc_tar_take(&reader, (unsigned char *)archive.data), 0);
	assert_int_equal(nc_tar_take(&reader, (unsigned char *)archive.data), 1);
	assert_int_equal(reader.member.kind, NC_TAR_END);
	nc_tar_reader_done(&reader);
}

/* Changes one byte of a head and its sum with it; what comes of that. */
static int changed(size_t at, unsigned char byte)
{
	static struct nc_tar_reader reader;
	nc_buf_cleanup struct nc_buf archive = NC_BUF(4096);
	unsigned int sum = 0;
	size_t blocks;
	int r;

	nc_tar_put(&archive, &(struct nc_tar_member){
				     .kind = NC_TAR_FILE, .path = "a", .target = "t", .size = 1});
	archive.data[at] = (char)byte;
	memset(archive.data + 148, ' ', 8);
	for (size_t i = 0; i < NC_TAR_BLOCK; i++)
		sum += (unsigned char)archive.data[i];
	for (int i = 5; i >= 0; i--, sum /= 8)
		archive.data[148 + i] = (char)('0' + sum % 8);
	archive.data[154] = '\0';
	r = read_first(&archive, &reader, &blocks);
	assert_true(r < 0 ? reader.why != NULL : true);
	nc_tar_reader_done(&reader);
	return r;
}

static void what_is_no_head_is_refused(void **state)
{
	static const struct {
		size_t at;
		unsigned char byte;
		int result;
	} cases[] = {{0, 'b', 1}, {0, '/', -EPERM}, {0, '\0', -EBADMSG}, {124, 'x', -EBADMSG},
		{124, 0xff, -EBADMSG}, {100, '9', -EBADMSG}, {156, '1', 1}, {156, '2', 1},
		{156, '3', -EPERM}, {156, '4', -EPERM}, {156, 'S', -EOPNOTSUPP},
		{156, 'M', -EOPNOTSUPP}, {156, '5', 1}, {156, 'g', 0}, {157, '/', 1}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(changed(cases[i].at, cases[i].byte), cases[i].result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_come_back),
		cmocka_unit_test(an_end_has_two_blocks),
		cmocka_unit_test(what_is_no_head_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
