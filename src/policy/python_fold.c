/* Python: how its texts and names are put together, as far as they can be told. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "policy/decode.h"
#include "policy/eval.h"
#include "policy/literal.h"
#include "policy/python.h"
#include "policy/texts.h"
#include "policy/use.h"

/* The numbers of "[a:b:c]" as they are written; unset ones stay. */
static bool read_slice(const char *text, size_t size, long long part[static 3], bool set[static 3])
{
	size_t at = 0, which = 0;

	while (at < size) {
		size_t length = 0;
		bool negative = text[at] == '-';

		if (text[at] == ':') {
			at++;
			if (++which > 2)
				return false;
			continue;
		}
		if (text[at] == ' ') {
			at++;
			continue;
		}
		at += negative;
		while (at + length < size && text[at + length] >= '0' && text[at + length] <= '9')
			length++;
		if (length == 0 || length > 9 ||
			nc_decode_number(text + at, length, &part[which]) < 0)
			return false;
		part[which] = negative ? -part[which] : part[which];
		set[which] = true;
		at += length;
	}
	return true;
}

/* An end of a slice, counted from the end if negative, within 0 and size. */
static long long clamp(long long at, long long size, long long least, long long most)
{
	if (at < 0)
		at += size;
	return at < least ? least : at > most ? most : at;
}

uint32_t nc_python_slice(struct nc_scan *scan, uint32_t object, uint32_t index)
{
	const struct nc_datum *from = nc_scan_datum(scan, object);
	long long part[3] = {0, 0, 1};
	bool set[3] = {false};
	uint32_t size, used = 0;
	const char *text = nc_tree_text(&scan->tree, index, &size);
	long long begin, end, all = from->size;
	char *out;

	if (!nc_datum_is_plain(from) || !read_slice(text, size, part, set) || part[2] == 0)
		return 0;
	begin = set[0] ? clamp(part[0], all, part[2] > 0 ? 0 : -1, part[2] > 0 ? all : all - 1)
		       : (part[2] > 0 ? 0 : all - 1);
	end = set[1] ? clamp(part[1], all, part[2] > 0 ? 0 : -1, part[2] > 0 ? all : all - 1)
		     : (part[2] > 0 ? all : -1);
	out = nc_arena_alloc(&scan->arena, from->size + 1);
	if (!out)
		return 0;
	for (long long i = begin; part[2] > 0 ? i < end : i > end; i += part[2])
		out[used++] = from->text[i];
	/* backwards is how names are hidden */
	return nc_datum_derive(&scan->data, out, used, from, part[2] != 1);
}

/* What "{...}" stands for: the next argument, one by number, or one by name. */
static uint32_t field(struct nc_scan *scan, const struct nc_call *call, const char *text,
	size_t size, uint32_t *next)
{
	char name[32] = "";
	const struct nc_datum *value;
	long long number;

	for (size_t i = 0; i < size; i++)
		if (text[i] == ':' || text[i] == '!')
			size = i;
	if (size == 0)
		return nc_texts_of(scan, nc_eval_argument_number(scan, call, (*next)++));
	if (nc_decode_number(text, size, &number) == 0)
		return number < NC_ARGUMENTS_MAX
			       ? nc_texts_of(scan,
					 nc_eval_argument_number(scan, call, (uint32_t)number))
			       : 0;
	if (size >= sizeof(name))
		return 0;
	memcpy(name, text, size);
	value = nc_eval_keyword(scan, call, name);
	return value->kind == NC_DATUM_TEXT ? nc_datum_add(&scan->data, *value) : 0;
}

/* "{}{0}{name}".format(...) */
static uint32_t format(
	struct nc_scan *scan, const struct nc_call *call, const struct nc_datum *text)
{
	uint32_t all = nc_datum_text(&scan->data, "", 0), next = 0;

