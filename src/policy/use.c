/* What a call does with its arguments, held against the rules. */
#include "policy/use.h"

#include <string.h>

#include "policy/command.h"
#include "policy/eval.h"
#include "policy/lists.h"
#include "policy/literal.h"

/* What it means that text is run, by where the text comes from. */
static enum nc_rule_id code_rule(const struct nc_scan *scan, const struct nc_datum *code)
{
	const struct nc_name_rule *origin = NULL;

	if (code->kind == NC_DATUM_NAME)
		origin = nc_scan_name(
			scan->analyser->names, scan->analyser->n_names, code->text, code->size);
	if (origin && origin->use == NC_USE_CONNECT)
		return NC_RULE_DOWNLOAD_AND_RUN;
	return code->decoded || (origin && origin->use == NC_USE_DECODE) ? NC_RULE_EVAL_DECODED
									 : NC_RULE_EVAL;
}

/* Text becomes code of the same language. */
static void use_code(struct nc_scan *scan, uint32_t node, const struct nc_datum *code)
{
	nc_scan_find_datum(scan, code_rule(scan, code), node, code);
	if (code->kind == NC_DATUM_TEXT)
		nc_scan_queue(
			scan, scan->job->language, node, code, code->partial && !code->too_long);
}

static void use_shell(struct nc_scan *scan, uint32_t node, const struct nc_datum *text)
{
	scan->report->needs.subprocess = true;
	nc_scan_find_datum(scan, NC_RULE_SHELL, node, text);
	if (text->kind != NC_DATUM_TEXT) {
		scan->report->needs.unknown = true;
		return;
	}
	if (text->decoded)
		nc_scan_find_datum(scan, NC_RULE_EVAL_DECODED, node, text);
	nc_scan_queue(scan, NC_SHELL, node, text, false);
}

static void run_command(struct nc_scan *scan, uint32_t node, const struct nc_command *command)
{
	const struct nc_datum *program = nc_datum(&scan->data, command->words[0]);

	scan->report->needs.subprocess = true;
	if (program->kind == NC_DATUM_TEXT)
		nc_scan_find_datum(scan, NC_RULE_RUN, node, program);
	nc_command_judge(scan, node, command);
}

/* subprocess.run(["ls", "-l"]), and with shell=True or a text with blanks, a shell. */
static void use_command(
	struct nc_scan *scan, const struct nc_call *call, const struct nc_datum *what)
{
	const struct nc_datum *shell = nc_eval_keyword(scan, call, "shell");
	struct nc_command command = {0};

	if (what->kind == NC_DATUM_TEXT && ((shell->kind == NC_DATUM_NUMBER && shell->number) ||
						   memchr(what->text, ' ', what->size))) {
		use_shell(scan, call->node, what);
		return;
	}
	if (what->kind == NC_DATUM_LIST) {
		for (uint32_t i = 0; i < what->size; i++)
			nc_command_add(&command, what->items[i]);
	} else {
		nc_command_add(&command, nc_eval_argument_number(scan, call, 0));
	}
	if (command.count > 0)
		run_command(scan, call->node, &command);
}

/* execl("/bin/ls", "ls", "-l"), spawn("ls", ["-l"]), exec.Command("ls", "-l"). */
static void use_words(struct nc_scan *scan, const struct nc_call *call, uint32_t first)
{
	struct nc_command command = {0};

	nc_command_add(&command, nc_eval_argument_number(scan, call, first));
	for (uint32_t i = first + 1; i < call->count; i++) {
		const struct nc_datum *more = nc_eval_argument(scan, call, i);

		for (uint32_t k = 0; more->kind == NC_DATUM_LIST && k < more->size; k++)
			nc_command_add(&command, more->items[k]);
		if (more->kind != NC_DATUM_LIST)
			nc_command_add(&command, nc_eval_argument_number(scan, call, i));
	}
	run_command(scan, call->node, &command);
}

static void use_import(struct nc_scan *scan, uint32_t node, const struct nc_datum *name)
{
	if (nc_datum_is_plain(name))
		nc_scan_import(scan, node, name->text, name->size, name->built || name->decoded);
	else
		nc_scan_find_datum(scan, NC_RULE_DYNAMIC_IMPORT, node, name);
}

/* The mode of open() is its second argument: it writes if there is a w, a, x or +. */
static enum nc_access open_access(const struct nc_scan *scan, const struct nc_call *call)
{
	const struct nc_datum *mode = nc_eval_argument(scan, call, 1);

	if (mode->kind != NC_DATUM_TEXT)
		mode = nc_eval_keyword(scan, call, "mode");
	for (uint32_t i = 0; mode->kind == NC_DATUM_TEXT && i < mode->size; i++)
		if (mode->text[i] && strchr("wax+", mode->text[i]))
			return NC_ACCESS_WRITE;
	return NC_ACCESS_READ;
}

static void use_path(
	struct nc_scan *scan, uint32_t node, const struct nc_datum *path, enum nc_access access)
{
	if (path->kind != NC_DATUM_TEXT) {
		scan->report->needs.unknown = true;
		return;
	}
	if (access == NC_ACCESS_DELETE && nc_literal_is_precious(path->text, path->size))
		nc_scan_find_datum(scan, NC_RULE_DESTROY, node, path);
	nc_literal_judge(scan, node, path, access);
}

/* chmod with the bit that makes a program run as its owner. */
static void use_mode(struct nc_scan *scan, uint32_t node, const struct nc_datum *mode)
{
	if (mode->kind == NC_DATUM_NUMBER && (mode->number & 06000))
		nc_scan_find_datum(scan, NC_RULE_SETUID_BIT, node, mode);
	else
		nc_scan_find_datum(scan, NC_RULE_PERMISSIONS, node, mode);
}

