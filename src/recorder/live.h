/*
 * Executions that have begun and not ended. Each recorder holds a locked file in live/ that lists
 * its own; a file whose lock is free is a dead recorder's, and what it lists was lost unless the
 * journal knows of its end, or their worker lives and has come to us with them.
 */
#ifndef NC_LIVE_H
#define NC_LIVE_H

#include "base/limits.h"
#include "recorder/journal.h"
#include "recorder/refused.h"

struct nc_live_entry {
	char id[NC_RECORD_ID_MAX + 1]; /* "" is free */
	bool left;		       /* its worker has gone, or has not come again yet */
};

struct nc_live {
	int dir_fd;
	int fd; /* our own file, locked for as long as we live */
	char name[17];
	struct nc_live_entry *entries; /* NC_RECORD_OPEN_MAX of them */
	size_t count;
	uint32_t lost; /* executions that were, and no worker has been told */
};

/* Makes and locks a file with that name. 0 or -errno. */
int nc_live_open(struct nc_live *live, int history_fd, const char *name);

/* Lets the file go, and removes it unless it lists something: that is for the next recorder. */
void nc_live_done(struct nc_live *live);

bool nc_live_has(const struct nc_live *live, const char *id);

/*
 * Lists an execution; from place on its end may be in the journal. 0: it was left, and has its
 * worker again; 1: it is new; -EEXIST: it is listed; -ENOBUFS.
 */
int nc_live_add(struct nc_live *live, const char *id, const struct nc_place *place);
void nc_live_remove(struct nc_live *live, const char *id);

/* Their worker has gone. */
void nc_live_leave(struct nc_live *live);

/*
 * Appends a line for each of our own executions that is left, and takes it off the list. What was
 * refused to them is to be told.
 */
int nc_live_lose_left(struct nc_live *live, struct nc_journal *journal, struct nc_refused *refused);

/*
 * The same for recorders that have died, but what is listed by us as well goes on. Returns how many
 * executions were lost, or -errno.
 */
int nc_live_sweep(struct nc_live *live, struct nc_journal *journal, struct nc_refused *refused);

#endif
