/* The grammars, which tools/grammars fetches: each gives a TSLanguage. */
#ifndef NC_GRAMMARS_H
#define NC_GRAMMARS_H

const void *tree_sitter_bash(void);
const void *tree_sitter_go(void);
const void *tree_sitter_javascript(void);
const void *tree_sitter_typescript(void);
const void *tree_sitter_python(void);
const void *tree_sitter_rust(void);

#endif
