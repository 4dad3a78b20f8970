/* Ends of executions that could not be written yet, in memory, for when the disk has room again. */
#ifndef NC_OWED_H
#define NC_OWED_H

#include "recorder/line.h"

struct nc_owed_entry;

struct nc_owed {
	struct nc_owed_entry *first, *last;
	size_t bytes;
};

/* Copies the entry. -ENOBUFS: so much is owed already; -ENOMEM. */
int nc_owed_add(struct nc_owed *owed, const struct nc_entry *entry);
bool nc_owed_has(const struct nc_owed *owed, const char *id);

/* The oldest; NULL: nothing is owed. */
const struct nc_entry *nc_owed_first(const struct nc_owed *owed);
void nc_owed_drop(struct nc_owed *owed); /* it */
void nc_owed_done(struct nc_owed *owed);

#endif
