/* What the verbs that read the history share: opening it, points in time, foreign text. */
#ifndef NC_PAST_H
#define NC_PAST_H

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"

/* The history and what it stands in, open to be read. */
struct nc_past {
	int state_fd;
	int history_fd;
};

#define NC_PAST_CLOSED                                                                             \
	{                                                                                          \
		.state_fd = -EBADF, .history_fd = -EBADF                                           \
	}

/* Opens both with the caller's rights. -ENOENT with a message: nothing was recorded yet. */
int nc_past_open(struct nc_past *past, struct nacre_err *err);
void nc_past_close(struct nc_past *past);

#define cleanup_past nc_cleanup(nc_past_close)

/*
 * "2h", "3d": so long ago; or a time in UTC, from the year on as far as it goes, such as 2026-11-16
 * or 2026-11-16T03:00:00Z. Written as the times of the journal are, so that texts compare.
 */
int nc_past_since(const char *text, char out[static NC_CLOCK_STAMP_NS_SIZE], struct nacre_err *err);

/* A text that a stranger may have written, for a column on a terminal; "-" for none. */
#define NC_PAST_TEXT_SIZE 64
const char *nc_past_text(const json_t *object, const char *key, char out[static NC_PAST_TEXT_SIZE]);

#endif
