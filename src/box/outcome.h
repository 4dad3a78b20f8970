/* How a command ended, in the words of replies. */
#ifndef NC_BOX_OUTCOME_H
#define NC_BOX_OUTCOME_H

#include <jansson.h>

#include "kernel/boxwire.h"

/* "success", "timeout" and so on. */
const char *nc_outcome_status(const struct nc_box_end *end);

/* The name of a refused system call; never NULL. */
const char *nc_outcome_call(const struct nc_box_denied *denied);

/* New values; NULL: out of memory. */
json_t *nc_outcome_usage(const struct nc_box_end *end, uint64_t output_bytes, uint64_t birth_ns);
json_t *nc_outcome_hit(const struct nc_box_end *end); /* limits that it met and survived */
json_t *nc_outcome_strength(const struct nc_box_host *host, const struct nc_box_end *end);
json_t *nc_outcome_code(const struct nc_box_end *end);	 /* a number, or null */
json_t *nc_outcome_signal(const struct nc_box_end *end); /* the same */

#endif
