/*
 * A large request, whose body is in a file: what its files hold is left there, and read piece by
 * piece when it is wanted. What is left of the JSON is small enough to be read as any other.
 */
#ifndef NC_CUT_H
#define NC_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/id.h"

/* The inside of a JSON string, as it stands in the file. */
struct nc_cut {
	off_t offset;
	size_t size;
};

struct nc_cuts {
	int fd;		       /* of the body */
	char mark[NC_ID_SIZE]; /* how the texts begin that stand for cuts: nobody can know it */
	struct nc_cut *cut;
	size_t count;
};

/*
 * Reads the body in the file, of size bytes: *rest gets its JSON, in which texts longer than
 * NC_CUT_MIN below the member `files` are replaced by short ones. Takes fd over, also on failure.
 * Whether it is JSON is for whoever parses the rest, and whether a cut is text for its reader.
 * -EFBIG: the rest is longer than it may be (rest->max), -EIO, -ENOMEM.
 */
int nc_cuts_make(int fd, size_t size, struct nc_cuts **ret_cuts, struct nc_buf *rest);
void nc_cuts_free(struct nc_cuts *cuts);

/* Overwrites all that is no cut in the file, of size bytes: there were secrets. 0 or -errno. */
int nc_cuts_blank(const struct nc_cuts *cuts, size_t size);

static inline void nc_cuts_freep(struct nc_cuts **place)
{
	nc_cuts_free(*place);
}

#define cleanup_cuts nc_cleanup(nc_cuts_freep)

/* What a text of the rest stands for, or NULL if it is itself. cuts may be NULL. */
const struct nc_cut *nc_cuts_find(const struct nc_cuts *cuts, const char *text);

#define NC_CUT_BLOCK 16384U

/* Decodes one. Some 50 KiB: it wants to be allocated. */
struct nc_cut_reader {
	int fd;
	struct nc_cut left;
	bool base64;
	size_t passed;	/* digits of base64, before those that are carried */
	size_t carried; /* digits at the beginning of text */
	bool uneven;	/* it is wrong since its length is no multiple of four */
	char raw[NC_CUT_BLOCK], text[NC_CUT_BLOCK + 4];
	unsigned char data[NC_CUT_BLOCK];
};

void nc_cut_begin(struct nc_cut_reader *reader, const struct nc_cuts *cuts,
	const struct nc_cut *cut, bool base64);

/*
 * The next piece, which is the reader's and stays until the next call; *ret_size is 0 behind the
 * last one. -EILSEQ: it is no text of JSON's; -EINVAL: it is no base64, wrong at *ret_at, or of
 * that length if it is uneven; -EIO.
 */
int nc_cut_next(
	struct nc_cut_reader *reader, const char **ret_data, size_t *ret_size, size_t *ret_at);

#endif
