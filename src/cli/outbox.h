/*
 * Captured files on their way to the caller's disk. What a program left behind is hostile, and the
 * worker that has it may write nowhere: a process of the caller's rights, which was begun before
 * the worker gave them up and can reach one directory alone, takes the files from it and writes
 * them. Below that directory it follows no link.
 */
#ifndef NC_OUTBOX_H
#define NC_OUTBOX_H

#include <jansson.h>

#include "base/error.h"

/*
 * Starts that process. dir is made if it is missing; NULL: the current directory, where no file is
 * replaced and no hidden one is made, since nobody said that programs may write there. Returns a
 * descriptor for nc_outbox_put.
 */
int nc_outbox_start(const char *dir, struct nacre_err *err);

/* Has the files of a reply written, and says on stderr what became of them. */
int nc_outbox_put(int fd, const json_t *reply, struct nacre_err *err);

#endif
