/* Messages (base/wire.h) that the other side has not taken yet, in order, so that nobody waits. */
#ifndef NC_MAIL_H
#define NC_MAIL_H

#include <stdbool.h>

#include "base/wire.h"

struct nc_letter;

struct nc_mail {
	struct nc_letter *first, **end;
	size_t count, max;
	/* told when the first one waits: nc_mail_flush() when the socket is writable */
	void (*waits)(void *context);
	void *context;
};

/*
 * Sends the message with its descriptors, or takes it over and keeps copies of them until it can be
 * sent. -EAGAIN: too many wait; else as nc_wire_send().
 */
int nc_mail_send(
	struct nc_mail *mail, int socket_fd, struct nc_wire_out *out, const int *fds, size_t n_fds);

/* Sends what waits, as far as it is taken. Whether all of it was. */
bool nc_mail_flush(struct nc_mail *mail, int socket_fd);

void nc_mail_done(struct nc_mail *mail);

#endif
