/*
 * Nacre's public C API. Names that begin with nacre_ are public; nothing else is.
 *
 * The library is a thin client: nacre_engine_new() starts the program `nacre engine`, which builds
 * boxes and analyses code; the calling process never does either, gains no rights and gives none
 * up. nacre(3) and docs/library.md say more.
 *
 * Functions that can fail return 0 or more, or a negative errno; then *err says why, if err is not
 * NULL, and outputs (ret_...) are untouched. Texts are UTF-8 and end in NUL; the library copies
 * what it is given, unless said otherwise. What it hands out is the caller's, to be freed with
 * nacre_free(). A handle may be used by one thread at a time; different handles by different ones.
 */
#ifndef NACRE_NACRE_H
#define NACRE_NACRE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Room for the longest message, with its terminating NUL. */
#define NACRE_ERR_MESSAGE_MAX 1024

/*
 * An error, owned by the caller. It has a fixed size and points nowhere, so that it can live on the
 * stack, be copied, and be sent from one process to another. A function that takes one fills it if
 * and only if it returns a negative value. Zero-initialise it before first use.
 */
struct nacre_err {
	int code; /* the negative errno that the function returned; 0: no error */
	char message[NACRE_ERR_MESSAGE_MAX];
};

/* The version of the library: "0.1.0". Static. */
const char *nacre_version(void);

/* Frees what the library has handed out. Accepts NULL. */
void nacre_free(void *memory);

/* ---- The execution engine ---------------------------------------------------------------- */

struct nacre_engine;

/* All zero but size: as it is built in. */
struct nacre_engine_options {
	size_t size;		  /* sizeof(struct nacre_engine_options) */
	unsigned int max_running; /* executions at once; 0: twice the CPUs */
	unsigned int max_queued;  /* executions that wait, more are refused; 0: 1024 */
	uint64_t memory_bytes;	  /* that those running may be allowed; 0: half of the machine's */
	int no_cache;		  /* 1: compiled programs are not kept */
	const char *config_dir;	  /* of the configuration; NULL: the usual one */
	const char *program;	  /* the executable nacre; NULL: it is looked for, see nacre(3) */
};

/*
 * Starts an engine and waits until it is ready. options may be NULL and are read during the call
 * only. The caller owns *ret_engine. The engine is a child process, which takes over standard error
 * and no other descriptor; programs that wait for any child may find it among them.
 * -ENOENT: there is no executable nacre; -EPROTO: it speaks another protocol; or why it could not
 * start. Any thread may call this.
 */
int nacre_engine_new(const struct nacre_engine_options *options, struct nacre_engine **ret_engine,
	struct nacre_err *err);

/* Ends all that still runs, with its processes and files, and waits for that. Accepts NULL. */
void nacre_engine_free(struct nacre_engine *engine);

/*
 * Executes one request (docs/requests.md) and waits for its reply, a JSON object. Whatever becomes
 * of the request is in the reply's member "status"; one that is not understood has the status
 * "invalid" and a list of "faults", one that found no room "refused". Calls back, for others, as
 * nacre_engine_dispatch() does.
 * -EPIPE: the engine is gone, and so for all that take one: what is open has no reply any more, and
 * no calls back come. -ENOMEM; -EINVAL: a NULL pointer.
 */
int nacre_engine_execute(
	struct nacre_engine *engine, const char *request, char **ret_reply, struct nacre_err *err);

/* The same for a program alone. language may be NULL: it is told from the code. */
int nacre_engine_execute_code(struct nacre_engine *engine, const char *language, const char *code,
	char **ret_reply, struct nacre_err *err);

/* Called once per reply, as they come. index is that of the request; reply is good in the call. */
typedef void (*nacre_progress)(void *context, size_t index, const char *reply);

/*
 * Executes many requests and waits for all of them. replies has room for count pointers; on success
 * each is the reply of the request of the same index, to be freed by the caller. progress may be
 * NULL. However many there are, no more are sent at a time than the engine takes.
 */
