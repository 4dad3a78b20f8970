/* Whether boxes can be made. */
#include "server/ready.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "engine/bounds.h"
#include "engine/work.h"
#include "tier/settle.h"

#define FRESH_NS (5 * NC_NS_PER_S)
#define MB (1ULL << 20)

struct asker {
	struct asker *next;
	nc_ready_answer answer;
	void *context;
};

struct nc_ready {
	struct nc_engine *engine;
	struct nc_command *command; /* while a box is tried */
	struct asker *askers;
	uint64_t at_ns; /* of the last answer; 0: none */
	char failure[NACRE_ERR_MESSAGE_MAX];
	double seconds;
};

struct nc_ready *nc_ready_new(struct nc_engine *engine)
{
	struct nc_ready *ready = calloc(1, sizeof(*ready));

	if (ready)
		ready->engine = engine;
	return ready;
}

static void tell(struct nc_ready *ready)
{
	struct asker *askers = ready->askers;

	ready->askers = NULL;
	while (askers) {
		struct asker *next = askers->next;

		askers->answer(
			askers->context, ready->failure[0] ? ready->failure : NULL, ready->seconds);
		free(askers);
		askers = next;
	}
}

void nc_ready_free(struct nc_ready *ready)
{
	if (!ready)
		return;
	while (ready->askers) {
		struct asker *asker = ready->askers;

		ready->askers = asker->next;
		free(asker);
	}
	/* one that is being tried ends with the hub, which tells us */
	if (ready->command)
		ready->engine = NULL;
	else
		free(ready);
}

static void on_started(void *context, uint64_t birth_ns, int door_fd)
{
	(void)nc_fd_close(door_fd);
	((struct nc_ready *)context)->seconds = (double)birth_ns / 1e9;
}

static void on_printed(void *context, enum nc_stream stream, const char *data, size_t size)
{
	(void)context, (void)stream, (void)data, (void)size;
}

static void on_ended(void *context, const struct nc_box_end *end, uint64_t output_bytes,
	const struct nacre_err *failure)
{
	struct nc_ready *ready = context;

	(void)output_bytes;
	ready->command = NULL;
	if (!ready->engine) { /* it was freed meanwhile */
		free(ready);
		return;
	}
	ready->at_ns = nc_clock_ns();
	if (failure)
		(void)snprintf(ready->failure, sizeof(ready->failure), "%s", failure->message);
	else if (end->cause != NC_CAUSE_EXIT || end->signal || end->code)
		(void)snprintf(ready->failure, sizeof(ready->failure),
			"A box was made, and its program ended with %u", end->code);
	else
		ready->failure[0] = '\0';
	tell(ready);
}

static int try_box(struct nc_ready *ready, struct nacre_err *err)
{
	static const char program[] = "true", path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
	const struct nc_engine_setup *setup = nc_engine_setup(ready->engine);
	struct nc_hub *hub = nc_engine_hub(ready->engine);
	/* those that an execution has which names none */
	const struct nc_limit_values *usual = &setup->config->limits.language[NC_PYTHON];
	const enum nc_tier tier = nc_holder_terms(setup->holder, NC_TIER_CONTAINER)->here
					  ? NC_TIER_CONTAINER
					  : NC_TIER_PROCESS;
	struct nc_exec_spec exec = {.id = nc_hub_box_id(hub, tier),
		.tier = tier,
		.limits = {.memory_bytes = usual->memory_mb.number * MB,
			.cpu_milli = usual->cpu_cores.number,
			.wall_ms = 10000,
			.pids = usual->max_processes.number * NC_THREADS_PER_PROCESS,
			.disk_bytes = usual->disk_mb.number * MB,
			.inodes = usual->disk_mb.number * MB / 4096 + 64,
			.open_files = nc_files_usual()},
		.argv = {.data = program, .size = sizeof(program), .count = 1},
		.env = {.data = path, .size = sizeof(path), .count = 1}};
	struct nc_command_spec spec = {.exec = &exec,
		.image_fd = -EBADF,
		.input_fd = -EBADF,
		.output_max = 4096,
		.context = ready,
		.started = on_started,
		.printed = on_printed,
		.ended = on_ended};
	struct nc_wish wish = {.names = NULL};
	int r = nc_settle(setup->holder, &wish, &exec, err);

	if (r < 0)
		return r;
	return nc_hub_start(hub, &spec, &ready->command, err);
}

void nc_ready_ask(struct nc_ready *ready, nc_ready_answer answer, void *context)
{
	struct asker *asker;
	struct nacre_err err = {0};

	if (ready->at_ns && nc_clock_ns() - ready->at_ns < FRESH_NS) {
		answer(context, ready->failure[0] ? ready->failure : NULL, ready->seconds);
		return;
	}
	asker = calloc(1, sizeof(*asker));
	if (!asker) {
		answer(context, "Out of memory", 0);
		return;
	}
	*asker = (struct asker){.next = ready->askers, .answer = answer, .context = context};
	ready->askers = asker;
	if (ready->command || try_box(ready, &err) == 0)
		return;
	ready->at_ns = nc_clock_ns();
	(void)snprintf(ready->failure, sizeof(ready->failure), "%s", err.message);
	tell(ready);
}

json_t *nc_ready_tiers(const struct nc_ready *ready)
{
	const struct nc_holder *first = nc_engine_setup(ready->engine)->holder;
	json_t *tiers = json_array();

	for (enum nc_tier i = 0; i < NC_TIER_MAX; i++)
		if (nc_holder_terms(first, i)->here)
			(void)json_array_append_new(tiers, json_string(nc_tier_names[i]));
	return tiers;
}

void nc_ready_forget(struct nc_ready *ready, const void *context)
{
	for (struct asker **place = &ready->askers; *place;) {
		struct asker *asker = *place;

		if (asker->context != context) {
			place = &asker->next;
			continue;
		}
		*place = asker->next;
		free(asker);
	}
}