	for (uint32_t i = 0; all && i < text->size;) {
		const char *open = memchr(text->text + i, '{', text->size - i);
		uint32_t plain = open ? (uint32_t)(open - text->text) - i : text->size - i;
		const char *close;

		all = nc_datum_concat(
			&scan->data, all, nc_datum_text(&scan->data, text->text + i, plain));
		i += plain + 1;
		if (!open || i >= text->size)
			break;
		close = memchr(text->text + i, '}', text->size - i);
		if (!close)
			break;
		all = nc_datum_concat(&scan->data, all,
			field(scan, call, text->text + i, (size_t)(close - text->text) - i, &next));
		i = (uint32_t)(close - text->text) + 1;
	}
	return all;
}

static ssize_t to_lower(const char *text, size_t size, char *out)
{
	for (size_t i = 0; i < size; i++)
		out[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]);
	return (ssize_t)size;
}

static ssize_t to_upper(const char *text, size_t size, char *out)
{
	for (size_t i = 0; i < size; i++)
		out[i] = (char)(text[i] >= 'a' && text[i] <= 'z' ? text[i] - 32 : text[i]);
	return (ssize_t)size;
}

static ssize_t to_swapped(const char *text, size_t size, char *out)
{
	for (size_t i = 0; i < size; i++)
		out[i] = (char)(text[i] >= 'a' && text[i] <= 'z'   ? text[i] - 32
				: text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32
								   : text[i]);
	return (ssize_t)size;
}

static ssize_t to_stripped(const char *text, size_t size, char *out)
{
	while (size > 0 && strchr(" \t\r\n", text[size - 1]))
		size--;
	while (size > 0 && strchr(" \t\r\n", *text)) {
		text++;
		size--;
	}
	memcpy(out, text, size);
	return (ssize_t)size;
}

static ssize_t to_same(const char *text, size_t size, char *out)
{
	memcpy(out, text, size);
	return (ssize_t)size;
}

/* Codecs by name, as codecs.decode() and str.decode() take them. */
static uint32_t decode_with(
	struct nc_scan *scan, const struct nc_datum *text, const struct nc_datum *codec)
{
	static const struct {
		const char *name;
		ssize_t (*decode)(const char *text, size_t size, char *out);
	} codecs[] = {
		{"rot13", nc_decode_rot13},
		{"rot_13", nc_decode_rot13},
		{"hex", nc_decode_hex},
		{"hex_codec", nc_decode_hex},
		{"base64", nc_decode_base64},
		{"base64_codec", nc_decode_base64},
		{"unicode_escape", nc_decode_escapes},
	};

	for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++)
		if (nc_datum_is_text(codec, codecs[i].name))
			return nc_texts_decode(scan, text, codecs[i].decode, true);
	return nc_texts_decode(scan, text, to_same, false);
}

/* Functions of one text that give another. */
static const struct {
	const char *name;
	ssize_t (*decode)(const char *text, size_t size, char *out);
	bool hides;
} decoders[] = {
	{"base64.b64decode", nc_decode_base64, true},
	{"base64.urlsafe_b64decode", nc_decode_base64, true},
	{"base64.standard_b64decode", nc_decode_base64, true},
	{"base64.decodebytes", nc_decode_base64, true},
	{"base64.b32decode", nc_decode_base32, true},
	{"base64.b16decode", nc_decode_hex, true},
	{"binascii.unhexlify", nc_decode_hex, true},
	{"binascii.a2b_hex", nc_decode_hex, true},
	{"binascii.a2b_base64", nc_decode_base64, true},
	{"bytes.fromhex", nc_decode_hex, true},
	{"bytearray.fromhex", nc_decode_hex, true},
	{"urllib.parse.unquote", nc_decode_percent, true},
	{"reversed", nc_decode_reverse, true},
	{"str", to_same, false},
	{"compile", to_same, false},
	{"textwrap.dedent", to_same, false},
	{"os.path.expanduser", to_same, false},
	{"os.path.abspath", to_same, false},
	{"os.path.normpath", to_same, false},
	{"os.fsencode", to_same, false},
	{"pathlib.Path", to_same, false},
	{"shlex.quote", to_same, false},
};

