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

/* Adds the text for src/inside/python.c. writable ends in NULL. Errors are out->error. */
void nc_hooks_python(const struct nc_terms *terms, const char *token, const char *const *writable,
	struct nc_buf *out);

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

#endif
