/*
 * One analysis. Theory of operation:
 *
 * The program is the first job; texts in it that are run as code (exec("..."), sh -c "...") become
 * further jobs. Each job is parsed into a flat tree and walked twice, once to learn which names
 * stand for what, once to judge. A walk visits every node once on the way in and once on the way
 * out; on the way out all children have been visited, so that a node's datum follows from theirs:
 * folding needs no recursion and no node is visited again.
 *
 * eval.c knows what is common to languages with expressions, one file per language what is not;
 * the shell is a world of its own. All of them report through nc_scan_find.
 */
#ifndef NC_SCAN_H
#define NC_SCAN_H

#include "policy/bounds.h"
#include "policy/datum.h"
#include "policy/policy.h"
#include "policy/report.h"
#include "policy/scope.h"
#include "policy/tree.h"

struct nc_scan;

/* What a call does with one of its arguments, which the rules then look at. */
enum nc_use {
	NC_USE_NOTHING,
	NC_USE_CODE,	/* runs it as code of the same language */
	NC_USE_SHELL,	/* gives it to a shell */
	NC_USE_COMMAND, /* starts it: a list of words, or a program */
	NC_USE_WORDS,	/* starts it: this argument is the program, the others its words */
	NC_USE_IMPORT,
	NC_USE_READ,
	NC_USE_OPEN, /* reads or writes it, as the next argument says */
	NC_USE_WRITE,
	NC_USE_DELETE,
	NC_USE_CONNECT, /* talks to it */
	NC_USE_LISTEN,
	NC_USE_MODE, /* permissions of a file, in the next argument */
	NC_USE_THREAD,
	NC_USE_FORK,
	NC_USE_DECODE, /* makes something else of it that cannot be told here */
};

#define NC_LAST 255

/* What is known about a name: a function, or with ".*" behind it everything in a module. */
struct nc_name_rule {
	const char *name; /* tables are sorted by it */
	enum nc_use use;
	enum nc_rule_id rule; /* found whenever it is called or imported; NC_RULE_NONE: depends */
	uint8_t argument;     /* which one is used, from 0; or NC_LAST */
};

/* A call with its arguments, in languages with expressions. */
struct nc_call {
	uint32_t node;
	uint32_t function;		     /* the node that is called */
	uint32_t arguments;		     /* the node around them; 0: none */
	uint32_t argument[NC_ARGUMENTS_MAX]; /* those without a keyword */
	uint32_t count;
};

/* A language. */
struct nc_analyser {
	const char *name;
	const void *(*grammar)(void);
	const struct nc_kind_name *kinds;
	const struct nc_name_rule *names;
	size_t n_names;
	const struct nc_name_rule *imports;
	size_t n_imports;
	/* Prefixes that change nothing: "builtins." and the like; NULL closes the list. */
	const char *const *inner_modules; /* that can be had from other modules; or NULL */
	const char *const *transparent;
	/* The plain form of a name that the language takes for the same; or NULL (spelling.h) */
	size_t (*spell)(const char *name, size_t size, char *out);
	bool is_hoisted; /* functions exist before the line that defines them is reached */
	void (*enter)(struct nc_scan *scan, uint32_t node);
	void (*leave)(struct nc_scan *scan, uint32_t node);
	/* For eval.c: what the language knows more about a call, or 0. */
	uint32_t (*fold_call)(
		struct nc_scan *scan, const struct nc_call *call, const struct nc_datum *function);
	uint32_t (*fold_method)(struct nc_scan *scan, const struct nc_call *call, uint32_t receiver,
		const char *method, size_t size);
};

extern const struct nc_analyser nc_python;
extern const struct nc_analyser nc_javascript;
extern const struct nc_analyser nc_typescript;
extern const struct nc_analyser nc_shell;
extern const struct nc_analyser nc_go;
extern const struct nc_analyser nc_rust;

/* A text to analyse. */
struct nc_job {
	enum nc_language language;
	const char *text; /* lives as long as the scan */
	uint32_t size;
	uint32_t offset, span; /* what stands for it in the outermost source, below the first job */
	uint32_t depth;
	bool guess; /* may be code: not parsing is no finding */
	const char *within;
};

struct nc_policy {
	struct nc_scale scale;
	struct nc_policy_lists lists[NC_LANGUAGE_MAX];
	struct nc_grammar grammars[NC_LANGUAGE_MAX];
	struct nc_arena memory; /* of the lists, if they are its own */
};

struct nc_scan {
	struct nc_policy *policy;
	struct nc_report *report;
	struct nc_arena arena;
	struct nc_data data;
	struct nc_scopes scopes;
	struct nc_job jobs[NC_JOBS_MAX];
	uint32_t n_jobs;
	uint64_t deadline_ns; /* of parsing */
	uint64_t walk_end_ns;
	/* the job at hand */
	const struct nc_job *job;
	const struct nc_analyser *analyser;
	struct nc_tree tree;
	bool learning;	      /* the first walk, which reports nothing */
	uint32_t scope;	      /* the function that the walk is in */
	uint32_t conditional; /* branches and loops around the walk */
	uint32_t endless;     /* of these, loops without an end */
	uint32_t unrolled;    /* expressions worked out again so far */
	bool unrolling;
};

/* Analyses source and everything in it. 0 or -ENOMEM; what did not fit is noted in the report. */
int nc_scan_run(struct nc_policy *policy, enum nc_language language, struct nc_report *report);

/* Reports a finding at a node, unless this is the learning walk. */
void nc_scan_find(
	struct nc_scan *scan, enum nc_rule_id rule, uint32_t node, const char *object, size_t size);

/* The same about a datum: its text or name; anything else is quoted from the source. */
void nc_scan_find_datum(
	struct nc_scan *scan, enum nc_rule_id rule, uint32_t node, const struct nc_datum *datum);

/*
 * Queues a text for analysis. Borrows text, which must live as long as the scan. as says how it
 * stands in the job at hand: "shell", "python code".
 */
void nc_scan_queue(struct nc_scan *scan, enum nc_language language, uint32_t node,
	const struct nc_datum *text, bool guess);

/* Something was left out. */
void nc_scan_cut(struct nc_scan *scan);

/* An import: the list, the rules, the policy's lists. */
void nc_scan_import(
	struct nc_scan *scan, uint32_t node, const char *name, size_t size, bool hidden);

/* The entry for a name, or for the module that it is in; NULL: none. */
const struct nc_name_rule *nc_scan_name(
	const struct nc_name_rule *table, size_t count, const char *name, size_t size);

static inline struct nc_node *nc_scan_node(struct nc_scan *scan, uint32_t node)
{
	return &scan->tree.nodes[node];
}

/* What is known about a node. */
static inline const struct nc_datum *nc_scan_datum(const struct nc_scan *scan, uint32_t node)
{
	return nc_datum(&scan->data, scan->tree.nodes[node].datum);
}

/* Names: binding one in the scope at hand, and what one stands for (0: it is not bound). */
void nc_scan_bind(struct nc_scan *scan, const char *name, size_t size, uint32_t datum);
const struct nc_binding *nc_scan_lookup(const struct nc_scan *scan, const char *name, size_t size);

/* The scope of the whole program. */
uint32_t nc_scan_global(const struct nc_scan *scan);

/* Functions make scopes. */
void nc_scan_enter_function(struct nc_scan *scan, uint32_t node);
void nc_scan_leave_function(struct nc_scan *scan, uint32_t node);

#endif
