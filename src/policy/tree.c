/* Syntax trees as flat arrays, made with tree-sitter. */
#include "policy/tree.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tree_sitter/api.h>

#include "base/clock.h"
#include "base/text.h"
#include "policy/bounds.h"
#include "policy/heap.h"

/* What the grammars call the parts of a node. */
static const struct {
	const char *name;
	enum nc_role role;
} role_names[] = {
	{"alias", NC_ROLE_ALIAS},
	{"argument", NC_ROLE_ARGUMENTS},
	{"arguments", NC_ROLE_ARGUMENTS},
	{"attribute", NC_ROLE_ATTRIBUTE},
	{"body", NC_ROLE_BODY},
	{"condition", NC_ROLE_CONDITION},
	{"constructor", NC_ROLE_FUNCTION},
	{"declarator", NC_ROLE_NAME},
	{"descriptor", NC_ROLE_NAME},
	{"destination", NC_ROLE_DESTINATION},
	{"field", NC_ROLE_ATTRIBUTE},
	{"function", NC_ROLE_FUNCTION},
	{"index", NC_ROLE_INDEX},
	{"key", NC_ROLE_KEY},
	{"left", NC_ROLE_LEFT},
	{"macro", NC_ROLE_FUNCTION},
	{"module_name", NC_ROLE_MODULE},
	{"name", NC_ROLE_NAME},
	{"object", NC_ROLE_OBJECT},
	{"operand", NC_ROLE_OBJECT},
	{"operator", NC_ROLE_OPERATOR},
	{"parameter", NC_ROLE_PARAMETERS},
	{"parameters", NC_ROLE_PARAMETERS},
	{"path", NC_ROLE_MODULE},
	{"pattern", NC_ROLE_LEFT},
	{"property", NC_ROLE_ATTRIBUTE},
	{"redirect", NC_ROLE_REDIRECT},
	{"right", NC_ROLE_RIGHT},
	{"source", NC_ROLE_MODULE},
	{"subscript", NC_ROLE_INDEX},
	{"value", NC_ROLE_VALUE},
	{"variable", NC_ROLE_NAME},
};

static enum nc_kind find_kind(const struct nc_kind_name *kinds, const char *name)
{
	for (; kinds->name; kinds++)
		if (nc_streq(kinds->name, name))
			return kinds->kind;
	return NC_KIND_NONE;
}

static enum nc_role find_role(const char *name)
{
	for (size_t i = 0; i < sizeof(role_names) / sizeof(role_names[0]); i++)
		if (nc_streq(role_names[i].name, name))
			return role_names[i].role;
	return NC_ROLE_NONE;
}

void nc_grammar_init(
	struct nc_grammar *grammar, const void *language, const struct nc_kind_name *kinds)
{
	uint32_t symbols = ts_language_symbol_count(language);
	uint32_t fields = ts_language_field_count(language);

	assert(symbols <= sizeof(grammar->kind) && fields < sizeof(grammar->role));
	for (uint32_t i = 0; i < symbols; i++)
		grammar->kind[i] =
			(uint8_t)find_kind(kinds, ts_language_symbol_name(language, (TSSymbol)i));
	for (uint32_t i = 1; i <= fields; i++)
		grammar->role[i] =
			(uint8_t)find_role(ts_language_field_name_for_id(language, (TSFieldId)i));
	grammar->language = language;
}

/* Its number of a node that stands for what it could not parse. */
#define ERROR_SYMBOL ((TSSymbol)-1)

/* What tree-sitter calls back with. */
struct source {
	const char *text;
	uint32_t size;
	uint64_t deadline_ns;
};

static const char *read_source(void *payload, uint32_t at, TSPoint point, uint32_t *ret_size)
{
	const struct source *source = payload;

	(void)point;
	*ret_size = at < source->size ? source->size - at : 0;
	return at < source->size ? source->text + at : "";
}

static bool is_too_much(TSParseState *state)
{
	const struct source *source = state->payload;

	return nc_clock_ns() >= source->deadline_ns || nc_heap_taken() > NC_PARSE_MEMORY_MAX;
}

static TSTree *parse(TSParser *parser, struct source *source)
{
	TSInput input = {.payload = source, .read = read_source, .encoding = TSInputEncodingUTF8};
	TSParseOptions options = {.payload = source, .progress_callback = is_too_much};

	return ts_parser_parse_with_options(parser, NULL, input, options);
}

/* A tree that grows node by node. */
struct copy {
	const struct nc_grammar *grammar;
	struct nc_tree tree;
	uint32_t capacity;
	int error;
};

/* Appends a node and returns its number; 0 with copy->error set if there is no room. */
static uint32_t append(struct copy *copy, struct nc_node node)
{
	struct nc_tree *tree = &copy->tree;

	if (tree->count == copy->capacity) {
		/* a node for every third byte, and then some, is what ordinary code has */
		uint32_t capacity = copy->capacity ? copy->capacity * 2 : tree->size / 3 + 64;
		struct nc_node *nodes = NULL;

		if (capacity > NC_NODES_MAX)
			capacity = NC_NODES_MAX;
		if (capacity > tree->count)
			nodes = realloc(tree->nodes, capacity * sizeof(*nodes));
		if (!nodes) {
			copy->error = capacity > tree->count ? -ENOMEM : -EFBIG;
			return 0;
		}
		tree->nodes = nodes;
		copy->capacity = capacity;
	}
	tree->nodes[tree->count] = node;
	return tree->count++;
}

