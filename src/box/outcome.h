/* How a command ended, as the values of replies. */
#ifndef NC_BOX_OUTCOME_H
#define NC_BOX_OUTCOME_H

#include <jansson.h>

#include "box/status.h"

/* New values; NULL: out of memory. */
json_t *nc_outcome_usage(const struct nc_box_end *end, uint64_t output_bytes, uint64_t birth_ns);
json_t *nc_outcome_hit(const struct nc_box_end *end); /* limits that it met and survived */
json_t *nc_outcome_strength(const struct nc_box_end *end);
json_t *nc_outcome_code(const struct nc_box_end *end);	 /* a number, or null */
json_t *nc_outcome_signal(const struct nc_box_end *end); /* the same */

/* What could not be done, by its name; NULL: it has run. error: the -errno that was told. */
const char *nc_outcome_failure(enum nc_fail fail, int error);

#endif
