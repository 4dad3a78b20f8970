/*
 * TLS in front of HTTP, with libssl: what comes out of a connection goes through a pair of sockets
 * to libmicrohttpd, which does not know of it.
 */
#ifndef NC_TLS_H
#define NC_TLS_H

#include <sys/socket.h>

#include "base/error.h"
#include "server/http.h"

struct nc_tls;

/* Reads the certificate chain and its key, in PEM, with the caller's rights. TLS 1.2 or newer. */
int nc_tls_load(
	const char *certificate, const char *key, struct nc_tls **ret_tls, struct nacre_err *err);
void nc_tls_free(struct nc_tls *tls);

/*
 * The same from PEM in memory, both behind each other, for connections from now on; those that are
 * there go on. -EINVAL with err: it is bad, and nothing has changed.
 */
int nc_tls_renew(struct nc_tls *tls, const char *pem, size_t size, struct nacre_err *err);

/* Where connections go; each has handshake_ms until it is one. */
void nc_tls_begin(
	struct nc_tls *tls, uv_loop_t *loop, struct nc_http *http, unsigned int handshake_ms);

/* Takes over a connected socket. */
void nc_tls_add(struct nc_tls *tls, int fd, const struct sockaddr *peer, socklen_t peer_size);

/* Once a second: ends those that do not become connections. */
void nc_tls_tick(struct nc_tls *tls);

/* Ends all connections; it must come before the loop's end. */
void nc_tls_end(struct nc_tls *tls);

#endif
