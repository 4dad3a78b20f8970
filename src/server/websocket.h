/*
 * Frames of WebSockets (RFC 6455), both sides of it. Pure: bytes go in, messages come out, and the
 * other way round.
 */
#ifndef NC_WEBSOCKET_H
#define NC_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

enum nc_ws_kind {
	NC_WS_MORE = 0, /* of the message before; of frames only */
	NC_WS_TEXT = 1,
	NC_WS_BINARY = 2,
	NC_WS_CLOSE = 8,
	NC_WS_PING = 9,
	NC_WS_PONG = 10,
};

/* Why a connection is closed. */
enum nc_ws_code {
	NC_WS_NORMAL = 1000,
	NC_WS_GOING = 1001,
	NC_WS_PROTOCOL = 1002,
	NC_WS_NOT_TEXT = 1007,
	NC_WS_REFUSED = 1008,
	NC_WS_TOO_LARGE = 1009,
};

#define NC_WS_CONTROL_MAX 125U
#define NC_WS_HEAD_MAX 14U

struct nc_ws_reader {
	bool masked; /* what comes has to be, as a client's; else it must not */
	/* a message that is whole */
	bool whole;
	enum nc_ws_kind kind;
	const char *data; /* good until the next call */
	size_t size;
	/* why no more is read: enum nc_ws_code */
	unsigned int fault;
	/* where it is */
	unsigned char head[NC_WS_HEAD_MAX];
	size_t head_size;
	uint64_t left, at;     /* of the frame's data */
	enum nc_ws_kind begun; /* of a message that is not whole; NC_WS_MORE: none */
	struct nc_buf message;
	char control[NC_WS_CONTROL_MAX];
	size_t control_size;
};

/* max: bytes of one message. */
void nc_ws_reader_init(struct nc_ws_reader *reader, bool masked, size_t max);
void nc_ws_reader_done(struct nc_ws_reader *reader);

/*
 * Takes bytes until a message is whole, and returns how many; -EPROTO with a fault, for good. A
 * close has a code that may be sent, or none.
 */
ssize_t nc_ws_take(struct nc_ws_reader *reader, const char *data, size_t size);

/* The code of a close; 0: it has none. */
unsigned int nc_ws_code_of(const struct nc_ws_reader *reader);

/*
 * Adds one message as one frame: head, of at most 16 bytes, and data. mask: of a client's, any four
 * bytes that nobody foresaw; NULL: a server's.
 */
void nc_ws_put(struct nc_buf *out, enum nc_ws_kind kind, const void *head, size_t head_size,
	const void *data, size_t size, const unsigned char *mask);

void nc_ws_put_close(
	struct nc_buf *out, unsigned int code, const char *reason, const unsigned char *mask);

/* What the key of a client is answered with. -EINVAL: it is none. */
#define NC_WS_ACCEPT_SIZE 29
int nc_ws_accept(const char *key, char out[static NC_WS_ACCEPT_SIZE]);

#endif
