/*
 * Interpreters that were started before they are needed: zygotes, whose children wait in boxes of
 * their own for a program. Each serves one tenant. What is not ready is never waited for.
 */
#ifndef NC_POOL_H
#define NC_POOL_H

#include "engine/execution.h"

struct nc_pool;

/*
 * Begins to warm up. Borrows everything until it is freed, before the hub. meminfo_fd: see
 * engine/pressure.h; nothing is kept ready while memory is short.
 */
int nc_pool_new(uv_loop_t *loop, struct nc_hub *hub, const struct nc_serve_config *config,
	int meminfo_fd, void (*say)(const char *text), struct nc_pool **ret_pool);
void nc_pool_free(struct nc_pool *pool);

/*
 * From now on this much is kept ready, with these modules; what is too much or has others ends
 * within a second. Accepts NULL; borrows config for the call.
 */
void nc_pool_warm(struct nc_pool *pool, const struct nc_serve_config *config);

/* The zygote for the first program of this execution; 0: there is none, or not yet. */
uint64_t nc_pool_choose(struct nc_pool *pool, const struct nc_execution *execution);

/*
 * A box in which an interpreter waits for the first program of this execution, which is the
 * caller's now: its program is the box's next command. 0: there is none.
 */
uint64_t nc_pool_take(struct nc_pool *pool, const struct nc_execution *execution);

/* How many it wants to be ready. Accepts NULL. */
void nc_pool_load(const struct nc_pool *pool, struct nc_engine_load *load);

#endif
