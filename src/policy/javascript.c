/* JavaScript and TypeScript: names, modules, hidden texts. */
#include <string.h>

#include "base/text.h"
#include "policy/decode.h"
#include "policy/eval.h"
#include "policy/grammars.h"
#include "policy/spelling.h"
#include "policy/texts.h"
#include "policy/use.h"

static const struct nc_kind_name kinds[] = {
	{"comment", NC_KIND_COMMENT},
	{"html_comment", NC_KIND_COMMENT},
	{"hash_bang_line", NC_KIND_COMMENT},
	{"identifier", NC_KIND_IDENTIFIER},
	{"property_identifier", NC_KIND_IDENTIFIER},
	{"shorthand_property_identifier", NC_KIND_IDENTIFIER},
	{"shorthand_property_identifier_pattern", NC_KIND_IDENTIFIER},
	{"this", NC_KIND_IDENTIFIER},
	{"import", NC_KIND_IDENTIFIER},
	{"string", NC_KIND_STRING},
	{"template_string", NC_KIND_STRING},
	{"string_fragment", NC_KIND_STRING_PART},
	{"escape_sequence", NC_KIND_ESCAPE},
	{"template_substitution", NC_KIND_HOLE},
	{"number", NC_KIND_NUMBER},
	{"true", NC_KIND_TRUE},
	{"false", NC_KIND_FALSE},
	{"call_expression", NC_KIND_CALL},
	{"new_expression", NC_KIND_CALL},
	{"arguments", NC_KIND_ARGUMENTS},
	{"member_expression", NC_KIND_MEMBER},
	{"subscript_expression", NC_KIND_SUBSCRIPT},
	{"binary_expression", NC_KIND_BINARY},
	{"parenthesized_expression", NC_KIND_WRAPPER},
	{"await_expression", NC_KIND_WRAPPER},
	{"non_null_expression", NC_KIND_WRAPPER},
	/* what a type says stands beside the one child that has a value */
	{"as_expression", NC_KIND_CHOICE},
	{"satisfies_expression", NC_KIND_CHOICE},
	{"type_assertion", NC_KIND_CHOICE},
	{"ternary_expression", NC_KIND_CHOICE},
	{"sequence_expression", NC_KIND_CHOICE},
	{"array", NC_KIND_LIST},
	{"array_pattern", NC_KIND_LIST},
	{"object", NC_KIND_DICT},
	{"object_pattern", NC_KIND_DICT},
	{"pair", NC_KIND_PAIR},
	{"pair_pattern", NC_KIND_PAIR},
	{"assignment_expression", NC_KIND_ASSIGN},
	{"augmented_assignment_expression", NC_KIND_ASSIGN},
	{"variable_declarator", NC_KIND_DECLARE},
	{"import_statement", NC_KIND_IMPORT},
	{"import_require_clause", NC_KIND_IMPORT},
	{"import_clause", NC_KIND_IMPORT_LIST},
	{"named_imports", NC_KIND_IMPORT_LIST},
	{"import_specifier", NC_KIND_IMPORT_AS},
	{"namespace_import", NC_KIND_IMPORT_ALL},
	{"export_statement", NC_KIND_EXPORT},
	{"function_declaration", NC_KIND_FUNCTION},
	{"generator_function_declaration", NC_KIND_FUNCTION},
	{"method_definition", NC_KIND_LAMBDA},
	{"function_expression", NC_KIND_LAMBDA},
	{"generator_function", NC_KIND_LAMBDA},
	{"arrow_function", NC_KIND_LAMBDA},
	{"class_declaration", NC_KIND_CLASS},
	{"formal_parameters", NC_KIND_PARAMETERS},
	{"assignment_pattern", NC_KIND_TYPED},
	{"required_parameter", NC_KIND_TYPED},
	{"optional_parameter", NC_KIND_TYPED},
	{"if_statement", NC_KIND_BRANCH},
	{"switch_statement", NC_KIND_BRANCH},
	{"try_statement", NC_KIND_BRANCH},
	{"while_statement", NC_KIND_LOOP},
	{"do_statement", NC_KIND_LOOP},
	{"for_statement", NC_KIND_LOOP},
	{"for_in_statement", NC_KIND_LOOP},
	{"return_statement", NC_KIND_RETURN},
	{"expression_statement", NC_KIND_STATEMENT},
	{0},
};

/* What x.constructor is where x is not known: perhaps Function, if x is a function. */
#define SOME_CONSTRUCTOR "@constructor"
#define FUNCTION_PROTOTYPE "Function.prototype"

