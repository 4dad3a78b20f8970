/*
 * Plain HTTP with somebody else's server, and HTTPS, one request per connection and one step at a
 * time: for processes that may wait. The daemon itself may not, and can connect nowhere.
 */
#ifndef NC_DIAL_H
#define NC_DIAL_H

#include <openssl/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

#define NC_DIAL_BLOCK 16384

/* Begin with {.fd = -EBADF}. */
struct nc_dial {
	char host[256], port[8];
	char path[512]; /* "": none */
	bool tls;
	bool web; /* an address without a port means 80 or 443, not a daemon of ours */
	unsigned int timeout_s; /* of each step; 0: none */
	int fd;
	SSL_CTX *context;
	SSL *ssl;
	char block[NC_DIAL_BLOCK]; /* what was read and not taken yet */
	size_t size, at;
};

/* http://HOST[:PORT][/PATH] or https://. -EINVAL with err. */
int nc_dial_parse(const char *url, struct nc_dial *dial, struct nacre_err *err);

/* Connects; certificates must be good for the host. */
int nc_dial_call(struct nc_dial *dial, struct nacre_err *err);
void nc_dial_hang_up(struct nc_dial *dial);
void nc_dial_done(struct nc_dial *dial);

/* Adds the name of the host as a Host header has it. */
void nc_dial_host(const struct nc_dial *dial, struct nc_buf *out);

int nc_dial_send(struct nc_dial *dial, const char *data, size_t size, struct nacre_err *err);

/* What comes next: bytes, 0: the end; or -errno. */
ssize_t nc_dial_read(struct nc_dial *dial, char *data, size_t size);

/* From now on neither reading nor this waits: -EAGAIN is tried again when the descriptor is ready.
 */
int nc_dial_unblock(struct nc_dial *dial);
ssize_t nc_dial_try_write(struct nc_dial *dial, const char *data, size_t size);

/* One line without its end: 1; 0: there is none any more, and what came is lost; or -errno. */
int nc_dial_line(struct nc_dial *dial, struct nc_buf *line);

/* Posts JSON, with these further header fields, each with its line end. The status, or -errno. */
int nc_dial_post(const char *url, const char *fields, const char *body, unsigned int timeout_s,
	struct nacre_err *err);

/* The head of a reply; the status, or -errno with err. */
int nc_dial_head(struct nc_dial *dial, struct nc_buf *line, struct nacre_err *err);

#endif