/* A host, a URL, or a list that begins with a host. */
static void use_host(struct nc_scan *scan, uint32_t node, const struct nc_datum *host)
{
	scan->report->needs.network = true;
	if (host->kind == NC_DATUM_LIST && host->size > 0)
		host = nc_datum(&scan->data, host->items[0]);
	nc_literal_host(scan, node, host);
}

/* Whether a call is made in every turn of an endless loop, as far as one can see. */
static bool is_in_every_turn(const struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;

	if (scan->endless == 0)
		return false;
	/* servers fork in endless loops too, but when somebody asks */
	for (uint32_t i = 0; i < 64 && node > 0; i++) {
		node = tree->nodes[node].parent;
		if (tree->nodes[node].kind == NC_KIND_LOOP)
			return true;
		if (tree->nodes[node].kind == NC_KIND_BRANCH)
			return false;
	}
	return false;
}

/* What does not depend on arguments. */
static void use_whole(struct nc_scan *scan, uint32_t node, const struct nc_name_rule *rule,
	const struct nc_datum *function)
{
	nc_scan_find_datum(scan, rule->rule, node, function);
	if (rule->use == NC_USE_THREAD)
		scan->report->needs.threads = true;
	if (rule->use == NC_USE_LISTEN)
		scan->report->needs.network = true;
	if (rule->use == NC_USE_FORK) {
		scan->report->needs.subprocess = true;
		nc_scan_find_datum(scan,
			is_in_every_turn(scan, node) ? NC_RULE_FORK_BOMB : NC_RULE_FORK, node,
			function);
	}
}

static void use_one(struct nc_scan *scan, const struct nc_call *call,
	const struct nc_name_rule *rule, const struct nc_datum *argument)
{
	uint32_t node = call->node;

	switch (rule->use) {
	case NC_USE_CODE:
		use_code(scan, node, argument);
		break;
	case NC_USE_SHELL:
		use_shell(scan, node, argument);
		break;
	case NC_USE_COMMAND:
		use_command(scan, call, argument);
		break;
	case NC_USE_WORDS:
		use_words(scan, call, rule->argument);
		break;
	case NC_USE_IMPORT:
		use_import(scan, node, argument);
		break;
	case NC_USE_READ:
		use_path(scan, node, argument, NC_ACCESS_READ);
		break;
	case NC_USE_OPEN:
		use_path(scan, node, argument, open_access(scan, call));
		break;
	case NC_USE_WRITE:
		use_path(scan, node, argument, NC_ACCESS_WRITE);
		break;
	case NC_USE_DELETE:
		use_path(scan, node, argument, NC_ACCESS_DELETE);
		break;
	case NC_USE_CONNECT:
		use_host(scan, node, argument);
		break;
	case NC_USE_MODE:
		use_path(scan, node, argument, NC_ACCESS_MENTION);
		use_mode(scan, node, nc_eval_argument(scan, call, rule->argument + 1U));
		break;
	case NC_USE_NOTHING:
	case NC_USE_LISTEN:
	case NC_USE_THREAD:
	case NC_USE_FORK:
	case NC_USE_DECODE:
		break;
	}
}

/* An argument that may be several things is used as each of them. */
static void use_argument(
	struct nc_scan *scan, const struct nc_call *call, const struct nc_name_rule *rule)
{
	uint32_t which =
		rule->argument == NC_LAST && call->count > 0 ? call->count - 1 : rule->argument;
	const struct nc_datum *argument = nc_eval_argument(scan, call, which);

	for (uint32_t i = 0; i < NC_ALTERNATIVES_MAX; i++) {
		use_one(scan, call, rule, argument);
		if (!argument->other)
			break;
		argument = nc_datum(&scan->data, argument->other);
	}
}

/* A dangerous function that is handed on will be called by somebody. */
static void use_unknown(struct nc_scan *scan, uint32_t node, const struct nc_name_rule *rule,
	const struct nc_datum *function)
{
	static const enum nc_rule_id rules[] = {
		[NC_USE_CODE] = NC_RULE_EVAL,
		[NC_USE_SHELL] = NC_RULE_SHELL,
		[NC_USE_COMMAND] = NC_RULE_RUN_UNKNOWN,
		[NC_USE_WORDS] = NC_RULE_RUN_UNKNOWN,
		[NC_USE_IMPORT] = NC_RULE_DYNAMIC_IMPORT,
	};

	if (rule->use >= sizeof(rules) / sizeof(rules[0]) || rules[rule->use] == NC_RULE_NONE)
		return;
	scan->report->needs.unknown = true;
	if (rule->use != NC_USE_CODE && rule->use != NC_USE_IMPORT)
		scan->report->needs.subprocess = true;
	nc_scan_find_datum(scan, rules[rule->use], node, function);
}

void nc_use_judge(
	struct nc_scan *scan, uint32_t node, const struct nc_call *call, uint32_t function)
{
	if (scan->learning || scan->unrolling)
		return;
	for (uint32_t i = 0; function && i < NC_ALTERNATIVES_MAX; i++) {
		const struct nc_datum *datum = nc_datum(&scan->data, function);
		const struct nc_name_rule *rule = NULL;

		if (datum->kind == NC_DATUM_NAME) {
			if (call)
				nc_lists_function(scan, node, call, datum);
			rule = nc_scan_name(scan->analyser->names, scan->analyser->n_names,
				datum->text, datum->size);
		}
		if (rule) {
			if (datum->built || datum->decoded)
				nc_scan_find_datum(scan, NC_RULE_HIDDEN_NAME, node, datum);
			use_whole(scan, node, rule, datum);
			if (call)
				use_argument(scan, call, rule);
			else
				use_unknown(scan, node, rule, datum);
		}
		function = datum->other;
	}
}
