/* The layer inside of interpreters, as executions have it. */
#include "engine/hooks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "engine/denials.h"
#include "policy/variables.h"

/* src/inside/python.c, as the build made it. */
extern const char nc_hook_object[], nc_hook_object_end[];

#define TEXT_MAX (1U << 20)

/* Unlike any file of the program's. */
static void file_name(const struct nc_execution *execution, const struct nc_step_state *step,
	char *out, size_t size)
{
	(void)snprintf(
		out, size, ".%s-%zu.nacre", execution->id, (size_t)(step - execution->step) + 1);
}

static int make_token(char ret_token[static NC_HOOK_TOKEN_SIZE + 1])
{
	unsigned char bytes[NC_HOOK_TOKEN_SIZE / 2];
	int r = nc_random(bytes, sizeof(bytes));

	for (size_t i = 0; r == 0 && i < sizeof(bytes); i++)
		(void)snprintf(ret_token + 2 * i, 3, "%02x", bytes[i]);
	return r;
}

static bool is_node(const struct nc_step_state *step)
{
	return step->language.language == NC_JAVASCRIPT || step->language.language == NC_TYPESCRIPT;
}

static bool wants_reader(const struct nc_terms *terms, enum nc_language language)
{
	return language == NC_PYTHON ? nc_hooks_mode(terms) != NC_HOOKS_OFF
				     : language == NC_SHELL && nc_hooks_holds_shell(terms);
}

int nc_hooks_plan(struct nc_execution *execution, size_t i)
{
	struct nc_step_state *step = &execution->step[i];
	char token[NC_HOOK_TOKEN_SIZE + 1];
	int r;

	if (is_node(step))
		step->node_forbids = nc_hooks_node(execution->terms, step->language.language);
	if (step->hooks ||
		(!step->node_forbids && !wants_reader(execution->terms, step->language.language)))
		return 0;
	r = make_token(token);
	if (r < 0)
		return r;
	step->hooks = calloc(1, sizeof(*step->hooks));
	if (!step->hooks)
		return -ENOMEM;
	nc_hook_reader_init(step->hooks, token);
	return 0;
}

bool nc_hooks_has_file(const struct nc_step_state *step)
{
	return step->hooks && !is_node(step);
}

void nc_hooks_probed(struct nc_step_state *step, const char *answer)
{
	const struct nc_node_bans bans = {step->node_forbids & NC_NODE_NO_PROGRAMS,
		step->node_forbids & NC_NODE_NO_WORKERS, step->node_forbids & NC_NODE_NO_WRITING,
		step->node_forbids & NC_NODE_NO_EVAL};

	nc_node_flags(answer, &bans, step->node_flags);
}

/* The object, and what it is to know. */
static void add_python(const struct nc_execution *execution, const struct nc_step_state *step,
	const struct nc_hook_places *places, struct nc_buf *file)
{
	/* what a box can write to */
	const char *const writable[] = {places->workspace, places->temporary, "/tmp", "/var/tmp",
		"/dev", "/proc", "/run", NULL};
	struct nc_hook_trailer trailer = {.magic = NC_HOOK_MAGIC_BYTES};
	size_t object = (size_t)(nc_hook_object_end - nc_hook_object);

	nc_buf_add(file, nc_hook_object, object);
	nc_hooks_python(execution->terms, step->hooks->token, writable, file);
	trailer.size = (uint32_t)(file->size - object);
	nc_buf_add(file, &trailer, sizeof(trailer));
}

void nc_hooks_put(const struct nc_execution *execution, const struct nc_step_state *step,
	const struct nc_hook_places *places, struct nc_buf *stream)
{
	nc_buf_cleanup struct nc_buf file = NC_BUF(TEXT_MAX + (1U << 20));
	char name[NC_ID_SIZE + 32], bin[NC_PLACE_SIZE + NC_ID_SIZE + 32];

	if (step->language.language == NC_PYTHON) {
		add_python(execution, step, places, &file);
	} else {
		file_name(execution, step, name, sizeof(name));
		(void)snprintf(bin, sizeof(bin), "%s/%s", places->temporary, name);
		nc_hooks_shell(execution->terms, step->hooks->token, bin, &file);
	}
	if (file.error < 0) {
		stream->error = file.error;
		return;
	}
	file_name(execution, step, name, sizeof(name));
	nc_pack_add(stream, name, file.data, file.size, false);
}

const char *nc_hooks_variable_name(const struct nc_step_state *step)
{
	return step->language.language == NC_PYTHON ? "LD_PRELOAD=" : "BASH_ENV=";
}

void nc_hooks_variable(const struct nc_execution *execution, const struct nc_step_state *step,
	const struct nc_hook_places *places, const char *besides, struct nc_buf *out)
{
	char name[NC_ID_SIZE + 32];

	file_name(execution, step, name, sizeof(name));
	nc_buf_addf(out, "%s%s/%s%s%s%c", nc_hooks_variable_name(step), places->workspace, name,
		besides ? ":" : "", besides ? besides : "", '\0');
}

