/*
 * The layer inside of interpreters: what a policy comes to there, and what is reported back. It
 * sees what static analysis cannot, and tells where in the program it was; the kernel's layers hold
 * what gets past it.
 */
#ifndef NC_HOOKS_H
#define NC_HOOKS_H

#include "base/buf.h"
#include "base/hookwire.h"
#include "config/policy_file.h"
#include "policy/book.h"

/* What is done for programs of these terms; a policy that only reports refuses nothing here. */
enum nc_policy_hooks nc_hooks_mode(const struct nc_terms *terms);

/*
 * Whether the hook is to see which modules a Python program imports: then none may be there before
 * it that a fresh interpreter has not, since those are imported without an event.
 */
bool nc_hooks_watches_imports(const struct nc_terms *terms);

/* Adds the text for src/inside/python.c. writable ends in NULL. Errors are out->error. */
void nc_hooks_python(const struct nc_terms *terms, const char *token, const char *const *writable,
	struct nc_buf *out);

/*
 * Whether the policy holds commands of shell scripts down, and if so the text that bash reads
 * before the script: forbidden commands become functions that refuse; where there is a list of
 * allowed ones, PATH leads to these alone, through the directory bin, which it makes. Words that
 * are no names of programs are left out.
 */
bool nc_hooks_holds_shell(const struct nc_terms *terms);
void nc_hooks_shell(
	const struct nc_terms *terms, const char *token, const char *bin, struct nc_buf *out);

/* What of Node's a policy refuses, as bits. */
enum nc_hooks_node {
	NC_NODE_NO_PROGRAMS = 1 << 0, /* child_process */
	NC_NODE_NO_WORKERS = 1 << 1,  /* worker_threads */
	NC_NODE_NO_WRITING = 1 << 2,  /* fs: Node itself has to read */
	NC_NODE_NO_EVAL = 1 << 3,
};

unsigned int nc_hooks_node(const struct nc_terms *terms, enum nc_language language);

#define NC_HOOK_RECORDS_MAX 64U

/* One thing that a hook reported. All of it may be a lie of the program's. */
struct nc_hook_record {
	bool refused;
	uint64_t count; /* at least */
	uint32_t line;	/* 0: not known */
	enum nc_rule_id rule;
	char object[NC_HOOK_FIELD_MAX + 1];
	char file[NC_HOOK_FIELD_MAX + 1];
};

/* Takes the records out of a stream of errors. */
struct nc_hook_reader {
	char token[NC_HOOK_TOKEN_SIZE + 1];
	char held[NC_HOOK_RECORD_MAX]; /* what may become a record */
	size_t n_held;
	struct nc_hook_record records[NC_HOOK_RECORDS_MAX];
	size_t n_records;
};

typedef void nc_hook_pass(void *context, const char *data, size_t size);

void nc_hook_reader_init(struct nc_hook_reader *reader, const char *token);

/* What is no record goes to pass, in order; some of it perhaps only with the next call. */
void nc_hook_reader_add(struct nc_hook_reader *reader, const char *data, size_t size,
	nc_hook_pass *pass, void *context);

/* Nothing follows. */
void nc_hook_reader_end(struct nc_hook_reader *reader, nc_hook_pass *pass, void *context);

/* What records come to, as the threat detector counts it. */
struct nc_hook_counts {
	uint64_t refusals;
	uint64_t starts;  /* of programs, at least */
	uint64_t secrets; /* places where keys and passwords are */
};

void nc_hooks_count(const struct nc_hook_reader *reader, struct nc_hook_counts *ret_counts);

#endif
