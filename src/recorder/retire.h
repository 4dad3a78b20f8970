/*
 * Retention of the journal: segments go from the front only, and each with a line in the chain that
 * says which and up to which hash, so that what remains can still be verified.
 */
#ifndef NC_RETIRE_H
#define NC_RETIRE_H

#include "recorder/journal.h"

/*
 * Removes segments from the front while all together have more than max_bytes, or the last line of
 * the first is older than max_age_s seconds (0: no limit); never the one that is written to.
 * Returns how many, or -errno.
 */
int nc_retire(struct nc_journal *journal, uint64_t max_bytes, uint64_t max_age_s);

#endif
