/* The public execution engine. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "library/execute.h"

const char *nacre_version(void)
{
	return NACRE_VERSION;
}

void nacre_free(void *memory)
{
	free(memory);
}

int nacre_engine_new(const struct nacre_engine_options *options, struct nacre_engine **ret_engine,
	struct nacre_err *err)
{
	struct nacre_engine_options known = {0};
	struct nacre_engine *engine;
	struct nacre_err why = {0};
	int r;

	if (!ret_engine)
		return nc_null_pointer(err);
	r = nc_copy_in(&known, sizeof(known), options, err);
	if (r < 0)
		return r;
	engine = calloc(1, sizeof(*engine));
	if (!engine)
		return nc_err_errno(err, -ENOMEM, "Start nacre engine");
	r = nc_client_start(engine, &known, &why);
	if (r < 0) {
		nacre_engine_free(engine);
		return nc_err_set(err, r, "%s", why.message);
	}
	*ret_engine = engine;
	return 0;
}

void nacre_engine_free(struct nacre_engine *engine)
{
	if (!engine)
		return;
	nc_client_end(engine);
	free(engine);
}

int nacre_engine_execute(
	struct nacre_engine *engine, const char *request, char **ret_reply, struct nacre_err *err)
{
	const struct nc_ticket like = {.owner = &like};
	struct nc_ticket *ticket;
	uint64_t n;
	int r;

	if (!engine || !request || !ret_reply)
		return nc_null_pointer(err);
	r = nc_execute_submit(engine, request, &like, &n, err);
	if (r < 0)
		return r;
	/* looked for each time: the calls back may do anything */
	while (ticket = nc_client_find(engine, n), r == 0 && !ticket->answer) {
		r = nc_client_pump(engine, -1, err);
		(void)nc_client_call_back(engine);
	}
	if (r == 0)
		return nc_execute_take(engine, ticket, ret_reply, err);
	nc_execute_abandon(engine, ticket);
	return r;
}

int nacre_engine_execute_code(struct nacre_engine *engine, const char *language, const char *code,
	char **ret_reply, struct nacre_err *err)
{
	cleanup_json json_t *request = NULL;
	cleanup_free char *text = NULL;

	if (!engine || !code || !ret_reply)
		return nc_null_pointer(err);
	request = json_object();
	if (json_object_set_new(request, "code", json_string(code)) < 0 ||
		(language && json_object_set_new(request, "language", json_string(language)) < 0))
		return nc_err_set(err, -EINVAL, "Code and language must be UTF-8");
	if (nc_client_text(request, &text) < 0)
		return nc_err_errno(err, -ENOMEM, "Make the request");
	return nacre_engine_execute(engine, text, ret_reply, err);
}

int nacre_engine_submit(struct nacre_engine *engine, const char *request,
	const struct nacre_listener *listener, uint64_t *ret_ticket, struct nacre_err *err)
{
	struct nc_ticket like = {0};
	int r;

	if (!engine || !request || !ret_ticket)
		return nc_null_pointer(err);
	r = nc_copy_in(&like.listener, sizeof(like.listener), listener, err);
	return r < 0 ? r : nc_execute_submit(engine, request, &like, ret_ticket, err);
}

/* Whether it is one of the program's own. */
static bool is_execution(const struct nc_ticket *ticket)
{
	return !ticket->owner && !ticket->is_call && !ticket->discard;
}

/* One that nacre_engine_wait() may wait for; of all those rather one that is answered. */
static struct nc_ticket *find_any(const struct nacre_engine *engine)
{
	struct nc_ticket *found = NULL;

	for (struct nc_ticket *ticket = engine->tickets; ticket; ticket = ticket->next)
		if (is_execution(ticket) && !ticket->listener.done && (!found || ticket->answer)) {
			found = ticket;
			if (found->answer)
				break;
		}
	return found;
}

/* The one to wait for; NULL: there is none, and *ret_error says why. */
static struct nc_ticket *find_waited(
	const struct nacre_engine *engine, uint64_t wanted, int *ret_error, struct nacre_err *err)
{
	struct nc_ticket *ticket = wanted ? nc_client_find(engine, wanted) : find_any(engine);

	if (ticket && is_execution(ticket) && !ticket->listener.done)
		return ticket;
	if (ticket && is_execution(ticket))
		*ret_error = nc_err_set(err, -EBUSY, "The reply is told to the listener");
	else
		*ret_error = nc_err_set(err, -ENOENT, "There is no such execution to wait for");
	return NULL;
}

int nacre_engine_wait(struct nacre_engine *engine, uint64_t ticket, int timeout_ms,
	uint64_t *ret_ticket, char **ret_reply, struct nacre_err *err)
{
	uint64_t deadline_ns =
		nc_clock_ns() + (timeout_ms > 0 ? (unsigned int)timeout_ms * NC_NS_PER_MS : 0);
	struct nc_ticket *found;
	bool is_last = false;
	int r = 0;

	if (!engine || !ret_reply)
		return nc_null_pointer(err);
	while ((found = find_waited(engine, ticket, &r, err)) && !found->answer) {
		if (is_last)
			return nc_err_set(err, -ETIMEDOUT, "There is no reply yet");
		is_last = timeout_ms >= 0 && nc_clock_ns() >= deadline_ns;
		r = nc_client_pump(
			engine, timeout_ms < 0 ? -1 : nc_clock_left_ms(deadline_ns), err);
		(void)nc_client_call_back(engine);
		if (r < 0)
			return r;
	}
	if (!found)
		return r;
	ticket = found->n;
	r = nc_execute_take(engine, found, ret_reply, err);
	if (r == 0 && ret_ticket)
		*ret_ticket = ticket;
	return r;
}

int nacre_engine_cancel(struct nacre_engine *engine, uint64_t ticket, struct nacre_err *err)
{
	const struct nc_ticket like = {.is_call = true, .discard = true};
	const struct nc_ticket *found = engine ? nc_client_find(engine, ticket) : NULL;
	uint64_t ignored;

	if (!engine)
		return nc_null_pointer(err);
	if (!found || !is_execution(found))
		return nc_err_set(err, -ENOENT, "There is no such execution");
	if (found->answer)
		return 0;
	return nc_client_send(engine,
		json_pack("{s:s, s:I}", "op", "cancel", "of", (json_int_t)ticket), &like, &ignored,
		err);
}

int nacre_engine_fd(const struct nacre_engine *engine)
{
	return engine ? engine->epoll_fd : -EINVAL;
}

int nacre_engine_dispatch(struct nacre_engine *engine, struct nacre_err *err)
{
	int calls, r;

	if (!engine)
		return nc_null_pointer(err);
	r = nc_client_pump(engine, 0, err);
	/* what came before it went is told first */
	calls = nc_client_call_back(engine);
	return r < 0 && calls == 0 ? r : calls;
}

static uint64_t number_of(const json_t *answer, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(answer, name));
}

int nacre_engine_load(
	struct nacre_engine *engine, struct nacre_engine_load *ret_load, struct nacre_err *err)
{
	cleanup_json json_t *answer = NULL;
	struct nacre_engine_load load = {0};
	int r;

	if (!engine || !ret_load)
		return nc_null_pointer(err);
	r = nc_client_ask(engine, json_pack("{s:s}", "op", "load"), &answer, err);
	if (r < 0)
		return r;
	load.running = number_of(answer, "running");
	load.queued = number_of(answer, "queued");
	load.memory_bytes = number_of(answer, "memory_bytes");
	return nc_copy_out(ret_load, &load, sizeof(load), err);
}
