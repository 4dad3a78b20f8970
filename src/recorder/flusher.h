/*
 * Flushes the journal without waiting for the disk: a thread does, which has nothing else to do. A
 * disk that is busy with what others write takes its time, and nobody's receipt waits for that.
 */
#ifndef NC_FLUSHER_H
#define NC_FLUSHER_H

#include <stdbool.h>

#include "recorder/journal.h"

struct nc_flusher {
	int order_fd, done_fd; /* the thread's input and output; -EBADF: there is no thread */
	bool busy;
};

/* Starts the thread. Before the filter, which lets nobody start one. 0 or -errno. */
int nc_flusher_start(struct nc_flusher *flusher);

/* Asks for it; there is no thread, or it is not asked while it is busy: nc_journal_sync. 0 or
 * -errno. */
int nc_flusher_ask(struct nc_flusher *flusher, struct nc_journal *journal);

/* done_fd is readable: how it went, 0 or -errno. */
int nc_flusher_take(struct nc_flusher *flusher);

#endif