/* Functions that give back what they are given first. */
static const char *const wrappers[] = {"functools.partial", "staticmethod", "list", "tuple", "iter",
	"set", "asyncio.run", "vars", "copy.copy", "importlib.reload", NULL};

static uint32_t fold_decoder(
	struct nc_scan *scan, const struct nc_call *call, const struct nc_datum *function)
{
	const struct nc_datum *first = nc_eval_argument(scan, call, 0);

	for (size_t i = 0; i < sizeof(decoders) / sizeof(decoders[0]); i++)
		if (nc_datum_is_name(function, decoders[i].name)) {
			if (first->partial && !decoders[i].hides)
				return nc_eval_argument_number(scan, call, 0);
			return nc_texts_decode(scan, first, decoders[i].decode, decoders[i].hides);
		}
	for (const char *const *wrapper = wrappers; *wrapper; wrapper++)
		if (nc_datum_is_name(function, *wrapper))
			return nc_eval_argument_number(scan, call, 0);
	return 0;
}

/* A module that a text names. */
static uint32_t fold_import(
	struct nc_scan *scan, const struct nc_datum *name, const struct nc_datum *function)
{
	struct nc_datum module = *name;
	const char *dot;

	if (!nc_datum_is_plain(name) || name->size > NC_NAME_TEXT_MAX)
		return 0;
	dot = memchr(name->text, '.', name->size);
	if (dot && nc_datum_is_name(function, "__import__"))
		module.size = (uint32_t)(dot - name->text);
	module.kind = NC_DATUM_NAME;
	module.other = 0;
	return nc_datum_add(&scan->data, module);
}

static uint32_t fold_getattr(struct nc_scan *scan, const struct nc_call *call)
{
	const struct nc_datum *name = nc_eval_argument(scan, call, 1);

	if (name->kind == NC_DATUM_TEXT)
		nc_python_attribute(scan, call->node, name->text, name->size);
	return nc_eval_member_by_text(
		scan, call->node, nc_eval_argument_number(scan, call, 0), name);
}

static uint32_t fold_character(struct nc_scan *scan, const struct nc_datum *code)
{
	const uint32_t item = nc_datum_add(&scan->data, *code);
	const struct nc_datum list = {.kind = NC_DATUM_LIST, .size = 1, .items = &item};

	return code->kind == NC_DATUM_NUMBER ? nc_texts_characters(scan, &list) : 0;
}

/* ord("a"), int("61", 16) */
static uint32_t fold_number(struct nc_scan *scan, const struct nc_call *call, bool is_ord)
{
	const struct nc_datum *text = nc_eval_argument(scan, call, 0);
	const struct nc_datum *base = nc_eval_argument(scan, call, 1);
	char digits[32] = "0x";
	long long number;

	if (!nc_datum_is_plain(text) || text->size == 0 || text->size > 20)
		return 0;
	if (is_ord)
		return text->size == 1 ? nc_datum_number(&scan->data, (unsigned char)text->text[0])
				       : 0;
	memcpy(digits + 2, text->text, text->size);
	if (base->kind == NC_DATUM_NUMBER && (base->number == 8 || base->number == 2))
		digits[1] = base->number == 8 ? 'o' : 'b';
	if (base->kind == NC_DATUM_NUMBER && base->number != 10 && base->number != 0)
		return nc_decode_number(digits, text->size + 2, &number) == 0
			       ? nc_datum_number(&scan->data, number)
			       : 0;
	return nc_decode_number(text->text, text->size, &number) == 0
		       ? nc_datum_number(&scan->data, number)
		       : 0;
}

/* map(chr, [..]): the characters. */
static uint32_t fold_map(struct nc_scan *scan, const struct nc_call *call)
{
	if (nc_datum_is_name(nc_eval_argument(scan, call, 0), "chr"))
		return nc_texts_characters(scan, nc_eval_argument(scan, call, 1));
	return 0;
}

