/* A reply that takes long to be written, as a list of thousands does: by a thread, not the loop. */
#ifndef NC_WRITING_H
#define NC_WRITING_H

#include "server/server.h"

/*
 * Answers the exchange, which waits meanwhile, with what write() makes of data, as JSON. Takes data
 * over. write() may run in another thread: it may use nothing else of the server's. is_work: it
 * takes long though data is small.
 */
void nc_writing_begin(struct nc_server *server, struct nc_exchange *exchange, struct nc_buf *data,
	bool is_work, void (*write)(const struct nc_buf *data, struct nc_buf *out));

/* When all of it ends. */
void nc_writings_drop(struct nc_server *server);

#endif