static const struct nc_name_rule names[] = {
	{SOME_CONSTRUCTOR, NC_USE_NOTHING, NC_RULE_BUILTINS, 0},
	{"AsyncFunction", NC_USE_CODE, NC_RULE_NONE, NC_LAST},
	{"Buffer.from()", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"Buffer.from().*", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"Bun.spawn", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"Deno.Command", NC_USE_WORDS, NC_RULE_NONE, 0},
	{"Deno.run", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"Function", NC_USE_CODE, NC_RULE_NONE, NC_LAST},
	{"GeneratorFunction", NC_USE_CODE, NC_RULE_NONE, NC_LAST},
	{"WebSocket", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"Worker", NC_USE_THREAD, NC_RULE_NONE, 0},
	{"XMLHttpRequest", NC_USE_NOTHING, NC_RULE_NETWORK, 0},
	{"_load", NC_USE_IMPORT, NC_RULE_NONE, 0},
	{"atob()", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"axios", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"axios.*", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"axios.create", NC_USE_NOTHING, NC_RULE_NONE, 0},
	{"child_process.exec", NC_USE_SHELL, NC_RULE_NONE, 0},
	{"child_process.execFile", NC_USE_WORDS, NC_RULE_NONE, 0},
	{"child_process.execFileSync", NC_USE_WORDS, NC_RULE_NONE, 0},
	{"child_process.execSync", NC_USE_SHELL, NC_RULE_NONE, 0},
	{"child_process.fork", NC_USE_READ, NC_RULE_RUN, 0},
	{"child_process.spawn", NC_USE_WORDS, NC_RULE_NONE, 0},
	{"child_process.spawnSync", NC_USE_WORDS, NC_RULE_NONE, 0},
	{"cluster.fork", NC_USE_FORK, NC_RULE_NONE, 0},
	{"constructor._load", NC_USE_IMPORT, NC_RULE_NONE, 0},
	{"crypto.createDecipheriv().*", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"dgram.createSocket", NC_USE_NOTHING, NC_RULE_NETWORK, 0},
	{"dns.lookup", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"dns.resolve", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"eval", NC_USE_CODE, NC_RULE_NONE, 0},
	{"execScript", NC_USE_CODE, NC_RULE_NONE, 0},
	{"execa", NC_USE_WORDS, NC_RULE_NONE, 0},
	{"execa.command", NC_USE_SHELL, NC_RULE_NONE, 0},
	{"execa.execa", NC_USE_WORDS, NC_RULE_NONE, 0},
	{"express().listen", NC_USE_LISTEN, NC_RULE_LISTEN, 0},
	{"fetch", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"fetch()", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"fetch().*", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"ffi-napi.Library", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"ffi.Library", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"fs-extra.remove", NC_USE_DELETE, NC_RULE_DELETE, 0},
	{"fs-extra.removeSync", NC_USE_DELETE, NC_RULE_DELETE, 0},
	{"fs.appendFile", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"fs.appendFileSync", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"fs.chmod", NC_USE_MODE, NC_RULE_NONE, 0},
	{"fs.chmodSync", NC_USE_MODE, NC_RULE_NONE, 0},
	{"fs.chown", NC_USE_NOTHING, NC_RULE_PERMISSIONS, 0},
	{"fs.chownSync", NC_USE_NOTHING, NC_RULE_PERMISSIONS, 0},
	{"fs.copyFile", NC_USE_WRITE, NC_RULE_NONE, 1},
	{"fs.copyFileSync", NC_USE_WRITE, NC_RULE_NONE, 1},
	{"fs.createReadStream", NC_USE_READ, NC_RULE_NONE, 0},
	{"fs.createWriteStream", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"fs.existsSync", NC_USE_READ, NC_RULE_NONE, 0},
	{"fs.mkdir", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"fs.mkdirSync", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"fs.open", NC_USE_READ, NC_RULE_NONE, 0},
	{"fs.openSync", NC_USE_READ, NC_RULE_NONE, 0},
	{"fs.promises.appendFile", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"fs.promises.chmod", NC_USE_MODE, NC_RULE_NONE, 0},
	{"fs.promises.copyFile", NC_USE_WRITE, NC_RULE_NONE, 1},
	{"fs.promises.mkdir", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"fs.promises.open", NC_USE_READ, NC_RULE_NONE, 0},
	{"fs.promises.readFile", NC_USE_READ, NC_RULE_NONE, 0},
	{"fs.promises.readdir", NC_USE_READ, NC_RULE_NONE, 0},
	{"fs.promises.rename", NC_USE_WRITE, NC_RULE_NONE, 1},
	{"fs.promises.rm", NC_USE_DELETE, NC_RULE_DELETE, 0},
	{"fs.promises.rmdir", NC_USE_DELETE, NC_RULE_DELETE, 0},
	{"fs.promises.unlink", NC_USE_DELETE, NC_RULE_NONE, 0},
	{"fs.promises.writeFile", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"fs.readFile", NC_USE_READ, NC_RULE_NONE, 0},
	{"fs.readFileSync", NC_USE_READ, NC_RULE_NONE, 0},
	{"fs.readdir", NC_USE_READ, NC_RULE_NONE, 0},
	{"fs.readdirSync", NC_USE_READ, NC_RULE_NONE, 0},
	{"fs.rename", NC_USE_WRITE, NC_RULE_NONE, 1},
	{"fs.renameSync", NC_USE_WRITE, NC_RULE_NONE, 1},
	{"fs.rm", NC_USE_DELETE, NC_RULE_DELETE, 0},
	{"fs.rmSync", NC_USE_DELETE, NC_RULE_DELETE, 0},
	{"fs.rmdir", NC_USE_DELETE, NC_RULE_DELETE, 0},
	{"fs.rmdirSync", NC_USE_DELETE, NC_RULE_DELETE, 0},
	{"fs.symlink", NC_USE_WRITE, NC_RULE_NONE, 1},
	{"fs.symlinkSync", NC_USE_WRITE, NC_RULE_NONE, 1},
	{"fs.unlink", NC_USE_DELETE, NC_RULE_NONE, 0},
	{"fs.unlinkSync", NC_USE_DELETE, NC_RULE_NONE, 0},
	{"fs.writeFile", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"fs.writeFileSync", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"got", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"got.*", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"http.createServer", NC_USE_LISTEN, NC_RULE_LISTEN, 0},
	{"http.get", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"http.request", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"http2.connect", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"https.createServer", NC_USE_LISTEN, NC_RULE_LISTEN, 0},
	{"https.get", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"https.request", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"import", NC_USE_IMPORT, NC_RULE_NONE, 0},
	{"importScripts", NC_USE_IMPORT, NC_RULE_NONE, 0},
	{"js-yaml.load", NC_USE_NOTHING, NC_RULE_NONE, 0},
	{"navigator.sendBeacon", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"net.Socket", NC_USE_NOTHING, NC_RULE_NETWORK, 0},
	{"net.Socket().connect", NC_USE_NOTHING, NC_RULE_NETWORK, 0},
	{"net.connect", NC_USE_NOTHING, NC_RULE_NETWORK, 0},
	{"net.createConnection", NC_USE_NOTHING, NC_RULE_NETWORK, 0},
	{"net.createServer", NC_USE_LISTEN, NC_RULE_LISTEN, 0},
	{"node-fetch", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"node-serialize.unserialize", NC_USE_NOTHING, NC_RULE_DESERIALISE, 0},
	{"process._linkedBinding", NC_USE_NOTHING, NC_RULE_INTROSPECT, 0},
	{"process.abort", NC_USE_NOTHING, NC_RULE_NONE, 0},
	{"process.binding", NC_USE_NOTHING, NC_RULE_INTROSPECT, 0},
	{"process.dlopen", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"process.getBuiltinModule", NC_USE_IMPORT, NC_RULE_NONE, 0},
	{"process.kill", NC_USE_NOTHING, NC_RULE_KILL, 0},
	{"process.seteuid", NC_USE_NOTHING, NC_RULE_PRIVILEGE, 0},
	{"process.setgid", NC_USE_NOTHING, NC_RULE_PRIVILEGE, 0},
	{"process.setuid", NC_USE_NOTHING, NC_RULE_PRIVILEGE, 0},
	{"raw-socket.*", NC_USE_NOTHING, NC_RULE_RAW_SOCKET, 0},
	{"require", NC_USE_IMPORT, NC_RULE_NONE, 0},
	{"rimraf", NC_USE_DELETE, NC_RULE_DELETE, 0},
	{"setTimeout", NC_USE_NOTHING, NC_RULE_NONE, 0},
	{"shelljs.exec", NC_USE_SHELL, NC_RULE_NONE, 0},
	{"ssh2.Client", NC_USE_NOTHING, NC_RULE_REMOTE_ACCESS, 0},
	{"tls.connect", NC_USE_NOTHING, NC_RULE_NETWORK, 0},
	{"undici.*", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"v8.deserialize", NC_USE_NOTHING, NC_RULE_DESERIALISE, 0},
	{"vm.Script", NC_USE_CODE, NC_RULE_NONE, 0},
	{"vm.compileFunction", NC_USE_CODE, NC_RULE_NONE, 0},
	{"vm.runInContext", NC_USE_CODE, NC_RULE_NONE, 0},
	{"vm.runInNewContext", NC_USE_CODE, NC_RULE_NONE, 0},
	{"vm.runInThisContext", NC_USE_CODE, NC_RULE_NONE, 0},
	{"worker_threads.Worker", NC_USE_THREAD, NC_RULE_NONE, 0},
	{"ws", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"zlib.brotliDecompressSync().*", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"zlib.gunzipSync", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"zlib.gunzipSync()", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"zlib.gunzipSync().*", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"zlib.inflateSync", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"zlib.inflateSync()", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"zlib.inflateSync().*", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"zx.$", NC_USE_SHELL, NC_RULE_NONE, 0},
};

