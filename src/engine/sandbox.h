/*
 * Sandboxes: boxes that outlive their commands, many of which may run in one at once. A sandbox
 * ends when it is destroyed, when its time is up, or when nothing has been done in it for too long.
 *
 * Everything happens on the engine's loop. A sandbox is valid until the loop runs again after its
 * end; a process until its sandbox ends or many later ones have ended. Requests are JSON, read as
 * strictly as executions are (docs/sandboxes.md describes each field).
 */
#ifndef NC_SANDBOX_H
#define NC_SANDBOX_H

#include "engine/engine.h"
#include "engine/faults.h"
#include "engine/study.h"

struct nc_analysts;
struct nc_sandboxes;
struct nc_sandbox;
struct nc_process;

struct nc_sandboxes_setup {
	struct nc_engine *engine; /* must outlive it */
	int image_store_fd;	  /* for those that name an image; or -EBADF */
	size_t max, max_each;	  /* sandboxes at once, in all and of one tenant */
	/* in which they are written down for the next worker (nc_ledger_make), or -EBADF: then they
	 * end with this one */
	int memory_fd, inbox_fd;
	/* a directory of ours alone, in which they are written down on disk; or -EBADF */
	int registry_fd;
};

/* Takes up what the worker before has left, which runs the loop. */
int nc_sandboxes_new(const struct nc_sandboxes_setup *setup, struct nc_sandboxes **ret_sandboxes);

/* Who may have one: asked when its limits are known, and told when it has gone; the same of its
 * commands. */
struct nc_sandboxes_gate {
	void *context;
	/* 0, or -errno with err */
	int (*admit)(void *context, const char *tenant, const struct nc_box_limits *limits,
		struct nacre_err *err);
	void (*release)(void *context, const char *tenant, const struct nc_box_limits *limits);
	/* there is one already, of the worker before */
	void (*resume)(void *context, const char *tenant, const struct nc_box_limits *limits);
	/* whether one more command may begin: 0, or -errno with err */
	int (*admit_command)(void *context, const char *tenant, struct nacre_err *err);
	/* what was asked of a box has been answered: see nc_hub_watch */
	void (*answered)(void *context, int64_t ticket, int error);
	/* one has ended, or the policy refused it; told: what everybody is told of it */
	void (*command_ended)(void *context, const char *tenant, const json_t *told);
	/* who reads, for the policy, the commands that are asked for from inside; NULL: none are */
	struct nc_analysts *analysts;
};

void nc_sandboxes_guard(struct nc_sandboxes *sandboxes, const struct nc_sandboxes_gate *gate);

/* All of them end with what runs in them. lost: at once, without what is told of their ends. */
void nc_sandboxes_end(struct nc_sandboxes *sandboxes, bool lost);

/* Before the engine's. Those that are kept live on. Accepts NULL. */
void nc_sandboxes_free(struct nc_sandboxes *sandboxes);

/* Writes down what has not been yet: this worker ends, and they live on. */
void nc_sandboxes_leave(struct nc_sandboxes *sandboxes);

/* To be called about once a second. */
void nc_sandboxes_tick(struct nc_sandboxes *sandboxes);

size_t nc_sandboxes_count(const struct nc_sandboxes *sandboxes);

/* What there is, and what all of them are allowed. */
struct nc_sandboxes_load {
	size_t sandboxes, commands;
	uint64_t memory_bytes, cpu_milli;
	uint64_t lost; /* of the daemon before, of which nobody has the boxes */
};

void nc_sandboxes_load(const struct nc_sandboxes *sandboxes, struct nc_sandboxes_load *ret_load);

/*
 * Makes one; made follows, from the loop: with the sandbox, or with why there is none. -EINVAL with
 * faults; -EPERM with err: the policy does not allow it; -EAGAIN: there are too many.
 */
typedef void (*nc_sandbox_made)(
	void *context, struct nc_sandbox *sandbox, const struct nacre_err *failure);

