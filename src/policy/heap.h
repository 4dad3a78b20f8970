/*
 * The memory of tree-sitter while it parses one text. It is given back all at once, so that neither
 * tree nor parser need be taken apart, and it is known how much there is: who asks whether it is
 * too much, from the parser's own callback, ends the parse; tree-sitter itself cannot be refused
 * any.
 *
 * There is one heap, as tree-sitter has one allocator for all; nothing else runs while it parses.
 */
#ifndef NC_HEAP_H
#define NC_HEAP_H

#include <stdbool.h>
#include <stddef.h>

/*
 * From now on tree-sitter has its memory from here. false: it has it from malloc(), since
 * sanitizers want to see each piece, and everything has to be freed one by one.
 */
bool nc_heap_begin(void);

/* Bytes that it has. */
size_t nc_heap_taken(void);

/* All that was given is free again; nothing that tree-sitter has made may be used any more. */
void nc_heap_end(void);

#endif