static const struct nc_name_rule imports[] = {
	{"axios", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"child_process", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"cluster", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"dgram", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"execa", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"ffi", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"ffi-napi", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"fs", NC_USE_NOTHING, NC_RULE_NONE, 0},
	{"got", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"http", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"http2", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"https", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"inspector", NC_USE_NOTHING, NC_RULE_TRACE, 0},
	{"keytar", NC_USE_NOTHING, NC_RULE_CREDENTIALS, 0},
	{"net", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"node-fetch", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"node-serialize", NC_USE_NOTHING, NC_RULE_DESERIALISE, 0},
	{"os", NC_USE_NOTHING, NC_RULE_NONE, 0},
	{"process", NC_USE_NOTHING, NC_RULE_NONE, 0},
	{"raw-socket", NC_USE_CONNECT, NC_RULE_RAW_SOCKET, 0},
	{"ref-napi", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"repl", NC_USE_NOTHING, NC_RULE_EVAL, 0},
	{"shelljs", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"ssh2", NC_USE_CONNECT, NC_RULE_REMOTE_ACCESS, 0},
	{"tls", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"undici", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"vm", NC_USE_NOTHING, NC_RULE_EVAL, 0},
	{"vm2", NC_USE_NOTHING, NC_RULE_EVAL, 0},
	{"worker_threads", NC_USE_THREAD, NC_RULE_NONE, 0},
	{"ws", NC_USE_CONNECT, NC_RULE_NONE, 0},
};

static const char *const transparent[] = {"globalThis.", "global.", "window.", "self.", "this.",
	"process.mainModule.", "module.", "require.main.", NULL};

