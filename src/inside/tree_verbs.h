/* What nacre-files does with single paths. */
#ifndef NC_INSIDE_TREE_VERBS_H
#define NC_INSIDE_TREE_VERBS_H

#include "base/error.h"

/* argv begins with the verb. The exit status: 0 or an errno; -1: there is no such verb. */
int nc_tree_verb(int argc, char **argv);

/* PATH: a directory, with those above it that are missing. */
int nc_verb_make(char **argv, struct nacre_err *err);

#endif
