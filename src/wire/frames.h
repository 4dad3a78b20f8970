/*
 * What two relays say to each other on a byte stream: frames, each a head of explicit widths,
 * little-endian, and as many bytes as it says.
 *
 *	head: u8 type, u8 0, u16 0, u32 stream, u64 number, u32 size
 *
 * A message of the box wire has in front of it what became of its descriptors: a count, and for
 * each u8 kind, u8 of, u32 stream. A stream has one direction; two-way descriptors are two of them.
 */
#ifndef NC_FRAMES_H
#define NC_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

#define NC_RELAY_VERSION 1U
#define NC_RELAY_HEAD 20U
#define NC_RELAY_PIECE_MAX (128U * 1024) /* bytes of a stream in one frame */
/* A message with all its descriptors. */
#define NC_RELAY_MESSAGE_MAX (1U + 6U * NC_WIRE_FDS_MAX + NC_WIRE_MESSAGE_MAX)

enum nc_relay_type {
	NC_RELAY_HELLO = 1, /* stream: the version; number: whose connection it is */
	NC_RELAY_MESSAGE,   /* number: from 0 on; with its descriptors */
	NC_RELAY_DATA,	    /* of a stream; number: where in it */
	NC_RELAY_CREDIT,    /* of a stream; number: how far it may be sent */
	NC_RELAY_ACK,	    /* of a stream; number: how far it has been delivered; 0: messages */
	NC_RELAY_END,	    /* of a stream; number: its length; 0: of all, number: enum nc_bye */
	NC_RELAY_RESET,	    /* nothing of the stream is wanted any more: it was all, or its
			     * reader has gone */
	NC_RELAY_TYPE_MAX,
};

enum nc_bye {
	NC_BYE_DONE,   /* the worker or the holder has gone */
	NC_BYE_BROKEN, /* the other end broke the rules */
	NC_BYE_MAX,
};

struct nc_relay_frame {
	enum nc_relay_type type;
	uint32_t stream;
	uint64_t number;
	uint32_t size; /* of what follows */
};

void nc_relay_put_head(unsigned char out[static NC_RELAY_HEAD], const struct nc_relay_frame *frame);

/* -EBADMSG: no frame, or one that is too long, or a stream where there can be none. */
int nc_relay_get_head(
	const unsigned char in[static NC_RELAY_HEAD], struct nc_relay_frame *ret_frame);

/* What a descriptor of a message is, as seen by who sends the message. */
enum nc_carry_kind {
	NC_CARRY_NULL, /* /dev/null */
	NC_CARRY_FROM, /* it can be read: its bytes go the way of the message */
	NC_CARRY_INTO, /* it can be written: bytes come back */
	NC_CARRY_BOTH, /* a terminal: stream as FROM, and the one that follows it as INTO */
	NC_CARRY_SAME, /* another descriptor of what an earlier one is: which */
	NC_CARRY_MATE, /* the other end of that */
	NC_CARRY_MAX,
};

struct nc_carry {
	enum nc_carry_kind kind;
	uint8_t of;
	uint32_t stream; /* 0: none */
};

/* The list in front of a message; returns its size. */
size_t nc_relay_put_carries(unsigned char *out, const struct nc_carry *list, size_t n);

/* Returns the size of the list, or -EBADMSG. */
int nc_relay_get_carries(const unsigned char *in, size_t size,
	struct nc_carry ret_list[static NC_WIRE_FDS_MAX], size_t *ret_n);

#endif
