/* What is common to languages with expressions: folding, names, calls. */
#include "policy/eval.h"

#include <errno.h>
#include <string.h>

#include "policy/decode.h"
#include "policy/lists.h"
#include "policy/literal.h"
#include "policy/texts.h"
#include "policy/use.h"

/* Takes away what leads to a module through another: "platform.os.system" is "os.system". */
static void strip_outer(const struct nc_scan *scan, const char **text, size_t *size)
{
	const char *end = *text + *size, *dot;

	while ((dot = memchr(*text, '.', (size_t)(end - *text)))) {
		const char *next = memchr(dot + 1, '.', (size_t)(end - dot - 1));
		size_t length = (size_t)((next ? next : end) - dot - 1);
		const char *const *inner = scan->analyser->inner_modules;

		while (*inner && (strlen(*inner) != length || memcmp(*inner, dot + 1, length) != 0))
			inner++;
		/* socket.socket is a class, and f().os anything */
		if (*inner && (dot == *text || dot[-1] == ')' ||
				      ((size_t)(dot - *text) == length &&
					      memcmp(*text, dot + 1, length) == 0)))
			return;
		if (!*inner)
			return;
		*text = dot + 1;
		*size = (size_t)(end - *text);
	}
}

/* Takes prefixes away that change nothing: "builtins.eval" is "eval". */
static void strip(const struct nc_scan *scan, const char **text, size_t *size)
{
	const char *const *prefix = scan->analyser->transparent;

	if (scan->analyser->inner_modules)
		strip_outer(scan, text, size);
	while (prefix && *prefix) {
		size_t length = strlen(*prefix);

		if (*size > length && memcmp(*text, *prefix, length) == 0) {
			*text += length;
			*size -= length;
			prefix = scan->analyser->transparent;
		} else {
			prefix++;
		}
	}
}

uint32_t nc_eval_name(struct nc_scan *scan, const char *name, size_t size)
{
	const struct nc_binding *binding = nc_scan_lookup(scan, name, size);

	return binding ? binding->datum : nc_datum_name(&scan->data, name, size);
}

/* A member of one thing. */
static uint32_t member_of(
	struct nc_scan *scan, const struct nc_datum *object, const char *name, size_t size)
{
	uint32_t number = nc_datum_member(&scan->data, object, name, size);
	const struct nc_datum *whole = nc_datum(&scan->data, number);
	const struct nc_binding *binding;
	struct nc_datum shorter = *whole;
	const char *text = whole->text;
	size_t length = whole->size;

	if (!number)
		return 0;
	strip(scan, &text, &length);
	binding = nc_scan_lookup(scan, text, length);
	if (binding)
		return binding->datum;
	if (length == whole->size)
		return number;
	shorter.text = text;
	shorter.size = (uint32_t)length;
	return nc_datum_add(&scan->data, shorter);
}

uint32_t nc_eval_member(struct nc_scan *scan, uint32_t object, const char *name, size_t size)
{
	const struct nc_datum *from = nc_datum(&scan->data, object);
	uint32_t numbers[NC_ALTERNATIVES_MAX], count = 0;

	if (!from->other)
		return member_of(scan, from, name, size);
	/* o may be os or something else: so may o.system */
	for (uint32_t i = 0; i < NC_ALTERNATIVES_MAX; i++) {
		uint32_t number = member_of(scan, from, name, size);

		if (number)
			numbers[count++] = number;
		if (!from->other)
			break;
		from = nc_datum(&scan->data, from->other);
	}
	return nc_datum_any(&scan->data, numbers, count);
}

uint32_t nc_eval_member_by_text(
	struct nc_scan *scan, uint32_t node, uint32_t object, const struct nc_datum *name)
{
	const struct nc_datum *from = nc_datum(&scan->data, object);
	struct nc_datum hidden;
	uint32_t number;

