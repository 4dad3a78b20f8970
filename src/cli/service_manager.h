/* The service manager that may have started us: sockets from it, and words to it (systemd). */
#ifndef NC_SERVICE_MANAGER_H
#define NC_SERVICE_MANAGER_H

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct nc_manager {
	int fd;	      /* where it listens; or -EBADF: there is none */
	int statm_fd; /* /proc/self/statm of the worker; or -EBADF */
	pid_t pid;    /* of the spawner, which is to be told to stop, and outlives workers */
};

/* Connects to $NOTIFY_SOCKET, if there is one. */
int nc_manager_open(struct nc_manager *manager, struct nacre_err *err);

/* The sockets that it listens on for us, by $LISTEN_FDS. Returns how many. */
int nc_manager_sockets(struct nc_manager *manager, int *ret_fds, size_t max, struct nacre_err *err);

/* "STOPPING=1" and the like. */
void nc_manager_tell(const struct nc_manager *manager, const char *words);

/* That we are ready, and who is to be told to stop. */
void nc_manager_ready(const struct nc_manager *manager);

#endif
