/*
 * Syntax trees as flat arrays. tree-sitter's tree is copied once, node by node with its cursor,
 * into an array in source order; everything after that is loops over the array, so that no nesting
 * of hostile code can exhaust the stack.
 *
 * The kinds and roles are ours, the same for all languages: each language's table says what its
 * grammar calls them. Nodes of no interest (punctuation, keywords) are left out.
 */
#ifndef NC_POLICY_TREE_H
#define NC_POLICY_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "policy/arena.h"

enum nc_kind {
	NC_KIND_NONE,
	NC_KIND_DULL, /* left out */
	NC_KIND_ERROR,
	NC_KIND_COMMENT,
	/* expressions */
	NC_KIND_IDENTIFIER,
	NC_KIND_STRING,
	NC_KIND_STRING_PART, /* the text between the quotes, or a piece of it */
	NC_KIND_ESCAPE,
	NC_KIND_HOLE, /* an expression inside a string */
	NC_KIND_NUMBER,
	NC_KIND_TRUE,
	NC_KIND_FALSE,
	NC_KIND_CALL,
	NC_KIND_ARGUMENTS,
	NC_KIND_KEYWORD_ARGUMENT,
	NC_KIND_MEMBER,
	NC_KIND_SUBSCRIPT,
	NC_KIND_SLICE,
	NC_KIND_BINARY,
	NC_KIND_UNARY,
	NC_KIND_WRAPPER,    /* its value is that of its only child: parentheses, await */
	NC_KIND_JUXTAPOSED, /* strings that stand beside each other */
	NC_KIND_CHOICE,	    /* one of its children is its value */
	NC_KIND_LIST,
	NC_KIND_DICT,
	NC_KIND_PAIR,
	NC_KIND_COMPREHENSION,
	NC_KIND_FOR_CLAUSE,
	NC_KIND_LAMBDA,
	/* statements */
	NC_KIND_ASSIGN,
	NC_KIND_DECLARE, /* an assignment that makes a fresh name */
	NC_KIND_IMPORT,
	NC_KIND_IMPORT_FROM,
	NC_KIND_IMPORT_AS,
	NC_KIND_IMPORT_ALL,
	NC_KIND_IMPORT_LIST,
	NC_KIND_EXPORT,
	NC_KIND_FUNCTION,
	NC_KIND_CLASS,
	NC_KIND_PARAMETERS,
	NC_KIND_TYPED,	/* a parameter or variable with its type or default */
	NC_KIND_BRANCH, /* if, try, match: what stands inside may not happen */
	NC_KIND_LOOP,
	NC_KIND_RETURN,
	NC_KIND_STATEMENT, /* an expression by itself */
	NC_KIND_WITH_ITEM,
	NC_KIND_COMPOSITE,    /* Go: a type and a list */
	NC_KIND_DECLARE_LIST, /* Go: several names at once */
	NC_KIND_SCOPED,	      /* Rust: a::b */
	NC_KIND_UNSAFE,
	NC_KIND_FOREIGN,
	NC_KIND_MACRO,
	NC_KIND_TOKENS, /* what a macro is given */
	/* shell */
	NC_KIND_COMMAND,
	NC_KIND_COMMAND_NAME,
	NC_KIND_WORD,
	NC_KIND_CONCATENATION,
	NC_KIND_RAW_STRING,
	NC_KIND_ANSI_STRING,
	NC_KIND_EXPANSION,
	NC_KIND_VARIABLE_NAME,
	NC_KIND_SUBSTITUTION,
	NC_KIND_PIPELINE,
	NC_KIND_REDIRECTED,
	NC_KIND_REDIRECT,
	NC_KIND_HEREDOC,
	NC_KIND_HEREDOC_BODY,
	NC_KIND_HERESTRING,
	NC_KIND_SUBSHELL,
	NC_KIND_BACKGROUND,
	NC_KIND_MAX,
};