	if (from->kind != NC_DATUM_NAME)
		return 0;
	if (!nc_datum_is_plain(name)) {
		/* an unknown member of a module that the program imports or that is built in */
		if (nc_scan_name(scan->analyser->imports, scan->analyser->n_imports, from->text,
			    from->size))
			nc_scan_find_datum(scan, NC_RULE_REFLECT, node, from);
		return 0;
	}
	number = nc_eval_member(scan, object, name->text, name->size);
	if (!number || (!name->built && !name->decoded))
		return number;
	hidden = *nc_datum(&scan->data, number);
	hidden.built |= name->built;
	hidden.decoded |= name->decoded;
	return nc_datum_add(&scan->data, hidden);
}

uint32_t nc_eval_element(struct nc_scan *scan, uint32_t object, const struct nc_datum *index)
{
	const struct nc_datum *from = nc_datum(&scan->data, object);
	int64_t at = index->number;

	if (from->kind == NC_DATUM_DICT) {
		for (uint32_t i = 0; i + 1 < from->size; i += 2) {
			const struct nc_datum *key = nc_datum(&scan->data, from->items[i]);

			if (key->kind == index->kind && key->kind == NC_DATUM_TEXT &&
				key->size == index->size &&
				memcmp(key->text, index->text, key->size) == 0)
				return from->items[i + 1];
			if (key->kind == index->kind && key->kind == NC_DATUM_NUMBER &&
				key->number == index->number)
				return from->items[i + 1];
		}
		return 0;
	}
	if (index->kind != NC_DATUM_NUMBER)
		return 0;
	if (from->kind != NC_DATUM_LIST && from->kind != NC_DATUM_TEXT)
		return 0;
	if (at < 0)
		at += from->size;
	if (at < 0 || at >= from->size)
		return 0;
	if (from->kind == NC_DATUM_LIST)
		return from->items[at];
	return nc_datum_derive(&scan->data, from->text + at, 1, from, false);
}

const struct nc_datum *nc_eval_argument(
	const struct nc_scan *scan, const struct nc_call *call, uint32_t i)
{
	return nc_datum(&scan->data, nc_eval_argument_number(scan, call, i));
}

uint32_t nc_eval_argument_number(const struct nc_scan *scan, const struct nc_call *call, uint32_t i)
{
	return i < call->count ? scan->tree.nodes[call->argument[i]].datum : 0;
}

/* The value of "name" in a dictionary. */
static const struct nc_datum *dict_value(
	const struct nc_scan *scan, const struct nc_datum *dict, const char *name)
{
	for (uint32_t i = 0; dict->kind == NC_DATUM_DICT && i + 1 < dict->size; i += 2)
		if (nc_datum_is_text(nc_datum(&scan->data, dict->items[i]), name))
			return nc_datum(&scan->data, dict->items[i + 1]);
	return nc_datum(&scan->data, 0);
}

const struct nc_datum *nc_eval_keyword(
	const struct nc_scan *scan, const struct nc_call *call, const char *name)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t child = call->arguments ? nc_tree_first(tree, call->arguments) : 0;

	for (; child; child = nc_tree_next(tree, child)) {
		const struct nc_datum *dict = nc_scan_datum(scan, child);
		uint32_t key, value;

		if (dict->kind == NC_DATUM_DICT && dict_value(scan, dict, name)->kind)
			return dict_value(scan, dict, name);
		if (tree->nodes[child].kind != NC_KIND_KEYWORD_ARGUMENT)
			continue;
		key = nc_tree_child(tree, child, NC_ROLE_NAME);
		value = nc_tree_child(tree, child, NC_ROLE_VALUE);
		if (key && value && nc_tree_is(tree, key, name))
			return nc_scan_datum(scan, value);
	}
	return nc_datum(&scan->data, 0);
}

uint32_t nc_eval_again(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t end = tree->nodes[node].next;

	if (scan->unrolling || scan->unrolled + (end - node) > NC_UNROLL_MAX)
		return 0;
	scan->unrolling = true;
	scan->unrolled += end - node;
	for (uint32_t i = node; i < end; i++) {
		uint32_t at = i;

		scan->analyser->enter(scan, i);
		while (tree->nodes[at].next == i + 1) {
			scan->analyser->leave(scan, at);
			if (at == node)
				break;
			at = tree->nodes[at].parent;
		}
	}
	scan->unrolling = false;
	return tree->nodes[node].datum;
}

