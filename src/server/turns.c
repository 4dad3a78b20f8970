/* How long the loop is busy with one turn. */
#include "server/turns.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

struct nc_turns {
	uv_prepare_t prepare; /* runs once a turn, before it is waited for what comes */
	uint64_t last_ns, longest_ns, slow;
};

static uint64_t cpu_ns(void)
{
	struct timespec time;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) < 0)
		return 0;
	return (uint64_t)time.tv_sec * NC_NS_PER_S + (uint64_t)time.tv_nsec;
}

static void on_turn(uv_prepare_t *prepare)
{
	struct nc_turns *turns = prepare->data;
	const uint64_t now = cpu_ns(), took = now - turns->last_ns;

	turns->last_ns = now;
	if (took > turns->longest_ns)
		turns->longest_ns = took;
	turns->slow += took > NC_TURN_MAX_NS;
}

struct nc_turns *nc_turns_new(uv_loop_t *loop)
{
	struct nc_turns *turns = calloc(1, sizeof(*turns));

	if (!turns)
		return NULL;
	(void)uv_prepare_init(loop, &turns->prepare); /* neither can fail */
	turns->prepare.data = turns;
	turns->last_ns = cpu_ns();
	(void)uv_prepare_start(&turns->prepare, on_turn);
	uv_unref((uv_handle_t *)&turns->prepare);
	return turns;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void nc_turns_free(struct nc_turns *turns)
{
	if (turns)
		uv_close((uv_handle_t *)&turns->prepare, on_closed);
}

uint64_t nc_turns_longest_ns(const struct nc_turns *turns)
{
	return turns->longest_ns;
}

uint64_t nc_turns_slow(const struct nc_turns *turns)
{
	return turns->slow;
}