/* Whether a leaf tells nothing: punctuation and keywords, which have no role. */
static bool is_dull(enum nc_kind kind, enum nc_role role, TSNode leaf)
{
	return kind == NC_KIND_DULL ||
	       (kind == NC_KIND_NONE && role == NC_ROLE_NONE && !ts_node_is_missing(leaf) &&
		       !ts_node_is_named(leaf));
}

/* Copies the node at the cursor, if it is of interest, and returns its number. */
static uint32_t copy_node(
	struct copy *copy, const TSTreeCursor *cursor, uint32_t parent, bool *ret_leaf)
{
	TSNode from = ts_tree_cursor_current_node(cursor);
	TSSymbol symbol = ts_node_symbol(from);
	struct nc_node node = {.parent = parent,
		.role = copy->grammar->role[ts_tree_cursor_current_field_id(cursor)]};
	uint32_t at;

	*ret_leaf = ts_node_child_count(from) == 0;
	if (symbol < sizeof(copy->grammar->kind))
		node.kind = copy->grammar->kind[symbol];
	if (symbol == ERROR_SYMBOL)
		node.kind = NC_KIND_ERROR;
	if (*ret_leaf && copy->tree.count > 0 && is_dull(node.kind, node.role, from))
		return parent;
	node.start = ts_node_start_byte(from);
	node.end = ts_node_end_byte(from);
	node.missing = ts_node_is_missing(from);
	at = append(copy, node);
	if ((node.missing || node.kind == NC_KIND_ERROR) && !copy->tree.broken) {
		copy->tree.broken = true;
		copy->tree.error = at;
	}
	return at;
}

/* Sets where each node's subtree ends: children come after their parents, so backwards. */
static void set_ends(struct nc_tree *tree)
{
	for (uint32_t i = 0; i < tree->count; i++)
		tree->nodes[i].next = i + 1;
	for (uint32_t i = tree->count; i-- > 1;) {
		struct nc_node *parent = &tree->nodes[tree->nodes[i].parent];

		if (parent->next < tree->nodes[i].next)
			parent->next = tree->nodes[i].next;
	}
}

static int copy_all(struct copy *copy, TSNode root)
{
	TSTreeCursor cursor = ts_tree_cursor_new(root);
	uint32_t parent = 0;
	bool more = true, leaf;

	while (more) {
		uint32_t at = copy_node(copy, &cursor, parent, &leaf);

		if (copy->error < 0)
			break;
		assert(copy->tree.nodes); /* the root is always copied */
		if (!leaf && ts_tree_cursor_goto_first_child(&cursor)) {
			parent = at; /* what has children was copied */
			continue;
		}
		while (more && !ts_tree_cursor_goto_next_sibling(&cursor)) {
			more = ts_tree_cursor_goto_parent(&cursor);
			parent = copy->tree.nodes[parent].parent;
		}
	}
	ts_tree_cursor_delete(&cursor);
	return copy->error;
}

/* Parses, copies, and forgets what was parsed. */
static int parse_into(struct copy *copy, struct source *source)
{
	const bool has_heap = nc_heap_begin();
	TSParser *parser = ts_parser_new();
	TSTree *tree = NULL;
	int r = parser ? 0 : -ENOMEM;

	if (r == 0 && !ts_parser_set_language(parser, copy->grammar->language))
		r = -EPROTO;
	if (r == 0) {
		tree = parse(parser, source);
		r = tree ? copy_all(copy, ts_tree_root_node(tree)) : -ETIME;
	}
	if (!has_heap) {
		ts_tree_delete(tree);
		ts_parser_delete(parser);
	}
	nc_heap_end();
	return r;
}

int nc_tree_parse(const struct nc_grammar *grammar, const char *text, uint32_t size,
	uint64_t deadline_ns, struct nc_tree *ret_tree)
{
	struct source source = {.text = text, .size = size, .deadline_ns = deadline_ns};
	struct copy copy = {.grammar = grammar, .tree = {.text = text, .size = size}};
	int r = parse_into(&copy, &source);

	if (r < 0) {
		free(copy.tree.nodes);
		return r;
	}
	set_ends(&copy.tree);
	*ret_tree = copy.tree;
	return 0;
}

void nc_tree_done(struct nc_tree *tree)
{
	free(tree->nodes);
	*tree = (struct nc_tree){0};
}

uint32_t nc_tree_child(const struct nc_tree *tree, uint32_t node, enum nc_role role)
{
	uint32_t child = nc_tree_first(tree, node);

	while (child && tree->nodes[child].role != role)
		child = nc_tree_next(tree, child);
	return child;
}

uint32_t nc_tree_child_of_kind(const struct nc_tree *tree, uint32_t node, enum nc_kind kind)
{
	uint32_t child = nc_tree_first(tree, node);

	while (child && tree->nodes[child].kind != kind)
		child = nc_tree_next(tree, child);
	return child;
}

uint32_t nc_tree_only(const struct nc_tree *tree, uint32_t node)
{
	uint32_t only = 0;

	for (uint32_t child = nc_tree_first(tree, node); child; child = nc_tree_next(tree, child)) {
		if (tree->nodes[child].kind == NC_KIND_COMMENT)
			continue;
		if (only)
			return 0;
		only = child;
	}
	return only;
}

bool nc_tree_is(const struct nc_tree *tree, uint32_t node, const char *text)
{
	uint32_t size;
	const char *own = nc_tree_text(tree, node, &size);

	return strlen(text) == size && memcmp(own, text, size) == 0;
}
