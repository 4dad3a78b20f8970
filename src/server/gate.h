/*
 * Who may ask: keys, or this machine alone; and no page of somebody else's.
 *
 * With keys (server/keys.h) every request but those for everybody brings one. Without any, only
 * clients on this machine are served, and only if they ask for it by a name of this machine: a name
 * of somebody else's that leads here is how a page in a browser would reach us (DNS rebinding). A
 * browser moreover must come from a page of ours, and bring the token that only such a page can
 * read, for everything that changes something (CSRF).
 */
#ifndef NC_GATE_H
#define NC_GATE_H

#include "server/server.h"

/* Fills exchange->caller. false: it was answered. */
bool nc_gate_pass(struct nc_server *server, struct nc_exchange *exchange);

/* Whether a Host header names this machine: localhost, 127.x.x.x, [::1], with any port. */
bool nc_gate_host_is_local(const char *host);

#endif
