/*
 * Those who read foreign programs for the daemon (engine/analyst.h), as it sees them.
 *
 * What is asked waits for its turn: the tenant that has the fewest read at once is next, among
 * equals the one whose last turn is longest ago, and one tenant never has all of them nor the whole
 * queue, so that nobody waits behind another's thousand megabytes. A child
 * reads for one tenant only, as long as it lives: who takes it over learns of nobody else. Large
 * programs are few at a time, for the memory that they take.
 */
#ifndef NC_ANALYSTS_H
#define NC_ANALYSTS_H

#include <uv.h>

#include "engine/study.h"

struct nc_analysts;

/* place_fd stays the caller's. 0 or -ENOMEM. */
int nc_analysts_new(uv_loop_t *loop, int place_fd, struct nc_analysts **ret_analysts);

/* Nobody is told any more, and whoever asked has forgotten it. Accepts NULL. */
void nc_analysts_free(struct nc_analysts *analysts);

/*
 * Studies the programs on behalf of a tenant; done follows, from the loop, unless all of it is
 * forgotten before. Borrows study, its texts and its terms until then. -EAGAIN: too many wait;
 * -ENOMEM.
 */
int nc_analysts_ask(struct nc_analysts *analysts, const char *tenant, struct nc_study *study,
	void (*done)(void *context), void *context);

/* Nobody waits for it any more; nothing happens if nobody does. */
void nc_analysts_forget(struct nc_study *study);

/* About once a second. */
void nc_analysts_tick(struct nc_analysts *analysts);

/* Studies that are not done. */
size_t nc_analysts_open(const struct nc_analysts *analysts);

#endif
