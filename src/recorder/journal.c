/* The journal: appending to the chain. */
#include "recorder/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/path.h"
#include "recorder/segment.h"

#define KEY_NAME "key"
#define JOURNAL_NAME "journal"

/* The key file: "NACREKEY", seq, segment, offset, key, last, then the SHA-256 of all that. */
#define AT_NUMBERS 8
#define AT_KEY 32
#define AT_LAST 64
#define AT_CHECK 96
#define KEY_SIZE 128

static const char magic[AT_NUMBERS] = {'N', 'A', 'C', 'R', 'E', 'K', 'E', 'Y'};

/* The key file in memory. */
struct head {
	struct nc_link link;
	struct nc_place place;
};

static void wipe_head(struct head *head)
{
	explicit_bzero(head, sizeof(*head));
}

#define cleanup_head nc_cleanup(wipe_head)

static void put_u64(unsigned char *at, uint64_t value)
{
	for (size_t i = 0; i < 8; i++)
		at[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get_u64(const unsigned char *at)
{
	uint64_t value = 0;

	for (size_t i = 0; i < 8; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

static int write_head(int fd, const struct head *head)
{
	unsigned char bytes[KEY_SIZE];
	ssize_t n;

	memcpy(bytes, magic, AT_NUMBERS);
	put_u64(bytes + AT_NUMBERS, head->link.seq);
	put_u64(bytes + AT_NUMBERS + 8, head->place.segment);
	put_u64(bytes + AT_NUMBERS + 16, head->place.offset);
	memcpy(bytes + AT_KEY, head->link.key, NC_SHA256_SIZE);
	memcpy(bytes + AT_LAST, head->link.last, NC_SHA256_SIZE);
	nc_sha256(bytes, AT_CHECK, bytes + AT_CHECK);
	/* one call, one page: a signal that kills comes before or after it, not within */
	do
		n = pwrite(fd, bytes, sizeof(bytes), 0);
	while (n < 0 && errno == EINTR);
	explicit_bzero(bytes, sizeof(bytes));
	return n < 0 ? -errno : n == sizeof(bytes) ? 0 : -EIO;
}

static int read_head(int fd, struct head *ret_head)
{
	unsigned char bytes[KEY_SIZE], check[NC_SHA256_SIZE];
	struct head head;
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);

	if (n < 0)
		return -errno;
	nc_sha256(bytes, AT_CHECK, check);
	if (n != sizeof(bytes) || memcmp(bytes, magic, AT_NUMBERS) != 0 ||
		!nc_sha256_equal(check, bytes + AT_CHECK))
		return -EBADMSG;
	head.link.seq = get_u64(bytes + AT_NUMBERS);
	head.place.segment = get_u64(bytes + AT_NUMBERS + 8);
	head.place.offset = get_u64(bytes + AT_NUMBERS + 16);
	memcpy(head.link.key, bytes + AT_KEY, NC_SHA256_SIZE);
	memcpy(head.link.last, bytes + AT_LAST, NC_SHA256_SIZE);
	*ret_head = head;
	wipe_head(&head);
	explicit_bzero(bytes, sizeof(bytes));
	return 0;
}

/* Locks that belong to the open file: those of a process would be let go by any other close. */
static int set_lock(int fd, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
	int r;

	do
		r = fcntl(fd, F_OFD_SETLKW, &lock);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

int nc_journal_create(int history_fd, unsigned char ret_key[static NC_SHA256_SIZE])
{
	cleanup_head struct head head = {.place = {.segment = 1}};
	cleanup_close int fd = -EBADF;
	unsigned char key[NC_SHA256_SIZE];
	int r = nc_random(key, sizeof(key));

	if (r < 0)
		return r;
	nc_link_first(&head.link, key);
	if (mkdirat(history_fd, JOURNAL_NAME, 0700) < 0 || mkdirat(history_fd, "blobs", 0700) < 0 ||
		mkdirat(history_fd, "live", 0700) < 0)
		return -errno;
	fd = nc_path_open(history_fd, KEY_NAME, O_RDWR | O_CREAT | O_EXCL, 0600);
	r = fd < 0 ? fd : write_head(fd, &head);
	if (r == 0 && (fsync(fd) < 0 || fsync(history_fd) < 0))
		r = -errno;
	if (r == 0)
		memcpy(ret_key, key, sizeof(key));
	explicit_bzero(key, sizeof(key));
	return r;
}

int nc_journal_read_key(int history_fd, struct nc_link *ret_link, struct nc_place *ret_place)
{
	cleanup_head struct head head = {0};
	cleanup_close int fd = nc_path_open(history_fd, KEY_NAME, O_RDONLY, 0);
	int r = fd < 0 ? fd : read_head(fd, &head);

	if (r == 0) {
		*ret_link = head.link;
		*ret_place = head.place;
	}
	return r;
}

int nc_journal_first_key(int history_fd, unsigned char ret_key[static NC_SHA256_SIZE])
{
	struct nc_link link = {0};
	struct nc_place place;
	int r = nc_journal_read_key(history_fd, &link, &place);

	if (r == 0 && link.seq != 1)
		r = -ESTALE;
	if (r == 0)
		memcpy(ret_key, link.key, NC_SHA256_SIZE);
	explicit_bzero(&link, sizeof(link));
	return r;
}

static int sync_segment(struct nc_journal *journal)
{
	return journal->segment_fd >= 0 && fdatasync(journal->segment_fd) < 0 ? -errno : 0;
}

static int use_segment(struct nc_journal *journal, uint64_t number)
{
	char name[NC_SEGMENT_NAME_SIZE];
	int fd;

	if (journal->segment == number && journal->segment_fd >= 0)
		return 0;
	nc_segment_name(number, name);
	fd = nc_path_open(journal->journal_fd, name, O_RDWR | O_CREAT, 0600);
	if (fd < 0)
		return fd;
	/* what was written there is flushed now or never: we will not have it open any more */
	(void)sync_segment(journal);
	(void)nc_fd_close(journal->segment_fd);
	journal->segment_fd = fd;
	journal->segment = number;
	return 0;
}

/* Closes this segment: the next line goes to the beginning of another. */
static int turn_page(struct nc_journal *journal, struct head *head)
{
	const struct nc_place old = head->place;
	int r;

	head->place = (struct nc_place){.segment = old.segment + 1};
	r = use_segment(journal, head->place.segment);
	if (r == 0)
		r = write_head(journal->key_fd, head);
	if (r < 0)
		head->place = old;
	return r;
}

/* Takes over the lines behind the place that belong there. Returns the length of the rest. */
static int take_over(struct nc_journal *journal, struct head *head, uint64_t *ret_rest)
{
	cleanup_reader struct nc_reader reader = NC_READER_CLOSED;
	const char *line;
	size_t size;
	int r = nc_reader_open(
		&reader, journal->journal_fd, head->place.segment, head->place.offset);

	if (r < 0)
		return r;
	while ((r = nc_reader_next(&reader, &line, &size)) > 0) {
		if (nc_reader_segment(&reader) != head->place.segment || reader.cut ||
			!nc_line_follows(&head->link, line, size))
			break;
		nc_link_step(&head->link, line, size);
		head->place.offset += size + 1;
		journal->repairs.taken_over++;
	}
	if (r < 0)
		return r;
	r = write_head(journal->key_fd, head);
	if (r == 0) {
		struct stat status;

		if (fstat(journal->segment_fd, &status) < 0)
			return -errno;
		*ret_rest = (uint64_t)status.st_size - head->place.offset;
	}
	return r;
}

/*
 * Brings file and key together. What is not whole behind the place is cut off; what is missing in
 * front of it stays missing, and the rest of that file stays as it is, as evidence.
 */
static int repair(struct nc_journal *journal, struct head *head)
{
	struct stat status;
	uint64_t size, rest = 0;
	int r = use_segment(journal, head->place.segment);

	if (r < 0 || fstat(journal->segment_fd, &status) < 0)
		return r < 0 ? r : -errno;
	size = (uint64_t)status.st_size;
	if (size == head->place.offset)
		return 0;
	if (size < head->place.offset) {
		journal->repairs.missing_bytes += head->place.offset - size;
		return turn_page(journal, head);
	}
	r = take_over(journal, head, &rest);
	if (r == 0 && rest > 0) {
		if (ftruncate(journal->segment_fd, (off_t)head->place.offset) < 0)
			return -errno;
		journal->repairs.cut_bytes += rest;
	}
	return r;
}

/* Writes the line that is in journal->line, or nothing at all. */
static int write_line(struct nc_journal *journal, const struct head *head)
{
	const struct nc_buf *line = &journal->line;
	size_t done = 0;

	while (done < line->size) {
		ssize_t n = pwrite(journal->segment_fd, line->data + done, line->size - done,
			(off_t)(head->place.offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int r = -errno;

			/* or else the next append cuts it off */
			(void)!ftruncate(journal->segment_fd, (off_t)head->place.offset);
			return r;
		}
		done += (size_t)n;
	}
	return 0;
}

static int append_locked(struct nc_journal *journal, struct head *head,
	const struct nc_entry *entry, struct nc_receipt *ret_receipt)
{
	struct nc_receipt receipt = {.seq = head->link.seq};
	cleanup_head struct head next = *head;
	size_t size;
	int r = 0;

	journal->line.size = 0;
	journal->line.error = 0;
	nc_line_add(&journal->line, &head->link, journal->run, entry);
	if (journal->line.error < 0)
		return journal->line.error == -EFBIG ? -EMSGSIZE : journal->line.error;
	size = journal->line.size;
	if (head->place.offset > 0 && head->place.offset + size > journal->segment_bytes) {
		r = turn_page(journal, head);
		next.place = head->place;
	}
	if (r == 0)
		r = write_line(journal, head);
	if (r < 0)
		return r;
	nc_link_step(&next.link, journal->line.data, size - 1);
	next.place.offset += size;
	r = write_head(journal->key_fd, &next);
	if (r < 0) {
		(void)!ftruncate(journal->segment_fd, (off_t)head->place.offset);
		return r;
	}
	*head = next;
	journal->dirty = true;
	memcpy(receipt.hash, next.link.last, sizeof(receipt.hash));
	*ret_receipt = receipt;
	return 0;
}

/* The chain itself says what was repaired. */
static int tell_repairs(
	struct nc_journal *journal, struct head *head, const struct nc_repairs *before)
{
	const struct nc_repairs *now = &journal->repairs;
	struct nc_entry entry = {
		.from = NC_FROM_RECORDER, .kind = NC_RECORD_AUDIT, .event = "repaired", .id = ""};
	struct nc_receipt receipt;
	char body[160];
	int n;

	if (now->cut_bytes == before->cut_bytes && now->missing_bytes == before->missing_bytes)
		return 0;
	n = snprintf(body, sizeof(body),
		"{\"cut_bytes\":%" PRIu64 ",\"missing_bytes\":%" PRIu64 "}",
		now->cut_bytes - before->cut_bytes, now->missing_bytes - before->missing_bytes);
	entry.body = body;
	entry.body_size = (size_t)n;
	return append_locked(journal, head, &entry, &receipt);
}

/* Runs with the lock: the journal is whole, and *head is where it ends. */
static int enter(struct nc_journal *journal, struct head *head)
{
	const struct nc_repairs before = journal->repairs;
	int r = read_head(journal->key_fd, head);

	if (r == 0)
		r = repair(journal, head);
	return r < 0 ? r : tell_repairs(journal, head, &before);
}

int nc_journal_append(
	struct nc_journal *journal, const struct nc_entry *entry, struct nc_receipt *ret_receipt)
{
	cleanup_head struct head head = {0};
	int r;

	if (entry->body_size > NC_RECORD_BODY_MAX)
		return -EMSGSIZE;
	r = set_lock(journal->key_fd, F_WRLCK);
	if (r < 0)
		return r;
	do {
		r = enter(journal, &head);
		if (r == 0)
			r = append_locked(journal, &head, entry, ret_receipt);
	} while ((r == -ENOSPC || r == -EDQUOT) && entry->is_end && journal->reserve &&
		 nc_reserve_spend(journal->reserve, journal->line.size));
	(void)set_lock(journal->key_fd, F_UNLCK);
	return r;
}

static int look_at_head(struct nc_journal *journal, struct head *head)
{
	int r = set_lock(journal->key_fd, F_RDLCK);

	if (r < 0)
		return r;
	r = read_head(journal->key_fd, head);
	(void)set_lock(journal->key_fd, F_UNLCK);
	return r;
}

int nc_journal_place(struct nc_journal *journal, struct nc_place *ret_place)
{
	cleanup_head struct head head = {0};
	int r = look_at_head(journal, &head);

	if (r == 0)
		*ret_place = head.place;
	return r;
}

int nc_journal_before(struct nc_journal *journal, struct nc_place *ret_place)
{
	struct nc_place place = {0};
	int r = nc_journal_place(journal, &place);

	if (r < 0)
		return r;
	*ret_place = (struct nc_place){.segment = place.segment > 1 ? place.segment - 1 : 1};
	return 0;
}

uint64_t nc_journal_next(struct nc_journal *journal)
{
	cleanup_head struct head head = {0};

	return look_at_head(journal, &head) < 0 ? 0 : head.link.seq;
}

bool nc_journal_find(struct nc_journal *journal, const struct nc_entry *entry, uint64_t from,
	struct nc_receipt *ret_receipt)
{
	cleanup_reader struct nc_reader reader = NC_READER_CLOSED;
	struct nc_line_parts parts;
	struct nc_place place;
	const char *line;
	size_t size;
	int r = nc_journal_before(journal, &place);

	if (r == 0)
		r = nc_reader_open(&reader, journal->journal_fd, place.segment, place.offset);
	while (r >= 0 && (r = nc_reader_next(&reader, &line, &size)) > 0) {
		if (!nc_line_is(line, size, entry) || nc_line_split(line, size, &parts) < 0 ||
			parts.seq < from)
			continue;
		ret_receipt->seq = parts.seq;
		nc_sha256(line, size, ret_receipt->hash);
		return true;
	}
	return false;
}

static int name_run(struct nc_journal *journal)
{
	char id[NC_ID_SIZE];
	int r = nc_id_new("rc", id);

	if (r == 0)
		memcpy(journal->run, id + 3, sizeof(journal->run) - 1);
	return r;
}

int nc_journal_open(struct nc_journal *journal, int history_fd, struct nacre_err *err)
{
	cleanup_head struct head head = {0};
	int r;

	*journal = (struct nc_journal){.journal_fd = -EBADF,
		.key_fd = -EBADF,
		.segment_fd = -EBADF,
		.segment_bytes = NC_SEGMENT_BYTES,
		.line = NC_BUF(NC_LINE_MAX)};
	r = name_run(journal);
	if (r == 0)
		r = journal->journal_fd =
			nc_path_open(history_fd, JOURNAL_NAME, O_RDONLY | O_DIRECTORY, 0);
	if (r >= 0)
		r = journal->key_fd = nc_path_open(history_fd, KEY_NAME, O_RDWR, 0);
	if (r >= 0)
		r = set_lock(journal->key_fd, F_WRLCK);
	if (r >= 0) {
		r = enter(journal, &head);
		(void)set_lock(journal->key_fd, F_UNLCK);
	}
	if (r >= 0)
		return 0;
	nc_journal_done(journal);
	if (r == -EBADMSG)
		return nc_err_set(err, r,
			"The key of the journal is damaged, so nothing can follow: run nacre audit "
			"verify, move the history away and begin a new one");
	return nc_err_errno(err, r, "Open the journal");
}

void nc_journal_done(struct nc_journal *journal)
{
	journal->journal_fd = nc_fd_close(journal->journal_fd);
	journal->key_fd = nc_fd_close(journal->key_fd);
	journal->segment_fd = nc_fd_close(journal->segment_fd);
	nc_buf_done(&journal->line);
}

int nc_journal_sync(struct nc_journal *journal)
{
	int r = sync_segment(journal);

	if (r == 0 && fdatasync(journal->key_fd) < 0)
		r = -errno;
	if (r == 0)
		journal->dirty = false;
	return r;
}