/* "node:fs" is "fs", "fs/promises" is fs.promises. */
static uint32_t module_name(struct nc_scan *scan, const struct nc_datum *text)
{
	struct nc_datum module = *text;

	if (!nc_datum_is_plain(text) || text->size > NC_NAME_TEXT_MAX)
		return 0;
	module.kind = NC_DATUM_NAME;
	module.other = 0;
	if (module.size > 5 && memcmp(module.text, "node:", 5) == 0) {
		module.text += 5;
		module.size -= 5;
	}
	if (module.size == 11 && memcmp(module.text, "fs/promises", 11) == 0)
		module.text = "fs.promises";
	return nc_datum_add(&scan->data, module);
}

static void import_module(struct nc_scan *scan, uint32_t node, uint32_t module)
{
	const struct nc_datum *name = nc_datum(&scan->data, module);

	if (name->kind == NC_DATUM_NAME)
		nc_scan_import(scan, node, name->text, name->size, name->built || name->decoded);
}

/* import a, {b, c as d} from "x"; import * as e from "x". */
static void import_statement(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t source = nc_tree_child(tree, node, NC_ROLE_MODULE), module;

	if (!source)
		return;
	module = module_name(scan, nc_scan_datum(scan, source));
	import_module(scan, source, module);
	for (uint32_t i = node + 1; i < tree->nodes[node].next; i++) {
		uint32_t name, alias, size, alias_size;
		const char *text, *alias_text;

		if (tree->nodes[i].kind == NC_KIND_IMPORT_AS) {
			name = nc_tree_child(tree, i, NC_ROLE_NAME);
			alias = nc_tree_child(tree, i, NC_ROLE_ALIAS);
			if (!name)
				continue;
			text = nc_tree_text(tree, name, &size);
			alias_text = nc_tree_text(tree, alias ? alias : name, &alias_size);
			nc_scan_bind(scan, alias_text, alias_size,
				nc_eval_member(scan, module, text, size));
		} else if (tree->nodes[i].kind == NC_KIND_IDENTIFIER &&
			   (tree->nodes[i].parent == node || /* import a = require("x") */
				   tree->nodes[tree->nodes[i].parent].kind == NC_KIND_IMPORT_LIST ||
				   tree->nodes[tree->nodes[i].parent].kind == NC_KIND_IMPORT_ALL)) {
			text = nc_tree_text(tree, i, &size);
			nc_scan_bind(scan, text, size, module);
		}
	}
}

/* Functions of one text that give another. */
static const struct {
	const char *name;
	ssize_t (*decode)(const char *text, size_t size, char *out);
	bool hides;
} decoders[] = {
	{"atob", nc_decode_base64, true},
	{"decodeURIComponent", nc_decode_percent, true},
	{"decodeURI", nc_decode_percent, true},
	{"unescape", nc_decode_percent, true},
};

/* Functions that give back what they are given first. */
static const char *const wrappers[] = {"util.promisify", "promisify", "String", "Array.from",
	"Object.freeze", "path.resolve", "path.normalize", "encodeURI", NULL};

/* Buffer.from(text, "base64"), Buffer.from([1, 2]) */
static uint32_t fold_buffer(struct nc_scan *scan, const struct nc_call *call)
{
	const struct nc_datum *first = nc_eval_argument(scan, call, 0);
	const struct nc_datum *form = nc_eval_argument(scan, call, 1);

	if (first->kind == NC_DATUM_LIST)
		return nc_texts_characters(scan, first);
	if (nc_datum_is_text(form, "base64") || nc_datum_is_text(form, "base64url"))
		return nc_texts_decode(scan, first, nc_decode_base64, true);
	if (nc_datum_is_text(form, "hex"))
		return nc_texts_decode(scan, first, nc_decode_hex, true);
	return first->kind == NC_DATUM_TEXT ? nc_eval_argument_number(scan, call, 0) : 0;
}

/* String.fromCharCode(1, 2, 3) */
static uint32_t fold_characters(struct nc_scan *scan, const struct nc_call *call)
{
	uint32_t items[NC_ARGUMENTS_MAX];
	struct nc_datum list = {.kind = NC_DATUM_LIST, .size = call->count, .items = items};

	for (uint32_t i = 0; i < call->count; i++)
		items[i] = nc_eval_argument_number(scan, call, i);
	return nc_texts_characters(scan, &list);
}

static uint32_t fold_number(struct nc_scan *scan, const struct nc_call *call)
{
	const struct nc_datum *text = nc_eval_argument(scan, call, 0);
	const struct nc_datum *base = nc_eval_argument(scan, call, 1);
	char digits[24] = "0x";
	long long number;
	bool hex = base->kind == NC_DATUM_NUMBER && base->number == 16;

	if (!nc_datum_is_plain(text) || text->size == 0 || text->size > 16)
		return 0;
	memcpy(digits + 2, text->text, text->size);
	return nc_decode_number(hex ? digits : digits + 2, text->size + (hex ? 2U : 0U), &number) ==
			       0
		       ? nc_datum_number(&scan->data, number)
		       : 0;
}

static uint32_t fold_known(
	struct nc_scan *scan, const struct nc_call *call, const struct nc_datum *function)
{
	const struct nc_datum *first = nc_eval_argument(scan, call, 0);

