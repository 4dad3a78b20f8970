/*
 * The command line: verbs and options as tables. A verb is one file with its options, its help text
 * and its run function; parsing, --help, completion and the man page check work from the tables.
 */
#ifndef NC_CLI_H
#define NC_CLI_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "config/config.h"

/* Exit codes, documented in nacre(1). */
enum nc_exit {
	NC_EXIT_OK = 0,
	NC_EXIT_FAULTS = 1, /* a checking verb found something to complain about */
	NC_EXIT_SELF = 125, /* Nacre itself failed, or was called wrongly */
};

/* The values of an option that may be repeated; they borrow from argv. */
#define NC_WORDS_MAX 256
struct nc_words {
	const char *words[NC_WORDS_MAX];
	size_t count;
};

struct nc_option {
	const char *name;  /* without the dashes; NULL closes a table */
	char letter;	   /* the one-letter form; 0: none */
	const char *value; /* what help calls its value; NULL: a flag */
	const char *help;
	bool *flag;		/* set to true, or */
	const char **text;	/* set to the value, which borrows from argv, or */
	struct nc_words *words; /* appended to */
};

/* What every verb gets. */
struct nc_cli {
	const struct nc_config *config;
	const char *config_dir; /* --config, or NULL */
	const char *server;	/* --server, or NULL */
	bool color;		/* whether standard output takes colours */
};

struct nc_verb {
	const char *name;
	const char *summary;
	const char *arguments; /* for the usage line; "" for none */
	const char *details;   /* sentences below the usage line */
	const char *example;
	const struct nc_option *options;    /* NULL: none of its own */
	const struct nc_verb *const *verbs; /* NULL-terminated; NULL: a leaf, which has run */
	int max_words;
	bool without_config; /* run before, or instead of, loading the configuration */
	bool takes_server;   /* it can work with a daemon: cli->server */
	bool is_command;     /* its first word ends the options: the rest belongs to that command */
	/* Returns an enum nc_exit, or a negative errno with err filled. */
	int (*run)(const struct nc_cli *cli, int n_words, char **words, struct nacre_err *err);
};

/* A parsed command line. */
#define NC_CALL_DEPTH 3
struct nc_call {
	const struct nc_verb *chain[NC_CALL_DEPTH]; /* nacre, verb, sub-verb */
	size_t depth;
	char **words; /* what is neither verb nor option; borrows from argv */
	int n_words;
};

/*
 * Reads argv from the root verb down. Options stand anywhere before "--"; those of a verb are known
 * to the verbs below it too. -EINVAL with a message that says what to do instead; *call then holds
 * what was understood so far.
 */
int nc_call_parse(const struct nc_verb *root, int argc, char **argv, struct nc_call *call,
	struct nacre_err *err);

/* Says on standard error what was wrong, and returns the exit code. */
int nc_call_report(const struct nc_call *call, const struct nacre_err *err);

static inline const struct nc_verb *nc_call_verb(const struct nc_call *call)
{
	return call->chain[call->depth - 1];
}

/* The help text of the verb that the call ends in. */
void nc_help_print(FILE *out, const struct nc_call *call);

/* A bash completion script for everything below root. */
void nc_completion_print(FILE *out, const struct nc_verb *root);

extern const struct nc_verb nc_verb_root;
extern const struct nc_verb nc_verb_audit;
extern const struct nc_verb nc_verb_check;
extern const struct nc_verb nc_verb_completion;
extern const struct nc_verb nc_verb_config;
extern const struct nc_verb nc_verb_cp;
extern const struct nc_verb nc_verb_doctor;
extern const struct nc_verb nc_verb_engine;
extern const struct nc_verb nc_verb_env;
extern const struct nc_verb nc_verb_exec;
extern const struct nc_verb nc_verb_history;
extern const struct nc_verb nc_verb_image;
extern const struct nc_verb nc_verb_key;
extern const struct nc_verb nc_verb_policy;
extern const struct nc_verb nc_verb_run;
extern const struct nc_verb nc_verb_serve;
extern const struct nc_verb nc_verb_ps;
extern const struct nc_verb nc_verb_logs;
extern const struct nc_verb nc_verb_kill;
extern const struct nc_verb nc_verb_shell;
extern const struct nc_verb nc_verb_top;

#endif