/* operator.attrgetter("system") is a function that takes that member of what it is given. */
#define GETTER "@member."
/* operator.methodcaller("system", ...) calls it as well. */
#define CALLER "@method."
_Static_assert(sizeof(GETTER) == sizeof(CALLER), "both are as long");

static uint32_t fold_getter(struct nc_scan *scan, const struct nc_datum *name, const char *which)
{
	const struct nc_datum getter = {
		.kind = NC_DATUM_NAME, .text = which, .size = sizeof(GETTER) - 2};

	return nc_datum_is_plain(name)
		       ? nc_datum_member(&scan->data, &getter, name->text, name->size)
		       : 0;
}

uint32_t nc_python_call(
	struct nc_scan *scan, const struct nc_call *call, const struct nc_datum *function)
{
	const struct nc_datum *first = nc_eval_argument(scan, call, 0);
	const size_t prefix = sizeof(GETTER) - 1;

	if (nc_datum_is_name(function, "getattr"))
		return fold_getattr(scan, call);
	if (nc_datum_is_name(function, "__import__") ||
		nc_datum_is_name(function, "importlib.import_module") ||
		nc_datum_is_name(function, "importlib.__import__"))
		return fold_import(scan, first, function);
	if (nc_datum_is_name(function, "chr"))
		return fold_character(scan, first);
	if (nc_datum_is_name(function, "ord") || nc_datum_is_name(function, "int"))
		return fold_number(scan, call, nc_datum_is_name(function, "ord"));
	if (nc_datum_is_name(function, "bytes") || nc_datum_is_name(function, "bytearray"))
		return first->kind == NC_DATUM_TEXT ? nc_eval_argument_number(scan, call, 0)
						    : nc_texts_characters(scan, first);
	if (nc_datum_is_name(function, "map"))
		return fold_map(scan, call);
	if (nc_datum_is_name(function, "os.path.join"))
		return nc_texts_path(scan, call);
	if (nc_datum_is_name(function, "codecs.decode") ||
		nc_datum_is_name(function, "codecs.encode"))
		return decode_with(scan, first, nc_eval_argument(scan, call, 1));
	if (nc_datum_is_name(function, "pathlib.Path.home"))
		return nc_datum_text(&scan->data, "~", 1);
	if (nc_datum_is_name(function, "operator.attrgetter"))
		return fold_getter(scan, first, GETTER);
	if (nc_datum_is_name(function, "operator.methodcaller"))
		return fold_getter(scan, first, CALLER);
	if (nc_datum_is_name(function, "shlex.split"))
		return nc_texts_split(scan, first, NULL);
	if (function->size > prefix && memcmp(function->text, GETTER, prefix) == 0)
		return nc_eval_member(scan, nc_eval_argument_number(scan, call, 0),
			function->text + prefix, function->size - prefix);
	if (function->size > prefix && memcmp(function->text, CALLER, prefix) == 0)
		nc_use_judge(scan, call->node, NULL,
			nc_eval_member(scan, nc_eval_argument_number(scan, call, 0),
				function->text + prefix, function->size - prefix));
	return fold_decoder(scan, call, function);
}

/* pathlib: what a path's methods do to the file. */
static void judge_path_method(struct nc_scan *scan, const struct nc_call *call,
	const struct nc_datum *path, const char *method)
{
	static const struct {
		const char *name;
		enum nc_access access;
	} methods[] = {
		{"read_text", NC_ACCESS_READ},
		{"read_bytes", NC_ACCESS_READ},
		{"iterdir", NC_ACCESS_READ},
		{"write_text", NC_ACCESS_WRITE},
		{"write_bytes", NC_ACCESS_WRITE},
		{"touch", NC_ACCESS_WRITE},
		{"unlink", NC_ACCESS_DELETE},
		{"rmdir", NC_ACCESS_DELETE},
	};

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (nc_streq(methods[i].name, method))
			nc_literal_judge(scan, call->node, path, methods[i].access);
}

