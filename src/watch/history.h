/*
 * The history of executions: an index of the journal in SQLite, for filters and statistics. It is
 * brought up to date by who reads it, holds nothing that the journal has not, and is thrown away
 * and rebuilt whenever it does not fit the chain.
 *
 * The index belongs to the reader (index.db in the state directory), not to the recorder: a
 * database is a format to be attacked by, and a recorder that was taken over must not be able to
 * hand root one.
 */
#ifndef NC_HISTORY_H
#define NC_HISTORY_H

#include <stdint.h>

#include "base/json.h"

struct nc_history;

/*
 * Opens the index in the state directory, or one in memory if that cannot be written or is busy.
 * Nothing of the journal is read yet: see nc_history_lock_in(). Borrows history_fd.
 */
int nc_history_open(
	int state_fd, int history_fd, struct nc_history **ret_history, struct nacre_err *err);
void nc_history_free(struct nc_history *history);

static inline void nc_history_freep(struct nc_history **place)
{
	nc_history_free(*place);
}

#define cleanup_history nc_cleanup(nc_history_freep)

/* Reads what the journal has more than the index. */
int nc_history_update(struct nc_history *history, struct nacre_err *err);

/* NULL: any. */
struct nc_history_filter {
	const char *since; /* the beginning of an RFC 3339 time in UTC */
	const char *status;
	const char *language;
	const char *tenant;
	uint64_t before; /* only those with a lower seq, for the next page; 0: all */
	uint64_t limit;
};

/*
 * Executions, newest first: what was told of each when it was opened and finished, with id, run,
 * opened, time (of its last line), seq and hash (its receipt). The caller owns *ret_list.
 */
int nc_history_list(struct nc_history *history, const struct nc_history_filter *filter,
	json_t **ret_list, struct nacre_err *err);

/*
 * The same of one id, ours or the request's own, which several runs may have used: ours come last.
 * -ENOENT: there is none.
 */
int nc_history_find(
	struct nc_history *history, const char *id, json_t **ret_list, struct nacre_err *err);

#endif
