/* What is taken from inside of tree-sitter, for speed. */
#include "policy/sitter.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include <language.h>
#include <lexer.h>
#include <tree.h>

#include "policy/bounds.h"
#include "policy/pages.h"

/* tree-sitter's own step, which knows of line ends, bytes that are no text, and the end. */
static void (*slow_step)(TSLexer *base, bool skip);

/*
 * One character on, where this one and the next are ASCII and no line ends: most of all steps, of
 * which a parse makes two or three for each byte.
 */
static void step(TSLexer *base, bool skip)
{
	Lexer *lexer = (Lexer *)base;
	uint32_t next = lexer->current_position.bytes + 1 - lexer->chunk_start;
	unsigned char character;

	if (!lexer->chunk || next >= lexer->chunk_size || lexer->lookahead_size != 1 ||
		(uint32_t)base->lookahead >= 0x80 || base->lookahead == '\n') {
		slow_step(base, skip);
		return;
	}
	character = (unsigned char)lexer->chunk[next];
	if (character >= 0x80) {
		slow_step(base, skip);
		return;
	}
	lexer->current_position.bytes++;
	lexer->current_position.extent.column++;
	lexer->column_data.value += lexer->column_data.valid;
	if (skip)
		lexer->token_start_position = lexer->current_position;
	base->lookahead = character;
}

void nc_sitter_hasten(TSParser *parser)
{
	Lexer *lexer = (Lexer *)(void *)parser; /* is the first thing in it */
	uint32_t count;

	assert(ts_parser_included_ranges(parser, &count) == lexer->included_ranges && count == 1);
	slow_step = lexer->data.advance;
	lexer->data.advance = step;
}

/* Where the walk is among the children of a subtree. */
struct level {
	const Subtree *child, *end;
	const TSSymbol *aliases; /* what its production calls them; NULL: what they are */
	const TSFieldMapEntry *fields, *fields_end;
	uint32_t place;	 /* of the child, not counting comments and their like */
	uint32_t start;	 /* of the child, in bytes */
	uint32_t node;	 /* ours, that the children belong to */
	TSFieldId field; /* that a subtree which does not show hands down to its children */
};

struct walk {
	const TSLanguage *language;
	const struct nc_grammar *grammar;
	struct nc_tree tree;
	uint32_t capacity; /* of the tree */
	struct level *levels;
	size_t depth, room;
};

static int go_down(struct walk *walk, Subtree into, uint32_t start, uint32_t node, TSFieldId field)
{
	/* its children stand before it */
	const Subtree *end = (const Subtree *)(const void *)into.ptr;
	struct level *level;

	if (walk->depth == walk->room) {
		size_t room = walk->room ? walk->room * 2 : 64;
		struct level *levels = realloc(walk->levels, room * sizeof(*levels));

		if (!levels)
			return -ENOMEM;
		walk->levels = levels;
		walk->room = room;
	}
	level = &walk->levels[walk->depth++];
	*level = (struct level){
		.child = end - into.ptr->child_count,
		.end = end,
		.aliases = ts_language_alias_sequence(walk->language, into.ptr->production_id),
		.start = start,
		.node = node,
		.field = field,
	};
	ts_language_field_map(
		walk->language, into.ptr->production_id, &level->fields, &level->fields_end);
	return 0;
}

/* What the child at hand is to the node that it belongs to. */
static TSFieldId field_of(const struct level *level)
{
	for (const TSFieldMapEntry *field = level->fields; field < level->fields_end; field++)
		if (!field->inherited && field->child_index == level->place)
			return field->field_id;
	return level->field;
}

static bool is_named(const struct walk *walk, Subtree subtree, TSSymbol alias)
{
	return alias ? walk->language->symbol_metadata[alias].named : ts_subtree_named(subtree);
}

/* Whether a leaf tells nothing: punctuation and keywords, which have no role. */
static bool is_dull(
	const struct walk *walk, const struct nc_node *node, Subtree leaf, TSSymbol alias)
{
	return node->kind == NC_KIND_DULL ||
	       (node->kind == NC_KIND_NONE && node->role == NC_ROLE_NONE && !node->missing &&
		       !is_named(walk, leaf, alias));
}

