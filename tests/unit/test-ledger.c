/* What outlives the worker: whole notes or none, every byte once, and nothing taken on trust. */
#include "engine/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "unit.h"

#define PAGE_ROOM (8ULL << 20)
#define HALF (NC_LEDGER_STREAM_MAX / 2)

struct files {
	int memory, inbox, pipe[2];
};

static int set_up(void **state)
{
	static struct files files;

	assert_int_equal(nc_ledger_make(&files.memory, &files.inbox), 0);
	assert_int_equal(pipe2(files.pipe, O_NONBLOCK), 0);
	*state = &files;
	return 0;
}

static int tear_down(void **state)
{
	struct files *files = *state;

	(void)close(files->memory);
	(void)close(files->inbox);
	(void)close(files->pipe[0]);
	(void)close(files->pipe[1]);
	return 0;
}

static struct nc_ledger *open_it(const struct files *files)
{
	struct nc_ledger *ledger;

	assert_int_equal(nc_ledger_open(files->memory, files->inbox, &ledger), 0);
	return ledger;
}

struct seen {
	size_t n;
	uint32_t page[8];
	json_int_t value[8];
};

static void look(void *context, uint32_t page, const json_t *note)
{
	struct seen *seen = context;

	seen->page[seen->n] = page;
	seen->value[seen->n++] = json_integer_value(json_object_get(note, "v"));
}

static struct seen see(const struct files *files)
{
	struct nc_ledger *ledger = open_it(files);
	struct seen seen = {0};

	nc_ledger_visit(ledger, look, &seen);
	nc_ledger_free(ledger);
	return seen;
}

static void put_raw(int fd, uint64_t at, const void *data, size_t size)
{
	assert_int_equal(pwrite(fd, data, size, (off_t)at), size);
}

static void receive(struct nc_ledger *ledger, const struct files *files, uint32_t page,
	unsigned int stream, const char *text)
{
	char data[65536];
	size_t size = strlen(text);

	assert_int_equal(write(files->pipe[1], text, size), size);
	assert_int_equal(
		nc_ledger_receive(ledger, page, stream, files->pipe[0], data, sizeof(data)), size);
	assert_memory_equal(data, text, size);
}

static void has_output(struct nc_ledger *ledger, uint32_t page, unsigned int stream,
	const char *wanted, uint64_t bytes)
{
	nc_buf_cleanup struct nc_buf text = NC_BUF(2U * NC_LEDGER_STREAM_MAX);
	struct nc_output output;

	nc_output_init(&output, NC_LEDGER_STREAM_MAX);
	output.no_whole = true;
	(void)nc_ledger_output(ledger, page, stream, &output);
	assert_int_equal(output.bytes, bytes);
	assert_int_equal(nc_output_text(&output, &text), 0);
	assert_string_equal(nc_buf_text(&text), wanted);
	nc_output_done(&output);
}

static void notes_are_found_again(void **state)
{
	const struct files *files = *state;
	struct nc_ledger *ledger = open_it(files);
	uint32_t first = nc_ledger_add(ledger), second = nc_ledger_add(ledger);
	struct seen seen;

	assert_true(first > 0 && second > 0 && first != second);
	assert_int_equal(nc_ledger_write(ledger, first, json_pack("{s:i}", "v", 1)), 0);
	assert_int_equal(nc_ledger_write(ledger, second, json_pack("{s:i}", "v", 2)), 0);
	for (int i = 3; i < 8; i++)
		assert_int_equal(nc_ledger_write(ledger, first, json_pack("{s:i}", "v", i)), 0);
	nc_ledger_free(ledger);
	seen = see(files);
	assert_int_equal(seen.n, 2);
	assert_int_equal(seen.value[0], 7);
	assert_int_equal(seen.value[1], 2);
	ledger = open_it(files);
	nc_ledger_remove(ledger, first);
	assert_int_equal(nc_ledger_add(ledger), first); /* and is nobody's until it is written */
	nc_ledger_free(ledger);
	seen = see(files);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.value[0], 2);
}

