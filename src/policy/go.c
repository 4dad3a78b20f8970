/* Go: packages, calls, and the texts that they are given. */
#include <string.h>

#include "policy/decode.h"
#include "policy/eval.h"
#include "policy/grammars.h"
#include "policy/texts.h"

static const struct nc_kind_name kinds[] = {
	{"comment", NC_KIND_COMMENT},
	{"identifier", NC_KIND_IDENTIFIER},
	{"field_identifier", NC_KIND_IDENTIFIER},
	{"package_identifier", NC_KIND_IDENTIFIER},
	{"interpreted_string_literal", NC_KIND_STRING},
	{"raw_string_literal", NC_KIND_STRING},
	{"interpreted_string_literal_content", NC_KIND_STRING_PART},
	{"raw_string_literal_content", NC_KIND_STRING_PART},
	{"escape_sequence", NC_KIND_ESCAPE},
	{"int_literal", NC_KIND_NUMBER},
	{"true", NC_KIND_TRUE},
	{"false", NC_KIND_FALSE},
	{"call_expression", NC_KIND_CALL},
	{"argument_list", NC_KIND_ARGUMENTS},
	{"selector_expression", NC_KIND_MEMBER},
	{"index_expression", NC_KIND_SUBSCRIPT},
	{"binary_expression", NC_KIND_BINARY},
	{"parenthesized_expression", NC_KIND_WRAPPER},
	{"literal_element", NC_KIND_WRAPPER},
	{"literal_value", NC_KIND_LIST},
	{"composite_literal", NC_KIND_COMPOSITE},
	{"func_literal", NC_KIND_LAMBDA},
	{"short_var_declaration", NC_KIND_DECLARE_LIST},
	{"assignment_statement", NC_KIND_DECLARE_LIST},
	{"const_spec", NC_KIND_DECLARE_LIST},
	{"var_spec", NC_KIND_DECLARE_LIST},
	{"import_spec", NC_KIND_IMPORT},
	{"dot", NC_KIND_IMPORT_ALL},
	{"function_declaration", NC_KIND_FUNCTION},
	{"method_declaration", NC_KIND_LAMBDA},
	{"parameter_list", NC_KIND_PARAMETERS},
	{"parameter_declaration", NC_KIND_TYPED},
	{"if_statement", NC_KIND_BRANCH},
	{"expression_switch_statement", NC_KIND_BRANCH},
	{"type_switch_statement", NC_KIND_BRANCH},
	{"select_statement", NC_KIND_BRANCH},
	{"for_statement", NC_KIND_LOOP},
	{"return_statement", NC_KIND_RETURN},
	{0},
};

