/* What nacre-files does with archives: whole trees through its standard streams. */
#ifndef NC_INSIDE_TAR_VERBS_H
#define NC_INSIDE_TAR_VERBS_H

#include "base/error.h"

/* MAX PATH: the tree below a directory, or one file, to standard output. */
int nc_verb_pack(char **argv, struct nacre_err *err);
/* PATH: standard input into a directory, which is made if it is missing. */
int nc_verb_unpack(char **argv, struct nacre_err *err);
/* MAX NAME: all that a user of the box can have written, but not that file of the workspace. */
int nc_verb_save(char **argv, struct nacre_err *err);
/* NAME: that archive in place of what is there, but not of that file of the workspace. */
int nc_verb_restore(char **argv, struct nacre_err *err);

#endif