/* Whole-number arithmetic, as far as obfuscators use it. */
static bool calculate(int64_t a, int64_t b, const char *sign, size_t size, int64_t *ret)
{
	if (size == 1 && *sign == '+')
		return !__builtin_add_overflow(a, b, ret);
	if (size == 1 && *sign == '-')
		return !__builtin_sub_overflow(a, b, ret);
	if (size == 1 && *sign == '*')
		return !__builtin_mul_overflow(a, b, ret);
	if (size == 1 && *sign == '^')
		*ret = a ^ b;
	else if (size == 1 && *sign == '|')
		*ret = a | b;
	else if (size == 1 && *sign == '&')
		*ret = a & b;
	else if (size == 1 && *sign == '%' && a >= 0 && b > 0)
		*ret = a % b;
	else if (*sign == '/' && a >= 0 && b > 0)
		*ret = a / b;
	else if (size == 2 && memcmp(sign, ">>", 2) == 0 && a >= 0 && b >= 0 && b < 63)
		*ret = a >> b;
	else if (size == 2 && memcmp(sign, "<<", 2) == 0 && a >= 0 && a < 1 << 20 && b >= 0 &&
		 b < 40)
		*ret = a * (1LL << b);
	else
		return false;
	return true;
}

static uint32_t binary(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t left = nc_tree_child(tree, node, NC_ROLE_LEFT);
	uint32_t right = nc_tree_child(tree, node, NC_ROLE_RIGHT);
	uint32_t sign = nc_tree_child(tree, node, NC_ROLE_OPERATOR);
	const struct nc_datum *a, *b;
	const char *text;
	uint32_t size;
	int64_t number;

	if (!left || !right || !sign)
		return 0;
	a = nc_scan_datum(scan, left);
	b = nc_scan_datum(scan, right);
	text = nc_tree_text(tree, sign, &size);
	if (a->kind == NC_DATUM_NUMBER && b->kind == NC_DATUM_NUMBER)
		return calculate(a->number, b->number, text, size, &number)
			       ? nc_datum_number(&scan->data, number)
			       : 0;
	if (size == 1 && *text == '+')
		return nc_datum_concat(
			&scan->data, tree->nodes[left].datum, tree->nodes[right].datum);
	if (size == 1 && *text == '*' && a->kind == NC_DATUM_TEXT && b->kind == NC_DATUM_NUMBER)
		return nc_texts_repeat(scan, tree->nodes[left].datum, b->number);
	return 0;
}

/* One of the children: the first that is known, the others as alternatives. */
static uint32_t choice(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t best = 0, count = 0;

	for (uint32_t child = nc_tree_first(tree, node); child; child = nc_tree_next(tree, child)) {
		uint32_t datum = tree->nodes[child].datum;
		struct nc_datum both;

		if (!datum || tree->nodes[child].role == NC_ROLE_CONDITION ||
			++count > NC_ALTERNATIVES_MAX)
			continue;
		both = *nc_datum(&scan->data, datum);
		if (both.other)
			continue;
		both.other = best;
		best = nc_datum_add(&scan->data, both);
	}
	return best;
}

/* A list of the data of all children; for a dictionary those of its pairs. */
static uint32_t collect(struct nc_scan *scan, uint32_t node, enum nc_datum_kind kind)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t count = 0, used = 0, number;
	uint32_t *items;

	for (uint32_t child = nc_tree_first(tree, node); child; child = nc_tree_next(tree, child))
		count++;
	if (count > NC_LIST_ITEMS_MAX)
		return 0;
	items = nc_arena_alloc(&scan->arena, ((size_t)count * 2 + 1) * sizeof(*items));
	if (!items)
		return 0;
	for (uint32_t child = nc_tree_first(tree, node); child; child = nc_tree_next(tree, child)) {
		uint32_t key = 0, value = child;

		if (tree->nodes[child].kind == NC_KIND_COMMENT)
			continue;
		if (kind == NC_DATUM_DICT) {
			key = nc_tree_child(tree, child, NC_ROLE_KEY);
			value = nc_tree_child(tree, child, NC_ROLE_VALUE);
			if (!key || !value)
				continue;
			items[used++] = tree->nodes[key].datum;
		}
		items[used++] = tree->nodes[value].datum;
	}
	number = nc_datum_list(&scan->data, kind, items, used);
	return number;
}

