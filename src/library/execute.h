/* Executions from the client's side: from the text of a request to the text of its reply. */
#ifndef NC_LIBRARY_EXECUTE_H
#define NC_LIBRARY_EXECUTE_H

#include "library/client.h"

/* Hands a request over; its ticket begins as a copy of `like`. Does not call back. */
int nc_execute_submit(struct nacre_engine *engine, const char *request,
	const struct nc_ticket *like, uint64_t *ret_n, struct nacre_err *err);

/* The reply of a ticket that is answered, which is dropped in any case. */
int nc_execute_take(struct nacre_engine *engine, struct nc_ticket *ticket, char **ret_reply,
	struct nacre_err *err);

/* The engine need not go on with it, and nobody waits for it. */
void nc_execute_abandon(struct nacre_engine *engine, struct nc_ticket *ticket);

/* Fills the caller's struct, which begins with its size, from ours. */
int nc_copy_out(void *theirs, const void *ours, size_t our_size, struct nacre_err *err);
/* Fills ours, which is zeroed, from the caller's, which may be NULL. */
int nc_copy_in(void *ours, size_t our_size, const void *theirs, struct nacre_err *err);

/* -EINVAL with a message. */
int nc_null_pointer(struct nacre_err *err);

#endif
