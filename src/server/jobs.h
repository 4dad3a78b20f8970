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

#include "engine/request.h"
#include "engine/study.h"
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

/* Whether one more of the caller's may be asked for. false: the exchange was answered. */
bool nc_jobs_admit(struct nc_jobs *jobs, struct nc_exchange *exchange);

/*
 * The body of a request for one (server/intake.h): read, then completed with what the caller is,
 * and what is to be studied of it; false: it was answered.
 */
struct nc_read_request {
	int result; /* of nc_request_parse() */
	struct nc_request request;
	struct nc_faults faults;
};
void *nc_jobs_read(const char *text, size_t size);
void *nc_jobs_read_file(int fd, size_t size);
void nc_jobs_forget(void *what);
bool nc_jobs_list(
	struct nc_server *server, struct nc_exchange *exchange, void *what, struct nc_study *study);

/*
 * Begins one for the caller of an exchange; takes over request and study. NULL: the exchange was
 * answered with what is wrong.
 */
struct nc_job *nc_jobs_begin(struct nc_jobs *jobs, struct nc_exchange *exchange,
	struct nc_request *request, struct nc_study *study, unsigned int flags);

/* The job of the caller's tenant (an admin's: of any); NULL: none. */
struct nc_job *nc_jobs_find(struct nc_jobs *jobs, const struct nc_caller *caller, const char *id);

const char *nc_job_id(const struct nc_job *job);

/* Answers with {"id", "state", "status", "created", "tenant", "reply"}; or without the reply. */
void nc_job_answer(const struct nc_job *job, struct nc_exchange *exchange, unsigned int status);
void nc_job_tell(const struct nc_job *job, struct nc_exchange *exchange, unsigned int status);

/* Those of the caller, the newest first, of a state ("": any), at most limit. */
json_t *nc_jobs_json(const struct nc_jobs *jobs, const struct nc_caller *caller, const char *state,
	size_t limit);

/*
 * Answers the exchange when it has ended: with the reply alone, or as nc_job_answer() after at most
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