/* Texts that stand beside each other, and the parts of a text with holes. */
static uint32_t concatenate(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t all = nc_datum_text(&scan->data, "", 0);

	for (uint32_t child = nc_tree_first(tree, node); child; child = nc_tree_next(tree, child)) {
		uint32_t number = tree->nodes[child].datum;

		if (tree->nodes[child].kind == NC_KIND_COMMENT)
			continue;
		all = nc_datum_concat(&scan->data, all, number);
	}
	return all;
}

static bool is_part(enum nc_kind kind)
{
	return kind == NC_KIND_STRING_PART || kind == NC_KIND_ESCAPE || kind == NC_KIND_HOLE;
}

/* A string: its parts, with escapes, and holes whose expression may be known. */
static uint32_t string(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t all = nc_datum_text(&scan->data, "", 0), parts = 0;
	bool holes = false;

	for (uint32_t child = nc_tree_first(tree, node); child; child = nc_tree_next(tree, child)) {
		enum nc_kind kind = tree->nodes[child].kind;

		if (!is_part(kind))
			continue;
		holes |= kind == NC_KIND_HOLE;
		/* one part alone is the text; several are joined, which does not make it built */
		if (parts++ == 0 && kind != NC_KIND_HOLE)
			all = tree->nodes[child].datum;
		else
			all = nc_datum_concat(&scan->data, all, tree->nodes[child].datum);
	}
	if (parts > 1 && !holes && all) {
		struct nc_datum plain = *nc_datum(&scan->data, all);

		plain.built = false;
		all = nc_datum_add(&scan->data, plain);
	}
	return all;
}

/* What a hole puts into its text. */
static uint32_t hole(struct nc_scan *scan, uint32_t node)
{
	uint32_t child = nc_tree_first(&scan->tree, node);

	return child ? nc_texts_of(scan, nc_scan_node(scan, child)->datum) : 0;
}

static uint32_t part(struct nc_scan *scan, uint32_t node)
{
	uint32_t size;
	const char *text = nc_tree_text(&scan->tree, node, &size);
	struct nc_datum plain = {.kind = NC_DATUM_TEXT, .text = text, .size = size};

	if (!memchr(text, '\\', size))
		return nc_datum_text(&scan->data, text, size);
	return nc_texts_decode(scan, &plain, nc_decode_escapes, false);
}

static uint32_t number(struct nc_scan *scan, uint32_t node)
{
	uint32_t size;
	const char *text = nc_tree_text(&scan->tree, node, &size);
	long long value;

	return nc_decode_number(text, size, &value) == 0 ? nc_datum_number(&scan->data, value) : 0;
}

static uint32_t member(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t object = nc_tree_child(tree, node, NC_ROLE_OBJECT);
	uint32_t name = nc_tree_child(tree, node, NC_ROLE_ATTRIBUTE);
	uint32_t size, datum;
	const char *text;

	if (!name)
		return 0;
	if (!object)
		object = nc_tree_child(tree, node, NC_ROLE_VALUE); /* Rust */
	if (!object)
		return 0;
	text = nc_tree_text(tree, name, &size);
	datum = tree->nodes[object].datum;
	if (nc_datum(&scan->data, datum)->kind == NC_DATUM_DICT) {
		struct nc_datum key = {.kind = NC_DATUM_TEXT, .text = text, .size = size};

		return nc_eval_element(scan, datum, &key);
	}
	return nc_eval_member(scan, datum, text, size);
}

