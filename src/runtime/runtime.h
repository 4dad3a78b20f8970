/*
 * The languages: one descriptor and one file each. A descriptor says how a program is compiled and
 * run; who does it, and where, is not known here.
 */
#ifndef NC_RUNTIME_H
#define NC_RUNTIME_H

#include <stdbool.h>

#include "base/ask.h"
#include "base/language.h"
#include "runtime/diagnose.h"

/* What a step needs at least, whatever the usual limits are; 0: no more than those. */
struct nc_runtime_needs {
	uint32_t memory_mb;
	uint32_t processes; /* and threads */
	uint32_t disk_mb;
	uint32_t wall_seconds;
};

/*
 * A compilation or a run. In words and variables "{source}" and "{program}" stand for paths in the
 * box; both lists end in NULL.
 */
struct nc_runtime_step {
	const char *const *argv; /* NULL: there is no such step */
	const char *const *env;	 /* "NAME=value"; or NULL */
	struct nc_runtime_needs needs;
};

/* Which of the request's files are compiled together with the code. */
enum nc_sources {
	NC_SOURCES_ONE,	 /* none, or the compiler finds them by what the code says */
	NC_SOURCES_LIST, /* those with the language's endings, named behind the code */
	NC_SOURCES_DIR,	 /* those beside it: "{source}" stands for the directory "." then */
};

struct nc_runtime {
	enum nc_language language;
	const char *name;		 /* as in requests and configuration files */
	const char *const *aliases;	 /* what people call it otherwise */
	const char *const *extensions;	 /* of file names, without the dot */
	const char *const *interpreters; /* programs in the first line "#!", without version */
	const char *source_name;	 /* the source's file name in the box */
	/* The same for a program in particular, where that depends; or NULL. */
	const char *(*source_name_for)(const char *code, size_t size);
	enum nc_sources sources;
	const char *const *libraries; /* words behind the last source; or NULL */
	struct nc_runtime_step compile;
	struct nc_runtime_step run;
	/* Reads a failure; false if there is nothing in it. The diagnostic is zeroed before. */
	bool (*diagnose)(const struct nc_failure *failure, struct nc_diagnostic *diagnostic);
	const char *const *version_argv; /* asks for the version */
	/* The words of the run step by the answer to that question, NULL if that version cannot
	 * run the language; or NULL where every version does it by run.argv. */
	const char *const *(*run_argv_for)(const char *answer);
	const char *too_old; /* what to say if it cannot */
	const char *fix;     /* how to get it on Debian */
};

/* By enum nc_language. */
extern const struct nc_runtime *const nc_runtimes[NC_LANGUAGE_MAX];

/* The language with this name or alias; NC_LANGUAGE_INVALID: none. */
enum nc_language nc_language_parse(const char *name);

/* The language of a file by the ending of its name; NC_LANGUAGE_INVALID: none. */
enum nc_language nc_language_of_file(const char *file_name);

/* The language of an interpreter without its path: "python3.11"; NC_LANGUAGE_INVALID: none. */
enum nc_language nc_language_of_interpreter(const char *interpreter);

/* What the source is to be called in the box. Any bytes are welcome. */
const char *nc_runtime_source_name(const struct nc_runtime *runtime, const char *code, size_t size);

/* What the compiled program is called in the box. */
#define NC_RUNTIME_PROGRAM_NAME "main"

/* The words of the run step for a host that gave this answer; NULL: it cannot run the language. */
const char *const *nc_runtime_run_argv(const struct nc_runtime *runtime, const char *answer);

/*
 * Adds the words or variables of template to ret_words, end to end, each with its NUL, and then
 * those of args. *ret_count is the number of words added. 0, -E2BIG if they do not fit into
 * ret_words, -ENOMEM.
 */
int nc_runtime_argv(const char *const *template, const char *source, const char *program,
	char *const *args, size_t n_args, struct nc_buf *ret_words, size_t *ret_count);

/*
 * Reads what a failed step wrote. Of long texts it looks at NC_DIAGNOSE_MAX bytes: the first ones
 * of a compiler's, the last ones of a run's. 0, or -ENOENT if there is nothing to be read from it.
 */
int nc_runtime_diagnose(const struct nc_runtime *runtime, const struct nc_failure *failure,
	struct nc_diagnostic *ret_diagnostic);

/* What the host has of a language. */
struct nc_runtime_report {
	bool ok;
	char version[48];
	char program[256];
	char reason[400]; /* why not; "" if ok */
};

/* Judges the answer to the version question. */
void nc_runtime_judge(const struct nc_runtime *runtime, const struct nc_ask *ask,
	struct nc_runtime_report *ret_report);

/* The descriptors, for the table. */
extern const struct nc_runtime nc_runtime_python;
extern const struct nc_runtime nc_runtime_javascript;
extern const struct nc_runtime nc_runtime_typescript;
extern const struct nc_runtime nc_runtime_shell;
extern const struct nc_runtime nc_runtime_go;
extern const struct nc_runtime nc_runtime_rust;
extern const struct nc_runtime nc_runtime_c;
extern const struct nc_runtime nc_runtime_cpp;

/* A list of texts that ends in NULL; outside of functions, where it lives for ever. */
#define NC_WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