int nc_sandbox_create(struct nc_sandboxes *sandboxes, const char *tenant, bool trusted,
	json_t *body, nc_sandbox_made made, void *context, struct nc_faults *faults,
	struct nacre_err *err);

/* Nobody waits for what would be told to this context any more. */
void nc_sandboxes_forget(struct nc_sandboxes *sandboxes, const void *context);

/* tenant NULL: whosever. NULL: there is none. */
struct nc_sandbox *nc_sandbox_find(
	const struct nc_sandboxes *sandboxes, const char *tenant, const char *id);

/* Whether the daemon before had it in a holder that may still come. */
bool nc_sandboxes_await(const struct nc_sandboxes *sandboxes, const char *tenant, const char *id);

/* Calls back for each of the tenant's, the oldest first, until that returns false. */
void nc_sandboxes_visit(const struct nc_sandboxes *sandboxes, const char *tenant,
	bool (*visit)(void *context, struct nc_sandbox *sandbox), void *context);

/* New values; NULL: no memory. */
json_t *nc_sandbox_json(const struct nc_sandbox *sandbox);
const char *nc_sandbox_id(const struct nc_sandbox *sandbox);
const char *nc_sandbox_state(const struct nc_sandbox *sandbox); /* "running", "paused" */
const char *nc_sandbox_tenant(const struct nc_sandbox *sandbox);
const char *nc_sandbox_snapshot(const struct nc_sandbox *sandbox); /* that it is made from; "" */
bool nc_sandbox_is_home(const struct nc_sandbox *sandbox); /* commands can run beside each other */
/* Other files are in it than were: what is no decoy among them is not looked for. */
void nc_sandbox_restored(struct nc_sandbox *sandbox);
/* The files of that are in it; until then it does not outlive this worker. */
void nc_sandbox_filled(struct nc_sandbox *sandbox);
size_t nc_sandbox_running(const struct nc_sandbox *sandbox); /* commands */
bool nc_sandbox_has_label(const struct nc_sandbox *sandbox, const char *name, const char *value);

void nc_sandbox_destroy(struct nc_sandbox *sandbox);

/* It ends so many seconds from now, at most as late as one made now could. */
int nc_sandbox_extend(struct nc_sandbox *sandbox, uint64_t seconds, struct nacre_err *err);

/*
 * Other terms of its network, as in `network` when it was made, for all requests from now on.
 * -EINVAL with faults; -EPERM: the policy does not allow it; -EBUSY: it was made without a network.
 */
int nc_sandbox_network(struct nc_sandbox *sandbox, bool trusted, json_t *body,
	struct nc_faults *faults, struct nacre_err *err);

/*
 * A ticket (tier/hub.h), whose answer says whether it stands still. -EOPNOTSUPP with err: nothing
 * here can stop it. must: it is ended if it cannot be stopped.
 */
int64_t nc_sandbox_pause(struct nc_sandbox *sandbox, bool paused, bool must, struct nacre_err *err);

/* What it uses now; told follows, from the loop, with a value that it borrows; NULL: it has ended.
 */
typedef void (*nc_sandbox_told)(void *context, const json_t *stats);
int nc_sandbox_stats(struct nc_sandbox *sandbox, nc_sandbox_told told, void *context);

/* Who is told of a process. */
struct nc_process_listener {
	void *context;
	void (*begun)(void *context); /* once, before it prints; may be NULL */
	void (*printed)(void *context, enum nc_stream stream, const char *data, size_t size);
	/* once, as the last call; nc_process_json has how */
	void (*ended)(void *context, struct nc_process *process);
	void (*writable)(void *context); /* after nc_process_write took less than all */
};

/* What holds for it. */
const struct nc_terms *nc_sandbox_terms(const struct nc_sandbox *sandbox);

/* The command of a body as a line of shell, which the policy is to read. As nc_sandbox_exec. */
#define NC_SANDBOX_LINE_MAX (8U * NC_COMMAND_SIZE_MAX)
int nc_sandbox_line(
	json_t *body, struct nc_buf *ret_line, struct nc_faults *faults, struct nacre_err *err);