static uint32_t subscript(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t object = nc_tree_child(tree, node, NC_ROLE_OBJECT);
	uint32_t index = nc_tree_child(tree, node, NC_ROLE_INDEX);
	const struct nc_datum *by;

	if (!object)
		object = nc_tree_child(tree, node, NC_ROLE_VALUE); /* Python */
	if (!object || !index)
		return 0;
	by = nc_scan_datum(scan, index);
	if (nc_scan_datum(scan, object)->kind == NC_DATUM_NAME)
		return nc_eval_member_by_text(scan, node, tree->nodes[object].datum, by);
	return nc_eval_element(scan, tree->nodes[object].datum, by);
}

static void gather(struct nc_scan *scan, uint32_t node, struct nc_call *call)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t child;

	call->node = node;
	call->function = nc_tree_child(tree, node, NC_ROLE_FUNCTION);
	call->arguments = nc_tree_child(tree, node, NC_ROLE_ARGUMENTS);
	if (call->arguments && tree->nodes[call->arguments].kind != NC_KIND_ARGUMENTS) {
		/* f(x for x in y), f`text`: the one argument has no brackets of its own */
		call->argument[call->count++] = call->arguments;
		return;
	}
	child = call->arguments ? nc_tree_first(tree, call->arguments) : 0;
	for (; child && call->count < NC_ARGUMENTS_MAX; child = nc_tree_next(tree, child)) {
		enum nc_kind kind = tree->nodes[child].kind;

		if (kind != NC_KIND_COMMENT && kind != NC_KIND_KEYWORD_ARGUMENT)
			call->argument[call->count++] = child;
	}
}

/* Functions that are handed on, to map() or into a table, will be called. */
static void mentions(struct nc_scan *scan, uint32_t around)
{
	const struct nc_tree *tree = &scan->tree;

	if (scan->learning || scan->unrolling)
		return;
	if (tree->nodes[around].role == NC_ROLE_LEFT || tree->nodes[around].role == NC_ROLE_NAME)
		return; /* what is assigned to */
	for (uint32_t child = nc_tree_first(tree, around); child;
		child = nc_tree_next(tree, child)) {
		uint32_t value = child;

		if (tree->nodes[child].kind == NC_KIND_KEYWORD_ARGUMENT ||
			tree->nodes[child].kind == NC_KIND_PAIR)
			value = nc_tree_child(tree, child, NC_ROLE_VALUE);
		if (value && nc_scan_datum(scan, value)->kind == NC_DATUM_NAME)
			nc_use_judge(scan, value, NULL, tree->nodes[value].datum);
	}
}

static uint32_t fold_method(struct nc_scan *scan, const struct nc_call *call)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t object, name, size;
	const char *text;

	if (tree->nodes[call->function].kind != NC_KIND_MEMBER)
		return 0;
	object = nc_tree_child(tree, call->function, NC_ROLE_OBJECT);
	if (!object)
		object = nc_tree_child(tree, call->function, NC_ROLE_VALUE); /* Rust */
	name = nc_tree_child(tree, call->function, NC_ROLE_ATTRIBUTE);
	if (!object || !name)
		return 0;
	text = nc_tree_text(tree, name, &size);
	return scan->analyser->fold_method(scan, call, tree->nodes[object].datum, text, size);
}

static uint32_t call(struct nc_scan *scan, uint32_t node)
{
	struct nc_call found = {0};
	const struct nc_datum *function;
	uint32_t result = 0;

	gather(scan, node, &found);
	if (!found.function)
		return 0;
	function = nc_scan_datum(scan, found.function);
	nc_use_judge(scan, node, &found, nc_scan_node(scan, found.function)->datum);
	if (function->kind == NC_DATUM_NAME)
		result = scan->analyser->fold_call(scan, &found, function);
	if (!result)
		result = fold_method(scan, &found);
	/* what gives a function back, as partial() does, does not call it */
	if (found.arguments && nc_scan_node(scan, found.arguments)->kind == NC_KIND_ARGUMENTS &&
		(!result || result != nc_eval_argument_number(scan, &found, 0)))
		mentions(scan, found.arguments);
	return result ? result : nc_datum_result(&scan->data, function);
}

