/* Rust: paths, commands that are built word by word, unsafe blocks. */
#include <string.h>

#include "base/text.h"
#include "policy/command.h"
#include "policy/eval.h"
#include "policy/grammars.h"
#include "policy/use.h"

static const struct nc_kind_name kinds[] = {
	{"line_comment", NC_KIND_COMMENT},
	{"block_comment", NC_KIND_COMMENT},
	{"identifier", NC_KIND_IDENTIFIER},
	{"field_identifier", NC_KIND_IDENTIFIER},
	{"type_identifier", NC_KIND_IDENTIFIER},
	{"self", NC_KIND_IDENTIFIER},
	{"scoped_identifier", NC_KIND_SCOPED},
	{"scoped_type_identifier", NC_KIND_SCOPED},
	{"string_literal", NC_KIND_STRING},
	{"raw_string_literal", NC_KIND_STRING},
	{"string_content", NC_KIND_STRING_PART},
	{"escape_sequence", NC_KIND_ESCAPE},
	{"integer_literal", NC_KIND_NUMBER},
	{"call_expression", NC_KIND_CALL},
	{"arguments", NC_KIND_ARGUMENTS},
	{"field_expression", NC_KIND_MEMBER},
	{"index_expression", NC_KIND_SUBSCRIPT},
	{"binary_expression", NC_KIND_BINARY},
	{"parenthesized_expression", NC_KIND_WRAPPER},
	{"reference_expression", NC_KIND_WRAPPER},
	{"try_expression", NC_KIND_WRAPPER},
	{"await_expression", NC_KIND_WRAPPER},
	{"array_expression", NC_KIND_LIST},
	{"tuple_expression", NC_KIND_LIST},
	{"closure_expression", NC_KIND_LAMBDA},
	{"let_declaration", NC_KIND_DECLARE},
	{"const_item", NC_KIND_DECLARE},
	{"static_item", NC_KIND_DECLARE},
	{"assignment_expression", NC_KIND_ASSIGN},
	{"use_declaration", NC_KIND_IMPORT},
	{"scoped_use_list", NC_KIND_IMPORT_FROM},
	{"use_list", NC_KIND_IMPORT_LIST},
	{"use_as_clause", NC_KIND_IMPORT_AS},
	{"use_wildcard", NC_KIND_IMPORT_ALL},
	{"function_item", NC_KIND_FUNCTION},
	{"parameters", NC_KIND_PARAMETERS},
	{"closure_parameters", NC_KIND_PARAMETERS},
	{"parameter", NC_KIND_TYPED},
	{"if_expression", NC_KIND_BRANCH},
	{"match_expression", NC_KIND_BRANCH},
	{"loop_expression", NC_KIND_LOOP},
	{"while_expression", NC_KIND_LOOP},
	{"for_expression", NC_KIND_LOOP},
	{"return_expression", NC_KIND_RETURN},
	{"unsafe_block", NC_KIND_UNSAFE},
	{"foreign_mod_item", NC_KIND_FOREIGN},
	{"macro_invocation", NC_KIND_MACRO},
	{"token_tree", NC_KIND_TOKENS},
	{0},
};