static const struct nc_name_rule names[] = {
	{"crypto/tls.Dial", NC_USE_CONNECT, NC_RULE_NETWORK, 1},
	{"encoding/gob.NewDecoder", NC_USE_NOTHING, NC_RULE_NONE, 0},
	{"golang.org/x/crypto/ssh.Dial", NC_USE_CONNECT, NC_RULE_REMOTE_ACCESS, 1},
	{"golang.org/x/sys/unix.Exec", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"golang.org/x/sys/unix.RawSyscall", NC_USE_NOTHING, NC_RULE_SYSCALL, 0},
	{"golang.org/x/sys/unix.Setns", NC_USE_NOTHING, NC_RULE_ESCAPE, 0},
	{"golang.org/x/sys/unix.Syscall", NC_USE_NOTHING, NC_RULE_SYSCALL, 0},
	{"io/ioutil.ReadDir", NC_USE_READ, NC_RULE_NONE, 0},
	{"io/ioutil.ReadFile", NC_USE_READ, NC_RULE_NONE, 0},
	{"io/ioutil.WriteFile", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"net.Dial", NC_USE_CONNECT, NC_RULE_NETWORK, 1},
	{"net.DialTCP", NC_USE_NOTHING, NC_RULE_NETWORK, 0},
	{"net.DialTimeout", NC_USE_CONNECT, NC_RULE_NETWORK, 1},
	{"net.Listen", NC_USE_LISTEN, NC_RULE_LISTEN, 0},
	{"net.ListenPacket", NC_USE_LISTEN, NC_RULE_LISTEN, 0},
	{"net.LookupHost", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"net/http.DefaultClient.Do", NC_USE_NOTHING, NC_RULE_NETWORK, 0},
	{"net/http.DefaultClient.Get", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"net/http.Get", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"net/http.Head", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"net/http.ListenAndServe", NC_USE_LISTEN, NC_RULE_LISTEN, 0},
	{"net/http.ListenAndServeTLS", NC_USE_LISTEN, NC_RULE_LISTEN, 0},
	{"net/http.NewRequest", NC_USE_CONNECT, NC_RULE_NETWORK, 1},
	{"net/http.NewRequestWithContext", NC_USE_CONNECT, NC_RULE_NETWORK, 2},
	{"net/http.Post", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"net/http.PostForm", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"os.Chmod", NC_USE_MODE, NC_RULE_NONE, 0},
	{"os.Chown", NC_USE_NOTHING, NC_RULE_PERMISSIONS, 0},
	{"os.Create", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"os.Mkdir", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"os.MkdirAll", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"os.Open", NC_USE_READ, NC_RULE_NONE, 0},
	{"os.OpenFile", NC_USE_READ, NC_RULE_NONE, 0},
	{"os.ReadDir", NC_USE_READ, NC_RULE_NONE, 0},
	{"os.ReadFile", NC_USE_READ, NC_RULE_NONE, 0},
	{"os.Remove", NC_USE_DELETE, NC_RULE_NONE, 0},
	{"os.RemoveAll", NC_USE_DELETE, NC_RULE_DELETE, 0},
	{"os.Rename", NC_USE_WRITE, NC_RULE_NONE, 1},
	{"os.StartProcess", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"os.Stat", NC_USE_READ, NC_RULE_NONE, 0},
	{"os.Symlink", NC_USE_WRITE, NC_RULE_NONE, 1},
	{"os.Truncate", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"os.WriteFile", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"os/exec.Command", NC_USE_WORDS, NC_RULE_NONE, 0},
	{"os/exec.CommandContext", NC_USE_WORDS, NC_RULE_NONE, 1},
	{"plugin.Open", NC_USE_READ, NC_RULE_NATIVE, 0},
	{"syscall.Chroot", NC_USE_NOTHING, NC_RULE_PRIVILEGE, 0},
	{"syscall.Exec", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"syscall.ForkExec", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"syscall.Kill", NC_USE_NOTHING, NC_RULE_KILL, 0},
	{"syscall.Mknod", NC_USE_NOTHING, NC_RULE_DEVICE, 0},
	{"syscall.Mount", NC_USE_NOTHING, NC_RULE_ADMIN, 0},
	{"syscall.PivotRoot", NC_USE_NOTHING, NC_RULE_ESCAPE, 0},
	{"syscall.PtraceAttach", NC_USE_NOTHING, NC_RULE_TRACE, 0},
	{"syscall.RawSyscall", NC_USE_NOTHING, NC_RULE_SYSCALL, 0},
	{"syscall.RawSyscall6", NC_USE_NOTHING, NC_RULE_SYSCALL, 0},
	{"syscall.Reboot", NC_USE_NOTHING, NC_RULE_ADMIN, 0},
	{"syscall.Setgid", NC_USE_NOTHING, NC_RULE_PRIVILEGE, 0},
	{"syscall.Setuid", NC_USE_NOTHING, NC_RULE_PRIVILEGE, 0},
	{"syscall.StartProcess", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"syscall.Syscall", NC_USE_NOTHING, NC_RULE_SYSCALL, 0},
	{"syscall.Syscall6", NC_USE_NOTHING, NC_RULE_SYSCALL, 0},
	{"syscall.Unshare", NC_USE_NOTHING, NC_RULE_PRIVILEGE, 0},
};

static const struct nc_name_rule imports[] = {
	{"C", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"crypto/tls", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"golang.org/x/crypto/ssh", NC_USE_CONNECT, NC_RULE_REMOTE_ACCESS, 0},
	{"golang.org/x/sys/unix", NC_USE_NOTHING, NC_RULE_UNSAFE, 0},
	{"net", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"net/http", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"net/rpc", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"net/smtp", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"os", NC_USE_NOTHING, NC_RULE_NONE, 0},
	{"os/exec", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"plugin", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"syscall", NC_USE_NOTHING, NC_RULE_UNSAFE, 0},
	{"unsafe", NC_USE_NOTHING, NC_RULE_UNSAFE, 0},
};

/* import . "os": every function that we have a rule for is there under its own name. */
static void import_all(struct nc_scan *scan, const char *package, size_t size)
{
	for (size_t i = 0; i < scan->analyser->n_names; i++) {
		const char *name = scan->analyser->names[i].name;

		if (strlen(name) > size + 1 && memcmp(name, package, size) == 0 &&
			name[size] == '.')
			nc_scan_bind(scan, name + size + 1, strlen(name + size + 1),
				nc_datum_name(&scan->data, name, strlen(name)));
	}
}

/* import x "a/b": x, or b, stands for the package. */
static void import_package(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t path = nc_tree_child(tree, node, NC_ROLE_MODULE);
	uint32_t alias = nc_tree_child(tree, node, NC_ROLE_NAME), size;
	const struct nc_datum *package;
	const char *text, *slash;

	if (!path || !nc_datum_is_plain(nc_scan_datum(scan, path)))
		return;
	package = nc_scan_datum(scan, path);
	nc_scan_import(scan, node, package->text, package->size, false);
	if (alias && tree->nodes[alias].kind == NC_KIND_IMPORT_ALL) {
		import_all(scan, package->text, package->size);
		return;
	}
	text = package->text;
	size = package->size;
	slash = memrchr(text, '/', size);
	if (slash) {
		size -= (uint32_t)(slash + 1 - text);
		text = slash + 1;
	}
	if (alias)
		text = nc_tree_text(tree, alias, &size);
	nc_scan_bind(scan, text, size, nc_datum_name(&scan->data, package->text, package->size));
}

