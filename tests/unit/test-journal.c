/* The journal: its chain, every step at which an append can be killed, attacks on its files. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/limits.h"
#include "recorder/journal.h"
#include "recorder/retire.h"
#include "recorder/segment.h"
#include "recorder/verify.h"
#include "unit-files.h"

/* What happens to the calls of the code under test that change files; meson has them with 64 bits.
 */
static struct {
	int countdown; /* the call that dies, from 1; 0: none */
	bool half;     /* after half of its bytes, else before any */
	bool full;     /* the disk is: so many bytes are written, then ENOSPC */
	size_t room;
} kernel;

ssize_t __real_pwrite64(int fd, const void *data, size_t size, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off_t offset);
int __wrap_fdatasync(int fd);
int __real_unlinkat(int dir_fd, const char *path, int flags);
int __wrap_unlinkat(int dir_fd, const char *path, int flags);
int __real_ftruncate64(int fd, off_t size);
int __wrap_ftruncate64(int fd, off_t size);

ssize_t __wrap_pwrite64(int fd, const void *data, size_t size, off_t offset)
{
	if (kernel.countdown > 0 && --kernel.countdown == 0) {
		/* the kernel writes a key of one sector whole or not at all */
		if (kernel.half && size > 128)
			(void)!__real_pwrite64(fd, data, size / 2, offset);
		_exit(9);
	}
	if (kernel.full && size > kernel.room) {
		size = kernel.room;
		kernel.room = 0;
		if (size == 0) {
			errno = ENOSPC;
			return -1;
		}
	}
	return __real_pwrite64(fd, data, size, offset);
}

int __wrap_ftruncate64(int fd, off_t size)
{
	if (kernel.countdown > 0 && --kernel.countdown == 0)
		_exit(9);
	return __real_ftruncate64(fd, size);
}

int __wrap_unlinkat(int dir_fd, const char *path, int flags)
{
	if (kernel.countdown > 0 && --kernel.countdown == 0)
		_exit(9);
	return __real_unlinkat(dir_fd, path, flags);
}

/* What the disk does with it is not tested here, and takes a while. */
int __wrap_fdatasync(int fd)
{
	return fcntl(fd, F_GETFD) < 0 ? -1 : 0;
}

/* ---- a history, and what is known of it ---- */

static struct {
	char path[UNIT_DIR_SIZE];
	int fd;
	unsigned char key[NC_SHA256_SIZE];
	struct nc_verdict verdict;
	struct nc_damage damage[64];
	size_t n_damages;
} history;

static int make(void **state)
{
	memset(&kernel, 0, sizeof(kernel));
	history.fd = unit_dir_make(history.path);
	assert_int_equal(nc_journal_create(history.fd, history.key), 0);
	return unit_fds_note(state);
}

static int drop(void **state)
{
	int r = unit_fds_check(state);

	close(history.fd);
	unit_remove(AT_FDCWD, history.path);
	return r;
}

static void note_damage(void *context, const struct nc_damage *damage)
{
	(void)context;
	if (history.n_damages < unit_count(history.damage))
		history.damage[history.n_damages] = *damage;
	history.n_damages++;
}

static void verify_against(const struct nc_receipt *head)
{
	history.n_damages = 0;
	assert_int_equal(
		nc_verify(history.fd, history.key, head, note_damage, NULL, &history.verdict), 0);
	assert_int_equal(history.n_damages, history.verdict.damages);
}

static void verify(void)
{
	verify_against(NULL);
}

static void is_good(uint64_t lines)
{
	verify();
	for (size_t i = 0; i < history.n_damages; i++)
		print_error("%s\n", history.damage[i].text);
	assert_int_equal(history.verdict.damages, 0);
	assert_int_equal(history.verdict.lines, lines);
}

static struct nc_receipt append(struct nc_journal *journal, const char *body)
{
	const struct nc_entry entry = {.kind = NC_RECORD_EXECUTION,
		.event = "finish",
		.id = "ex_1",
		.body = body,
		.body_size = strlen(body)};
	struct nc_receipt receipt;

