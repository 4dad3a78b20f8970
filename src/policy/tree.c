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
#include "policy/sitter.h"

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
	/* the first character tells most apart: this is what the first analysis of a process waits
	 * for */
	for (; kinds->name; kinds++)
		if (kinds->name[0] == name[0] && nc_streq(kinds->name, name))
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

/* Parses, copies, and forgets what was parsed. */
int nc_tree_parse(const struct nc_grammar *grammar, const char *text, uint32_t size,
	uint64_t deadline_ns, struct nc_tree *ret_tree)
{
	struct source source = {.text = text, .size = size, .deadline_ns = deadline_ns};
	struct nc_tree copy = {.text = text, .size = size};
	const bool has_heap = nc_heap_begin();
	TSParser *parser = ts_parser_new();
	TSTree *tree = NULL;
	int r = parser ? 0 : -ENOMEM;

	if (r == 0 && !ts_parser_set_language(parser, grammar->language))
		r = -EPROTO;
	if (r == 0) {
		nc_sitter_hasten(parser);
		tree = parse(parser, &source);
		r = tree ? nc_sitter_copy(tree, grammar, &copy) : -ETIME;
		if (!tree)
			ts_parser_reset(parser); /* its scanner is malloc()'s */
	}
	if (!has_heap) {
		ts_tree_delete(tree);
		ts_parser_delete(parser);
	}
	nc_heap_end();
	if (r == 0)
		*ret_tree = copy;
	return r;
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