/* A node of a list, or the only one: the first child where there is a list. */
static uint32_t first_of(const struct nc_tree *tree, uint32_t node)
{
	return tree->nodes[node].kind == NC_KIND_NONE && nc_tree_first(tree, node)
		       ? nc_tree_first(tree, node)
		       : node;
}

/* a, b := x, y */
static void declare(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t left = nc_tree_child(tree, node, NC_ROLE_LEFT);
	uint32_t right = nc_tree_child(tree, node, NC_ROLE_RIGHT);

	left = left ? left : nc_tree_child(tree, node, NC_ROLE_NAME);
	right = right ? right : nc_tree_child(tree, node, NC_ROLE_VALUE);
	if (!left || !right)
		return;
	left = first_of(tree, left);
	right = first_of(tree, right);
	while (left) {
		uint32_t size;
		const char *text = nc_tree_text(tree, left, &size);

		if (tree->nodes[left].kind == NC_KIND_IDENTIFIER)
			nc_scan_bind(scan, text, size, right ? tree->nodes[right].datum : 0);
		left = tree->nodes[left].role == NC_ROLE_NONE ? nc_tree_next(tree, left) : 0;
		right = right && tree->nodes[right].role == NC_ROLE_NONE ? nc_tree_next(tree, right)
									 : 0;
	}
}

/* fmt.Sprintf("%s%s", a, b) */
static uint32_t fold_format(struct nc_scan *scan, const struct nc_call *call)
{
	uint32_t items[NC_ARGUMENTS_MAX], count = 0;

	for (uint32_t i = 1; i < call->count; i++)
		items[count++] = nc_eval_argument_number(scan, call, i);
	if (nc_eval_argument(scan, call, 0)->kind != NC_DATUM_TEXT)
		return 0;
	return nc_texts_percent(scan, nc_eval_argument(scan, call, 0),
		nc_datum_list(&scan->data, NC_DATUM_LIST, items, count));
}

static uint32_t fold_call(
	struct nc_scan *scan, const struct nc_call *call, const struct nc_datum *function)
{
	const struct nc_datum *first = nc_eval_argument(scan, call, 0);

	if (nc_datum_is_name(function, "fmt.Sprintf"))
		return fold_format(scan, call);
	if (nc_datum_is_name(function, "strings.Join"))
		return nc_texts_join(scan, nc_eval_argument(scan, call, 1),
			nc_eval_argument_number(scan, call, 0));
	if (nc_datum_is_name(function, "path/filepath.Join") ||
		nc_datum_is_name(function, "path.Join"))
		return nc_texts_path(scan, call);
	if (nc_datum_is_name(function, "string") || nc_datum_is_name(function, "os.ExpandEnv"))
		return first->kind == NC_DATUM_LIST ? nc_texts_characters(scan, first)
						    : nc_eval_argument_number(scan, call, 0);
	if (nc_datum_is_name(function, "encoding/base64.StdEncoding.DecodeString") ||
		nc_datum_is_name(function, "encoding/base64.URLEncoding.DecodeString") ||
		nc_datum_is_name(function, "encoding/base64.RawStdEncoding.DecodeString"))
		return nc_texts_decode(scan, first, nc_decode_base64, true);
	if (nc_datum_is_name(function, "encoding/hex.DecodeString"))
		return nc_texts_decode(scan, first, nc_decode_hex, true);
	return 0;
}

static uint32_t fold_method(struct nc_scan *scan, const struct nc_call *call, uint32_t receiver,
	const char *method, size_t size)
{
	(void)scan;
	(void)call;
	(void)receiver;
	(void)method;
	(void)size;
	return 0;
}

static void leave(struct nc_scan *scan, uint32_t node)
{
	struct nc_tree *tree = &scan->tree;
	struct nc_node *at = &tree->nodes[node];
	uint32_t size, body;
	const char *text;

	nc_eval_leave(scan, node);
	switch (at->kind) {
	case NC_KIND_STRING_PART:
		/* `...` is what it looks like */
		if (tree->text[tree->nodes[at->parent].start] == '`') {
			text = nc_tree_text(tree, node, &size);
			at->datum = nc_datum_text(&scan->data, text, size);
		}
		break;
	case NC_KIND_COMPOSITE:
		body = nc_tree_child(tree, node, NC_ROLE_BODY);
		at->datum = body ? tree->nodes[body].datum : 0;
		break;
	case NC_KIND_DECLARE_LIST:
		declare(scan, node);
		break;
	case NC_KIND_IMPORT:
		import_package(scan, node);
		break;
	default:
		break;
	}
}

const struct nc_analyser nc_go = {
	.name = "go",
	.grammar = tree_sitter_go,
	.kinds = kinds,
	.names = names,
	.n_names = sizeof(names) / sizeof(names[0]),
	.imports = imports,
	.n_imports = sizeof(imports) / sizeof(imports[0]),
	.is_hoisted = true,
	.enter = nc_eval_enter,
	.leave = leave,
	.fold_call = fold_call,
	.fold_method = fold_method,
};
