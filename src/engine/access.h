/*
 * What one box may reach of the network: decided from the policy and the request, held by
 * nacre-egress, told in the reply.
 */
#ifndef NC_ACCESS_H
#define NC_ACCESS_H

#include <jansson.h>

#include "egress/reason.h"
#include "engine/request.h"

struct nc_network;
struct nc_access;
struct nc_terms;

/*
 * Decides; borrows all of it, and hands the values of secrets over. *ret_access is NULL if nothing
 * is wanted. -EPERM with err: the policy does not allow it; -EOPNOTSUPP with err: there is no way
 * out here.
 */
int nc_access_new(struct nc_network *network, const struct nc_terms *terms, const char *tenant,
	struct nc_request_network *wanted, struct nc_access **ret_access, struct nacre_err *err);

/* Its door is shut, and nobody is told. Accepts NULL. */
void nc_access_free(struct nc_access *access);

/* The same for a build: these hosts, wherever they are, whatever the policy says. */
int nc_access_new_for(struct nc_network *network, const char *const *hosts, size_t n_hosts,
	struct nc_access **ret_access, struct nacre_err *err);

/* The box is there; takes over door_fd. */
int nc_access_open(struct nc_access *access, uint64_t box_id, int door_fd, struct nacre_err *err);

/* What stands for its secrets in the box, for the next worker; NULL: no memory. */
json_t *nc_access_placeholders(const struct nc_access *access);

/* It is that of a box of the worker before, whose programs know its secrets by these. */
void nc_access_resume(struct nc_access *access, uint64_t box_id, const json_t *placeholders);

/*
 * Other hosts and limits for a door that is open; secrets stay. Borrows all of it. -EPERM, -EINVAL
 * with err, and nothing has changed.
 */
int nc_access_change(struct nc_access *access, const struct nc_terms *terms,
	const struct nc_request_network *wanted, struct nacre_err *err);

/* Whether others of a group come in: its box has guests. Accepts NULL. */
bool nc_access_has_guests(const struct nc_access *access);

/* A limit of its life was met, and more is to happen than that all is refused; perhaps again. */
typedef void nc_access_over(void *context, enum nc_reason reason, enum nc_policy_over how);
void nc_access_on_over(struct nc_access *access, nc_access_over *over, void *context);

/* Whether a door is open: then nc_access_close() must be called, and done follows. */
bool nc_access_is_open(const struct nc_access *access);
void nc_access_close(struct nc_access *access, void (*done)(void *context), void *context);

/* The same at once, and nobody is told. Accepts NULL. */
void nc_access_leave(struct nc_access *access);

/* What its programs find in their environment: "NAME=value" with a NUL each. */
void nc_access_words(const struct nc_access *access, const char *workspace, struct nc_buf *words);

/* A file that must be put into the workspace for that; NULL: none. */
#define NC_ACCESS_TRUSTED ".nacre-trusted.pem"
const struct nc_buf *nc_access_trusted(const struct nc_access *access);

/* Asks what went through so far: nc_access_usage() knows it a little later. */
void nc_access_ask(struct nc_access *access);

/* What went through; null if nothing could, or nobody knows. NULL: no memory. */
json_t *nc_access_usage(const struct nc_access *access);

/* Appends what was refused, as denials. 0 or -ENOMEM. */
int nc_access_denials(const struct nc_access *access, json_t *list);

/* The same of what was refused since this was asked last. */
int nc_access_take_denials(struct nc_access *access, json_t *list);

/*
 * Every decision, counted by host, port and outcome, for the journal: `destinations`, and how many
 * were about others than these. null: there was no network. NULL: no memory.
 */
json_t *nc_access_decisions(const struct nc_access *access);

#endif