/* Binds several names at once: the items of a list, or members by their names. */
static void assign_members(struct nc_scan *scan, uint32_t left, uint32_t datum)
{
	const struct nc_tree *tree = &scan->tree;
	const struct nc_datum *from = nc_datum(&scan->data, datum);
	uint32_t i = 0;

	for (uint32_t child = nc_tree_first(tree, left); child; child = nc_tree_next(tree, child)) {
		uint32_t key = nc_tree_child(tree, child, NC_ROLE_KEY);
		uint32_t value = nc_tree_child(tree, child, NC_ROLE_VALUE);
		uint32_t size, item = 0;
		const char *text = nc_tree_text(tree, key ? key : child, &size);

		if (tree->nodes[left].kind == NC_KIND_DICT) {
			item = nc_eval_member(scan, datum, text, size);
			value = value ? value : child;
		} else {
			if (from->kind == NC_DATUM_LIST && i < from->size)
				item = from->items[i];
			value = child;
			i++;
		}
		/* one level: what is deeper is not known, which is what an unbound name is */
		if (tree->nodes[value].kind == NC_KIND_IDENTIFIER) {
			text = nc_tree_text(tree, value, &size);
			nc_scan_bind(scan, text, size, item);
		}
	}
}

void nc_eval_assign(struct nc_scan *scan, uint32_t left, uint32_t datum)
{
	const struct nc_datum *to = nc_scan_datum(scan, left);
	uint32_t size, scope = scan->scope;
	const char *text = nc_tree_text(&scan->tree, left, &size);

	switch (nc_scan_node(scan, left)->kind) {
	case NC_KIND_IDENTIFIER:
	case NC_KIND_VARIABLE_NAME:
		nc_scan_bind(scan, text, size, datum);
		break;
	case NC_KIND_MEMBER:
		/* members are seen from everywhere: self.x set here is used in another function */
		scan->scope = nc_scan_global(scan);
		if (to->kind == NC_DATUM_NAME)
			nc_scan_bind(scan, to->text, to->size, datum);
		scan->scope = scope;
		break;
	case NC_KIND_LIST:
	case NC_KIND_DICT:
		assign_members(scan, left, datum);
		break;
	default:
		break;
	}
}

static uint32_t assignment(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t left = nc_tree_child(tree, node, NC_ROLE_LEFT);
	uint32_t right = nc_tree_child(tree, node, NC_ROLE_RIGHT);
	uint32_t sign = nc_tree_child(tree, node, NC_ROLE_OPERATOR);
	uint32_t datum;

	if (!left)
		left = nc_tree_child(tree, node, NC_ROLE_NAME);
	if (!right)
		right = nc_tree_child(tree, node, NC_ROLE_VALUE);
	if (!left)
		return 0;
	datum = right ? tree->nodes[right].datum : 0;
	if (sign && nc_tree_is(tree, sign, "+=")) {
		uint32_t size;
		const char *text = nc_tree_text(tree, left, &size);
		const struct nc_binding *old = nc_scan_lookup(scan, text, size);

		datum = nc_datum_concat(&scan->data, old ? old->datum : 0, datum);
	}
	/* an annotation without a value binds nothing */
	if (right)
		nc_eval_assign(scan, left, datum);
	return datum;
}

/* Parameters are not known; those with a default may be that. */
static void parameters(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;

	for (uint32_t child = nc_tree_first(tree, node); child; child = nc_tree_next(tree, child)) {
		uint32_t name = child, value = 0, size;
		const char *text;

		if (tree->nodes[child].kind == NC_KIND_TYPED) {
			name = nc_tree_child(tree, child, NC_ROLE_NAME);
			if (!name)
				name = nc_tree_child(tree, child, NC_ROLE_LEFT);
			if (!name)
				name = nc_tree_child_of_kind(tree, child, NC_KIND_IDENTIFIER);
			value = nc_tree_child(tree, child, NC_ROLE_VALUE);
			if (!value)
				value = nc_tree_child(tree, child, NC_ROLE_RIGHT);
		}
		if (!name || tree->nodes[name].kind != NC_KIND_IDENTIFIER)
			continue;
		text = nc_tree_text(tree, name, &size);
		nc_scopes_bind(&scan->scopes, scan->scope, text, size,
			value ? tree->nodes[value].datum : 0);
	}
}

