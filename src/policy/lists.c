/* The lists of security_policies.yaml as rules over the tree. */
#include "policy/lists.h"

#include <ctype.h>
#include <string.h>

#include "policy/eval.h"

#define LIST(...)                                                                                  \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

const struct nc_policy_lists nc_lists_built_in[NC_LANGUAGE_MAX] = {
	[NC_PYTHON] = {.forbidden_imports = LIST("os", "subprocess", "sys", "socket"),
		.forbidden_functions = LIST("eval", "exec", "compile"),
		.forbidden_patterns = LIST("__import__", "globals()", "locals()")},
	[NC_JAVASCRIPT] = {.forbidden_patterns = LIST("require('fs')", "require('child_process')",
				   "process.exit", "eval(")},
	[NC_TYPESCRIPT] = {.forbidden_patterns = LIST("require('fs')", "require('child_process')",
				   "process.exit", "eval(")},
	[NC_SHELL] = {.forbidden_commands = LIST("rm", "sudo", "chmod", "chown"),
		.forbidden_patterns = LIST(">/dev/", "curl", "wget")},
};

static bool is_name_character(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '-' || c == '.' ||
	       c == ':' || (unsigned char)c >= 0x80;
}

/* The text between quotes at the beginning of text, which ends the pattern but for ")". */
static bool parse_argument(const char *text, struct nc_pattern *pattern)
{
	size_t size = strlen(text);

	if (size > 0 && text[size - 1] == ')')
		size--;
	if (size < 2 || (text[0] != '\'' && text[0] != '"') || text[size - 1] != text[0] ||
		memchr(text + 1, text[0], size - 2))
		return false;
	pattern->argument = text + 1;
	pattern->argument_size = size - 2;
	return true;
}

void nc_pattern_parse(const char *text, struct nc_pattern *ret_pattern)
{
	struct nc_pattern pattern = {.kind = NC_PATTERN_TEXT, .whole = text, .name = text};
	size_t length = 0;
	const char *rest;

	if (text[0] == '>') {
		text += strspn(text, "> ");
		pattern.kind = NC_PATTERN_WRITE;
		pattern.name = text;
		pattern.size = strlen(text);
		*ret_pattern = pattern;
		return;
	}
	while (is_name_character(text[length]))
		length++;
	rest = text + length;
	pattern.size = length;
	if (length > 0 && *rest == '\0') {
		pattern.kind = NC_PATTERN_NAME;
	} else if (length > 0 && (strcmp(rest, "(") == 0 || strcmp(rest, "()") == 0)) {
		pattern.kind = NC_PATTERN_CALL;
	} else if (length > 0 && rest[0] == '(' && parse_argument(rest + 1, &pattern)) {
		pattern.kind = NC_PATTERN_ARGUMENT;
	} else {
		pattern.size = strlen(text);
	}
	*ret_pattern = pattern;
}

static bool equals(const char *word, const char *text, size_t size)
{
	return strlen(word) == size && memcmp(word, text, size) == 0;
}

/* Whether it stands in a list that allows, or there is none. */
static bool is_allowed(const char *const *words, const char *text, size_t size)
{
	if (!words)
		return true;
	while (*words && !equals(*words, text, size))
		words++;
	return *words != NULL;
}

static const struct nc_policy_lists *lists(const struct nc_scan *scan)
{
	return &scan->policy->lists[scan->job->language];
}

/* Module "os" is meant with "os.path", "fs" with "fs/promises" and "node:fs". */
static bool is_module(const char *module, size_t module_size, const char *name, size_t size)
{
	if (size > 5 && memcmp(name, "node:", 5) == 0) {
		name += 5;
		size -= 5;
	}
	return size >= module_size && memcmp(name, module, module_size) == 0 &&
	       (size == module_size || strchr("./:", name[module_size]));
}

static bool is_allowed_module(const char *const *modules, const char *name, size_t size)
{
	if (!modules)
		return true;
	while (*modules && !is_module(*modules, strlen(*modules), name, size))
		modules++;
	return *modules != NULL;
}

/* The next pattern of the list, taken apart; false behind the last. */
static bool next_pattern(const struct nc_scan *scan, size_t *at, struct nc_pattern *ret_pattern)
{
	const char *const *patterns = lists(scan)->forbidden_patterns;

	if (scan->learning || scan->unrolling || !patterns || !patterns[*at])
		return false;
	nc_pattern_parse(patterns[(*at)++], ret_pattern);
	return true;
}

static void find_pattern(struct nc_scan *scan, uint32_t node, const struct nc_pattern *pattern)
{
	nc_scan_find(scan, NC_RULE_LIST_PATTERN, node, pattern->whole, strlen(pattern->whole));
}

void nc_lists_import(struct nc_scan *scan, uint32_t node, const char *name, size_t size)
{
	const char *const *imports = lists(scan)->forbidden_imports;
	struct nc_pattern pattern;

	for (; imports && *imports; imports++)
		if (is_module(*imports, strlen(*imports), name, size))
			nc_scan_find(scan, NC_RULE_LIST_IMPORT, node, name, size);
	if (!is_allowed_module(lists(scan)->allowed_imports, name, size))
		nc_scan_find(scan, NC_RULE_LIST_IMPORT, node, name, size);
	for (size_t i = 0; next_pattern(scan, &i, &pattern);)
		if (pattern.kind == NC_PATTERN_ARGUMENT &&
			(equals("require", pattern.name, pattern.size) ||
				equals("import", pattern.name, pattern.size) ||
				equals("__import__", pattern.name, pattern.size)) &&
			is_module(pattern.argument, pattern.argument_size, name, size))
			find_pattern(scan, node, &pattern);
}

