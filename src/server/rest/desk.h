/* Exchanges that wait for a sandbox. */
#ifndef NC_DESK_H
#define NC_DESK_H

#include "engine/sandbox.h"
#include "server/server.h"

struct nc_wait {
	struct nc_wait *next;
	struct nc_server *server;
	struct nc_exchange *exchange;
	struct nc_process *process; /* that ends when the client goes; or NULL */
	/* with this status, and `list` unless that is NULL, once this ticket is answered; or 0 */
	unsigned int acknowledges;
	int64_t ticket;
	/* of questions to several */
	json_t *list;
	const char *name;
	size_t open;
	uv_timer_t *timer; /* of work in several turns; or NULL */
	/* of work on files */
	void (*files)(struct nc_wait *wait, int error, const char *data, size_t size);
	/* of snapshots */
	struct nc_draft *draft;	  /* that is being written; or NULL */
	char sandbox[NC_ID_SIZE]; /* that is made from one, and goes with the client; or "" */
};

/* NULL: it was answered. */
struct nc_wait *nc_wait_new(struct nc_server *server, struct nc_exchange *exchange);

/* Nobody is told any more; the exchange stays. */
void nc_wait_free(struct nc_wait *wait);

/*
 * Asks each sandbox of the caller, each of which adds to wait->list and counts wait->open down; the
 * last one answers {name: list}.
 */
void nc_wait_for_all(struct nc_server *server, struct nc_exchange *exchange, const char *name,
	bool (*ask)(void *context, struct nc_sandbox *sandbox));
void nc_wait_all_done(struct nc_wait *wait);

/* When all of it ends. */
void nc_waits_drop(struct nc_server *server);

/* What a command in the background prints, as events. */
struct nc_channel;
void nc_channels_drop(struct nc_server *server);

/* Of those that the daemon before has begun. */
void nc_channels_resume(struct nc_server *server);

/* From now on they count against the quotas of their tenants. */
void nc_sandboxes_under_quota(struct nc_server *server);

/* The command that the path names. NULL: it was answered. */
struct nc_process *nc_rest_process(struct nc_server *server, struct nc_exchange *exchange);

/* The number of `signal` in a body; -EINVAL: it is none. */
int nc_rest_signal(const json_t *body);

/* Whose things a caller sees: NULL: everybody's. */
const char *nc_rest_tenant(const struct nc_exchange *exchange);

/* The body as JSON; an empty one is an empty object. NULL: it was answered. */
json_t *nc_rest_body(struct nc_exchange *exchange);

/* A snapshot that the caller may use. NULL: it was answered. */
const struct nc_snapshot *nc_rest_snapshot(
	struct nc_server *server, struct nc_exchange *exchange, const char *id);

/* Puts its files into the sandbox in place of what is there; wait->files is called. -errno with
 * err.
 */
int nc_rest_restore(struct nc_wait *wait, struct nc_sandbox *sandbox,
	const struct nc_snapshot *snapshot, struct nacre_err *err);

/* An absolute path of the query; NULL: it was answered. The caller frees it. */
char *nc_rest_path(struct nc_exchange *exchange, const char *name);

/* Answers with what work on files ended with, and said of it. */
void nc_rest_refuse_file(
	struct nc_exchange *exchange, int error, const char *said, size_t said_size);

/* Who watches files: once a second; and when all of it ends. */
void nc_watches_tick(struct nc_server *server);
void nc_watches_drop(struct nc_server *server);

/* Archives on their way, when all of it ends. */
void nc_transfers_drop(struct nc_server *server);

/* The sandbox that the path names. NULL: it was answered. */
struct nc_sandbox *nc_rest_sandbox(struct nc_server *server, struct nc_exchange *exchange);

#endif
