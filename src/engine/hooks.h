/* The layer inside of interpreters, as executions have it (policy/hooks.h). */
#ifndef NC_ENGINE_HOOKS_H
#define NC_ENGINE_HOOKS_H

#include "engine/execution.h"
#include "policy/hooks.h"

/* Where a box has what the hook of a step needs to know. */
struct nc_hook_places {
	const char *workspace, *temporary;
};

/* Whether the policy wants a hook in this step, and there is one for its language: prepares it. */
int nc_hooks_plan(struct nc_execution *execution, size_t step);

/* Whether something of it has to be in the box. */
bool nc_hooks_has_file(const struct nc_step_state *step);

/* Reads a refusal from what a program said in the end, where that is the only place. */
void nc_hooks_read_error(struct nc_step_state *step, const char *text);

/* The words for Node, by its answer to the version question. */
void nc_hooks_probed(struct nc_step_state *step, const char *answer);

/* Adds the hook's file for the workspace to a stream. Errors are stream->error. */
void nc_hooks_put(const struct nc_execution *execution, const struct nc_step_state *step,
	const struct nc_hook_places *places, struct nc_buf *stream);

/*
 * The variable that loads it, with what the caller wants loaded besides (or NULL), in out; and its
 * name with "=". A file that a caller wants bash to read is not read where commands are held.
 */
const char *nc_hooks_variable_name(const struct nc_step_state *step);
void nc_hooks_variable(const struct nc_execution *execution, const struct nc_step_state *step,
	const struct nc_hook_places *places, const char *besides, struct nc_buf *out);

/* Whether the policy lets a caller set these variables: -EPERM names the first that it refuses. */
int nc_hooks_check_env(const struct nc_terms *terms, const struct nc_request_pairs *env,
	const struct nc_request_secrets *secrets, struct nacre_err *err);
/* All that it refuses, in the list. 0 or -ENOMEM. */
int nc_hooks_list_env(
	const struct nc_terms *terms, const struct nc_request_pairs *env, json_t *denials);
int nc_hooks_check_request(const struct nc_execution *execution, struct nacre_err *err);

/* Adds all that it refuses to denials; -ENOMEM. */
int nc_hooks_env_denials(const struct nc_execution *execution, json_t *denials);

/* Adds the refusals to denials; -ENOMEM. */
int nc_hooks_denials(const struct nc_step_state *step, json_t *denials);

/* What was seen and not refused; NULL: out of memory. */
json_t *nc_hooks_noticed(const struct nc_step_state *step);

#endif