/* Whether a call has the text that a pattern asks for as its first argument. */
static bool has_argument(
	const struct nc_scan *scan, const struct nc_call *call, const struct nc_pattern *pattern)
{
	const struct nc_datum *first = nc_eval_argument(scan, call, 0);

	return nc_datum_is_plain(first) && first->size == pattern->argument_size &&
	       memcmp(first->text, pattern->argument, first->size) == 0;
}

void nc_lists_function(struct nc_scan *scan, uint32_t node, const struct nc_call *call,
	const struct nc_datum *function)
{
	const char *const *functions = lists(scan)->forbidden_functions;
	struct nc_pattern pattern;

	for (; functions && *functions; functions++)
		if (equals(*functions, function->text, function->size))
			nc_scan_find_datum(scan, NC_RULE_LIST_FUNCTION, node, function);
	if (!is_allowed(lists(scan)->allowed_functions, function->text, function->size))
		nc_scan_find_datum(scan, NC_RULE_LIST_FUNCTION, node, function);
	for (size_t i = 0; next_pattern(scan, &i, &pattern);) {
		if (pattern.size != function->size ||
			memcmp(pattern.name, function->text, pattern.size) != 0)
			continue;
		if (pattern.kind == NC_PATTERN_NAME || pattern.kind == NC_PATTERN_CALL ||
			(pattern.kind == NC_PATTERN_ARGUMENT && call &&
				has_argument(scan, call, &pattern)))
			find_pattern(scan, node, &pattern);
	}
}

void nc_lists_member(struct nc_scan *scan, uint32_t node, const struct nc_datum *member)
{
	struct nc_pattern pattern;

	if (member->kind != NC_DATUM_NAME)
		return;
	for (size_t i = 0; next_pattern(scan, &i, &pattern);)
		if (pattern.kind == NC_PATTERN_NAME && pattern.size == member->size &&
			memcmp(pattern.name, member->text, pattern.size) == 0)
			find_pattern(scan, node, &pattern);
}

void nc_lists_command(struct nc_scan *scan, uint32_t node, const char *name, size_t size)
{
	const struct nc_policy_lists *shell = &scan->policy->lists[NC_SHELL];
	const char *const *commands = shell->forbidden_commands;
	const char *const *patterns = shell->forbidden_patterns;

	/* a command is one in every language: os.system("rm x") runs rm */
	for (; commands && *commands; commands++)
		if (equals(*commands, name, size))
			nc_scan_find(scan, NC_RULE_LIST_COMMAND, node, name, size);
	if (!is_allowed(shell->allowed_commands, name, size))
		nc_scan_find(scan, NC_RULE_LIST_COMMAND, node, name, size);
	for (; patterns && *patterns; patterns++)
		if (equals(*patterns, name, size))
			nc_scan_find(scan, NC_RULE_LIST_PATTERN, node, name, size);
}

void nc_lists_unknown(
	struct nc_scan *scan, enum nc_rule_id rule, uint32_t node, const char *object, size_t size)
{
	if (rule == NC_RULE_RUN_UNKNOWN && scan->policy->lists[NC_SHELL].allowed_commands)
		nc_scan_find(scan, NC_RULE_LIST_COMMAND, node, object, size);
	if (rule == NC_RULE_DYNAMIC_IMPORT && lists(scan)->allowed_imports)
		nc_scan_find(scan, NC_RULE_LIST_IMPORT, node, object, size);
}

void nc_lists_write(struct nc_scan *scan, uint32_t node, const struct nc_datum *file)
{
	struct nc_pattern pattern;

	if (file->kind != NC_DATUM_TEXT)
		return;
	for (size_t i = 0; next_pattern(scan, &i, &pattern);)
		if (pattern.kind == NC_PATTERN_WRITE && file->size >= pattern.size &&
			memcmp(file->text, pattern.name, pattern.size) == 0)
			find_pattern(scan, node, &pattern);
}

/* The first place of a text that is in no comment: the last node that begins before it, or 0. */
static uint32_t find_text(const struct nc_scan *scan, const struct nc_pattern *pattern)
{
	const struct nc_tree *tree = &scan->tree;
	const char *end = scan->job->text + scan->job->size, *at = scan->job->text;
	uint32_t node = 0, comment_end = 0;

	/* places and nodes both go forward, so that this is one pass over each */
	while ((at = memmem(at, (size_t)(end - at), pattern->name, pattern->size))) {
		uint32_t offset = (uint32_t)(at - scan->job->text);

		for (; node < tree->count && tree->nodes[node].start <= offset; node++)
			if (tree->nodes[node].kind == NC_KIND_COMMENT &&
				tree->nodes[node].end > comment_end)
				comment_end = tree->nodes[node].end;
		if (offset >= comment_end)
			return node > 1 ? node - 1 : 1;
		at++;
	}
	return 0;
}

void nc_lists_text(struct nc_scan *scan)
{
	struct nc_pattern pattern;

	for (size_t i = 0; next_pattern(scan, &i, &pattern);) {
		uint32_t node = pattern.kind == NC_PATTERN_TEXT && pattern.size > 0
					? find_text(scan, &pattern)
					: 0;

		if (node && node < scan->tree.count)
			find_pattern(scan, node, &pattern);
	}
}
