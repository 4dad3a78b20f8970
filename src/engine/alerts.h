/* What the threat detector says about an execution, as the list `alerts` of replies. */
#ifndef NC_ALERTS_H
#define NC_ALERTS_H

#include <jansson.h>

#include "kernel/boxwire.h"
#include "policy/book.h"

/* NULL: out of memory. */
json_t *nc_alerts_json(
	const struct nc_box_end *end, uint64_t output_bytes, const struct nc_terms *terms);

#endif
