/*
 * nacre-exporter: a process of its own takes traces to the address of serve.yaml, since the daemon
 * can connect nowhere. It is locked in as nacre-courier is, and is another process so that a slow
 * collector holds up no alert.
 */
#ifndef NC_EXPORTER_H
#define NC_EXPORTER_H

#include "base/error.h"
#include "config/config.h"

/* The most bytes of one message, which is the body of one request. */
#define NC_EXPORTER_MESSAGE_MAX (64U * 1024)

/*
 * Forks it, with the caller's rights: to be called before privilege is dropped, while there is one
 * thread. place_fd: its end of where it meets the next daemon (base/meeting.h). Returns our end of
 * a SOCK_SEQPACKET pair, which takes bodies; it ends when nobody can call any more. A body is tried
 * twice; then it is lost, and the log says so.
 */
int nc_exporter_start(const struct nc_tracing_values *tracing, int place_fd, bool ranges,
	int *ret_pidfd, struct nacre_err *err);

#endif
