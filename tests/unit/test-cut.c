/* Large requests in a file: which texts stay there, what is left, and what is read of them. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "engine/cut.h"

#define LONG (NC_CUT_MIN + 1)

static int body_of(const char *text, size_t size)
{
	int fd = memfd_create("body", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(nc_fd_write_all(fd, text, size), 0);
	return fd;
}

/* In `form`, each # is a long text. */
static struct nc_cuts *cut(const char *form, struct nc_buf *body, struct nc_buf *rest)
{
	char text[LONG];
	struct nc_cuts *cuts = NULL;

	memset(text, 'x', sizeof(text));
	*body = (struct nc_buf)NC_BUF(1 << 20);
	*rest = (struct nc_buf)NC_BUF(1 << 20);
	for (; *form; form++)
		nc_buf_add(body, *form == '#' ? text : form, *form == '#' ? LONG : 1);
	assert_int_equal(nc_cuts_make(body_of(body->data, body->size), body->size, &cuts, rest), 0);
	return cuts;
}

static void test_which(void **state)
{
	static const struct {
		const char *form;
		size_t cuts;
	} cases[] = {
		{"{\"files\": {\"a\": \"#\", \"b\": {\"base64\":\"#\"}, \"c\" : \n\"#\"}}", 3},
		{"{\"files\": {\"a\": \"short\"}}", 0},
		{"{\"code\": \"#\"}", 0},
		{"{\"code\": \"files\", \"env\": {\"a\": \"#\"}}", 0},
		{"{\"env\": {\"files\": {\"a\": \"#\"}}}", 0},
		{"{\"files\": {\"a\": 1}, \"code\": \"#\"}", 0},
		{"{\"files\": {\"#\": \"a\"}}", 0},
		{"{\"files\": [\"#\"]}", 0},
		{"[\"files\", \"#\"]", 0},
		{"{\"fil\\u0065s\": {\"a\": \"#\"}}", 0},
		{"{\"a\\\"files\": {\"a\": \"#\"}}", 0},
		{"{\"files\": {\"a\": \"\\\"#\\\\\"}, \"code\": \"#\"}", 1},
		{"{\"files\": \"#\"}", 1},
		{"{\"files\": {\"a\": \"#", 0},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++) {
		struct nc_buf body, rest;
		struct nc_cuts *cuts = cut(cases[i].form, &body, &rest);

		if (cuts->count != cases[i].cuts)
			fail_msg("%s: %zu cuts", cases[i].form, cuts->count);
		/* what is not cut is as it was, if it was whole */
		if (cuts->count == 0 && body.data[body.size - 1] != 'x')
			assert_string_equal(rest.data, body.data);
		nc_cuts_free(cuts);
		nc_buf_done(&body);
		nc_buf_done(&rest);
	}
}

static void test_rest(void **state)
{
	struct nc_buf body, rest;
	struct nc_cuts *cuts = cut("{\"files\": {\"a\": \"#\"}, \"x\": \"y\"}", &body, &rest);
	char wanted[128], text[64];

	(void)state;
	(void)snprintf(text, sizeof(text), "%s:0", cuts->mark);
	(void)snprintf(wanted, sizeof(wanted), "{\"files\": {\"a\": \"%s\"}, \"x\": \"y\"}", text);
	assert_string_equal(rest.data, wanted);
	assert_ptr_equal(nc_cuts_find(cuts, text), &cuts->cut[0]);
	assert_int_equal(cuts->cut[0].size, LONG);
	text[strlen(text) - 1] = '1';
	assert_null(nc_cuts_find(cuts, text));
	assert_null(nc_cuts_find(cuts, cuts->mark));
	assert_null(nc_cuts_find(cuts, ""));
	assert_null(nc_cuts_find(NULL, text));
	nc_cuts_free(cuts);
	nc_buf_done(&body);
	nc_buf_done(&rest);
}

static void test_too_much_is_left(void **state)
{
	static const char text[] = "{\"code\": \"0123456789\"}";
	struct nc_buf rest = NC_BUF(10);
	struct nc_cuts *cuts = NULL;

	(void)state;
	assert_int_equal(
		nc_cuts_make(body_of(text, sizeof(text) - 1), sizeof(text) - 1, &cuts, &rest),
		-EFBIG);
	rest = (struct nc_buf)NC_BUF(1000);
	assert_int_equal(nc_cuts_make(body_of(text, 4), sizeof(text) - 1, &cuts, &rest), -EIO);
	assert_null(cuts);
	nc_buf_done(&rest);
}

/* Escapes and base64 on every boundary of the blocks that are read. */
static void test_reading(void **state)
{
	static const char note[] = "\\ud834\\udd1e\\n\xc3\xa4", is[] = "\xf0\x9d\x84\x9e\n\xc3\xa4";
	cleanup_free struct nc_cut_reader *reader = malloc(sizeof(*reader));
	const char *data;
	size_t size, at = 0;

	(void)state;
	assert_non_null(reader);
	for (size_t before = NC_CUT_BLOCK - 20; before < NC_CUT_BLOCK + 2; before++) {
		nc_buf_cleanup struct nc_buf raw = NC_BUF(1 << 20), got = NC_BUF(1 << 20);
		struct nc_cuts cuts = {0};
		struct nc_cut whole = {0};

		for (size_t i = 0; i < before; i++)
			nc_buf_adds(&raw, "x");
		nc_buf_adds(&raw, note);
		cuts.fd = body_of(raw.data, raw.size);
		whole.size = raw.size;
		nc_cut_begin(reader, &cuts, &whole, false);
		while (nc_cut_next(reader, &data, &size, &at) == 0 && size > 0)
			nc_buf_add(&got, data, size);
		assert_int_equal(got.size, before + sizeof(is) - 1);
		assert_memory_equal(got.data + before, is, sizeof(is) - 1);
		nc_cut_begin(reader, &cuts, &(struct nc_cut){0, before + 4}, false);
		while ((at = (size_t)nc_cut_next(reader, &data, &size, &at)) == 0 && size > 0)
			;
		assert_int_equal((int)at, -EILSEQ);
		(void)close(cuts.fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_which),
		cmocka_unit_test(test_rest),
		cmocka_unit_test(test_too_much_is_left),
		cmocka_unit_test(test_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