/* What Node says when its permission model refuses, and nobody caught it. */
static const struct {
	const char *text, *object;
	enum nc_rule_id rule;
} refusals[] = {
	{"permission: 'ChildProcess'", "child_process", NC_RULE_RUN},
	{"permission: 'FileSystemWrite'", "fs", NC_RULE_LIST_IMPORT},
	{"permission: 'WorkerThreads'", "worker_threads", NC_RULE_LIST_IMPORT},
	{"EvalError: Code generation from strings disallowed", "eval", NC_RULE_EVAL},
};

void nc_hooks_read_error(struct nc_step_state *step, const char *text)
{
	for (size_t i = 0; step->node_flags[0] && i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		struct nc_hook_record record = {.refused = true,
			.count = 1,
			.line = step->diagnostic.line,
			.rule = refusals[i].rule};

		if (!strstr(text, refusals[i].text))
			continue;
		(void)snprintf(record.object, sizeof(record.object), "%s", refusals[i].object);
		step->hooks->records[0] = record;
		step->hooks->n_records = 1;
		return;
	}
}

/* The variables of a caller's that are refused: the first, and all as denials if wanted. */
struct refused {
	const struct nc_terms *terms;
	const char *name, *reason;
	json_t *denials;
	int error;
};

static void look(struct refused *refused, const char *name)
{
	const char *reason = nc_variable_refused(refused->terms, name);
	struct nc_denial denial;

	if (!reason || refused->error < 0)
		return;
	if (!refused->name) {
		refused->name = name;
		refused->reason = reason;
	}
	if (!refused->denials)
		return;
	nc_denial_of_variable(name, reason, &denial);
	refused->error = nc_denials_add(refused->denials, &denial);
}

static void look_at_env(struct refused *refused, const struct nc_request_pairs *env,
	const struct nc_request_secrets *secrets)
{
	for (size_t i = 0; i < env->count; i++)
		look(refused, env->pair[i].name);
	for (size_t i = 0; secrets && i < secrets->count; i++)
		look(refused, secrets->secret[i].name);
}

static void look_at_request(struct refused *refused, const struct nc_execution *execution)
{
	const struct nc_request *request = &execution->request;

	look_at_env(refused, &request->env, &request->network.secrets);
	for (size_t i = 0; i < request->n_steps; i++)
		look_at_env(refused, &request->step[i].env, NULL);
}

static int tell(const struct refused *refused, struct nacre_err *err)
{
	char quoted[NC_TEXT_QUOTED_MAX];

	if (!refused->name)
		return 0;
	return nc_err_set(err, -EPERM,
		"The policy '%s' refuses the variable %s: %s [request.variable]; instead: leave it "
		"out, or pass the value under a name of your own",
		refused->terms->policy, nc_text_quote(quoted, refused->name), refused->reason);
}

int nc_hooks_check_env(const struct nc_terms *terms, const struct nc_request_pairs *env,
	const struct nc_request_secrets *secrets, struct nacre_err *err)
{
	struct refused refused = {.terms = terms};

	look_at_env(&refused, env, secrets);
	return tell(&refused, err);
}

int nc_hooks_list_env(
	const struct nc_terms *terms, const struct nc_request_pairs *env, json_t *denials)
{
	struct refused refused = {.terms = terms, .denials = denials};

	look_at_env(&refused, env, NULL);
	return refused.error;
}

int nc_hooks_check_request(const struct nc_execution *execution, struct nacre_err *err)
{
	struct refused refused = {.terms = execution->terms};

	look_at_request(&refused, execution);
	return tell(&refused, err);
}

int nc_hooks_env_denials(const struct nc_execution *execution, json_t *denials)
{
	struct refused refused = {.terms = execution->terms, .denials = denials};

	if (execution->terms)
		look_at_request(&refused, execution);
	return refused.error;
}

int nc_hooks_denials(const struct nc_step_state *step, json_t *denials)
{
	int r = 0;

	for (size_t i = 0; step->hooks && r == 0 && i < step->hooks->n_records; i++) {
		struct nc_denial denial;

		if (!step->hooks->records[i].refused)
			continue;
		nc_denial_of_hook(&step->hooks->records[i], &denial);
		r = nc_denials_add(denials, &denial);
	}
	return r;
}

json_t *nc_hooks_noticed(const struct nc_step_state *step)
{
	cleanup_json json_t *list = json_array();

	for (size_t i = 0; list && step->hooks && i < step->hooks->n_records; i++) {
		const struct nc_hook_record *record = &step->hooks->records[i];
		json_t *line = record->line ? json_integer(record->line) : json_null();

		if (record->refused) {
			json_decref(line);
			continue;
		}
		if (json_array_append_new(
			    list, json_pack("{s:s, s:o, s:o, s:o, s:I}", "rule",
					  nc_policy_rule(record->rule - 1)->id, "object",
					  nc_json_text(record->object, strlen(record->object)),
					  "file", nc_json_text(record->file, strlen(record->file)),
					  "line", line, "count", (json_int_t)record->count)) < 0)
			return NULL;
	}
	return take_ptr(list);
}
