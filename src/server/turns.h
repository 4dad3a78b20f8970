/*
 * How long the loop is busy with one turn: everybody else waits meanwhile. Counted in CPU time of
 * its thread, so that a busy machine is not taken for a busy loop.
 */
#ifndef NC_TURNS_H
#define NC_TURNS_H

#include <stdint.h>
#include <uv.h>

struct nc_turns;

/* NULL: no memory. */
struct nc_turns *nc_turns_new(uv_loop_t *loop);
void nc_turns_free(struct nc_turns *turns);

/* The longest since it began. */
uint64_t nc_turns_longest_ns(const struct nc_turns *turns);

/* Turns that took longer than NC_TURN_MAX_NS. */
#define NC_TURN_MAX_NS (20ULL * 1000 * 1000)
uint64_t nc_turns_slow(const struct nc_turns *turns);

#endif
