/*
 * One end of a connection: its socket, what has come and was not used, what is to go. Readiness is
 * remembered from edges: true means "worth trying".
 */
#ifndef NC_SIDE_H
#define NC_SIDE_H

#include <stdbool.h>
#include <stddef.h>

#include <openssl/ssl.h>

#include "base/buf.h"
#include "egress/loop.h"

struct nc_side {
	struct nc_watch watch;
	int fd;	      /* or -EBADF */
	SSL *tls;     /* owned; NULL: bytes are as they are */
	size_t retry; /* bytes that TLS was given and did not send; it wants no fewer next time */
	bool readable;
	bool writable;
	bool ended;   /* nothing more comes */
	bool shut;    /* nothing more goes */
	char *data;   /* NC_EGRESS_HEAD_MAX bytes, while any are there; else NULL */
	size_t start; /* of the bytes in data that were not used */
	size_t end;
	struct nc_buf out; /* to be sent before anything else */
	size_t sent;	   /* of these */
};

static inline size_t nc_side_has(const struct nc_side *side)
{
	return side->end - side->start;
}

static inline const char *nc_side_bytes(const struct nc_side *side)
{
	return side->data ? side->data + side->start : "";
}

/* Without a socket. */
void nc_side_init(struct nc_side *side, void (*ready)(struct nc_watch *watch, uint32_t events));

/* Takes a socket, and watches it. 0 or -errno: it is closed. What is to go to it stays. */
int nc_side_attach(struct nc_side *side, struct nc_loop *loop, int fd);

/* Gives the socket up, to be closed or used again, with what has come from it. Returns it. */
int nc_side_detach(struct nc_side *side, struct nc_loop *loop);

/* Closes it and frees what it holds. */
void nc_side_done(struct nc_side *side);

/* Reads what fits. The number of bytes; 0: nothing now, or the end, or no room; -errno. */
ssize_t nc_side_fill(struct nc_side *side);

/* Whether a head that has not ended by now is too long. */
bool nc_side_is_full(const struct nc_side *side);

/* Takes n bytes off the front. */
void nc_side_use(struct nc_side *side, size_t n);

/* Speaks TLS from now on. Takes tls, which may be NULL: -ENOMEM. */
int nc_side_secure(struct nc_side *side, SSL *tls);

/* Goes on with the handshake. 1: it is done; 0: not yet; -EPROTO. */
int nc_side_shake(struct nc_side *side);

/* Sends bytes. Their number; 0: not now; -errno. */
ssize_t nc_side_send(struct nc_side *side, const void *data, size_t size);

/* Sends what waits in out. 1: all is gone; 0: not yet; -errno. */
int nc_side_flush(struct nc_side *side);

/* Says that nothing more goes. */
void nc_side_shut(struct nc_side *side);

/* Remembers what epoll tells. */
void nc_side_ready(struct nc_side *side, uint32_t events);

#endif