/* Whoever is killed in the middle of it has written some of the other half, and no head. */
static void half_a_note_is_none(void **state)
{
	const struct files *files = *state;
	struct nc_ledger *ledger = open_it(files);
	uint32_t page = nc_ledger_add(ledger);
	struct seen seen;

	assert_int_equal(nc_ledger_write(ledger, page, json_pack("{s:i}", "v", 1)), 0);
	nc_ledger_free(ledger);
	put_raw(files->memory, page * PAGE_ROOM + 4096 + NC_LEDGER_NOTE_MAX, "{\"v\":2", 6);
	seen = see(files);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.value[0], 1);
}

static void a_note_that_is_too_long_changes_nothing(void **state)
{
	const struct files *files = *state;
	struct nc_ledger *ledger = open_it(files);
	uint32_t page = nc_ledger_add(ledger);
	char *long_text = malloc(NC_LEDGER_NOTE_MAX + 1);
	struct seen seen;

	assert_int_equal(nc_ledger_write(ledger, page, json_pack("{s:i}", "v", 1)), 0);
	memset(long_text, 'x', NC_LEDGER_NOTE_MAX);
	long_text[NC_LEDGER_NOTE_MAX] = '\0';
	assert_int_equal(
		nc_ledger_write(ledger, page, json_pack("{s:i, s:s}", "v", 2, "t", long_text)),
		-EFBIG);
	free(long_text);
	nc_ledger_free(ledger);
	seen = see(files);
	assert_int_equal(seen.value[0], 1);
}

static void output_is_found_again(void **state)
{
	const struct files *files = *state;
	struct nc_ledger *ledger = open_it(files);
	uint32_t page = nc_ledger_add(ledger);
	char data[8];

	assert_int_equal(nc_ledger_write(ledger, page, json_object()), 0);
	receive(ledger, files, page, 0, "out ");
	receive(ledger, files, page, 1, "err");
	receive(ledger, files, page, 0, "put");
	assert_int_equal(
		nc_ledger_receive(ledger, page, 0, files->pipe[0], data, sizeof(data)), -1);
	assert_int_equal(errno, EAGAIN);
	nc_ledger_free(ledger);
	ledger = open_it(files);
	has_output(ledger, page, 0, "out put", 7);
	has_output(ledger, page, 1, "err", 3);
	assert_int_equal(nc_ledger_pieces(ledger, page), 3);
	nc_ledger_free(ledger);
}

static void much_output_keeps_head_and_tail(void **state)
{
	const struct files *files = *state;
	struct nc_ledger *ledger = open_it(files);
	nc_buf_cleanup struct nc_buf wanted = NC_BUF(2U * NC_LEDGER_STREAM_MAX);
	uint32_t page = nc_ledger_add(ledger);
	char piece[40000], *whole = malloc(60 * sizeof(piece));
	size_t total = 0, at = 0;

	assert_int_equal(nc_ledger_write(ledger, page, json_object()), 0);
	for (unsigned int i = 0; i < 60; i++) {
		size_t size = 30001 + i * 100;

		memset(piece, 'a' + (int)(i % 26), size);
		piece[size] = '\0';
		memcpy(whole + total, piece, size);
		total += size;
		receive(ledger, files, page, 0, piece);
		nc_ledger_free(ledger);
		ledger = open_it(files);
	}
	at = total - HALF;
	nc_buf_add(&wanted, whole, HALF);
	nc_buf_addf(&wanted, "\n... %zu bytes left out ...\n", total - 2 * (size_t)HALF);
	nc_buf_add(&wanted, whole + at, HALF);
	has_output(ledger, page, 0, nc_buf_text(&wanted), total);
	nc_ledger_free(ledger);
	free(whole);
}