/* A function's own name stands for it from here on. */
static void define(struct nc_scan *scan, uint32_t node)
{
	uint32_t name = nc_tree_child(&scan->tree, node, NC_ROLE_NAME);
	uint32_t size;
	const char *text;

	if (!name || nc_scan_node(scan, name)->kind != NC_KIND_IDENTIFIER)
		return;
	text = nc_tree_text(&scan->tree, name, &size);
	nc_scan_bind(scan, text, size, nc_datum_own(&scan->data));
}

/* A loop that only something inside it can end: while True, for (;;), loop. */
static bool is_endless(const struct nc_scan *scan, uint32_t node)
{
	static const char *const truths[] = {"True", "true", "1", ";", ":", NULL};
	const struct nc_tree *tree = &scan->tree;
	uint32_t condition = nc_tree_child(tree, node, NC_ROLE_CONDITION);
	uint32_t only;

	if (!condition) {
		only = nc_tree_only(tree, node);
		return only && tree->nodes[only].role == NC_ROLE_BODY;
	}
	while (tree->nodes[condition].kind == NC_KIND_WRAPPER && nc_tree_only(tree, condition))
		condition = nc_tree_only(tree, condition);
	for (const char *const *truth = truths; *truth; truth++)
		if (nc_tree_is(tree, condition, *truth))
			return true;
	return false;
}

void nc_eval_enter(struct nc_scan *scan, uint32_t node)
{
	switch (nc_scan_node(scan, node)->kind) {
	case NC_KIND_FUNCTION:
	case NC_KIND_LAMBDA:
		nc_scan_enter_function(scan, node);
		break;
	case NC_KIND_BRANCH:
		scan->conditional++;
		break;
	case NC_KIND_LOOP:
		scan->conditional++;
		scan->endless += is_endless(scan, node);
		break;
	default:
		break;
	}
}

/* A loop's variable is one of what it runs over; known before the body is reached. */
static void bind_loop(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t left = nc_tree_child(tree, tree->nodes[node].parent, NC_ROLE_LEFT);
	const struct nc_datum *list = nc_scan_datum(scan, node);
	uint32_t size, one = 0;
	const char *text;

	if (!left || tree->nodes[left].kind != NC_KIND_IDENTIFIER)
		return;
	for (uint32_t i = 0;
		list->kind == NC_DATUM_LIST && i < list->size && i < NC_ALTERNATIVES_MAX; i++) {
		struct nc_datum item = *nc_datum(&scan->data, list->items[i]);

		if (item.kind == NC_DATUM_NONE)
			continue;
		item.other = one;
		one = nc_datum_add(&scan->data, item);
	}
	text = nc_tree_text(tree, left, &size);
	nc_scopes_bind(&scan->scopes, scan->scope, text, size, one);
}

/* What a literal says by itself; documentation says nothing. */
static void judge_literal(struct nc_scan *scan, uint32_t node)
{
	const struct nc_node *at = nc_scan_node(scan, node);
	const struct nc_datum *text = nc_datum(&scan->data, at->datum);
	enum nc_kind around = scan->tree.nodes[at->parent].kind;

	if (scan->learning || scan->unrolling || around == NC_KIND_STATEMENT)
		return;
	nc_literal_judge(scan, node, text, NC_ACCESS_MENTION);
	nc_literal_blob(scan, node, text);
}