uint32_t nc_python_method(struct nc_scan *scan, const struct nc_call *call, uint32_t receiver,
	const char *method, size_t size)
{
	const struct nc_datum *text = nc_datum(&scan->data, receiver);
	const struct nc_datum *first = nc_eval_argument(scan, call, 0);
	char name[16] = "";

	if (text->kind != NC_DATUM_TEXT || size >= sizeof(name))
		return 0;
	memcpy(name, method, size);
	judge_path_method(scan, call, text, name);
	if (nc_streq(name, "join"))
		return nc_texts_join(scan, text, nc_eval_argument_number(scan, call, 0));
	if (nc_streq(name, "joinpath"))
		return nc_datum_concat(&scan->data,
			nc_datum_concat(&scan->data, receiver, nc_datum_text(&scan->data, "/", 1)),
			nc_eval_argument_number(scan, call, 0));
	if (nc_streq(name, "format"))
		return format(scan, call, text);
	if (nc_streq(name, "replace"))
		return nc_texts_replace(scan, text, first, nc_eval_argument(scan, call, 1));
	if (nc_streq(name, "split"))
		return nc_texts_split(scan, text, call->count > 0 ? first : NULL);
	if (nc_streq(name, "decode") || nc_streq(name, "encode"))
		return text->partial ? receiver : decode_with(scan, text, first);
	if (nc_streq(name, "lower") || nc_streq(name, "casefold"))
		return nc_texts_decode(scan, text, to_lower, false);
	if (nc_streq(name, "upper"))
		return nc_texts_decode(scan, text, to_upper, false);
	if (nc_streq(name, "swapcase"))
		return nc_texts_decode(scan, text, to_swapped, true);
	if (nc_streq(name, "strip") || nc_streq(name, "rstrip") || nc_streq(name, "lstrip"))
		return nc_texts_decode(scan, text, to_stripped, false);
	if (nc_streq(name, "expanduser") || nc_streq(name, "resolve"))
		return receiver;
	return 0;
}

/* The elements that a comprehension runs over: of a list, or the bytes of a text. */
static uint32_t iterate_item(struct nc_scan *scan, const struct nc_datum *over, uint32_t i)
{
	return over->kind == NC_DATUM_LIST
		       ? over->items[i]
		       : nc_datum_derive(&scan->data, over->text + i, 1, over, false);
}

uint32_t nc_python_comprehension(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t body = nc_tree_child(tree, node, NC_ROLE_BODY);
	uint32_t clause = nc_tree_child_of_kind(tree, node, NC_KIND_FOR_CLAUSE);
	uint32_t left, right, size, *items;
	const struct nc_datum *over;
	const char *name;

	if (!body || !clause || nc_tree_next(tree, clause) || scan->unrolling)
		return 0;
	left = nc_tree_child(tree, clause, NC_ROLE_LEFT);
	right = nc_tree_child(tree, clause, NC_ROLE_RIGHT);
	if (!left || !right || tree->nodes[left].kind != NC_KIND_IDENTIFIER)
		return 0;
	over = nc_scan_datum(scan, right);
	if ((over->kind != NC_DATUM_LIST && !nc_datum_is_plain(over)) ||
		over->size > NC_LIST_ITEMS_MAX)
		return 0;
	items = nc_arena_alloc(&scan->arena, ((size_t)over->size + 1) * sizeof(*items));
	name = nc_tree_text(tree, left, &size);
	for (uint32_t i = 0; items && i < over->size; i++) {
		nc_scopes_bind(&scan->scopes, scan->scope, name, size, iterate_item(scan, over, i));
		items[i] = nc_eval_again(scan, body);
		if (!items[i])
			return 0;
	}
	return items ? nc_datum_list(&scan->data, NC_DATUM_LIST, items, over->size) : 0;
}