	for (size_t i = 0; i < sizeof(decoders) / sizeof(decoders[0]); i++)
		if (nc_datum_is_name(function, decoders[i].name))
			return nc_texts_decode(scan, first, decoders[i].decode, decoders[i].hides);
	for (const char *const *wrapper = wrappers; *wrapper; wrapper++)
		if (nc_datum_is_name(function, *wrapper))
			return nc_eval_argument_number(scan, call, 0);
	return 0;
}

/* Whether it is a function, or something global, all of which are or have functions. */
static bool is_function(const struct nc_datum *datum)
{
	return datum->kind == NC_DATUM_OWN ||
	       (datum->kind == NC_DATUM_NAME && datum->text[datum->size - 1] != ')' &&
		       datum->text[0] != '@');
}

/* Functions inherit from Function.prototype, whose constructor makes functions of texts. */
static uint32_t prototype_of(struct nc_scan *scan, const struct nc_datum *of)
{
	return is_function(of) ? nc_datum_name(&scan->data, FUNCTION_PROTOTYPE,
					 sizeof(FUNCTION_PROTOTYPE) - 1)
			       : 0;
}

/* What x.constructor is: Function, if x is a function, or the constructor of another. */
static uint32_t constructor_of(struct nc_scan *scan, uint32_t node, uint32_t object)
{
	static const char prototype[] = ".prototype";
	const struct nc_tree *tree = &scan->tree;
	const struct nc_datum *of = nc_scan_datum(scan, object);
	uint32_t inner = nc_tree_child(tree, object, NC_ROLE_ATTRIBUTE);
	size_t tail = sizeof(prototype) - 1;

	if (of->kind == NC_DATUM_OWN || nc_datum_is_name(of, FUNCTION_PROTOTYPE) ||
		nc_datum_is_name(of, SOME_CONSTRUCTOR) ||
		(inner && nc_tree_is(tree, inner, "constructor"))) {
		nc_scan_find(scan, NC_RULE_INTROSPECT, node, "constructor", 11);
		return nc_datum_name(&scan->data, "Function", 8);
	}
	if (of->kind == NC_DATUM_NAME && of->size > tail &&
		memcmp(of->text + of->size - tail, prototype, tail) == 0)
		return nc_datum_name(&scan->data, of->text, of->size - tail);
	return is_function(of)
		       ? nc_datum_name(&scan->data, "Function", 8)
		       : nc_datum_name(&scan->data, SOME_CONSTRUCTOR, sizeof(SOME_CONSTRUCTOR) - 1);
}

/* Whoever lists the names that a global's prototype has finds "constructor" without writing it. */
static void judge_listing(struct nc_scan *scan, const struct nc_call *call,
	const struct nc_datum *function, const struct nc_datum *of)
{
	static const char *const listings[] = {"Object.getOwnPropertyNames",
		"Object.getOwnPropertyDescriptors", "Reflect.ownKeys"};

	static const char prototype[] = ".prototype";
	const size_t tail = sizeof(prototype) - 1;

	if (of->kind != NC_DATUM_NAME || of->size <= tail ||
		memcmp(of->text + of->size - tail, prototype, tail) != 0)
		return;
	for (size_t i = 0; i < sizeof(listings) / sizeof(listings[0]); i++)
		if (nc_datum_is_name(function, listings[i]))
			nc_scan_find(scan, NC_RULE_INTROSPECT, call->node, "constructor", 11);
}

static uint32_t fold_call(
	struct nc_scan *scan, const struct nc_call *call, const struct nc_datum *function)
{
	const struct nc_datum *first = nc_eval_argument(scan, call, 0);

	judge_listing(scan, call, function, first);
	if (nc_datum_is_name(function, "require") || nc_datum_is_name(function, "import") ||
		nc_datum_is_name(function, "constructor._load") ||
		nc_datum_is_name(function, "_load") || /* "module." is transparent */
		nc_datum_is_name(function, "process.getBuiltinModule"))
		return module_name(scan, first);
	if (nc_datum_is_name(function, "createRequire"))
		return nc_datum_name(&scan->data, "require", 7);
	if (nc_datum_is_name(function, "String.fromCharCode") ||
		nc_datum_is_name(function, "String.fromCodePoint"))
		return fold_characters(scan, call);
	if (nc_datum_is_name(function, "Buffer.from") || nc_datum_is_name(function, "Buffer"))
		return fold_buffer(scan, call);
	if (nc_datum_is_name(function, "path.join") || nc_datum_is_name(function, "path.resolve"))
		return nc_texts_path(scan, call);
	if (nc_datum_is_name(function, "os.homedir"))
		return nc_datum_text(&scan->data, "~", 1);
	if (nc_datum_is_name(function, "parseInt") || nc_datum_is_name(function, "Number"))
		return fold_number(scan, call);
	if (nc_datum_is_name(function, "Reflect.get") &&
		nc_datum_is_text(nc_eval_argument(scan, call, 1), "constructor"))
		return constructor_of(scan, call->node, call->count > 0 ? call->argument[0] : 0);
	if (nc_datum_is_name(function, "Reflect.get"))
		return nc_eval_member_by_text(scan, call->node,
			nc_eval_argument_number(scan, call, 0), nc_eval_argument(scan, call, 1));
	if (nc_datum_is_name(function, "Object.getPrototypeOf") ||
		nc_datum_is_name(function, "Reflect.getPrototypeOf"))
		return prototype_of(scan, first);
	return fold_known(scan, call, function);
}

