/*
 * Executions that were asked for over HTTP, by their id: for one who waits, for those who ask
 * later, and for those who watch.
 *
 * What a job prints is told as numbered events (server-sent events), of which the last
 * NC_FEED_MAX bytes are kept: who lost his connection goes on behind the last one that he
 * saw. The last event of all is "done", with the reply.
 */
#ifndef NC_JOBS_H
#define NC_JOBS_H

#include "server/server.h"

struct nc_job;

struct nc_jobs *nc_jobs_new(struct nc_server *server); /* NULL: no memory */
void nc_jobs_free(struct nc_jobs *jobs);

enum nc_job_flag {
	NC_JOB_WAITED = 1 << 0, /* ends with the client that waits for it, and is not kept */
	NC_JOB_EVENTS = 1 << 1, /* told as events */
	NC_JOB_HEARD = 1 << 2,	/* ends when nobody has listened to them for a while */
};

/*
 * Whether what happens now can be recorded: somebody does, and there is room on the disk. false:
 * the exchange was answered.
 */
bool nc_jobs_have_room(const struct nc_server *server, struct nc_exchange *exchange);

/*
 * Begins one for the caller of an exchange, from the body of it. NULL: the exchange was answered
 * with what is wrong.
 */
struct nc_job *nc_jobs_begin(
	struct nc_jobs *jobs, struct nc_exchange *exchange, unsigned int flags);

/* The job of the caller's tenant (an admin's: of any); NULL: none. */
struct nc_job *nc_jobs_find(struct nc_jobs *jobs, const struct nc_caller *caller, const char *id);

const char *nc_job_id(const struct nc_job *job);

/* {"id", "state", "status", "created", "reply"}; with or without the reply. */
json_t *nc_job_json(const struct nc_job *job, bool with_reply);

/* Those of the caller, the newest first, of a state ("": any), at most limit. */
json_t *nc_jobs_json(const struct nc_jobs *jobs, const struct nc_caller *caller, const char *state,
	size_t limit);

/*
 * Answers the exchange when it has ended: with the reply alone, or with nc_job_json() after at most
 * timeout_ms.
 */
void nc_job_reply(struct nc_job *job, struct nc_exchange *exchange);
void nc_job_wait(struct nc_job *job, struct nc_exchange *exchange, uint64_t timeout_ms);

/* Answers with its events behind number last (0: from the first). */
void nc_job_watch(struct nc_job *job, struct nc_exchange *exchange, uint64_t last);

/* Ends it; it stays known. */
void nc_job_cancel(struct nc_job *job);

size_t nc_jobs_count(const struct nc_jobs *jobs);
/* That have not ended. */
size_t nc_jobs_open(const struct nc_jobs *jobs);
void nc_jobs_cancel_all(struct nc_jobs *jobs);

/* Once a second: those who waited long enough, and jobs that nobody listens to any more. */
void nc_jobs_tick(struct nc_jobs *jobs);

#endif
