/*
 * Connections that were answered before their client had sent all: closing them at once would make
 * its kernel throw away the answer (a reset, for bytes that nobody read). So their rest is read and
 * thrown away for a while, as nginx does.
 */
#ifndef NC_LINGER_H
#define NC_LINGER_H

#include <uv.h>

struct nc_linger;

struct nc_linger *nc_linger_new(uv_loop_t *loop); /* NULL: no memory */
void nc_linger_free(struct nc_linger *linger);

/* Takes over a duplicate of fd, which the caller closes; does nothing if there are many. */
void nc_linger_add(struct nc_linger *linger, int fd);

/* Now and then: ends those whose time is up. Returns how many are left. */
size_t nc_linger_tick(struct nc_linger *linger);

#endif
