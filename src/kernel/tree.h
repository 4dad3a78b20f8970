/* Removing a directory tree that somebody hostile has made. */
#ifndef NC_TREE_H
#define NC_TREE_H

#include <stdint.h>

/*
 * Removes what is called name in dir_fd: a file, a link (and not what it points to), or a directory
 * with everything below it, however deep, wide or badly named. name is one name, no path. Never
 * leaves the tree: follows no link and enters no mount point. Directories of this user that he
 * cannot read or write are made so; the flags "immutable" and "append only" are cleared where that
 * is permitted.
 *
 * Nobody else should be at work in the tree. If somebody is after all, then the worst is that
 * something in the tree survives, and -ESTALE.
 *
 * Returns 0 when it is gone, also if it was not there; -ETIMEDOUT when deadline_ns on the monotonic
 * clock has come (what is gone is gone, and another call goes on); or else the first error, after
 * all that could be removed has been. Holds three descriptors and 80 KiB at most.
 *
 * The caller needs what unlink() needs: in a sticky directory of another user that is CAP_FOWNER,
 * which CAP_DAC_OVERRIDE does not replace. Where the tree has one owner it is best run as him.
 */
int nc_tree_remove(int dir_fd, const char *name, uint64_t deadline_ns);

#endif
