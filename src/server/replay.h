/*
 * Idempotency-Key: a creating request that is sent again gets the reply that the first one got.
 * Replies are kept in memory, for a day or until there are too many.
 */
#ifndef NC_REPLAY_H
#define NC_REPLAY_H

#include "server/http.h"

struct nc_replays;

struct nc_replays *nc_replays_new(void); /* NULL: no memory */
void nc_replays_free(struct nc_replays *replays);

/* Its head is there: its body is hashed as it comes, if it has the header. */
void nc_replay_expect(struct nc_exchange *exchange);

/*
 * The body is there. true: go on, and the reply is kept; false: it was answered, by the reply of
 * the first or by a problem. A request without the header goes on.
 */
bool nc_replay_begin(struct nc_replays *replays, struct nc_exchange *exchange);

/* The reply of an exchange that has a replay, as reply.c makes it; it is copied. */
void nc_replay_keep(struct nc_exchange *exchange, unsigned int status, const char *type,
	const void *data, size_t size);

/* Its Location header. */
void nc_replay_locate(struct nc_exchange *exchange, const char *location);

/* The exchange is over: one without a reply that can be kept is forgotten. */
void nc_replay_end(struct nc_exchange *exchange);

#endif
