/* One execution, as the parts of the engine see it. */
#ifndef NC_EXECUTION_H
#define NC_EXECUTION_H

#include "base/id.h"
#include "box/unpack.h"
#include "engine/access.h"
#include "engine/build.h"
#include "engine/detect.h"
#include "engine/engine.h"
#include "engine/output.h"
#include "policy/book.h"
#include "policy/denial.h"
#include "policy/hooks.h"
#include "policy/threat.h"
#include "runtime/node.h"
#include "runtime/runtime.h"
#include "tier/settle.h"

/* What a reply holds of one stream. */
#define NC_INLINE_MAX (1U << 20)
/* A compiled program that is taken out of its box, or all captured files of one execution. */
#define NC_TAKEN_MAX (64U << 20)

/* What is done in a box, one after the other. */
enum nc_stage_kind {
	NC_STAGE_PUT,	  /* files and code go in */
	NC_STAGE_HOOK,	  /* what holds the next step from inside goes in, behind the one before */
	NC_STAGE_PROBE,	  /* the language's version is asked for, where the run depends on it */
	NC_STAGE_COMPILE, /* in a box of its own */
	NC_STAGE_FETCH,	  /* the program comes out of that */
	NC_STAGE_RUN,
	NC_STAGE_LOOK,	  /* at decoys, which go */
	NC_STAGE_CAPTURE, /* files come out */
};

struct nc_stage {
	enum nc_stage_kind kind;
	size_t step;
	bool first, last; /* in its box */
	bool packs;	  /* the files come with it, so that nothing has to put them there before */
};

/* PUT, HOOK, PROBE, COMPILE, FETCH and RUN of each step, one LOOK and one CAPTURE. */
#define NC_STAGES_MAX (6 * NC_REQUEST_STEPS_MAX + 2)

/* One program of the workflow, and what became of it. */
struct nc_step_state {
	struct nc_detection language;
	const struct nc_runtime *runtime;
	char source[64]; /* its file name in the box */
	struct nc_report *report;
	const char *const *run_argv;
	struct nc_buf input;
	struct nc_hook_reader *hooks; /* of what holds it from inside; NULL: nothing that reports */
	unsigned int node_forbids;    /* enum nc_hooks_node */
	const char *node_flags[NC_NODE_FLAGS_MAX + 1];
	char key[65];  /* of the compiled program in the cache; "": it has none */
	char *program; /* compiled */
	size_t program_size;
	bool from_cache;
	/* the outcome */
	bool compiled_badly;	    /* the compiler refused it: end is the compiler's */
	struct nc_box_end compiler; /* that did its work; id 0: none had to */
	bool has_run;
	bool lost; /* end is what was known last: the spawner died before it had told */
	struct nc_output output[NC_STREAM_MAX];
	struct nc_box_end end;
	uint64_t output_bytes, birth_ns;
	/* while it runs */
	struct nc_rate output_rate, start_rate, memory_rate;
	struct nc_forks forks;
	/* while it runs, or its compiler */
	struct nc_box_end so_far;	 /* as it was told last; id 0: it was not */
	uint64_t began_ns;		 /* when it was told that it runs */
	struct nc_diagnostic diagnostic; /* message "" if there is none */
};

