/* Between the engine, which has the queue, and its executions. */
#ifndef NC_WORK_H
#define NC_WORK_H

#include "engine/execution.h"

/* It is its turn; nc_engine_finished follows, perhaps before the return. */
void nc_execution_begin(struct nc_execution *execution);

/* Frees it with all it has; nothing of it may run. */
void nc_execution_free(struct nc_execution *execution);

/* Its outcome is there: replies and frees it. */
void nc_engine_finished(struct nc_execution *execution);

/*
 * Does work that may take long, by another thread if it is heavy, where it may use the execution,
 * which nobody else does meanwhile, and nothing of the engine but its setup; then goes on, on the
 * loop.
 */
void nc_engine_aside(struct nc_execution *execution, bool heavy,
	void (*work)(struct nc_execution *execution), void (*then)(struct nc_execution *execution));

/* Whether it is being freed: nothing may be begun. */
bool nc_engine_ends(const struct nc_engine *engine);

/* Notes something in the journal; takes over the body. */
void nc_engine_note(struct nc_engine *engine, const char *event, json_t *body);

/* Whatever was refused to a command that has ended, and whatever was noticed of it. */
void nc_engine_warn(struct nc_engine *engine, const char *id, const json_t *told);

struct nc_hub *nc_engine_hub(const struct nc_engine *engine);

/* NULL: nothing is started ahead of need. */
struct nc_pool *nc_engine_pool(const struct nc_engine *engine);

#endif