static const struct nc_name_rule names[] = {
	{"hyper.*", NC_USE_NOTHING, NC_RULE_NETWORK, 0},
	{"libc.dlopen", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"libc.execve", NC_USE_COMMAND, NC_RULE_NATIVE, 0},
	{"libc.execvp", NC_USE_COMMAND, NC_RULE_NATIVE, 0},
	{"libc.fork", NC_USE_FORK, NC_RULE_NATIVE, 0},
	{"libc.kill", NC_USE_NOTHING, NC_RULE_KILL, 0},
	{"libc.mount", NC_USE_NOTHING, NC_RULE_ADMIN, 0},
	{"libc.mprotect", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"libc.popen", NC_USE_SHELL, NC_RULE_NATIVE, 0},
	{"libc.ptrace", NC_USE_NOTHING, NC_RULE_TRACE, 0},
	{"libc.setns", NC_USE_NOTHING, NC_RULE_ESCAPE, 0},
	{"libc.setuid", NC_USE_NOTHING, NC_RULE_PRIVILEGE, 0},
	{"libc.socket", NC_USE_NOTHING, NC_RULE_NETWORK, 0},
	{"libc.syscall", NC_USE_NOTHING, NC_RULE_SYSCALL, 0},
	{"libc.system", NC_USE_SHELL, NC_RULE_NATIVE, 0},
	{"libc.unshare", NC_USE_NOTHING, NC_RULE_PRIVILEGE, 0},
	{"libc.vfork", NC_USE_FORK, NC_RULE_NATIVE, 0},
	{"libloading.Library.new", NC_USE_READ, NC_RULE_NATIVE, 0},
	{"nix.mount.mount", NC_USE_NOTHING, NC_RULE_ADMIN, 0},
	{"nix.sched.setns", NC_USE_NOTHING, NC_RULE_ESCAPE, 0},
	{"nix.sys.ptrace.*", NC_USE_NOTHING, NC_RULE_TRACE, 0},
	{"nix.unistd.execv", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"nix.unistd.fork", NC_USE_FORK, NC_RULE_NONE, 0},
	{"nix.unistd.setuid", NC_USE_NOTHING, NC_RULE_PRIVILEGE, 0},
	{"rayon.*", NC_USE_THREAD, NC_RULE_NONE, 0},
	{"reqwest.*", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"reqwest.get", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"ssh2.Session.new", NC_USE_NOTHING, NC_RULE_REMOTE_ACCESS, 0},
	{"std.fs.File.create", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"std.fs.File.open", NC_USE_READ, NC_RULE_NONE, 0},
	{"std.fs.copy", NC_USE_WRITE, NC_RULE_NONE, 1},
	{"std.fs.create_dir", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"std.fs.create_dir_all", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"std.fs.read", NC_USE_READ, NC_RULE_NONE, 0},
	{"std.fs.read_dir", NC_USE_READ, NC_RULE_NONE, 0},
	{"std.fs.read_to_string", NC_USE_READ, NC_RULE_NONE, 0},
	{"std.fs.remove_dir", NC_USE_DELETE, NC_RULE_NONE, 0},
	{"std.fs.remove_dir_all", NC_USE_DELETE, NC_RULE_DELETE, 0},
	{"std.fs.remove_file", NC_USE_DELETE, NC_RULE_NONE, 0},
	{"std.fs.rename", NC_USE_WRITE, NC_RULE_NONE, 1},
	{"std.fs.set_permissions", NC_USE_NOTHING, NC_RULE_PERMISSIONS, 0},
	{"std.fs.write", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"std.mem.transmute", NC_USE_NOTHING, NC_RULE_UNSAFE, 0},
	{"std.net.TcpListener.bind", NC_USE_LISTEN, NC_RULE_LISTEN, 0},
	{"std.net.TcpStream.connect", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"std.net.TcpStream.connect_timeout", NC_USE_NOTHING, NC_RULE_NETWORK, 0},
	{"std.net.UdpSocket.bind", NC_USE_LISTEN, NC_RULE_NETWORK, 0},
	{"std.os.unix.fs.chroot", NC_USE_NOTHING, NC_RULE_PRIVILEGE, 0},
	{"std.os.unix.fs.symlink", NC_USE_WRITE, NC_RULE_NONE, 1},
	{"std.process.Command", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"std.process.Command.new", NC_USE_WORDS, NC_RULE_NONE, 0},
	{"std.thread.Builder.new", NC_USE_THREAD, NC_RULE_NONE, 0},
	{"std.thread.scope", NC_USE_THREAD, NC_RULE_NONE, 0},
	{"std.thread.spawn", NC_USE_THREAD, NC_RULE_NONE, 0},
	{"tokio.net.TcpListener.bind", NC_USE_LISTEN, NC_RULE_LISTEN, 0},
	{"tokio.net.TcpStream.connect", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"tokio.process.Command.new", NC_USE_WORDS, NC_RULE_NONE, 0},
	{"ureq.get", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"ureq.post", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
};

static const struct nc_name_rule imports[] = {
	{"hyper.*", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"libc", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"libc.*", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"libloading", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"libloading.*", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"nix.*", NC_USE_NOTHING, NC_RULE_UNSAFE, 0},
	{"rayon.*", NC_USE_THREAD, NC_RULE_NONE, 0},
	{"reqwest", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"reqwest.*", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"ssh2.*", NC_USE_CONNECT, NC_RULE_REMOTE_ACCESS, 0},
	{"std.fs", NC_USE_NOTHING, NC_RULE_NONE, 0},
	{"std.net", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"std.net.*", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"std.process", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"std.process.Command", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"std.thread", NC_USE_THREAD, NC_RULE_NONE, 0},
	{"tokio.net.*", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"tokio.process", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"ureq", NC_USE_CONNECT, NC_RULE_NONE, 0},
};

static const char *const transparent[] = {"crate.", "core.", NULL};

/* Appends a path to a name, with dots for "::". False if it gets too long. */
static bool add_path(
	char name[static NC_NAME_TEXT_MAX], size_t *used, const char *text, size_t size)
{
	if (*used > 0) {
		if (*used == NC_NAME_TEXT_MAX)
			return false;
		name[(*used)++] = '.';
	}
	for (size_t i = 0; i < size; i++) {
		if (*used == NC_NAME_TEXT_MAX)
			return false;
		if (text[i] == ':') {
			i++;
			name[(*used)++] = '.';
		} else if (text[i] > ' ') {
			name[(*used)++] = text[i];
		}
	}
	return true;
}

/* The path in front of a name in a use: those of all lists around it. */
static bool add_prefixes(
	struct nc_scan *scan, uint32_t node, char name[static NC_NAME_TEXT_MAX], size_t *used)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t lists[8], count = 0;

	for (uint32_t at = tree->nodes[node].parent; tree->nodes[at].kind != NC_KIND_IMPORT && at;
		at = tree->nodes[at].parent)
		if (tree->nodes[at].kind == NC_KIND_IMPORT_FROM) {
			if (count == sizeof(lists) / sizeof(lists[0])) {
				nc_scan_cut(scan);
				return false;
			}
			lists[count++] = at;
		}
	while (count-- > 0) {
		uint32_t path = nc_tree_child(tree, lists[count], NC_ROLE_MODULE), size;
		const char *text;

		if (!path)
			continue;
		text = nc_tree_text(tree, path, &size);
		if (!add_path(name, used, text, size))
			return false;
	}
	return true;
}

