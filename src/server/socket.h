/*
 * One WebSocket of a client, on the connection of an exchange. Messages come in order; what is to
 * be sent waits in a buffer, and whoever sends looks at how much that is. A client that takes
 * nothing, says nothing for long or does not speak the protocol is cut off.
 */
#ifndef NC_SOCKET_H
#define NC_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

#include "server/http.h"
#include "server/websocket.h"

struct nc_server;
struct nc_socket;

/* Beyond that whoever sends should wait for drained(). */
#define NC_SOCKET_HIGH (256U * 1024)

struct nc_socket_listener {
	void *context;
	void (*message)(void *context, enum nc_ws_kind kind, const char *data, size_t size);
	void (*drained)(void *context); /* all was sent */
	void (*tick)(void *context);	/* about once a second */
	/* once, as the last call: the client has gone, or was cut off */
	void (*closed)(void *context);
};

/*
 * Answers the exchange with the upgrade that it asks for; from then on the listener is told. NULL:
 * it was answered with a problem.
 */
struct nc_socket *nc_socket_accept(struct nc_server *server, struct nc_exchange *exchange,
	const struct nc_socket_listener *listener);

/* One message; the first byte goes before data if it is not negative. */
void nc_socket_send(
	struct nc_socket *socket, enum nc_ws_kind kind, int first, const void *data, size_t size);
size_t nc_socket_unsent(const struct nc_socket *socket);

/* No message is taken until it is let go on. */
void nc_socket_hold(struct nc_socket *socket, bool held);

/* After all that was sent before; the listener hears that it is closed, and nothing else. */
void nc_socket_close(struct nc_socket *socket, unsigned int code, const char *reason);

/* Once a second; and when all of it ends: those that are open are told. */
void nc_sockets_tick(struct nc_server *server);
void nc_sockets_close(struct nc_server *server);

#endif