/* The characters of a text. */
static uint32_t characters(struct nc_scan *scan, const struct nc_datum *text)
{
	uint32_t *items;

	if (text->size > NC_LIST_ITEMS_MAX)
		return 0;
	items = nc_arena_alloc(&scan->arena, ((size_t)text->size + 1) * sizeof(*items));
	for (uint32_t i = 0; items && i < text->size; i++)
		items[i] = nc_datum_derive(&scan->data, text->text + i, 1, text, false);
	return items ? nc_datum_list(&scan->data, NC_DATUM_LIST, items, text->size) : 0;
}

static uint32_t reverse(struct nc_scan *scan, const struct nc_datum *list)
{
	struct nc_datum turned = *list;
	uint32_t *items = nc_arena_alloc(&scan->arena, ((size_t)list->size + 1) * sizeof(*items));

	for (uint32_t i = 0; items && i < list->size; i++)
		items[i] = list->items[list->size - 1 - i];
	turned.items = items;
	turned.decoded = true; /* backwards is how names are hidden */
	return items ? nc_datum_add(&scan->data, turned) : 0;
}

/* list.map(x => f(x)): worked out element by element. */
static uint32_t map(struct nc_scan *scan, const struct nc_call *call, const struct nc_datum *list)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t function = call->count > 0 ? call->argument[0] : 0;
	uint32_t body, name, size, *items;
	const char *text;

	if (!function || scan->unrolling || tree->nodes[function].kind != NC_KIND_LAMBDA)
		return 0;
	body = nc_tree_child(tree, function, NC_ROLE_BODY);
	name = nc_tree_child(tree, function, NC_ROLE_PARAMETERS);
	if (name && tree->nodes[name].kind == NC_KIND_PARAMETERS)
		name = nc_tree_first(tree, name);
	if (!body || !name || tree->nodes[name].kind != NC_KIND_IDENTIFIER)
		return 0;
	text = nc_tree_text(tree, name, &size);
	items = nc_arena_alloc(&scan->arena, ((size_t)list->size + 1) * sizeof(*items));
	for (uint32_t i = 0; items && i < list->size; i++) {
		nc_scopes_bind(&scan->scopes, scan->scope, text, size, list->items[i]);
		items[i] = nc_eval_again(scan, body);
		if (!items[i])
			return 0;
	}
	return items ? nc_datum_list(&scan->data, NC_DATUM_LIST, items, list->size) : 0;
}

static uint32_t list_method(struct nc_scan *scan, const struct nc_call *call, uint32_t receiver,
	const struct nc_datum *list, const char *name)
{
	static const struct nc_datum nothing = {.kind = NC_DATUM_TEXT, .text = "", .size = 0};
	static const struct nc_datum comma = {.kind = NC_DATUM_TEXT, .text = ",", .size = 1};
	const struct nc_datum *first = nc_eval_argument(scan, call, 0);

	if (nc_streq(name, "join"))
		return nc_texts_join(scan,
			call->count == 0	       ? &comma
			: first->kind == NC_DATUM_TEXT ? first
						       : &nothing,
			receiver);
	if (nc_streq(name, "reverse"))
		return reverse(scan, list);
	if (nc_streq(name, "map"))
		return map(scan, call, list);
	return 0;
}

static ssize_t to_lower(const char *text, size_t size, char *out)
{
	for (size_t i = 0; i < size; i++)
		out[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]);
	return (ssize_t)size;
}

static uint32_t text_method(struct nc_scan *scan, const struct nc_call *call, uint32_t receiver,
	const struct nc_datum *text, const char *name)
{
	const struct nc_datum *first = nc_eval_argument(scan, call, 0);

	if (nc_streq(name, "split") && first->kind == NC_DATUM_TEXT && first->size == 0)
		return characters(scan, text);
	if (nc_streq(name, "split"))
		return nc_texts_split(scan, text, first);
	if (nc_streq(name, "concat"))
		return nc_datum_concat(
			&scan->data, receiver, nc_eval_argument_number(scan, call, 0));
	if (nc_streq(name, "toLowerCase"))
		return nc_texts_decode(scan, text, to_lower, false);
	if (nc_streq(name, "charAt") || nc_streq(name, "at"))
		return nc_eval_element(scan, receiver, first);
	if (nc_streq(name, "toString") || nc_streq(name, "trim") || nc_streq(name, "valueOf"))
		return receiver;
	return 0;
}

static uint32_t fold_method(struct nc_scan *scan, const struct nc_call *call, uint32_t receiver,
	const char *method, size_t size)
{
	const struct nc_datum *object = nc_datum(&scan->data, receiver);
	char name[16] = "";

	if (size >= sizeof(name))
		return 0;
	memcpy(name, method, size);
	if (object->kind == NC_DATUM_LIST)
		return list_method(scan, call, receiver, object, name);
	if (object->kind == NC_DATUM_TEXT)
		return text_method(scan, call, receiver, object, name);
	return 0;
}

/* this.constructor, which classes use, module.constructor, and what is assigned to. */
static bool is_ones_own(const struct nc_tree *tree, uint32_t node, uint32_t object)
{
	return nc_tree_is(tree, object, "this") || nc_tree_is(tree, object, "module") ||
	       tree->nodes[node].role == NC_ROLE_LEFT;
}

/* arguments.callee, f.caller: who is on the stack. */
static bool is_stack(const struct nc_tree *tree, uint32_t object)
{
	uint32_t name = nc_tree_child(tree, object, NC_ROLE_ATTRIBUTE);

	return name && (nc_tree_is(tree, name, "callee") || nc_tree_is(tree, name, "caller"));
}