/* use a::*: every function and type that we have a rule for is there under its own name. */
static void import_all(struct nc_scan *scan, const char *module, size_t size)
{
	for (size_t i = 0; i < scan->analyser->n_names; i++) {
		const char *name = scan->analyser->names[i].name;
		const char *own = strlen(name) > size + 1 ? name + size + 1 : NULL;
		size_t length = own ? strcspn(own, ".*") : 0;

		if (length > 0 && memcmp(name, module, size) == 0 && name[size] == '.')
			nc_scan_bind(scan, own, length,
				nc_datum_name(&scan->data, name, size + 1 + length));
	}
}

/* One name of a use, with the path in front of it. */
static void import_name(struct nc_scan *scan, uint32_t node, uint32_t alias)
{
	const struct nc_tree *tree = &scan->tree;
	char name[NC_NAME_TEXT_MAX];
	size_t used = 0, begin = 0;
	uint32_t size, alias_size;
	const char *text = nc_tree_text(tree, node, &size), *copy, *alias_text;

	if (!add_prefixes(scan, node, name, &used))
		return;
	if (!nc_tree_is(tree, node, "self") && !add_path(name, &used, text, size))
		return;
	copy = nc_arena_text(&scan->arena, name, used);
	if (!copy)
		return;
	nc_scan_import(scan, node, copy, used, false);
	if (tree->nodes[tree->nodes[node].parent].kind == NC_KIND_IMPORT_ALL) {
		import_all(scan, copy, used);
		return;
	}
	for (size_t i = 0; i < used; i++)
		if (copy[i] == '.')
			begin = i + 1;
	alias_text = alias ? nc_tree_text(tree, alias, &alias_size) : copy + begin;
	alias_size = alias ? alias_size : (uint32_t)(used - begin);
	nc_scan_bind(scan, alias_text, alias_size, nc_datum_name(&scan->data, copy, used));
}

