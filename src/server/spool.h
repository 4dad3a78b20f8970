/*
 * A large body on its way to a file that has no name. A thread writes it, so that no disk holds up
 * the loop; what has not been written is little.
 */
#ifndef NC_SPOOL_H
#define NC_SPOOL_H

#include <stddef.h>
#include <uv.h>

struct nc_spool;

/*
 * Begins one in the directory; wake(context) is called on the loop when it takes more, or all of it
 * is written. NULL: there is no memory, or the file system has no such files.
 */
struct nc_spool *nc_spool_new(
	uv_loop_t *loop, int dir_fd, void (*wake)(void *context), void *context);

/* Copies as much as it takes now. */
size_t nc_spool_put(struct nc_spool *spool, const char *data, size_t size);

/* 0: everything is in the file. -EAGAIN: not yet, and wake is called. Or why it never will be. */
int nc_spool_flush(struct nc_spool *spool);

/* Hands the file over, once all is in it. */
int nc_spool_take(struct nc_spool *spool, size_t *ret_size);

/* At any time; accepts NULL. wake is not called any more. */
void nc_spool_free(struct nc_spool *spool);

#endif
