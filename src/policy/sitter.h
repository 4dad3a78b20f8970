/*
 * What is taken from inside of tree-sitter, for speed. Its trees are read where they lie rather
 * than through its cursor, and its lexer goes through plain text by a shorter way. Both, and
 * sitter_core.c, know what is not in its API: tools/grammars pins the version that it belongs to.
 */
#ifndef NC_SITTER_H
#define NC_SITTER_H

#include "policy/tree.h"

struct TSParser;
struct TSTree;

/*
 * For a parser that is fresh from ts_parser_new, and will read one text which is UTF-8 and which
 * it is given in one piece.
 */
void nc_sitter_hasten(struct TSParser *parser);

/*
 * Copies what is of interest of a tree into ret_tree->nodes, which belong to the caller, and sets
 * count, broken and error. 0; -EFBIG: more than NC_NODES_MAX nodes; -ENOMEM.
 */
int nc_sitter_copy(
	const struct TSTree *from, const struct nc_grammar *grammar, struct nc_tree *ret_tree);

#endif
