/* Retention of the journal. */
#include "recorder/retire.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/path.h"
#include "recorder/segment.h"

/* The last whole line of a segment. */
static int read_last(int fd, uint64_t size, uint64_t *ret_seq, char hash[static NC_SHA256_HEX_SIZE])
{
	char tail[NC_LINE_MAX + 1];
	size_t room = size < sizeof(tail) ? (size_t)size : sizeof(tail);
	unsigned char digest[NC_SHA256_SIZE];
	struct nc_line_parts parts;
	const char *begin;
	ssize_t n = pread(fd, tail, room, (off_t)(size - room));

	if (n < 0)
		return -errno;
	if ((size_t)n != room || room < 2 || tail[room - 1] != '\n')
		return -EBADMSG;
	begin = memrchr(tail, '\n', room - 1);
	begin = begin ? begin + 1 : tail;
	room -= (size_t)(begin - tail) + 1;
	if (nc_line_split(begin, room, &parts) < 0)
		return -EBADMSG;
	nc_sha256(begin, room, digest);
	nc_sha256_hex(digest, hash);
	*ret_seq = parts.seq;
	return 0;
}

/* Says in the chain that the segment goes; a crash before it has gone makes us say it again. */
static int announce(struct nc_journal *journal, uint64_t segment, uint64_t seq, const char *hash)
{
	char body[256];
	int n = snprintf(body, sizeof(body),
		"{\"segment\":%" PRIu64 ",\"last_seq\":%" PRIu64 ",\"last_hash\":\"%s\"}", segment,
		seq, hash);
	const struct nc_entry entry = {.from = NC_FROM_RECORDER,
		.kind = NC_RECORD_AUDIT,
		.event = "retired",
		.id = "",
		.body = body,
		.body_size = (size_t)n};
	struct nc_receipt receipt;
	int r = nc_journal_append(journal, &entry, &receipt);

	/* on the disk before the lines are gone from it */
	return r < 0 ? r : nc_journal_sync(journal);
}

static int retire_one(struct nc_journal *journal, uint64_t segment)
{
	char name[NC_SEGMENT_NAME_SIZE], hash[NC_SHA256_HEX_SIZE];
	cleanup_close int fd = -EBADF;
	struct stat status;
	uint64_t seq = 0;
	int r;

	nc_segment_name(segment, name);
	fd = nc_path_open(journal->journal_fd, name, O_RDONLY, 0);
	if (fd < 0 || fstat(fd, &status) < 0)
		return fd < 0 ? fd : -errno;
	/* a segment that is damaged is evidence, and stays */
	r = read_last(fd, (uint64_t)status.st_size, &seq, hash);
	if (r == 0)
		r = announce(journal, segment, seq, hash);
	if (r == 0 && unlinkat(journal->journal_fd, name, 0) < 0)
		r = -errno;
	return r;
}

static int look_at(const struct nc_journal *journal, uint64_t segment, struct stat *ret_status)
{
	char name[NC_SEGMENT_NAME_SIZE];

	nc_segment_name(segment, name);
	return fstatat(journal->journal_fd, name, ret_status, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

int nc_retire(struct nc_journal *journal, uint64_t max_bytes, uint64_t max_age_s)
{
	cleanup_free uint64_t *numbers = NULL;
	uint64_t total = 0;
	struct nc_place place;
	struct stat status;
	size_t n;
	int retired = 0, r = nc_segment_list(journal->journal_fd, &numbers, &n);

	if (r == 0)
		r = nc_journal_place(journal, &place);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (look_at(journal, numbers[i], &status) == 0)
			total += (uint64_t)status.st_size;
	for (size_t i = 0; r == 0 && i < n && numbers[i] < place.segment; i++) {
		r = look_at(journal, numbers[i], &status);
		if (r < 0 || ((max_bytes == 0 || total <= max_bytes) &&
				     (max_age_s == 0 || time(NULL) - status.st_mtim.tv_sec <=
								(int64_t)max_age_s)))
			break;
		r = retire_one(journal, numbers[i]);
		total -= (uint64_t)status.st_size;
		retired += r == 0;
	}
	return r < 0 ? r : retired;
}
