/* Whom the spawner serves: the worker first, and those whom it has introduced. */
#ifndef NC_SPAWNER_CLIENT_H
#define NC_SPAWNER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/wire.h"

struct nc_client {
	int fd;		     /* our end of the pair; -EBADF: nobody, or it is gone */
	bool greeted, newer; /* newer: of a version that we do not know */
	bool dead;	     /* nobody hears us any more */
	uint64_t waited_ns;  /* for it to read its messages, in all of its life */
};

/* Takes over a socket of somebody's. 0 or -errno. */
int nc_client_take(struct nc_client *client, int fd);

/*
 * Sends a message and frees it. Why the client has to be ended, or NULL: it does not read, and has
 * been waited for long enough.
 */
const char *nc_client_send(
	struct nc_client *client, struct nc_wire_out *out, const int *fds, size_t n_fds);

#endif