/* What has been put together may say more than its pieces; the whole of it, once. */
static void judge_built(struct nc_scan *scan, uint32_t node)
{
	const struct nc_node *at = nc_scan_node(scan, node);
	const struct nc_datum *text = nc_datum(&scan->data, at->datum);

	if (scan->learning || scan->unrolling || text->kind != NC_DATUM_TEXT ||
		scan->tree.nodes[at->parent].kind == at->kind)
		return;
	if (text->built || text->decoded)
		nc_literal_judge(scan, node, text, NC_ACCESS_MENTION);
}

static void leave_statement(struct nc_scan *scan, uint32_t node)
{
	struct nc_node *at = nc_scan_node(scan, node);

	switch (at->kind) {
	case NC_KIND_ASSIGN:
	case NC_KIND_DECLARE:
		at->datum = assignment(scan, node);
		break;
	case NC_KIND_PARAMETERS:
		parameters(scan, node);
		break;
	case NC_KIND_FUNCTION:
		nc_scan_leave_function(scan, node);
		define(scan, node);
		break;
	case NC_KIND_LAMBDA:
		nc_scan_leave_function(scan, node);
		at->datum = nc_datum_own(&scan->data);
		break;
	case NC_KIND_CLASS:
		define(scan, node);
		break;
	case NC_KIND_BRANCH:
		scan->conditional--;
		break;
	case NC_KIND_LOOP:
		scan->conditional--;
		scan->endless -= is_endless(scan, node);
		break;
	case NC_KIND_RETURN:
		mentions(scan, node);
		break;
	default:
		break;
	}
}

void nc_eval_leave(struct nc_scan *scan, uint32_t node)
{
	struct nc_node *at = nc_scan_node(scan, node);
	uint32_t size;
	const char *text;

	switch (at->kind) {
	case NC_KIND_IDENTIFIER:
		if (at->role == NC_ROLE_ATTRIBUTE || at->role == NC_ROLE_NAME ||
			at->role == NC_ROLE_ALIAS)
			break;
		text = nc_tree_text(&scan->tree, node, &size);
		at->datum = nc_eval_name(scan, text, size);
		break;
	case NC_KIND_STRING_PART:
	case NC_KIND_ESCAPE:
		at->datum = part(scan, node);
		break;
	case NC_KIND_STRING:
		at->datum = string(scan, node);
		judge_literal(scan, node);
		break;
	case NC_KIND_NUMBER:
		at->datum = number(scan, node);
		break;
	case NC_KIND_TRUE:
	case NC_KIND_FALSE:
		at->datum = nc_datum_number(&scan->data, at->kind == NC_KIND_TRUE);
		break;
	case NC_KIND_HOLE:
		at->datum = hole(scan, node);
		break;
	case NC_KIND_WRAPPER:
		if (nc_tree_only(&scan->tree, node))
			at->datum = nc_scan_node(scan, nc_tree_only(&scan->tree, node))->datum;
		break;
	case NC_KIND_JUXTAPOSED:
		at->datum = concatenate(scan, node);
		judge_built(scan, node);
		break;
	case NC_KIND_BINARY:
		at->datum = binary(scan, node);
		judge_built(scan, node);
		break;
	case NC_KIND_CHOICE:
		at->datum = choice(scan, node);
		break;
	case NC_KIND_LIST:
		at->datum = collect(scan, node, NC_DATUM_LIST);
		mentions(scan, node);
		break;
	case NC_KIND_DICT:
		at->datum = collect(scan, node, NC_DATUM_DICT);
		mentions(scan, node);
		break;
	case NC_KIND_MEMBER:
		at->datum = member(scan, node);
		nc_lists_member(scan, node, nc_datum(&scan->data, at->datum));
		break;
	case NC_KIND_SUBSCRIPT:
		at->datum = subscript(scan, node);
		break;
	case NC_KIND_CALL:
		at->datum = call(scan, node);
		judge_built(scan, node);
		break;
	default:
		leave_statement(scan, node);
	}
	if (at->role == NC_ROLE_RIGHT && scan->tree.nodes[at->parent].kind == NC_KIND_LOOP)
		bind_loop(scan, node);
}
