/* Sockets that listen: clients are taken as they come and handed to HTTP, through TLS if wanted. */
#ifndef NC_LISTEN_H
#define NC_LISTEN_H

#include <sys/socket.h>

#include "base/error.h"
#include "server/http.h"

/*
 * Makes a listening socket for "127.0.0.1:7070", "[::1]:7070", ":7070" is not one. *ret_local:
 * only this machine can reach it. A descriptor, or -errno with err.
 */
int nc_listen_open(const char *address, bool *ret_local, struct nacre_err *err);

/* "127.0.0.1:7070": where a socket listens. */
#define NC_LISTEN_NAME_SIZE 64
void nc_listen_name(int fd, char out[static NC_LISTEN_NAME_SIZE]);
/* Whether only this machine can reach it. */
bool nc_listen_is_local(int fd);

struct nc_listeners;
struct nc_tls;

/* The sockets stay the caller's. tls may be NULL. */
int nc_listeners_new(uv_loop_t *loop, const int *fds, size_t n_fds, struct nc_http *http,
	struct nc_tls *tls, struct nc_listeners **ret_listeners);
void nc_listeners_free(struct nc_listeners *listeners);

/* Once a second: begins again where descriptors had run out. */
void nc_listeners_tick(struct nc_listeners *listeners);

#endif
