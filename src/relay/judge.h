/* What the near end lets through: orders that can be carried out over there, and events. */
#ifndef NC_JUDGE_H
#define NC_JUDGE_H

#include <stdbool.h>

#include "base/wire.h"
#include "wire/frames.h"

/* Whether it orders a box or a command, which can be answered. */
bool nc_judge_is_order(uint16_t type);

/* Whether the order wants a door, which is a socket that listens, and no stream. */
bool nc_judge_wants_door(const void *data, size_t size);

/*
 * The answer to an order that was not passed on: NC_BOX_FAILED with -error and why. Nothing if no
 * box is named in it.
 */
void nc_judge_refuse(struct nc_wire_out *out, const void *data, size_t size, int error);

/*
 * A message from the other end: what is wrong with it, or NULL. near: towards a worker, else
 * towards a holder, which judges all that it is sent itself.
 */
const char *nc_judge_message(
	bool near, const void *data, size_t size, const struct nc_carry *list, size_t n);

#endif