/*
 * Names that lead to what is on the stack, however they are written: prepareStackTrace gets call
 * sites, with functions and objects of Node's own.
 */
static void judge_name(struct nc_scan *scan, uint32_t node, const char *text, size_t size)
{
	static const char stack[] = "prepareStackTrace";

	if (size == sizeof(stack) - 1 && memcmp(text, stack, size) == 0)
		nc_scan_find(scan, NC_RULE_INTROSPECT, node, text, size);
}

/* Object.getOwnPropertyDescriptor(x, "constructor") and its like. */
static void judge_argument(struct nc_scan *scan, uint32_t node, const struct nc_datum *text)
{
	uint32_t arguments = nc_scan_node(scan, node)->parent;
	uint32_t call = nc_scan_node(scan, arguments)->parent, function;
	const struct nc_datum *called;

	judge_name(scan, node, text->text, text->size);
	if (!nc_datum_is_text(text, "constructor") ||
		nc_scan_node(scan, arguments)->kind != NC_KIND_ARGUMENTS)
		return;
	function = nc_tree_child(&scan->tree, call, NC_ROLE_FUNCTION);
	called = nc_datum(&scan->data, function ? nc_scan_node(scan, function)->datum : 0);
	if (called->kind == NC_DATUM_NAME &&
		((called->size > 7 && memcmp(called->text, "Object.", 7) == 0) ||
			(called->size > 8 && memcmp(called->text, "Reflect.", 8) == 0)))
		nc_scan_find_datum(scan, NC_RULE_BUILTINS, node, text);
}

/* x["constructor"], also with a name that is put together. */
static void leave_subscript(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t object = nc_tree_child(tree, node, NC_ROLE_OBJECT);
	uint32_t index = nc_tree_child(tree, node, NC_ROLE_INDEX);

	if (!object || !index || !nc_datum_is_text(nc_scan_datum(scan, index), "constructor") ||
		is_ones_own(tree, node, object))
		return;
	tree->nodes[node].datum = constructor_of(scan, node, object);
}

/* const {constructor: F} = x */
static void leave_pattern(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t left = nc_tree_child(tree, node, NC_ROLE_LEFT);
	uint32_t right = nc_tree_child(tree, node, NC_ROLE_RIGHT);

	left = left ? left : nc_tree_child(tree, node, NC_ROLE_NAME);
	right = right ? right : nc_tree_child(tree, node, NC_ROLE_VALUE);
	if (!left || !right || tree->nodes[left].kind != NC_KIND_DICT)
		return;
	for (uint32_t child = nc_tree_first(tree, left); child; child = nc_tree_next(tree, child)) {
		uint32_t key = nc_tree_child(tree, child, NC_ROLE_KEY);
		uint32_t value = nc_tree_child(tree, child, NC_ROLE_VALUE);

		if (nc_tree_is(tree, key ? key : child, "constructor"))
			nc_eval_assign(
				scan, value ? value : child, constructor_of(scan, node, right));
	}
}

/* Members that lead to Function, or hand a function on. */
static void leave_member(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t object = nc_tree_child(tree, node, NC_ROLE_OBJECT);
	uint32_t name = nc_tree_child(tree, node, NC_ROLE_ATTRIBUTE);

	if (!object || !name)
		return;
	if (nc_tree_is(tree, name, "constructor") && !is_ones_own(tree, node, object))
		tree->nodes[node].datum = constructor_of(scan, node, object);
	if (nc_tree_is(tree, name, "__proto__")) {
		nc_scan_find(scan, NC_RULE_BUILTINS, node, "__proto__", 9);
		tree->nodes[node].datum = prototype_of(scan, nc_scan_datum(scan, object));
	}
	/* a function's caller, and what it was called with: require, if it is a module's */
	if ((nc_tree_is(tree, name, "caller") || nc_tree_is(tree, name, "arguments")) &&
		(nc_scan_datum(scan, object)->kind == NC_DATUM_OWN || is_stack(tree, object)))
		nc_scan_find(scan, NC_RULE_INTROSPECT, node, "caller", 6);
	if (nc_tree_is(tree, name, "call") || nc_tree_is(tree, name, "apply"))
		nc_use_judge(scan, node, NULL, tree->nodes[object].datum);
	if (nc_tree_is(tree, name, "bind") || nc_tree_is(tree, name, "default"))
		tree->nodes[node].datum = tree->nodes[object].datum;
}

/* import("data:text/javascript,CODE"), also with ";base64" in front of the comma. */
static void judge_data_url(struct nc_scan *scan, uint32_t node, const struct nc_datum *url)
{
	const char *comma =
		nc_datum_is_plain(url) && url->size > 5 && memcmp(url->text, "data:", 5) == 0
			? memchr(url->text, ',', url->size)
			: NULL;
	struct nc_datum code = *url;
	bool hidden;

	if (!comma)
		return;
	hidden = memmem(url->text, (size_t)(comma - url->text), ";base64", 7);
	code.size -= (uint32_t)(comma + 1 - code.text);
	code.text = comma + 1;
	code = *nc_datum(
		&scan->data, nc_texts_decode(scan, &code,
				     hidden ? nc_decode_base64 : nc_decode_percent, hidden));
	nc_scan_find_datum(scan, hidden ? NC_RULE_EVAL_DECODED : NC_RULE_EVAL, node, &code);
	nc_scan_queue(scan, scan->job->language, node, &code, false);
}

