/* Whether boxes can be made: asked by making one, not more often than every few seconds. */
#ifndef NC_READY_H
#define NC_READY_H

#include <jansson.h>

#include "engine/engine.h"

struct nc_ready;

struct nc_ready *nc_ready_new(struct nc_engine *engine); /* NULL: no memory */
/* Before the engine is freed. */
void nc_ready_free(struct nc_ready *ready);

/* failure: NULL if a program ran in a box; seconds: what its birth took. */
typedef void (*nc_ready_answer)(void *context, const char *failure, double seconds);

/* Tells, perhaps at once. */
void nc_ready_ask(struct nc_ready *ready, nc_ready_answer answer, void *context);

/* The tiers of which boxes can be had now: what their holders say. */
json_t *nc_ready_tiers(const struct nc_ready *ready);

/* Nobody waits for what would be told to this context any more. */
void nc_ready_forget(struct nc_ready *ready, const void *context);

#endif
