/*
 * Frames on a byte stream: the size of what follows, 32 bits, little-endian, and one JSON object.
 * So the library and other programs talk with `nacre engine` (docs/library.md).
 */
#ifndef NC_FRAME_H
#define NC_FRAME_H

#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"

/* Of what is said in frames; told in the first one. */
#define NC_FRAME_PROTOCOL 1

#define NC_FRAME_HEAD_SIZE 4U

/* Puts frames together from pieces. Begin with {.max = ..., .max_values = ...}. */
struct nc_frame_in {
	size_t max;	   /* bytes of one frame */
	size_t max_values; /* JSON values in one */
	unsigned char head[NC_FRAME_HEAD_SIZE];
	size_t head_size;
	size_t wanted; /* once the head is there */
	struct nc_buf body;
};

/*
 * Takes bytes up to the end of a frame; *ret_used says how many. 1: *ret_object is the frame's, an
 * object of the caller's; 0: more is needed, and all was used. -EMSGSIZE: it is too large;
 * -EINVAL: it is no JSON object; -ENOMEM: nothing can be read after any of these.
 */
int nc_frame_take(struct nc_frame_in *in, const char *data, size_t size, size_t *ret_used,
	json_t **ret_object, struct nacre_err *err);
void nc_frame_in_done(struct nc_frame_in *in);

/* Whether a frame has begun and not ended. */
static inline bool nc_frame_is_open(const struct nc_frame_in *in)
{
	return in->head_size > 0;
}

/* Frames that wait to be sent. Begin with {.buf = NC_BUF(most bytes)}. */
struct nc_frame_out {
	struct nc_buf buf;
	size_t sent;
};

static inline size_t nc_frame_unsent(const struct nc_frame_out *out)
{
	return out->buf.size - out->sent;
}

/*
 * Adds a frame; takes over the reference, NULL standing for memory that ran out. -EMSGSIZE: it has
 * more than max bytes; -ENOBUFS: too much is waiting already; -ENOMEM. Then nothing was added.
 */
int nc_frame_put(struct nc_frame_out *out, json_t *object, size_t max);

/* Sends what a non-blocking socket takes. 1: that was all; 0: something is left; or -errno. */
int nc_frame_send(struct nc_frame_out *out, int fd);
void nc_frame_out_done(struct nc_frame_out *out);

#endif
