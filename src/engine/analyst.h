/*
 * nacre-analyst: reads foreign programs for the daemon, in processes that have no rights.
 *
 * Theory of operation: the one that the keeper starts reads nothing foreign. At its place it is
 * handed sockets, and forks a child for each, which is locked in and answers questions on it: which
 * language is this, what does the policy say about it. A child that has met its bound of CPU time
 * or memory is dead, and one that has read a large program ends by itself, so that its memory goes
 * back; the daemon hands in another socket then.
 *
 *	question: u64 number of the policy, u8 language or NC_ANALYST_DETECT, text name of the file,
 *		bytes of the program if they are few; descriptors: the policy, and the program if it
 *		is large, as memory that is sealed
 *	answer: u8 whether it is the last part, bytes; together: u32 error, u8 language, text how it
 *		was told, the report (policy/portable.h)
 */
#ifndef NC_ANALYST_H
#define NC_ANALYST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum nc_analyst_message { NC_ANALYST_QUESTION = 1, NC_ANALYST_ANSWER };

#define NC_ANALYST_DETECT UINT8_MAX
/* What a file may be called. */
#define NC_ANALYST_NAME_MAX 1023U
/* Larger programs come as memory, are read with little of the processor, and by one child each. */
#define NC_ANALYST_SMALL (32U * 1024)
/* One part of an answer. */
#define NC_ANALYST_PART_MAX (60U * 1024)

/* As nc_aide_start (server/keeper.h). */
int nc_analyst_start(int place_fd, bool ranges, int *ret_pidfd, struct nacre_err *err);

#endif
