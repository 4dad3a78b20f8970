/* Heads of files on their way: they come back as they went, and nothing else passes for one. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/limits.h"
#include "base/pack.h"

static void a_head_comes_back(void **state)
{
	const struct nc_pack_head heads[] = {
		{.kind = NC_PACK_FILE,
			.executable = true,
			.path_size = NC_PATH_MAX,
			.size = 1ULL << 60},
		{.kind = NC_PACK_SKIPPED, .path_size = 1, .error = EFBIG, .size = 5},
		{.kind = NC_PACK_FILE, .old = true, .path_size = 3, .size = 5},
		{.kind = NC_PACK_END, .error = EMFILE, .size = 1000},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		unsigned char bytes[NC_PACK_HEAD_SIZE];
		struct nc_pack_head head;

		nc_pack_put_head(bytes, &heads[i]);
		assert_int_equal(nc_pack_get_head(bytes, &head), 0);
		assert_int_equal(head.kind, heads[i].kind);
		assert_int_equal(head.executable, heads[i].executable);
		assert_int_equal(head.old, heads[i].old);
		assert_int_equal(head.path_size, heads[i].path_size);
		assert_int_equal(head.error, heads[i].error);
		assert_int_equal(head.size, heads[i].size);
	}
}

static void refuse(struct nc_pack_head head, size_t at, unsigned char byte)
{
	unsigned char bytes[NC_PACK_HEAD_SIZE];

	nc_pack_put_head(bytes, &head);
	assert_int_equal(nc_pack_get_head(bytes, &head), 0);
	bytes[at] = byte;
	assert_int_equal(nc_pack_get_head(bytes, &head), -EBADMSG);
}

static void what_is_no_head_is_refused(void **state)
{
	const struct nc_pack_head file = {.kind = NC_PACK_FILE, .path_size = 3};
	const struct nc_pack_head end = {.kind = NC_PACK_END};

	(void)state;
	refuse(file, 0, NC_PACK_KIND_MAX);
	refuse(file, 0, 255);
	refuse(file, 0, NC_PACK_END); /* an end has no path */
	refuse(file, 1, 3);
	refuse(file, 2, 0);  /* a file has one */
	refuse(file, 3, 16); /* 4099: longer than any */
	refuse(end, 2, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_head_comes_back),
		cmocka_unit_test(what_is_no_head_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
