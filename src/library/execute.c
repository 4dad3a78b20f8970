/* Executions from the client's side. */
#include "library/execute.h"

#include <errno.h>
#include <string.h>

#include "base/limits.h"

int nc_null_pointer(struct nacre_err *err)
{
	return nc_err_set(err, -EINVAL, "A pointer is NULL that may not be");
}

/* The size that the caller's struct has; he may have been built with fewer members, or more. */
static int size_of(const void *theirs, size_t *ret_size, struct nacre_err *err)
{
	memcpy(ret_size, theirs, sizeof(*ret_size));
	return *ret_size < sizeof(*ret_size)
		       ? nc_err_set(err, -EINVAL, "The member size of a struct is not set")
		       : 0;
}

int nc_copy_in(void *ours, size_t our_size, const void *theirs, struct nacre_err *err)
{
	size_t size;
	int r = theirs ? size_of(theirs, &size, err) : 0;

	if (r == 0 && theirs)
		memcpy(ours, theirs, size < our_size ? size : our_size);
	return r;
}

int nc_copy_out(void *theirs, const void *ours, size_t our_size, struct nacre_err *err)
{
	const size_t head = sizeof(size_t);
	size_t size;
	int r = size_of(theirs, &size, err);

	if (r == 0)
		memcpy((char *)theirs + head, (const char *)ours + head,
			(size < our_size ? size : our_size) - head);
	return r;
}

/* The request as a value, or what is wrong with it as its reply. */
static int read_request(const char *request, json_t **ret_source, json_t **ret_reply)
{
	struct nacre_err err = {0};
	size_t size = strnlen(request, (size_t)NC_REQUEST_SIZE_MAX + 1);
	int r;

	if (size > NC_REQUEST_SIZE_MAX)
		r = nc_err_set(&err, -EINVAL, "found more than %u bytes", NC_REQUEST_SIZE_MAX);
	else if (nc_json_count(request, size) > NC_REQUEST_VALUES_MAX)
		r = nc_err_set(&err, -EINVAL, "found more than %u values", NC_REQUEST_VALUES_MAX);
	else
		r = nc_json_parse(request, size, ret_source, &err);
	if (r < 0)
		*ret_reply = nc_client_invalid(
			json_pack("[{s:s, s:s}]", "pointer", "", "message", err.message));
	return r;
}

int nc_execute_submit(struct nacre_engine *engine, const char *request,
	const struct nc_ticket *like, uint64_t *ret_n, struct nacre_err *err)
{
	json_t *source = NULL, *reply = NULL;

	if (read_request(request, &source, &reply) < 0)
		return nc_client_answer(engine, reply, like, ret_n, err);
	return nc_client_send(engine,
		json_pack("{s:s, s:o, s:b}", "op", "execute", "request", source, "stream",
			like->listener.output != NULL),
		like, ret_n, err);
}

int nc_execute_take(struct nacre_engine *engine, struct nc_ticket *ticket, char **ret_reply,
	struct nacre_err *err)
{
	int r = nc_client_text(ticket->answer, ret_reply);

	nc_client_drop(engine, ticket);
	return r < 0 ? nc_err_errno(err, r, "Take the reply") : 0;
}

void nc_execute_abandon(struct nacre_engine *engine, struct nc_ticket *ticket)
{
	const struct nc_ticket like = {.is_call = true, .discard = true};
	uint64_t n = ticket->n, ignored;

	if (ticket->answer) {
		nc_client_drop(engine, ticket);
		return;
	}
	ticket->discard = true;
	/* if it cannot be told, it is gone, and the execution with it */
	(void)nc_client_send(engine, json_pack("{s:s, s:I}", "op", "cancel", "of", (json_int_t)n),
		&like, &ignored, NULL);
}
