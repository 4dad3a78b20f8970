/*
 * Archives as POSIX describes them (ustar with pax records), with what GNU tar adds for long names:
 * the heads of their members. What stands for bytes of a file that are not there (sparse files),
 * and devices, are refused. Pure: blocks go in, members come out.
 */
#ifndef NC_TAR_H
#define NC_TAR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/limits.h"

#define NC_TAR_BLOCK 512U

enum nc_tar_kind {
	NC_TAR_FILE,
	NC_TAR_DIR,
	NC_TAR_SYMLINK,
	NC_TAR_LINK, /* another name of a member before it */
	NC_TAR_FIFO,
	NC_TAR_END, /* of the archive */
};

struct nc_tar_member {
	enum nc_tar_kind kind;
	/* plain (nc_path_is_plain), or "" for the directory that all is relative to */
	char path[NC_PATH_MAX + 1];
	char target[NC_PATH_MAX + 1]; /* of a link; of NC_TAR_LINK it is such a path too */
	mode_t mode;		      /* of 0777 */
	uint64_t size;		      /* bytes of a file that follow, and fill blocks */
	int64_t mtime_s;
};

/* Adds the head of a member, or the end of the archive. */
void nc_tar_put(struct nc_buf *out, const struct nc_tar_member *member);

/* Bytes that fill the last block behind so many. */
static inline size_t nc_tar_padding(uint64_t size)
{
	return (size_t)(-size % NC_TAR_BLOCK);
}

struct nc_tar_reader {
	struct nc_tar_member member; /* once it is whole */
	const char *why;	     /* it was refused */
	/* the words about the next member that come before it, as far as they have come */
	struct nc_buf words;
	uint64_t words_left; /* bytes, with those that fill the block */
	char words_kind;
	bool has_path, has_target, has_size, has_mtime;
	bool zeros; /* a block of them: the first half of the end */
};

void nc_tar_reader_init(struct nc_tar_reader *reader);
void nc_tar_reader_done(struct nc_tar_reader *reader);

/*
 * Takes the next block that is no data of a member. 1: member is whole, and its data follow; 0:
 * there is more of its head. -EBADMSG: that is no archive; -EOPNOTSUPP: none that we unpack;
 * -EPERM: a member that leaves the directory, or a device; -ENAMETOOLONG; -ENOMEM. why says more.
 */
int nc_tar_take(struct nc_tar_reader *reader, const unsigned char block[static NC_TAR_BLOCK]);

#endif
