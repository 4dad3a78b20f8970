/*
 * Denials: what was refused, by whichever layer, in one form that a person or a model can act on:
 * what it was, what would allow it, what to do instead. Ids are stable: "seccomp.unshare",
 * "limit.memory", "static.process.shell".
 */
#ifndef NC_DENIAL_H
#define NC_DENIAL_H

#include <stdint.h>

#include "policy/policy.h"

#define NC_DENIAL_ID_MAX 64U

/* All texts but the id are static, or borrowed from whom it was made of. */
struct nc_denial {
	char id[NC_DENIAL_ID_MAX];
	const char *layer;	/* "static", "language", "seccomp", "limit" or "request" */
	const char *rule;	/* what it was held against: a rule, a group of calls, a limit */
	const char *object;	/* the call, the limit or the thing in the program */
	uint32_t line;		/* in the program; 0: not known */
	uint64_t count;		/* how often */
	const char *message;	/* what it is, and why not */
	const char *allow_with; /* what would allow it; NULL: nothing does */
	const char *instead;
};

/* What held the program: a process box refuses more, and one that is alone new processes too. */
enum nc_denial_box {
	NC_DENIAL_IN_CONTAINER,
	NC_DENIAL_IN_PROCESS,
	NC_DENIAL_ALONE,
	NC_DENIAL_BOX_MAX,
};

/* A system call that the filter refused; call is its name and is borrowed. */
void nc_denial_of_call(
	const char *call, enum nc_denial_box box, uint64_t count, struct nc_denial *ret_denial);

/* Limits, by what replies call them in limits.hit, and those that end a program. */
enum nc_denial_limit {
	NC_DENIAL_MEMORY,
	NC_DENIAL_PIDS,
	NC_DENIAL_DISK,
	NC_DENIAL_INODES,
	NC_DENIAL_FILES,
	NC_DENIAL_WALL,
	NC_DENIAL_CPU,
	NC_DENIAL_OUTPUT,
	NC_DENIAL_LIMIT_MAX,
};

void nc_denial_of_limit(enum nc_denial_limit limit, uint64_t count, struct nc_denial *ret_denial);

/* A finding for which the policy refuses the program; borrows from it. */
void nc_denial_of_finding(const struct nc_finding *finding, struct nc_denial *ret_denial);

/* What a hook inside of the interpreter refused; borrows from the record. */
struct nc_hook_record;
void nc_denial_of_hook(const struct nc_hook_record *record, struct nc_denial *ret_denial);

/* A risk that the policy refuses although no finding alone would have been. */
void nc_denial_of_risk(enum nc_severity risk, struct nc_denial *ret_denial);

/* What a request asks for and cannot have. object is borrowed. */
enum nc_denial_request {
	NC_DENIAL_NETWORK, /* the policy does not allow it, or there is none */
	NC_DENIAL_CEILING, /* more than the policy's limits allow */
	NC_DENIAL_FLOOR,   /* the host is weaker than the policy or the request wants */
	NC_DENIAL_REQUEST_MAX,
};

/* A variable of the environment that the policy refuses, and why. name is borrowed. */
void nc_denial_of_variable(const char *name, const char *reason, struct nc_denial *ret_denial);

void nc_denial_of_request(
	enum nc_denial_request what, const char *object, struct nc_denial *ret_denial);

#endif
