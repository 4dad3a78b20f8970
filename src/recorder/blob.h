/*
 * Code and output beside the journal: files named by their SHA-256, blobs/ab/cdef..., written whole
 * or not at all and never changed. The chain has the digests, so a blob proves itself.
 *
 * They are not flushed one by one: a machine that loses power may lose the last half minute of
 * them, and reading says so; of the journal it loses a tenth of a second.
 */
#ifndef NC_BLOB_H
#define NC_BLOB_H

#include <stdint.h>

#include "base/hash.h"
#include "base/id.h"

struct nc_blobs {
	int dir_fd;
	int usage_fd;	    /* how many bytes there are, by all recorders together */
	uint64_t max_bytes; /* of all; 0: no limit */
};

/* Opens the blobs of a history to add to them. 0 or -errno. */
int nc_blobs_open(struct nc_blobs *blobs, int history_fd, uint64_t max_bytes);
void nc_blobs_done(struct nc_blobs *blobs);

/*
 * Keeps the bytes and tells their digest; also when they are kept already, which makes them young
 * again. When all blobs together become too many, those that were not used for longest go. -EFBIG:
 * larger than NC_BLOB_MAX or than all may be; -ENOSPC and the like.
 */
int nc_blobs_put(struct nc_blobs *blobs, const void *data, size_t size,
	unsigned char ret_digest[static NC_SHA256_SIZE]);

/* A blob that is written part by part. */
struct nc_blob_draft {
	int fd;			   /* -EBADF: there is none */
	uint64_t size, written;	   /* of all of it, so far */
	char name[NC_ID_SIZE + 3]; /* below the blobs */
	struct nc_sha256_state hash;
};

/*
 * The same for the size bytes of a file that does not change: NC_BLOB_PART of them from the offset
 * on. An offset of 0 begins anew. -EINPROGRESS: so far so good, and the next part follows; -ESTALE:
 * this is not the next.
 */
int nc_blobs_put_part(struct nc_blobs *blobs, struct nc_blob_draft *draft, int fd, uint64_t size,
	uint64_t offset, unsigned char ret_digest[static NC_SHA256_SIZE]);

/* Gives up one that is not finished. */
void nc_blobs_drop(struct nc_blobs *blobs, struct nc_blob_draft *draft);

/* Removes what was not used for max_age_s seconds (0: any age is fine) and leftovers of crashes. */
int nc_blobs_sweep(struct nc_blobs *blobs, uint64_t max_age_s);

/*
 * Reads a blob from a history; the caller frees *ret_data, which has a NUL behind it. -ENOENT: it
 * is not there (any more); -EBADMSG: it is not what its name says.
 */
int nc_blob_read(int history_fd, const unsigned char digest[static NC_SHA256_SIZE], char **ret_data,
	size_t *ret_size);

#endif