/* What a worker leaves that dies after the pipe was read, before or after its page was written. */
static void what_was_begun_is_finished_once(void **state)
{
	const struct files *files = *state;
	struct nc_ledger *ledger = open_it(files);
	uint32_t page = nc_ledger_add(ledger);
	struct {
		uint32_t page, stream;
		uint64_t bytes;
	} intent = {page, 0, 3};
	struct stat status;

	assert_int_equal(nc_ledger_write(ledger, page, json_object()), 0);
	receive(ledger, files, page, 0, "abc");
	nc_ledger_free(ledger);
	put_raw(files->memory, 0, &intent, sizeof(intent));
	put_raw(files->inbox, 0, "def", 3);
	for (int i = 0; i < 3; i++) {
		ledger = open_it(files);
		has_output(ledger, page, 0, "abcdef", 6);
		nc_ledger_free(ledger);
		assert_int_equal(fstat(files->inbox, &status), 0);
		assert_int_equal(status.st_size, 0);
	}
	put_raw(files->inbox, 0, "def", 3); /* the page was written, the inbox not emptied */
	ledger = open_it(files);
	has_output(ledger, page, 0, "abcdef", 6);
	nc_ledger_free(ledger);
}

static void what_a_hostile_worker_leaves_does_no_harm(void **state)
{
	const struct files *files = *state;
	struct nc_ledger *ledger = open_it(files);
	uint32_t page = nc_ledger_add(ledger), other = nc_ledger_add(ledger);
	const uint32_t heads[][2] = {{9, 5}, {1, UINT32_MAX}, {2, 4}, {0, 9}};
	const struct {
		uint32_t page, stream;
		uint64_t bytes;
	} intents[] = {{UINT32_MAX, 0, 0}, {page, 7, 0}, {0, 0, 0}, {65535, 1, 0}};
	const uint64_t counts[] = {UINT64_MAX, UINT64_MAX - 5, 1};

	assert_int_equal(nc_ledger_write(ledger, other, json_pack("{s:i}", "v", 5)), 0);
	nc_ledger_free(ledger);
	put_raw(files->memory, page * PAGE_ROOM + 4096, "[[[[not json", 12);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		struct seen seen;

		put_raw(files->memory, page * PAGE_ROOM, heads[i], sizeof(heads[i]));
		put_raw(files->memory, 0, &intents[i], sizeof(intents[i]));
		put_raw(files->inbox, 0, "evil", 4);
		seen = see(files);
		assert_int_equal(seen.n, 1);
		assert_int_equal(seen.value[0], 5);
	}
	put_raw(files->memory, other * PAGE_ROOM + 64, counts, sizeof(counts));
	ledger = open_it(files);
	for (unsigned int i = 0; i < 2; i++) {
		struct nc_output output;

		nc_output_init(&output, NC_LEDGER_STREAM_MAX);
		output.no_whole = true;
		(void)nc_ledger_output(ledger, other, i, &output);
		nc_output_done(&output);
	}
	receive(ledger, files, other, 0, "goes on");
	nc_ledger_free(ledger);
}

static void a_page_that_is_removed_takes_no_memory(void **state)
{
	const struct files *files = *state;
	struct nc_ledger *ledger = open_it(files);
	char piece[60001];
	struct stat status;
	blkcnt_t before;

	memset(piece, 'x', sizeof(piece) - 1);
	piece[sizeof(piece) - 1] = '\0';
	assert_int_equal(fstat(files->memory, &status), 0);
	before = status.st_blocks;
	for (int i = 0; i < 50; i++) {
		uint32_t page = nc_ledger_add(ledger);

		assert_int_equal(nc_ledger_write(ledger, page, json_object()), 0);
		receive(ledger, files, page, 0, piece);
		nc_ledger_remove(ledger, page);
	}
	assert_int_equal(fstat(files->memory, &status), 0);
	assert_true(status.st_blocks - before <= 16);
	nc_ledger_free(ledger);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(notes_are_found_again),
		TEST(half_a_note_is_none),
		TEST(a_note_that_is_too_long_changes_nothing),
		TEST(output_is_found_again),
		TEST(much_output_keeps_head_and_tail),
		TEST(what_was_begun_is_finished_once),
		TEST(what_a_hostile_worker_leaves_does_no_harm),
		TEST(a_page_that_is_removed_takes_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