/* All names of a use: what stands in a list, behind "as", or alone. */
static void import_use(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;

	for (uint32_t i = node + 1; i < tree->nodes[node].next; i++) {
		enum nc_kind kind = tree->nodes[i].kind;
		enum nc_kind around = tree->nodes[tree->nodes[i].parent].kind;

		if (kind != NC_KIND_IDENTIFIER && kind != NC_KIND_SCOPED)
			continue;
		if (around == NC_KIND_IMPORT_AS && tree->nodes[i].role == NC_ROLE_MODULE)
			import_name(
				scan, i, nc_tree_child(tree, tree->nodes[i].parent, NC_ROLE_ALIAS));
		else if (around == NC_KIND_IMPORT || around == NC_KIND_IMPORT_LIST ||
			 around == NC_KIND_IMPORT_ALL)
			import_name(scan, i, 0);
	}
}

/* a::b: a member of what a stands for. */
static uint32_t scoped(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t path = nc_tree_child(tree, node, NC_ROLE_MODULE);
	uint32_t name = nc_tree_child(tree, node, NC_ROLE_NAME), size;
	const char *text;

	if (!path || !name)
		return 0;
	text = nc_tree_text(tree, name, &size);
	return nc_eval_member(scan, tree->nodes[path].datum, text, size);
}

static uint32_t fold_call(
	struct nc_scan *scan, const struct nc_call *call, const struct nc_datum *function)
{
	uint32_t first = nc_eval_argument_number(scan, call, 0);

	/* a command that is being built is the list of its words */
	if (nc_datum_is_name(function, "std.process.Command.new") ||
		nc_datum_is_name(function, "tokio.process.Command.new"))
		return nc_datum_list(&scan->data, NC_DATUM_LIST, &first, 1);
	if (nc_datum_is_name(function, "String.from") || nc_datum_is_name(function, "Path.new") ||
		nc_datum_is_name(function, "PathBuf.from") ||
		nc_datum_is_name(function, "std.path.Path.new") ||
		nc_datum_is_name(function, "std.path.PathBuf.from"))
		return first;
	return 0;
}

/* .arg(x) and .args([..]): the same list with more words; a variable then stands for that. */
static uint32_t add_words(
	struct nc_scan *scan, const struct nc_call *call, const struct nc_datum *command)
{
	const struct nc_tree *tree = &scan->tree;
	const struct nc_datum *more = nc_eval_argument(scan, call, 0);
	uint32_t object = nc_tree_child(tree, call->function, NC_ROLE_VALUE);
	uint32_t words[NC_ARGUMENTS_MAX], count = 0, number, size;
	const char *text;

	for (uint32_t i = 0; i < command->size && count < NC_ARGUMENTS_MAX; i++)
		words[count++] = command->items[i];
	if (more->kind == NC_DATUM_LIST)
		for (uint32_t i = 0; i < more->size && count < NC_ARGUMENTS_MAX; i++)
			words[count++] = more->items[i];
	else if (count < NC_ARGUMENTS_MAX)
		words[count++] = nc_eval_argument_number(scan, call, 0);
	number = nc_datum_list(&scan->data, NC_DATUM_LIST, words, count);
	if (object && tree->nodes[object].kind == NC_KIND_IDENTIFIER) {
		text = nc_tree_text(tree, object, &size);
		nc_scopes_bind(&scan->scopes, scan->scope, text, size, number);
	}
	return number;
}