enum nc_role {
	NC_ROLE_NONE,
	NC_ROLE_FUNCTION,
	NC_ROLE_ARGUMENTS,
	NC_ROLE_OBJECT,
	NC_ROLE_ATTRIBUTE,
	NC_ROLE_NAME,
	NC_ROLE_ALIAS,
	NC_ROLE_MODULE,
	NC_ROLE_LEFT,
	NC_ROLE_RIGHT,
	NC_ROLE_KEY,
	NC_ROLE_VALUE,
	NC_ROLE_INDEX,
	NC_ROLE_OPERATOR,
	NC_ROLE_BODY,
	NC_ROLE_CONDITION,
	NC_ROLE_PARAMETERS,
	NC_ROLE_REDIRECT,
	NC_ROLE_DESTINATION,
	NC_ROLE_MAX,
};

/* What a grammar calls a kind or a role; NULL closes a table. */
struct nc_kind_name {
	const char *name;
	enum nc_kind kind;
};

/* A grammar with its names looked up. */
struct nc_grammar {
	const void *language; /* a TSLanguage; NULL: not looked up yet */
	uint8_t kind[640];    /* by symbol */
	uint8_t role[64];     /* by field */
};

struct nc_node {
	uint32_t start, end; /* bytes */
	uint32_t next;	     /* the first node behind this one and all below it */
	uint32_t parent;
	uint32_t datum; /* what the walk found out about it; 0: nothing */
	uint8_t kind;	/* enum nc_kind */
	uint8_t role;	/* enum nc_role: what it is to its parent */
	bool missing;	/* the parser made it up to repair the code */
};

struct nc_tree {
	const char *text; /* borrowed */
	uint32_t size;
	struct nc_node *nodes; /* nodes[0] is the root */
	uint32_t count;
	bool broken;	/* some of it does not parse, */
	uint32_t error; /* first of all this node */
};

/* Looks the names up; grammar is zeroed memory. */
void nc_grammar_init(
	struct nc_grammar *grammar, const void *language, const struct nc_kind_name *kinds);

/*
 * Parses text, which must outlive the tree. The nodes belong to the caller: nc_tree_done. 0;
 * -ETIME: deadline_ns has passed; -EFBIG: more than NC_NODES_MAX nodes; -ENOMEM.
 */
int nc_tree_parse(const struct nc_grammar *grammar, const char *text, uint32_t size,
	uint64_t deadline_ns, struct nc_tree *ret_tree);

void nc_tree_done(struct nc_tree *tree);

/* The first child; 0: none. Children are then reached with nc_tree_next. */
static inline uint32_t nc_tree_first(const struct nc_tree *tree, uint32_t node)
{
	return tree->nodes[node].next > node + 1 ? node + 1 : 0;
}

/* The next sibling; 0: none. */
static inline uint32_t nc_tree_next(const struct nc_tree *tree, uint32_t node)
{
	uint32_t next = tree->nodes[node].next;

	return node > 0 && next < tree->nodes[tree->nodes[node].parent].next ? next : 0;
}

/* The child with a role, or of a kind; 0: none. */
uint32_t nc_tree_child(const struct nc_tree *tree, uint32_t node, enum nc_role role);
uint32_t nc_tree_child_of_kind(const struct nc_tree *tree, uint32_t node, enum nc_kind kind);

/* The only child that is no comment; 0: none or several. */
uint32_t nc_tree_only(const struct nc_tree *tree, uint32_t node);

/* The source text of a node. */
static inline const char *nc_tree_text(
	const struct nc_tree *tree, uint32_t node, uint32_t *ret_size)
{
	*ret_size = tree->nodes[node].end - tree->nodes[node].start;
	return tree->text + tree->nodes[node].start;
}

static inline bool nc_tree_is(const struct nc_tree *tree, uint32_t node, const char *text)
{
	uint32_t size;
	const char *own = nc_tree_text(tree, node, &size);

	return strlen(text) == size && memcmp(own, text, size) == 0;
}

#endif