int nacre_engine_execute_parallel(struct nacre_engine *engine, const char *const *requests,
	size_t count, nacre_progress progress, void *context, char **ret_replies,
	struct nacre_err *err);

enum nacre_stream { NACRE_STDOUT, NACRE_STDERR };

/* Whom to tell of an execution. Calls come from within functions that take the engine. */
struct nacre_listener {
	size_t size; /* sizeof(struct nacre_listener) */
	void *context;
	/*
	 * What the program prints, as it comes; or NULL. data is good in the call. Before it,
	 * dropped bytes were left out because nobody fetched them in time; the reply has the
	 * beginning and the end of all output in any case.
	 */
	void (*output)(void *context, uint64_t ticket, enum nacre_stream stream, const char *data,
		size_t size, uint64_t dropped);
	/* Once, as the last call. reply is good in the call. NULL: it waits for nacre_engine_wait()
	 */
	void (*done)(void *context, uint64_t ticket, const char *reply);
};

/*
 * Hands a request over and does not wait. *ret_ticket names the execution until its reply was
 * fetched or told. The listener may be NULL. Does not call back. Callbacks may call every
 * function but nacre_engine_free().
 */
int nacre_engine_submit(struct nacre_engine *engine, const char *request,
	const struct nacre_listener *listener, uint64_t *ret_ticket, struct nacre_err *err);

/*
 * Waits for the reply of a ticket, or of any that has no done() if ticket is 0, at most timeout_ms
 * (-1: for ever), calling back meanwhile. ret_ticket may be NULL. -ETIMEDOUT: there is none yet;
 * -ENOENT: there is no such ticket, or none at all; -EBUSY: it has a done().
 */
int nacre_engine_wait(struct nacre_engine *engine, uint64_t ticket, int timeout_ms,
	uint64_t *ret_ticket, char **ret_reply, struct nacre_err *err);

/*
 * Ends an execution at any stage; its reply, of status "cancelled" if it was not done already,
 * follows. Does not wait. -ENOENT: there is no such ticket.
 */
int nacre_engine_cancel(struct nacre_engine *engine, uint64_t ticket, struct nacre_err *err);

/*
 * A descriptor to poll for reading, in whatever loop the program has: when it is ready, call
 * nacre_engine_dispatch(). It stays the engine's: do not read, write or close it.
 */
int nacre_engine_fd(const struct nacre_engine *engine);

/* Takes what has come, calls back, and does not wait. Returns how many calls there were. */
int nacre_engine_dispatch(struct nacre_engine *engine, struct nacre_err *err);

struct nacre_engine_load {
	size_t size; /* sizeof(struct nacre_engine_load) */
	uint64_t running, queued;
	uint64_t memory_bytes; /* allowed to those that run */
};

/* How busy it is. The caller sets ret_load->size. */
int nacre_engine_load(
	struct nacre_engine *engine, struct nacre_engine_load *ret_load, struct nacre_err *err);

/*
 * What was executed on this machine by this user, the newest first, at most limit (0: 100): a JSON
 * object with a list "executions" (docs/history.md). Needs no engine; of the options, which may be
 * NULL, program and config_dir count. -EIO: nothing was recorded yet, or it could not be read;
 * nacre says why on standard error.
 */
int nacre_engine_history(const struct nacre_engine_options *options, size_t limit,
	char **ret_history, struct nacre_err *err);

/* ---- The security manager ---------------------------------------------------------------- */

/*
 * What a program would do, told from its syntax tree, without running it: a JSON object
 * (docs/policy.md). The engine's process analyses, not the caller's. policy is "standard",
 * "strict", "audit" or another name of the configuration; NULL: the usual one. language is one of
 * docs/requests.md. -EINVAL: an unknown one.
 */
int nacre_policy_check(struct nacre_engine *engine, const char *language, const char *code,
	const char *policy, char **ret_report, struct nacre_err *err);

/* What it imports: a JSON list of {"name", "line", "hidden"}. */
int nacre_policy_check_imports(struct nacre_engine *engine, const char *language, const char *code,
	char **ret_imports, struct nacre_err *err);

