/*
 * Webhooks: processes of their own take what alerts have to tell to the addresses of serve.yaml,
 * since the daemon can connect nowhere. They have no file but those that names and certificates
 * need, and no other system call than connecting and moving bytes.
 *
 * Each message is sent once to each address, with retries, as JSON with a signature:
 *
 *	X-Nacre-Signature: sha256=<HMAC-SHA-256 of the body, by the key in serve/webhook.key>
 *	Idempotency-Key: <the id of the message, the same in each try>
 *
 * Theory of operation: one process takes messages from the daemon and hands each out to one process
 * for each address. The socket between the two is the queue of that address; when it is full the
 * message is lost for that address, and the log says so. An address that hangs holds up nobody
 *else.
 */
#ifndef NC_COURIER_H
#define NC_COURIER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "config/config.h"

/* The most bytes of one message. */
#define NC_COURIER_MESSAGE_MAX 4096U
/* Addresses, each of which is a process. */
#define NC_COURIER_WEBHOOKS_MAX 16U

/*
 * Forks it, with the caller's rights: to be called before privilege is dropped, while there is one
 * thread. dir_fd: where its key is, or is made. place_fd: its end of where it meets the next daemon
 * (base/meeting.h), which stays the caller's. Returns our end of a SOCK_SEQPACKET pair, which takes
 * messages, each a JSON object with an "id"; it ends when that and the place are closed everywhere.
 */
int nc_courier_start(const struct nc_value *webhooks, int dir_fd, int place_fd, bool ranges,
	int *ret_pidfd, struct nacre_err *err);

/*
 * In a fresh child: becomes a process of that name with these descriptors, as NC_COURIER_FD and the
 * following, no privilege, and no right but to connect. 0 or -errno. For whoever carries things out
 * of here.
 */
#define NC_COURIER_FD 3
#define NC_COURIER_PLACE_FD 4
int nc_courier_lock_in(const char *name, const int *fds, size_t n_fds, bool ranges);

#endif
