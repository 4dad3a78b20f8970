/* The unprivileged side: whom the spawner serves, and starts again when it dies. */
#ifndef NC_SPAWNER_WORKER_H
#define NC_SPAWNER_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/wire.h"
#include "kernel/boxwire.h"
#include "spawner/client.h"

struct nc_worker {
	int pidfd;
	pid_t pid;
	struct nc_client *client; /* what it says, and we to it */
	bool broken;		  /* it was ended by us, for breaking the rules */
	/* how it is started again; argv is NULL where it is not */
	char **argv;
	int heir_fd; /* the first of those that every worker finds from 4 on */
	int n_heirs;
	int exe_fd;
	bool ranges;	       /* it runs as an id of its own */
	uint64_t starts_ns[5]; /* the last ones: a worker that dies at once is not started for ever
				*/
	size_t n_starts;
};

/* Takes over a child of ours that was there before, with our end of the pair. */
int nc_worker_take(struct nc_worker *worker, pid_t pid, int fd, struct nacre_err *err);

/* Starts it from exe_fd and argv. -EAGAIN: it has been started too often of late. */
int nc_worker_start(struct nc_worker *worker, struct nacre_err *err);

/* It has ended: reaps it, closes what there was of it, and returns its exit code as a shell's. */
int nc_worker_reap(struct nc_worker *worker);

#endif