	assert_int_equal(nc_journal_append(journal, &entry, &receipt), 0);
	return receipt;
}

static struct nc_journal opened(void)
{
	struct nc_journal journal;
	struct nacre_err err = {0};

	assert_int_equal(nc_journal_open(&journal, history.fd, &err), 0);
	return journal;
}

static struct nc_receipt append_some(int n)
{
	struct nc_journal journal = opened();
	struct nc_receipt receipt = {0};

	for (int i = 0; i < n; i++)
		receipt = append(&journal, "{\"status\":\"success\"}");
	nc_journal_done(&journal);
	return receipt;
}

#define FIRST "journal/000000000001.jsonl"

static size_t read_file(const char *name, char *data, size_t size)
{
	int fd = openat(history.fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = nc_fd_read_upto(fd, data, size);

	assert_true(fd >= 0 && n >= 0);
	close(fd);
	return (size_t)n;
}

/* ---- the chain ---- */

static void lines_follow_upon_each_other(void **state)
{
	struct nc_journal journal = opened();
	struct nc_receipt first = append(&journal, "{}"), second = append(&journal, "{\"a\":[1]}");

	(void)state;
	assert_int_equal(first.seq, 1);
	assert_int_equal(second.seq, 2);
	assert_true(journal.dirty);
	assert_int_equal(nc_journal_sync(&journal), 0);
	assert_false(journal.dirty);
	nc_journal_done(&journal);
	is_good(2);
	assert_memory_equal(history.verdict.last.hash, second.hash, NC_SHA256_SIZE);
	assert_int_equal(append_some(3).seq, 5);
	is_good(5);
}

static void an_empty_journal_is_good(void **state)
{
	unsigned char key[NC_SHA256_SIZE];

	(void)state;
	is_good(0);
	assert_int_equal(nc_journal_first_key(history.fd, key), 0);
	assert_memory_equal(key, history.key, sizeof(key));
	append_some(1);
	assert_int_equal(nc_journal_first_key(history.fd, key), -ESTALE);
}

static void several_writers_keep_one_chain(void **state)
{
	struct nc_journal one = opened(), two = opened();

	(void)state;
	one.segment_bytes = two.segment_bytes = 4096;
	for (int i = 0; i < 30; i++) {
		append(i % 3 ? &one : &two, "{\"n\":1}");
		append(&two, "{\"n\":2}");
	}
	nc_journal_done(&one);
	nc_journal_done(&two);
	is_good(60);
}

static void several_processes_keep_one_chain(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			append_some(50);
			_exit(0);
		}
	for (int i = 0; i < 4; i++) {
		int status;

		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	is_good(200);
}

static void too_long_a_body_is_refused(void **state)
{
	struct nc_journal journal = opened();
	char *body = malloc(NC_RECORD_BODY_MAX + 1);
	struct nc_entry entry = {
		.event = "x", .id = "", .body = body, .body_size = NC_RECORD_BODY_MAX};
	struct nc_receipt receipt;

	(void)state;
	memset(body, 'x', NC_RECORD_BODY_MAX + 1);
	assert_int_equal(nc_journal_append(&journal, &entry, &receipt), 0);
	entry.body_size++;
	assert_int_equal(nc_journal_append(&journal, &entry, &receipt), -EMSGSIZE);
	nc_journal_done(&journal);
	free(body);
	is_good(1);
}

static void a_full_disk_breaks_nothing(void **state)
{
	struct nc_journal journal = opened();
	const struct nc_entry entry = {.event = "x", .id = "", .body = "{}", .body_size = 2};
	struct nc_receipt receipt;

	(void)state;
	append(&journal, "{}");
	for (size_t room = 0; room < 250; room += 37) {
		kernel.full = true;
		kernel.room = room;
		assert_int_equal(nc_journal_append(&journal, &entry, &receipt), -ENOSPC);
		kernel.full = false;
		is_good(1 + room / 37);
		append(&journal, "{}");
	}
	nc_journal_done(&journal);
	is_good(8);
}

/* ---- killed in the middle ---- */

/* Appends in a child that dies in its nth change of a file; returns what was acknowledged. */
static uint64_t append_and_die(int nth, bool half)
{
	uint64_t acknowledged = 0;
	int ends[2], status;

	assert_int_equal(pipe(ends), 0);
	if (fork() == 0) {
		struct nc_journal journal;
		struct nacre_err err = {0};

		kernel.countdown = nth;
		kernel.half = half;
		if (nc_journal_open(&journal, history.fd, &err) < 0)
			_exit(1);
		journal.segment_bytes = 2048;
		for (int i = 0; i < 1000; i++) {
			struct nc_receipt receipt = append(&journal, "{\"status\":\"success\"}");

			if (write(ends[1], &receipt.seq, sizeof(receipt.seq)) < 0)
				_exit(1);
		}
	}
	close(ends[1]);
	while (read(ends[0], &acknowledged, sizeof(acknowledged)) > 0)
		;
	close(ends[0]);
	assert_true(wait(&status) > 0);
	assert_int_equal(WEXITSTATUS(status), 9);
	return acknowledged;
}

static void no_death_loses_an_acknowledged_line(void **state)
{
	uint64_t lines = 0;

	(void)state;
	for (int nth = 1; nth < 60; nth++) {
		for (int half = 0; half < 2; half++) {
			uint64_t acknowledged = append_and_die(nth, half);
			struct nc_journal journal;

			/* before anybody repairs it: no damage, at most something unfinished */
			verify();
			assert_int_equal(history.verdict.damages, 0);
			assert_true(history.verdict.lines >= lines);
			assert_true(acknowledged == 0 || history.verdict.lines >= acknowledged);
			journal = opened();
			append(&journal, "{}");
			nc_journal_done(&journal);
			verify();
			assert_int_equal(history.verdict.damages, 0);
			assert_int_equal(history.verdict.unfinished_bytes, 0);
			assert_true(history.verdict.lines > acknowledged);
			lines = history.verdict.lines;
		}
	}
}

/* A line that was written before its key was replaced is taken over, with its receipt. */
static void a_whole_line_is_taken_over(void **state)
{
	struct nc_journal journal;
	uint64_t acknowledged = append_and_die(4, false); /* line, key, line, dies at the key */

	(void)state;
	assert_int_equal(acknowledged, 1);
	journal = opened();
	assert_int_equal(journal.repairs.taken_over, 1);
	assert_int_equal(journal.repairs.cut_bytes, 0);
	nc_journal_done(&journal);
	is_good(2);
}

static void a_torn_line_is_cut_off_and_told(void **state)
{
	struct nc_journal journal;
	char text[8192];

	(void)state;
	append_and_die(3, true);
	verify();
	assert_true(history.verdict.unfinished_bytes > 50);
	journal = opened();
	assert_true(journal.repairs.cut_bytes > 50);
	nc_journal_done(&journal);
	is_good(2);
	text[read_file(FIRST, text, sizeof(text) - 1)] = '\0';
	assert_non_null(strstr(text, "\"event\":\"repaired\""));
}

/* Deaths of the repair itself. */
static void a_repair_can_die_too(void **state)
{
	(void)state;
	for (int nth = 1; nth < 8; nth++) {
		append_and_die(3, true);
		append_and_die(nth, true);
		append_some(1);
		verify();
		assert_int_equal(history.verdict.damages, 0);
	}
}

/* ---- attacks ---- */

static char whole[65536];
static size_t whole_size;
static char key_file[128];

/* Writes the journal of n lines down, so that each attack begins with it. */
static struct nc_receipt remember(int n)
{
	struct nc_receipt head = append_some(n);

	whole_size = read_file(FIRST, whole, sizeof(whole));
	assert_int_equal(read_file("key", key_file, sizeof(key_file)), 128);
	return head;
}

static const char *line_at(int n, size_t *ret_size)
{
	const char *at = whole, *end;

	while (--n > 0)
		at = strchr(at, '\n') + 1;
	end = strchr(at, '\n') + 1;
	*ret_size = (size_t)(end - at);
	return at;
}

static void attack(const char *data, size_t size)
{
	unit_file_make(history.fd, FIRST, data, size);
	verify();
	assert_true(history.verdict.damages > 0);
}

static void every_changed_byte_is_found(void **state)
{
	char *copy = malloc(sizeof(whole));

	(void)state;
	remember(3);
	for (size_t i = 0; i < whole_size; i++) {
		memcpy(copy, whole, whole_size);
		copy[i] ^= 1;
		attack(copy, whole_size);
	}
	memcpy(copy, whole, whole_size);
	for (size_t i = 0; i < whole_size; i += 5) {
		memmove(copy + i, whole + i + 1, whole_size - i - 1);
		attack(copy, whole_size - 1);
		memcpy(copy, whole, whole_size);
	}
	free(copy);
}

static void every_cut_is_found(void **state)
{
	struct nc_receipt head;

	(void)state;
	head = remember(4);
	for (size_t i = 0; i < whole_size; i++)
		attack(whole, i);
	assert_int_equal(history.damage[history.n_damages - 1].kind, NC_DAMAGE_CUT);
	unit_file_make(history.fd, FIRST, whole, whole_size);
	verify_against(&head);
	assert_int_equal(history.verdict.damages, 0);
}

static void removed_moved_and_repeated_lines_are_found(void **state)
{
	char *copy = malloc(2 * sizeof(whole));

	(void)state;
	remember(6);
	for (int i = 1; i <= 6; i++) {
		size_t size, other_size;
		const char *line = line_at(i, &size), *other;
		size_t before = (size_t)(line - whole);

		/* removed */
		memcpy(copy, whole, before);
		memcpy(copy + before, line + size, whole_size - before - size);
		attack(copy, whole_size - size);
		/* repeated behind itself, and at the end */
		memcpy(copy, whole, before + size);
		memcpy(copy + before + size, line, whole_size - before);
		attack(copy, whole_size + size);
		memcpy(copy, whole, whole_size);
		memcpy(copy + whole_size, line, size);
		attack(copy, whole_size + size);
		if (i == 6)
			break;
		/* two change places */
		other = line_at(i + 1, &other_size);
		memcpy(copy, whole, whole_size);
		memcpy(copy + before, other, other_size);
		memcpy(copy + before + other_size, line, size);
		attack(copy, whole_size);
		/* removed, with the segment and the key put back to then: an old copy of a key */
	}
	free(copy);
}

static void the_names_of_damages_are_right(void **state)
{
	size_t size, second;
	const char *line = line_at(1, &size);
	char *copy = malloc(sizeof(whole));

	(void)state;
	remember(3);
	line = line_at(2, &second);
	memcpy(copy, whole, whole_size);
	copy[line - whole + 30] ^= 1;
	attack(copy, whole_size);
	assert_int_equal(history.n_damages, 1);
	assert_int_equal(history.damage[0].kind, NC_DAMAGE_CHANGED);
	assert_int_equal(history.damage[0].seq, 2);
	assert_int_equal(history.damage[0].line, 2);
	assert_int_equal(history.damage[0].segment, 1);
	line_at(1, &size);
	memcpy(copy, whole, size);
	memcpy(copy + size, whole + size + second, whole_size - size - second);
	attack(copy, whole_size - second);
	assert_int_equal(history.n_damages, 1);
	assert_int_equal(history.damage[0].kind, NC_DAMAGE_MISSING);
	attack(whole, size + second);
	assert_int_equal(history.damage[0].kind, NC_DAMAGE_CUT);
	assert_int_equal(history.damage[0].seq, 3);
	free(copy);
}

/* Who comes later has the key of the next line only: a line before cannot be made again with it. */
static void a_later_key_signs_no_earlier_line(void **state)
{
	struct nc_link stolen;
	struct nc_place place;
	nc_buf_cleanup struct nc_buf forged = NC_BUF(4096);
	const struct nc_entry lie = {.kind = NC_RECORD_EXECUTION,
		.event = "finish",
		.id = "ex_1",
		.body = "{\"status\":\"error\"}",
		.body_size = 18};
	char *copy = malloc(sizeof(whole));
	size_t size, before;
	const char *line;

	(void)state;
	remember(3);
	assert_int_equal(nc_journal_read_key(history.fd, &stolen, &place), 0);
	assert_int_equal(stolen.seq, 4);
	line = line_at(3, &size);
	before = (size_t)(line - whole);
	stolen.seq = 3;
	nc_sha256(line_at(2, &size), size - 1, stolen.last);
	nc_line_add(&forged, &stolen, "0123456789abcdef", &lie);
	memcpy(copy, whole, before);
	memcpy(copy + before, forged.data, forged.size);
	attack(copy, before + forged.size);
	free(copy);
}

/* An old copy of journal and key together is a whole journal: only an exported head shows it. */
static void going_back_in_time_shows_against_the_head(void **state)
{
	struct nc_receipt head, other;

	(void)state;
	remember(3);
	head = append_some(2);
	unit_file_make(history.fd, FIRST, whole, whole_size);
	unit_file_make(history.fd, "key", key_file, sizeof(key_file));
	is_good(3);
	verify_against(&head);
	assert_int_equal(history.n_damages, 1);
	assert_int_equal(history.damage[0].kind, NC_DAMAGE_CUT);
	/* and when it was written on since, the line of that number is another */
	other = append_some(2);
	assert_int_equal(other.seq, head.seq);
	verify_against(&head);
	assert_int_equal(history.n_damages, 1);
	assert_int_equal(history.damage[0].kind, NC_DAMAGE_FORKED);
}

static void the_key_file_must_fit(void **state)
{
	char copy[128];

	(void)state;
	remember(2);
	for (size_t i = 0; i < 128; i++) {
		memcpy(copy, key_file, 128);
		copy[i] ^= 1;
		unit_file_make(history.fd, "key", copy, 128);
		verify();
		assert_int_equal(history.damage[0].kind, NC_DAMAGE_KEY);
	}
	assert_int_equal(unlinkat(history.fd, "key", 0), 0);
	verify();
	assert_int_equal(history.damage[0].kind, NC_DAMAGE_KEY);
	unit_file_make(history.fd, "key", key_file, 128);
	is_good(2);
	history.key[0] ^= 1;
	verify();
	assert_true(history.verdict.damages > 0);
}

/* Lines that are gone from the end stay gone: the chain goes on, and both chain and verify say so.
 */
static void a_cut_tail_is_not_glossed_over(void **state)
{
	struct nc_journal journal;
	size_t size;

	(void)state;
	remember(4);
	line_at(1, &size);
	unit_file_make(history.fd, FIRST, whole, size);
	journal = opened();
	assert_int_equal(journal.repairs.missing_bytes, whole_size - size);
	nc_journal_done(&journal);
	append_some(1);
	verify();
	assert_int_equal(history.n_damages, 1);
	assert_int_equal(history.damage[0].kind, NC_DAMAGE_MISSING);
	assert_int_equal(history.damage[0].seq, 2);
	assert_int_equal(history.verdict.last.seq, 6);
}

/* ---- retention ---- */

static void many_segments(int lines)
{
	struct nc_journal journal = opened();

	journal.segment_bytes = 2048;
	for (int i = 0; i < lines; i++)
		append(&journal, "{\"status\":\"success\"}");
	nc_journal_done(&journal);
}

static void retired_segments_leave_a_chain_that_verifies(void **state)
{
	struct nc_journal journal;
	uint64_t *numbers;
	size_t n;

	(void)state;
	many_segments(40);
	journal = opened();
	assert_int_equal(nc_segment_list(journal.journal_fd, &numbers, &n), 0);
	free(numbers);
	assert_true(n >= 5);
	assert_int_equal(nc_retire(&journal, 0, 0), 0);
	assert_true(nc_retire(&journal, 4 * 2048, 0) >= (int)n - 6);
	nc_journal_done(&journal);
	verify();
	assert_int_equal(history.verdict.damages, 0);
	assert_true(history.verdict.retired > 5);
	assert_int_equal(history.verdict.first_seq, history.verdict.retired + 1);
}

/* Retires in a child that dies in its nth change of a file. Returns whether it did. */
static bool retire_and_die(int nth)
{
	int status;

	if (fork() == 0) {
		struct nc_journal journal;
		struct nacre_err err = {0};

		kernel.countdown = nth;
		_exit(nc_journal_open(&journal, history.fd, &err) < 0 ||
			nc_retire(&journal, 1, 0) < 0);
	}
	assert_true(wait(&status) > 0);
	assert_true(WEXITSTATUS(status) == 9 || status == 0);
	return status != 0;
}

static void retiring_can_die_anywhere(void **state)
{
	int deaths = 0;

	(void)state;
	many_segments(40);
	for (int nth = 1; retire_and_die(nth); nth++) {
		verify();
		assert_int_equal(history.verdict.damages, 0);
		many_segments(8); /* something to do for the next one */
		deaths++;
	}
	assert_true(deaths > 6);
	verify();
	assert_int_equal(history.verdict.damages, 0);
	assert_true(history.verdict.retired > 40);
}

static void removed_segments_are_found(void **state)
{
	(void)state;
	many_segments(40);
	assert_int_equal(unlinkat(history.fd, "journal/000000000001.jsonl", 0), 0);
	verify();
	assert_int_equal(history.n_damages, 1);
	assert_int_equal(history.damage[0].kind, NC_DAMAGE_MISSING);
	assert_int_equal(unlinkat(history.fd, "journal/000000000003.jsonl", 0), 0);
	verify();
	assert_int_equal(history.n_damages, 2);
}

/* More is gone than what was retired. */
static void an_anchor_covers_no_more_than_it_says(void **state)
{
	struct nc_journal journal;

	(void)state;
	many_segments(40);
	journal = opened();
	assert_int_equal(nc_retire(&journal, 1, 0) > 0, 1);
	nc_journal_done(&journal);
	many_segments(20);
	verify();
	assert_int_equal(history.verdict.damages, 0);
	{
		uint64_t *numbers;
		char name[64] = "journal/";
		size_t n;

		journal = opened();
		assert_int_equal(nc_segment_list(journal.journal_fd, &numbers, &n), 0);
		nc_segment_name(numbers[0], name + strlen(name));
		free(numbers);
		nc_journal_done(&journal);
		assert_int_equal(unlinkat(history.fd, name, 0), 0);
	}
	verify();
	assert_true(history.verdict.damages > 0);
}

#define with_history(function) cmocka_unit_test_setup_teardown(function, make, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_history(lines_follow_upon_each_other),
		with_history(an_empty_journal_is_good),
		with_history(several_writers_keep_one_chain),
		with_history(several_processes_keep_one_chain),
		with_history(too_long_a_body_is_refused),
		with_history(a_full_disk_breaks_nothing),
		with_history(no_death_loses_an_acknowledged_line),
		with_history(a_whole_line_is_taken_over),
		with_history(a_torn_line_is_cut_off_and_told),
		with_history(a_repair_can_die_too),
		with_history(every_changed_byte_is_found),
		with_history(every_cut_is_found),
		with_history(removed_moved_and_repeated_lines_are_found),
		with_history(the_names_of_damages_are_right),
		with_history(a_later_key_signs_no_earlier_line),
		with_history(going_back_in_time_shows_against_the_head),
		with_history(the_key_file_must_fit),
		with_history(a_cut_tail_is_not_glossed_over),
		with_history(retired_segments_leave_a_chain_that_verifies),
		with_history(retiring_can_die_anywhere),
		with_history(removed_segments_are_found),
		with_history(an_anchor_covers_no_more_than_it_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
