/* Files that come out of a box: the stream of nacre-files, taken apart as it comes. */
#ifndef NC_UNPACK_H
#define NC_UNPACK_H

#include "base/buf.h"
#include "base/pack.h"

struct nc_unpacked {
	char *path; /* plain, see nc_path_is_plain */
	char *data; /* NULL if it was skipped, or empty */
	uint64_t size;
	bool executable;
	int error; /* errno, if it was skipped */
};

struct nc_unpack {
	size_t max_bytes; /* of all files together */
	/* the outcome; complete only with ended */
	struct nc_unpacked *files;
	size_t n_files;
	bool ended;
	int error; /* errno of nacre-files: why it is not all */
	/* where the stream is */
	struct nc_pack_head head;
	struct nc_buf part; /* head, path or data, as far as it has come */
	size_t wanted;	    /* bytes of the part */
	enum { NC_UNPACK_HEAD, NC_UNPACK_PATH, NC_UNPACK_DATA } state;
	size_t capacity, bytes;
};

void nc_unpack_init(struct nc_unpack *unpack, size_t max_bytes);

/* Accepts a zeroed one. */
void nc_unpack_done(struct nc_unpack *unpack);

/* Takes the next piece. -EBADMSG: that is no such stream; -EFBIG: more than max_bytes; -ENOMEM. */
int nc_unpack_add(struct nc_unpack *unpack, const char *data, size_t size);

/* Adds a file to a stream for nacre-files, or its end; data NULL: its bytes are to follow. */
void nc_pack_add(
	struct nc_buf *stream, const char *path, const char *data, size_t size, bool executable);
/* The same, with a time long past: nc_pack_head.old. */
void nc_pack_add_old(struct nc_buf *stream, const char *path, const char *data, size_t size);

void nc_pack_end(struct nc_buf *stream);

#endif