/*
 * Runs a command, of whose line that was found out. The listener may be zeroed; others may be
 * added. -EINVAL with faults; -EPERM with
 * err: the policy refuses it; -EBUSY: it is paused, or has too many, or can run one at a time.
 */
int nc_sandbox_exec(struct nc_sandbox *sandbox, json_t *body, const struct nc_study_text *found,
	const struct nc_process_listener *listener, struct nc_process **ret_process,
	struct nc_faults *faults, struct nacre_err *err);

struct nc_process *nc_process_find(const struct nc_sandbox *sandbox, const char *id);
void nc_processes_visit(const struct nc_sandbox *sandbox,
	bool (*visit)(void *context, struct nc_process *process), void *context);

/* One more who is told, if there is room; and as long as one of them wants, its output waits. */
bool nc_process_has_room(const struct nc_process *process);
void nc_process_listen(struct nc_process *process, const struct nc_process_listener *listener);
void nc_process_hold(struct nc_process *process, const void *context, bool held);

const char *nc_process_id(const struct nc_process *process);
bool nc_process_runs(const struct nc_process *process); /* or its decoys are looked at */
bool nc_process_is_background(const struct nc_process *process);

/* How many pieces of output there were before the listener was told of any. */
uint64_t nc_process_pieces(const struct nc_process *process);

/* Why it never ran, or was ended by our own fault; NULL: it ran. */
const struct nacre_err *nc_process_failure(const struct nc_process *process);

/* With what it printed, and how it ended. */
json_t *nc_process_json(const struct nc_process *process, bool with_output);

/* How much was taken; 0 of something: try again later. -ESRCH: it has ended, or takes none. */
ssize_t nc_process_write(struct nc_process *process, const char *data, size_t size);
void nc_process_end_input(struct nc_process *process);
/* Tickets, or -errno; 0: there is nothing to wait for. */
int64_t nc_process_resize(struct nc_process *process, unsigned short rows, unsigned short columns);
int64_t nc_process_signal(struct nc_process *process, int signal);
int64_t nc_process_kill(struct nc_process *process); /* with everything that it started */

/*
 * Files, through nacre-files inside. words are its verb and paths, which end in NULL. done follows,
 * from the loop: error is 0 or -errno, data what it printed, or with an error what it said of that,
 * good only during the call; -EFBIG: more than output_max.
 */
struct nc_file_work {
	const char *const *words;
	struct nc_buf *input; /* which is taken out of it; or NULL */
	size_t output_max;
	uint64_t wall_ms; /* how long it may take; 0: as long as one file should */
	bool idles;	  /* it only looks: the sandbox is not in use for it */
	bool serves;	  /* the sandbox itself, as its root, beside what is counted */
	void *context;
	void (*done)(void *context, const char *sandbox, int error, const char *data, size_t size);
	/* of a stream; it ends when its context is forgotten */
	bool interactive; /* its input is what nc_file_write brings */
	int input_fd;	  /* or is read from a duplicate of this; 0: not */
	void (*printed)(void *context, const char *data, size_t size); /* data as they come */
	void (*writable)(void *context); /* after nc_file_write took less than all */
};

int nc_sandbox_files(
	struct nc_sandbox *sandbox, const struct nc_file_work *work, struct nacre_err *err);

/* The same, with a task that is valid until done; of work with printed, or interactive. */
struct nc_file_task;
int nc_sandbox_stream(struct nc_sandbox *sandbox, const struct nc_file_work *work,
	struct nc_file_task **ret_task, struct nacre_err *err);

size_t nc_file_write(struct nc_file_task *task, const char *data, size_t size); /* how much */
void nc_file_end_input(struct nc_file_task *task);
void nc_file_hold(struct nc_file_task *task, bool held); /* its output waits */

#endif
