/* Many requests at once, and their replies in order. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "library/execute.h"

/* Others of the program's fill the engine: until it has room again. */
#define RETRY_MS 50

/* One call of nacre_engine_execute_parallel(). */
struct parallel {
	struct nacre_engine *engine;
	const char *const *requests;
	size_t count;
	size_t *waiting; /* indices that are to be sent, the next one last */
	size_t n_waiting, n_open, n_done;
	char **replies;
};

static struct nc_ticket *find_answered(const struct parallel *all)
{
	struct nc_ticket *ticket = all->engine->tickets;

	while (ticket && (ticket->owner != all || !ticket->answer))
		ticket = ticket->next;
	return ticket;
}

static int send_some(struct parallel *all, struct nacre_err *err)
{
	int r = 0;

	while (r == 0 && all->n_waiting > 0 && all->n_open < all->engine->max_queued) {
		const struct nc_ticket like = {
			.owner = all, .index = all->waiting[all->n_waiting - 1]};
		uint64_t ignored;

		r = nc_execute_submit(all->engine, all->requests[like.index], &like, &ignored, err);
		all->n_waiting -= r == 0;
		all->n_open += r == 0;
	}
	return r;
}

static int take_reply(struct parallel *all, struct nc_ticket *ticket, nacre_progress progress,
	void *context, struct nacre_err *err)
{
	size_t index = ticket->index;
	int r;

	all->n_open--;
	if (ticket->busy) {
		nc_client_drop(all->engine, ticket);
		all->waiting[all->n_waiting++] = index;
		return all->n_open > 0 ? 0 : nc_client_pump(all->engine, RETRY_MS, err);
	}
	r = nc_execute_take(all->engine, ticket, &all->replies[index], err);
	if (r < 0)
		return r;
	all->n_done++;
	if (progress)
		progress(context, index, all->replies[index]);
	return 0;
}

static int run(struct parallel *all, nacre_progress progress, void *context, struct nacre_err *err)
{
	struct nc_ticket *ticket;
	int r = 0;

	while (r == 0 && all->n_done < all->count) {
		r = send_some(all, err);
		if (r < 0)
			break;
		ticket = find_answered(all);
		if (ticket)
			r = take_reply(all, ticket, progress, context, err);
		else
			r = nc_client_pump(all->engine, -1, err);
		(void)nc_client_call_back(all->engine);
	}
	return r;
}

/* From the beginning each time: telling the engine takes answers, which may end others. */
static void abandon_all(struct parallel *all)
{
	struct nc_ticket *ticket = all->engine->tickets;

	while (ticket) {
		if (ticket->owner != all || ticket->discard) {
			ticket = ticket->next;
			continue;
		}
		nc_execute_abandon(all->engine, ticket);
		ticket = all->engine->tickets;
	}
	for (size_t i = 0; i < all->count; i++)
		free(all->replies[i]);
}

int nacre_engine_execute_parallel(struct nacre_engine *engine, const char *const *requests,
	size_t count, nacre_progress progress, void *context, char **ret_replies,
	struct nacre_err *err)
{
	struct parallel all = {.engine = engine, .requests = requests, .count = count};
	cleanup_free size_t *waiting = NULL;
	cleanup_free char **replies = NULL;
	int r;

	if (!engine || (count > 0 && (!requests || !ret_replies)))
		return nc_null_pointer(err);
	for (size_t i = 0; i < count; i++)
		if (!requests[i])
			return nc_null_pointer(err);
	all.waiting = waiting = calloc(count + 1, sizeof(*waiting));
	all.replies = replies = calloc(count + 1, sizeof(*replies));
	if (!waiting || !replies)
		return nc_err_errno(err, -ENOMEM, "Execute in parallel");
	for (all.n_waiting = 0; all.n_waiting < count; all.n_waiting++)
		waiting[all.n_waiting] = count - 1 - all.n_waiting;
	r = run(&all, progress, context, err);
	if (r < 0) {
		abandon_all(&all);
		return r;
	}
	if (count > 0)
		memcpy(ret_replies, replies, count * sizeof(*replies));
	return 0;
}
