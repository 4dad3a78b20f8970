/* Reads hostile bytes as the terms of a box, a decision and a meter. */
#include "fuzz.h"

#include <assert.h>

#include "egress/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nc_wire_in in = {.at = data, .left = size};
	struct nc_egress_decision decision;
	struct nc_egress_meter meter;
	struct nc_door_terms terms = {0};
	int wrong = nc_egresswire_get_terms(&in, &terms);

	if (wrong == 0 && in.error == 0)
		assert(terms.rules.n <= NC_EGRESS_RULES_MAX && terms.limits.connections > 0);
	else
		assert(terms.rules.n == 0 && !terms.rules.entries);
	nc_door_terms_done(&terms);
	in = (struct nc_wire_in){.at = data, .left = size};
	nc_egresswire_get_decision(&in, &decision);
	assert(in.error < 0 || decision.reason < NC_REASON_MAX);
	in = (struct nc_wire_in){.at = data, .left = size};
	nc_egresswire_get_meter(&in, &meter);
	assert(in.error < 0 || meter.n_top <= NC_EGRESS_TOP_MAX);
	return 0;
}
