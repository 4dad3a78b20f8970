/*
 * The execution engine: requests in, replies out, many at once.
 *
 *	request -> policy -> route -> admit -> box -> collect -> reply
 *
 * One event loop owns everything; nothing here blocks on a box, and no thread is made.
 */
#ifndef NC_ENGINE_H
#define NC_ENGINE_H

#include <jansson.h>
#include <uv.h>

#include "config/config.h"
#include "engine/request.h"
#include "tier/hub.h"

struct nc_book;
struct nc_record;
struct nc_engine;
struct nc_environments;
struct nc_network;
struct nc_execution;
struct nc_study;

/* What all executions share; borrowed until the engine is freed. */
struct nc_binds;

struct nc_engine_setup {
	uv_loop_t *loop;
	struct nc_holder *holder; /* greeted */
	const struct nc_config *config;
	struct nc_book *policies; /* that requests may name */
	const char *policy;	  /* of requests that name none; NULL: the configured one */
	int cache_fd;		  /* a directory for what may be kept; or -EBADF */
	const struct nc_environments *environments; /* for packages; NULL: there are none */
	struct nc_network *network;		    /* NULL: there is none */
	const struct nc_binds *binds; /* of the host, that requests may name; NULL: none */
	struct nc_record *record;     /* greeted; NULL: nothing is recorded */
	int state_fd;		      /* on the disk of that record; or -EBADF */
	bool record_returns;	      /* if it dies, nc_engine_meet_recorder() follows */
	/* what people should know, such as executions that were lost; or NULL */
	void (*say)(const char *text);
	bool threads;	       /* what is large is read and written by those of libuv */
	bool warm;	       /* keep boxes and interpreters ready ahead of need */
	int meminfo_fd;	       /* /proc/meminfo, with warm; or -EBADF */
	size_t max_running;    /* executions that have a box at once */
	size_t max_queued;     /* more are refused */
	uint64_t memory_bytes; /* that running ones may be allowed together; 0: no matter */
	uint64_t cpu_milli;    /* the same for thousandths of cores */
};

/* Who is told of an execution. All calls come from the loop. */
struct nc_listener {
	void *context;
	/*
	 * From nc_engine_submit(), which has worked out its limits and done nothing else for it: 0,
	 * or the -errno that is its result. Or NULL.
	 */
	int (*admit)(void *context, const struct nc_box_limits *limits);
	/* what the program prints, as it comes; or NULL */
	void (*printed)(void *context, enum nc_stream stream, const char *data, size_t size);
	/* what is being done before the program can run, for people; or NULL */
	void (*progress)(void *context, const char *text);
	/*
	 * Once, as the last call. The reply is the listener's; NULL: no memory for one. text is the
	 * same on one line, if it is large and was written by a thread, and may be taken; then
	 * reply has no long texts any more. Else it is empty.
	 */
	void (*done)(void *context, json_t *reply, struct nc_buf *text);
};

/* What holds under a policy ("": the usual one) for a tenant. -EINVAL: there is no such policy. */
struct nc_terms;
int nc_engine_terms(struct nc_engine *engine, const char *policy, const char *tenant,
	const struct nc_terms **ret_terms, struct nacre_err *err);

int nc_engine_new(const struct nc_engine_setup *setup, struct nc_engine **ret_engine);

/* Nothing is begun any more; waits for threads that have an execution in their hands, on the loop.
 */
void nc_engine_stop(struct nc_engine *engine);

/* Ends what runs without further calls. Accepts NULL. */
void nc_engine_free(struct nc_engine *engine);

/*
 * Takes over the request, whatever comes of it. study: what was found out about its steps, in
 * their order, which is taken out of it; NULL: that is done now, and takes its time. input_fd: read
 * from for the input of the first step if it names none; stays the caller's; or -EBADF. Not before
 * the return of this function is the listener called, but for admit. -EAGAIN: the queue is full;
 * -ENOMEM.
 */
int nc_engine_submit(struct nc_engine *engine, struct nc_request *request, struct nc_study *study,
	int input_fd, const struct nc_listener *listener, struct nc_execution **ret_execution,
	struct nacre_err *err);

/* What is to be found out about it, under the terms that hold for it now; borrows from the request.
 */
int nc_engine_study(struct nc_engine *engine, const struct nc_request *request,
	struct nc_study *study, struct nacre_err *err);

/* Ends it at any stage; done() follows with status "cancelled". */
void nc_engine_cancel(struct nc_execution *execution);

/* Its id, as in the reply; valid until done(). */
const char *nc_execution_id(const struct nc_execution *execution);

/* Whether it has a box, or will never need one. Valid until done(). */
bool nc_execution_has_begun(const struct nc_execution *execution);

/* The number of the last box that it had; 0: none. Valid in done(), too. */
uint64_t nc_execution_box(const struct nc_execution *execution);

/*
 * Other files are read from now on; executions that are under way keep what they began with, so
 * both must outlive those. policies is never NULL.
 */
void nc_engine_reconfigure(
	struct nc_engine *engine, const struct nc_config *config, struct nc_book *policies);

/* lost follows when the spawner has died: nothing can be executed any more. */
void nc_engine_watch(struct nc_engine *engine, void (*lost)(void *context), void *context);

/* Whether what was asked of boxes waits to be taken, and would die with us. */
bool nc_engine_is_behind(const struct nc_engine *engine);

/* Whether somebody records now what is executed; whether one is there, answering or not. */
bool nc_engine_records(const struct nc_engine *engine);
bool nc_engine_has_recorder(const struct nc_engine *engine);

/* Executions of daemons before us that died with them, as the recorder says; grows once. */
uint64_t nc_engine_lost(const struct nc_engine *engine);

/* Whether one that is submitted now is recorded without waiting for the recorder. */
bool nc_engine_has_room(const struct nc_engine *engine);

/* The next recorder, after one that died; takes over the socket. 0 or -errno. */
int nc_engine_meet_recorder(struct nc_engine *engine, int fd);

/* No recorder comes: whoever waits for one has his reply without a receipt. */
void nc_engine_unrecorded(struct nc_engine *engine);

/* Of threads that read and write what is large: the loop comes first. */
#define NC_ASIDE_NICE 10

struct nc_engine_load {
	size_t running, queued;
	uint64_t memory_bytes, cpu_milli; /* allowed to those that run */
	/* boxes that are to be ready, with children of zygotes, with a Node, with nothing yet */
	unsigned int ready_python, ready_node, ready_neutral;
};

void nc_engine_load(const struct nc_engine *engine, struct nc_engine_load *ret_load);

#endif