/* Whether the options of a worker say that its first argument is code: {eval: true}. */
static bool says_eval(const struct nc_tree *tree, uint32_t options)
{
	uint32_t size;
	const char *text = options ? nc_tree_text(tree, options, &size) : NULL;

	return text && size <= NC_NAME_TEXT_MAX && memmem(text, size, "eval", 4);
}

/* Whether a call runs the text that it is given first, beside those that the tables name. */
static bool runs_text(struct nc_scan *scan, uint32_t function, uint32_t first)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t name = nc_tree_child(tree, function, NC_ROLE_ATTRIBUTE);

	if (nc_tree_is(tree, function, "setTimeout") || nc_tree_is(tree, function, "setInterval"))
		return true;
	/* every function's constructor is Function; that of a class of one's own is called by new
	 */
	if (name && nc_tree_is(tree, name, "constructor"))
		return tree->text[tree->nodes[tree->nodes[function].parent].start] != 'n';
	return (nc_datum_is_name(nc_scan_datum(scan, function), "worker_threads.Worker") ||
		       nc_tree_is(tree, function, "Worker")) &&
	       says_eval(tree, nc_tree_next(tree, first));
}

static void leave_call(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t function = nc_tree_child(tree, node, NC_ROLE_FUNCTION);
	uint32_t arguments = nc_tree_child(tree, node, NC_ROLE_ARGUMENTS);
	uint32_t first = arguments ? nc_tree_first(tree, arguments) : 0;

	if (!function || !first || nc_scan_datum(scan, first)->kind != NC_DATUM_TEXT)
		return;
	if (nc_tree_is(tree, function, "import"))
		judge_data_url(scan, node, nc_scan_datum(scan, first));
	if (runs_text(scan, function, first)) {
		nc_scan_find_datum(scan, NC_RULE_EVAL, node, nc_scan_datum(scan, first));
		nc_scan_queue(scan, scan->job->language, node, nc_scan_datum(scan, first), false);
	}
}

/* import("x").then(m => ...): the module is what the function gets. */
static void bind_promised(struct nc_scan *scan, uint32_t parameters)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t arguments = tree->nodes[tree->nodes[parameters].parent].parent;
	uint32_t call = tree->nodes[arguments].parent;
	uint32_t function = nc_tree_child(tree, call, NC_ROLE_FUNCTION);
	uint32_t name = function ? nc_tree_child(tree, function, NC_ROLE_ATTRIBUTE) : 0;
	uint32_t object = function ? nc_tree_child(tree, function, NC_ROLE_OBJECT) : 0;
	uint32_t to = parameters;

	if (tree->nodes[arguments].kind != NC_KIND_ARGUMENTS || !name || !object ||
		!nc_tree_is(tree, name, "then") ||
		nc_scan_datum(scan, object)->kind != NC_DATUM_NAME)
		return;
	if (tree->nodes[to].kind == NC_KIND_PARAMETERS)
		to = nc_tree_first(tree, to);
	if (to)
		nc_eval_assign(scan, to, tree->nodes[object].datum);
}

static void leave(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t source, size;
	const char *text;

	nc_eval_leave(scan, node);
	switch (tree->nodes[node].kind) {
	case NC_KIND_MEMBER:
		leave_member(scan, node);
		break;
	case NC_KIND_SUBSCRIPT:
		leave_subscript(scan, node);
		break;
	case NC_KIND_ASSIGN:
	case NC_KIND_DECLARE:
		leave_pattern(scan, node);
		break;
	case NC_KIND_STRING:
	case NC_KIND_BINARY:
		if (nc_scan_datum(scan, node)->kind == NC_DATUM_TEXT)
			judge_argument(scan, node, nc_scan_datum(scan, node));
		break;
	case NC_KIND_CALL:
		leave_call(scan, node);
		break;
	case NC_KIND_PARAMETERS:
		bind_promised(scan, node);
		break;
	case NC_KIND_IDENTIFIER:
		text = nc_tree_text(tree, node, &size);
		judge_name(scan, node, text, size);
		if (tree->nodes[node].role == NC_ROLE_PARAMETERS)
			bind_promised(scan, node);
		break;
	case NC_KIND_IMPORT:
		import_statement(scan, node);
		break;
	case NC_KIND_EXPORT:
		source = nc_tree_child(tree, node, NC_ROLE_MODULE);
		if (source)
			import_module(scan, source, module_name(scan, nc_scan_datum(scan, source)));
		break;
	default:
		break;
	}
}

#define JAVASCRIPT(own_name, own_grammar)                                                          \
	.name = (own_name), .grammar = (own_grammar), .kinds = kinds, .names = names,              \
	.n_names = sizeof(names) / sizeof(names[0]), .imports = imports,                           \
	.n_imports = sizeof(imports) / sizeof(imports[0]), .transparent = transparent,             \
	.is_hoisted = true, .enter = nc_eval_enter, .leave = leave, .fold_call = fold_call,        \
	.fold_method = fold_method, .spell = nc_spell_javascript,

/* Types say nothing about what a program does; their grammar has all of JavaScript's nodes. */
const struct nc_analyser nc_javascript = {JAVASCRIPT("javascript", tree_sitter_javascript)};
const struct nc_analyser nc_typescript = {JAVASCRIPT("typescript", tree_sitter_typescript)};
