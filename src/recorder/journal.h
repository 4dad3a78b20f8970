/*
 * The journal: appending to the chain, by several recorders at once, through crashes.
 *
 * Theory of operation. A history is a directory:
 *
 *	journal/000000000001.jsonl ...	the lines
 *	key				where the next line goes, and the key it is made with
 *	blobs/, live/			see blob.h and live.h
 *
 * An append holds a lock on `key` and takes three steps: (1) read the key; (2) write the line at
 * the place that it names; (3) overwrite the key, in place, with that of the next line and the
 * place behind. What was killed between 2 and 3 has left bytes behind the place: lines that are
 * whole and made with the right keys are taken over, the rest was never acknowledged and is cut
 * off, which the next line says. Nothing in front of the place is ever cut: who could make it look
 * as if fewer lines had been written needs a key that is gone. A file that is shorter than the
 * place says has been tampered with, or the machine lost power: the chain goes on in a new segment
 * and says that too.
 *
 * The key is overwritten rather than renamed over because that is what erases the old one, and
 * costs a microsecond. It is 128 bytes in one sector with a checksum.
 */
#ifndef NC_JOURNAL_H
#define NC_JOURNAL_H

#include "base/error.h"
#include "recorder/line.h"
#include "recorder/reserve.h"

/* A segment is closed when it has become so long. */
#define NC_SEGMENT_BYTES (8U * 1024 * 1024)

/* What a crash, or somebody, has left. */
struct nc_repairs {
	uint64_t taken_over;	/* lines that were written and not yet counted */
	uint64_t cut_bytes;	/* behind them, no line */
	uint64_t missing_bytes; /* in front of the place where the next line belongs */
};

struct nc_journal {
	int journal_fd; /* the directory of segments */
	int key_fd;
	int segment_fd;
	uint64_t segment; /* that segment_fd is open for; 0: none */
	char run[17];	  /* 16 digits that name this writer in its lines */
	uint64_t segment_bytes;
	bool dirty; /* there is something to flush */
	struct nc_repairs repairs;
	struct nc_buf line;
	struct nc_reserve *reserve; /* for the ends of executions, borrowed; NULL: there is none */
};

/* A place in the journal. */
struct nc_place {
	uint64_t segment;
	uint64_t offset;
};

/* What the writer of a line gets: enough to find it again, and to prove it. */
struct nc_receipt {
	uint64_t seq;
	unsigned char hash[NC_SHA256_SIZE];
};

/*
 * Makes an empty history in the directory, with a fresh key, which is copied out: it verifies the
 * whole journal, and who reads the history must not have it.
 */
int nc_journal_create(int history_fd, unsigned char ret_key[static NC_SHA256_SIZE]);

/* The key, if no line was made with it yet; -ESTALE if there are lines. */
int nc_journal_first_key(int history_fd, unsigned char ret_key[static NC_SHA256_SIZE]);

/*
 * Opens the journal of a history to append to it, and repairs what a crash has left;
 * journal->repairs tells. -ENOENT: there is none; -EBADMSG: its key is damaged, so nothing can
 * follow.
 */
int nc_journal_open(struct nc_journal *journal, int history_fd, struct nacre_err *err);
void nc_journal_done(struct nc_journal *journal);

/*
 * Appends a line: it outlives every process of ours, and after nc_journal_sync() the machine. On
 * failure (-ENOSPC, -EDQUOT, -EIO) the chain is as it was. -EMSGSIZE: the body is too long.
 */
int nc_journal_append(
	struct nc_journal *journal, const struct nc_entry *entry, struct nc_receipt *ret_receipt);

/* Where the next line would go. */
int nc_journal_place(struct nc_journal *journal, struct nc_place *ret_place);

/* A place that is a whole segment before that, or the first one. */
int nc_journal_before(struct nc_journal *journal, struct nc_place *ret_place);

/* The number of the next line; 0: it cannot be told. */
uint64_t nc_journal_next(struct nc_journal *journal);

/* Whether a line says this, from that number on; among the last 8 MiB and more. */
bool nc_journal_find(struct nc_journal *journal, const struct nc_entry *entry, uint64_t from,
	struct nc_receipt *ret_receipt);

/* Flushes to the disk: the lines, then the key. 0 or -errno. */
int nc_journal_sync(struct nc_journal *journal);

/* The link behind the last line and the place of it, from the key file alone. For verifying. */
int nc_journal_read_key(int history_fd, struct nc_link *ret_link, struct nc_place *ret_place);

#endif