static void run_words(struct nc_scan *scan, const struct nc_call *call, const struct nc_datum *list)
{
	struct nc_command command = {0};

	for (uint32_t i = 0; i < list->size; i++)
		nc_command_add(&command, list->items[i]);
	nc_command_judge(scan, call->node, &command);
}

static uint32_t fold_method(struct nc_scan *scan, const struct nc_call *call, uint32_t receiver,
	const char *method, size_t size)
{
	/* what changes the form but not the text, or the settings but not the words */
	static const char *const same[] = {"to_string", "to_owned", "into", "as_str", "clone",
		"unwrap", "expect", "as_ref", "as_bytes", "stdin", "stdout", "stderr", "env",
		"current_dir", "envs", "env_clear", "trim", NULL};
	const struct nc_datum *object = nc_datum(&scan->data, receiver);
	char name[16] = "";

	if (size >= sizeof(name) ||
		(object->kind != NC_DATUM_LIST && object->kind != NC_DATUM_TEXT))
		return 0;
	memcpy(name, method, size);
	if (object->kind == NC_DATUM_LIST && (nc_streq(name, "arg") || nc_streq(name, "args")))
		return add_words(scan, call, object);
	if (object->kind == NC_DATUM_LIST &&
		(nc_streq(name, "spawn") || nc_streq(name, "output") || nc_streq(name, "status") ||
			nc_streq(name, "exec"))) {
		run_words(scan, call, object);
		return 0;
	}
	for (const char *const *known = same; *known; known++)
		if (nc_streq(name, *known))
			return receiver;
	return 0;
}

/* r"\x" and br"\x" are what they look like. */
static bool is_raw(const struct nc_tree *tree, uint32_t node)
{
	const struct nc_node *string = &tree->nodes[tree->nodes[node].parent];
	const char *text = tree->text + string->start;

	return text[0] == 'r' ||
	       (text[0] == 'b' && string->end - string->start > 1 && text[1] == 'r');
}

static void leave(struct nc_scan *scan, uint32_t node)
{
	struct nc_tree *tree = &scan->tree;
	struct nc_node *at = &tree->nodes[node];
	uint32_t size;
	const char *text = nc_tree_text(tree, node, &size);

	nc_eval_leave(scan, node);
	switch (at->kind) {
	case NC_KIND_STRING_PART:
		if (is_raw(tree, node))
			at->datum = nc_datum_text(&scan->data, text, size);
		break;
	case NC_KIND_SCOPED:
		at->datum = scoped(scan, node);
		break;
	case NC_KIND_IMPORT:
		import_use(scan, node);
		break;
	case NC_KIND_UNSAFE:
		nc_scan_find(scan, NC_RULE_UNSAFE, node, "unsafe", 6);
		break;
	case NC_KIND_FOREIGN:
		nc_scan_find(scan, NC_RULE_NATIVE, node, "extern", 6);
		break;
	case NC_KIND_MACRO:
		if (size > 4 && memcmp(text, "asm!", 4) == 0)
			nc_scan_find(scan, NC_RULE_NATIVE, node, "asm!", 4);
		break;
	case NC_KIND_IDENTIFIER:
		/* inside a macro there are only tokens: what is named there is used somehow */
		if (tree->nodes[at->parent].kind == NC_KIND_TOKENS)
			nc_use_judge(scan, node, NULL, at->datum);
		break;
	default:
		break;
	}
}

const struct nc_analyser nc_rust = {
	.name = "rust",
	.grammar = tree_sitter_rust,
	.kinds = kinds,
	.names = names,
	.n_names = sizeof(names) / sizeof(names[0]),
	.imports = imports,
	.n_imports = sizeof(imports) / sizeof(imports[0]),
	.transparent = transparent,
	.is_hoisted = true,
	.enter = nc_eval_enter,
	.leave = leave,
	.fold_call = fold_call,
	.fold_method = fold_method,
};
