/*
 * The heads of HTTP/1 messages, read strictly (RFC 9112, and less): what another program could read
 * in another way is refused, since two readings of one message are how requests are smuggled.
 */
#ifndef NC_HTTP_H
#define NC_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/span.h"
#include "config/host.h"
#include "egress/reason.h"
#include "egress/terms.h"

struct nc_http_field {
	struct nc_span name;
	struct nc_span value;
};

enum nc_http_body {
	NC_BODY_NONE,
	NC_BODY_LENGTH,
	NC_BODY_CHUNKED,
	NC_BODY_REST, /* of a reply: until the connection ends */
};

/* What requests and replies have in common. It borrows from the bytes that it was read from. */
struct nc_http_head {
	size_t size;	    /* bytes, the empty line included */
	unsigned int minor; /* HTTP/1.minor: 0 or 1 */
	struct nc_http_field fields[NC_EGRESS_FIELDS_MAX];
	size_t n_fields;
	enum nc_http_body body;
	uint64_t length;
	bool keep_alive;
	struct nc_span connection[8]; /* names of fields that are for us only */
	size_t n_connection;
};

struct nc_http_request {
	struct nc_http_head head;
	struct nc_span method_text;
	enum nc_method method;
	bool tunnel; /* CONNECT */
	bool inside; /* of TLS: its host was known before */
	struct nc_host host;
	uint16_t port;
	struct nc_span path; /* with its query; "" for a tunnel */
};

struct nc_http_reply {
	struct nc_http_head head;
	unsigned int status;
	struct nc_span reason;
};

/* Whom a connection is to, where that is known. */
struct nc_origin {
	struct nc_host host;
	uint16_t port;
};

/*
 * 1: read; 0: more bytes are needed; -EBADMSG: *ret_reason says why not (MALFORMED, SPELLING or
 * NOT_FOR_PROXY). With origin the request is one to that host itself, and not to a proxy.
 */
int nc_http_read_request(const char *data, size_t size, const struct nc_origin *origin,
	struct nc_http_request *ret_request, enum nc_reason *ret_reason);

/* The same for the reply to a request with this method, which decides whether it has a body. */
int nc_http_read_reply(
	const char *data, size_t size, enum nc_method method, struct nc_http_reply *ret_reply);

/* Secrets of a box, with the hosts that they are bound to. */
struct nc_mask_rows;
struct nc_secret {
	char *placeholder, *value, *header; /* owned */
	struct nc_mask_rows *rows;	    /* for egress/mask.h; or NULL */
	struct nc_host host;
	uint16_t port;
	bool tls;
	bool mask; /* where it comes back */
};
struct nc_secrets {
	struct nc_secret entries[NC_EGRESS_SECRETS_MAX];
	size_t n;
};

/* Appends a copy. The value may be "": it follows. -EINVAL, -E2BIG, -ENOMEM. */
int nc_secrets_add(struct nc_secrets *secrets, const struct nc_egress_secret *secret);
/* Gives a value to those of this placeholder that have none. -EINVAL, -ENOMEM. */
int nc_secrets_fill(struct nc_secrets *secrets, const char *placeholder, const char *value);
/* Whether all have their value. */
bool nc_secrets_are_whole(const struct nc_secrets *secrets);
/* Frees and erases them. */
void nc_secrets_done(struct nc_secrets *secrets);

/* egress/mask.h; accepts NULL. */
void nc_mask_rows_unref(struct nc_mask_rows *rows);

/*
 * Appends the head as the host gets it: to its path, with the Host that was judged, without what
 * was for the proxy, with the secrets that are bound to this host. searched: the reply will be, so
 * that it has to come as it is and whole.
 */
void nc_http_write_request(struct nc_buf *out, const struct nc_http_request *request,
	const struct nc_secrets *secrets, bool searched);

/* Appends the head as the program gets it; keep_alive: the connection serves another request. */
void nc_http_write_reply(struct nc_buf *out, const struct nc_http_reply *reply, bool keep_alive);

/* The bytes of a chunked body, as they come. Begin with {0}. */
struct nc_chunks {
	enum nc_chunks_state {
		NC_CHUNKS_SIZE,
		NC_CHUNKS_EXTENSION,
		NC_CHUNKS_SIZE_END,
		NC_CHUNKS_DATA,
		NC_CHUNKS_DATA_CR,
		NC_CHUNKS_DATA_END,
		NC_CHUNKS_LINE, /* at the beginning of a line of the trailer */
		NC_CHUNKS_TRAILER,
		NC_CHUNKS_TRAILER_END,
		NC_CHUNKS_LAST_END,
		NC_CHUNKS_DONE,
	} state;
	bool tolerant; /* of a reply: extensions and trailers are passed on */
	unsigned int digits;
	size_t line; /* bytes of extensions and trailers */
	uint64_t left;
};

/*
 * How many of these bytes belong to the body; fewer than size only when it is complete (state
 * NC_CHUNKS_DONE). -EBADMSG.
 */
ssize_t nc_chunks_take(struct nc_chunks *chunks, const char *data, size_t size);

#endif