static int append(struct walk *walk, const struct nc_node *node)
{
	struct nc_tree *tree = &walk->tree;

	if (tree->count == walk->capacity)
		return -EFBIG;
	if ((node->missing || node->kind == NC_KIND_ERROR) && !tree->broken) {
		tree->broken = true;
		tree->error = tree->count;
	}
	tree->nodes[tree->count] = *node;
	tree->count++;
	tree->nodes[tree->count - 1].next = tree->count;
	return 0;
}

/* Copies a subtree that shows, if it is of interest, and goes into it if something in it shows. */
static int copy(struct walk *walk, Subtree subtree, TSSymbol alias, struct nc_node node)
{
	const bool is_leaf = ts_subtree_visible_child_count(subtree) == 0;
	TSSymbol symbol = ts_language_public_symbol(
		walk->language, alias ? alias : ts_subtree_symbol(subtree));
	int r;

	if (symbol < sizeof(walk->grammar->kind))
		node.kind = walk->grammar->kind[symbol];
	if (symbol == ts_builtin_sym_error)
		node.kind = NC_KIND_ERROR;
	node.missing = ts_subtree_missing(subtree);
	if (is_leaf && walk->tree.count > 0 && is_dull(walk, &node, subtree, alias))
		return 0;
	node.end = node.start + ts_subtree_size(subtree).bytes;
	r = append(walk, &node);
	if (r < 0 || is_leaf)
		return r;
	return go_down(walk, subtree, node.start, walk->tree.count - 1, 0);
}

/* Takes the next child of the innermost level; one that does not show gives its own instead. */
static int take_child(struct walk *walk)
{
	struct level *level = &walk->levels[walk->depth - 1];
	const Subtree child = *level->child++;
	const bool extra = ts_subtree_extra(child);
	const TSSymbol alias = !extra && level->aliases ? level->aliases[level->place] : 0;
	const TSFieldId field = extra ? 0 : field_of(level);
	const uint32_t start = level->start;

	level->place += !extra;
	level->start += ts_subtree_size(child).bytes;
	if (level->child < level->end)
		level->start += ts_subtree_padding(*level->child).bytes;
	if (alias || ts_subtree_visible(child))
		return copy(walk, child, alias,
			(struct nc_node){.start = start,
				.parent = level->node,
				.role = walk->grammar->role[field]});
	if (ts_subtree_visible_child_count(child) > 0)
		return go_down(walk, child, start, level->node, field);
	return 0;
}

static int copy_all(struct walk *walk, Subtree root)
{
	int r = copy(walk, root, 0, (struct nc_node){.start = ts_subtree_padding(root).bytes});

	while (r == 0 && walk->depth > 0) {
		const struct level *level = &walk->levels[walk->depth - 1];

		if (level->child < level->end) {
			r = take_child(walk);
		} else {
			walk->tree.nodes[level->node].next = walk->tree.count;
			walk->depth--;
		}
	}
	return r;
}

int nc_sitter_copy(const TSTree *from, const struct nc_grammar *grammar, struct nc_tree *ret_tree)
{
	/* one for each that shows; what is not of interest leaves room, which costs nothing */
	const uint32_t count = ts_subtree_visible_descendant_count(from->root);
	struct walk walk = {.language = from->language, .grammar = grammar, .tree = *ret_tree};
	int r;

	walk.capacity = count < NC_NODES_MAX ? count + 1 : NC_NODES_MAX;
	walk.tree.nodes = nc_pages_alloc(walk.capacity * sizeof(*walk.tree.nodes));
	if (!walk.tree.nodes)
		return -ENOMEM;
	r = copy_all(&walk, from->root);
	free(walk.levels);
	if (r < 0) {
		free(walk.tree.nodes);
		return r;
	}
	*ret_tree = walk.tree;
	return 0;
}