enum nacre_risk {
	NACRE_RISK_LOW,
	NACRE_RISK_MEDIUM,
	NACRE_RISK_HIGH,
	NACRE_RISK_CRITICAL,
};

/* How risky it is to run. */
int nacre_policy_risk(struct nacre_engine *engine, const char *language, const char *code,
	enum nacre_risk *ret_risk, struct nacre_err *err);

/* ---- The resource monitor ---------------------------------------------------------------- */

/*
 * Watches processes of the machine from the caller's own process; an engine is not needed. Boxes
 * have limits of their own: this is for what is not in one.
 */
struct nacre_monitor;

/* What is used at one moment. What is not counted here, or not ours to know, is 0. */
struct nacre_usage {
	size_t size;	    /* sizeof(struct nacre_usage) */
	uint64_t at_ns;	    /* since the monitor was started */
	double cpu_percent; /* since the usage before; 100 is one CPU */
	uint64_t cpu_user_us, cpu_system_us;
	uint64_t memory_bytes, memory_peak_bytes;
	uint64_t processes, threads;
	uint64_t io_read_bytes, io_written_bytes;
	uint64_t open_files;
};

/* 0: no limit. */
struct nacre_limits {
	size_t size; /* sizeof(struct nacre_limits) */
	uint64_t memory_bytes;
	uint64_t cpu_us;  /* of CPU time */
	uint64_t wall_ns; /* since the monitor was started */
	uint64_t threads;
	uint64_t open_files; /* of all processes together */
	uint64_t io_bytes;   /* read and written */
};

enum nacre_limit_status {
	NACRE_LIMIT_OK,
	NACRE_LIMIT_NEAR, /* at 90 % */
	NACRE_LIMIT_EXCEEDED,
};

/* How each limit stands. */
struct nacre_limit_check {
	size_t size; /* sizeof(struct nacre_limit_check) */
	enum nacre_limit_status worst;
	enum nacre_limit_status memory, cpu, wall, threads, open_files, io;
};

/* Over the usages that were taken, the last 3,600 at most. */
struct nacre_metrics {
	size_t size; /* sizeof(struct nacre_metrics) */
	uint64_t samples;
	uint64_t duration_ns;
	double cpu_percent_average, cpu_percent_max, cpu_percent_p95;
	uint64_t memory_average_bytes, memory_max_bytes, memory_p95_bytes;
	uint64_t threads_max, open_files_max;
};

/*
 * Starts on a process and all below it. The caller owns *ret_monitor. -EINVAL: a pid of 1 or less,
 * or the caller's own; -ESRCH: there is none.
 */
int nacre_monitor_start(pid_t pid, struct nacre_monitor **ret_monitor, struct nacre_err *err);

/* Watches no longer; the processes go on. Accepts NULL. */
void nacre_monitor_free(struct nacre_monitor *monitor);

/* Takes a sample. The caller sets ret_usage->size. -ESRCH: all of it has ended. */
int nacre_monitor_usage(
	struct nacre_monitor *monitor, struct nacre_usage *ret_usage, struct nacre_err *err);

int nacre_monitor_set_limits(
	struct nacre_monitor *monitor, const struct nacre_limits *limits, struct nacre_err *err);

/* Holds the last sample against the limits. The caller sets ret_check->size. */
int nacre_monitor_check_limits(
	struct nacre_monitor *monitor, struct nacre_limit_check *ret_check, struct nacre_err *err);

/*
 * Takes a sample, and if a limit is exceeded kills all of it. 1: so it was, and all is dead; 0:
 * nothing is exceeded, or all has ended by itself. -ETIMEDOUT: something still lives after 2 s;
 * -EDEADLK: the caller is one of them, and nothing is killed.
 */
int nacre_monitor_terminate_if_exceeded(struct nacre_monitor *monitor, struct nacre_err *err);

/* The caller sets ret_metrics->size. */
int nacre_monitor_metrics(
	struct nacre_monitor *monitor, struct nacre_metrics *ret_metrics, struct nacre_err *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