struct nc_execution {
	struct nc_engine *engine;
	const struct nc_terms *terms; /* NULL: no such policy */
	struct nc_execution *next;
	struct nc_request request;
	struct nc_listener listener;
	int input_fd;
	char id[NC_ID_SIZE];
	bool cancelled;
	bool is_open;		/* its beginning is recorded */
	bool retried;		/* after a fault of our own, before its program began */
	bool environment_built; /* for this execution */
	struct nc_step_state step[NC_REQUEST_STEPS_MAX];
	enum nc_tier tier;
	enum nc_verdict verdict; /* the worst of all steps */
	bool alone;		 /* none of its programs needs a process beside its own */
	const char *tier_reason;
	struct nc_box_limits limits;
	uint64_t output_max;
	struct nc_wish wish;
	struct nc_denial refused; /* what it asked for and cannot have; id "": nothing */
	struct nc_stage stages[NC_STAGES_MAX];
	size_t n_stages, at;
	/* packages */
	enum nc_language packages_language; /* of the steps that have them */
	struct nc_build *build;		    /* while it works */
	struct nc_environment environment;  /* dir_fd -EBADF: none is needed, or not yet */
	struct nc_environment warmth;	    /* the build cache of its compilers; the same */
	json_t *packages;	 /* that there are; NULL: none were asked for, or not yet */
	struct nc_access *reach; /* NULL: nothing, or not yet */
	/* the command that runs */
	uv_timer_t *watch; /* looks at it from time to time; NULL: nobody does */
	size_t decoys_touched;
	struct nc_alert frozen_for; /* id NULL: it was not frozen */
	struct nc_command *command;
	struct nc_exec_spec exec;
	struct nc_word_list argv, env;
	struct nc_buf stream; /* of files, to put or to bring along */
	/* large ones, which belong behind so many bytes of it and are not copied */
	struct nc_insert {
		size_t at;
		const char *data;
		size_t size;
		const struct nc_request_file *cut; /* it is read from there; or NULL */
	} * inserts;
	size_t n_inserts, inserted;
	struct nc_cut_reader *reader; /* of the one that is read now; or NULL */
	bool is_inserting;	      /* it has begun, and not ended */
	struct nc_buf said;	      /* by a stage that is not the user's program */
	struct nc_unpack unpack;      /* of NC_STAGE_FETCH, then of NC_STAGE_CAPTURE */
	int unpack_error;
	bool took;	      /* its box was made before, and its interpreter waits there */
	uint64_t box_id;      /* 0: there is none */
	uint64_t last_box_id; /* the one that it had; 0: it had none */
	/* the outcome */
	const char *status; /* NULL: as the last step that ran */
	struct nacre_err error;
	bool captured;
	bool looks; /* for an earlier reply to an equal one */
	/* while it is being recorded */
	json_t *reply;
	struct nc_buf text;  /* the same on one line, if it is large; else empty */
	char *line;	     /* of the journal */
	char *code;	     /* the program, or the steps of a workflow as JSON */
	int code_fd;	     /* the same, as memory that is sealed, if it is large; or -EBADF */
	char result_key[65]; /* of the reply in the cache; "": it is not to be kept */
	json_t *kept;	     /* the reply, if it was there */
	uint64_t started_ns; /* since 1970 */
	uint64_t submitted_ns, admitted_ns, prepared_ns, ran_ns, ended_ns;
};

/*
 * Before any box: languages, analysis (as in study, if there is one), tier and limits. Errors are
 * in execution->status and
 * ->error, which then have the reply.
 */
void nc_execution_prepare(struct nc_execution *execution, struct nc_study *study);

/*
 * When its turn has come: compiled programs that are kept, and stages. Not earlier, or those that
 * wait would hold their programs in memory, and not find what was compiled meanwhile. 0, or
 * -ECANCELED as nc_execution_fail.
 */
int nc_execution_plan(struct nc_execution *execution);

/* The tier of the box that the stage is in: what compiles has one of the usual tier. */
enum nc_tier nc_execution_tier(const struct nc_execution *execution);

/* The order, words and input of the stage that is next; to be freed by the next call of it. */
int nc_execution_order(struct nc_execution *execution, struct nc_command_spec *spec);

/*
 * Ends what runs, for which there is a reason already. What it used, and what it did, is settled as
 * at any other end, when the spawner has told it, or has not for too long.
 */
void nc_execution_stop(struct nc_execution *execution);

/* What the compiled program of a step is called in the box. */
const char *nc_step_program_name(
	const struct nc_execution *execution, const struct nc_step_state *step);

/* The step that says how it went: the last one that ran or was compiled; NULL: none. */
const struct nc_step_state *nc_execution_last(const struct nc_execution *execution);

/* Whether its reply takes long to be written, or what is recorded of it. */
bool nc_execution_is_large(const struct nc_execution *execution);

/* When it has ended: reply, code and line. */
void nc_execution_close(struct nc_execution *execution);

/* New values; NULL: out of memory. */
json_t *nc_execution_name(const struct nc_execution *execution);
json_t *nc_execution_labels(const struct nc_execution *execution);
json_t *nc_execution_reply(const struct nc_execution *execution);

/* Records why nothing more can be done. Returns -ECANCELED. */
int nc_execution_fail(struct nc_execution *execution, const char *status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* What the engine keeps for all. */
const struct nc_engine_setup *nc_engine_setup(const struct nc_engine *engine);

#endif
