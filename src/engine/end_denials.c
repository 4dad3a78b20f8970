/* What was refused to a command by the box that it ran in. */
#include "engine/end_denials.h"

#include "base/text.h"
#include "box/status.h"

enum nc_denial_limit nc_denials_limit(const struct nc_box_end *end)
{
	switch (end->cause) {
	case NC_CAUSE_WALL:
		return NC_DENIAL_WALL;
	case NC_CAUSE_CPU:
		return NC_DENIAL_CPU;
	case NC_CAUSE_MEMORY:
		return NC_DENIAL_MEMORY;
	case NC_CAUSE_OUTPUT:
		return NC_DENIAL_OUTPUT;
	case NC_CAUSE_EXIT:
	case NC_CAUSE_CANCEL:
	case NC_CAUSE_MAX:
		break;
	}
	return nc_streq(nc_outcome_status(end), "disk_limit") ? NC_DENIAL_DISK
							      : NC_DENIAL_LIMIT_MAX;
}

/* How often a limit was met, where that is counted. */
static uint64_t met(const struct nc_box_end *end, enum nc_denial_limit limit)
{
	uint64_t count = limit == NC_DENIAL_MEMORY ? end->usage.oom_kills
			 : limit == NC_DENIAL_PIDS ? end->usage.pids_refused
						   : 1;

	return count > 0 ? count : 1;
}

enum nc_denial_box nc_denials_box(const struct nc_box_end *end)
{
	if (end->tier == NC_TIER_CONTAINER)
		return NC_DENIAL_IN_CONTAINER;
	return end->alone ? NC_DENIAL_ALONE : NC_DENIAL_IN_PROCESS;
}

size_t nc_denials_of_end(
	const struct nc_box_end *end, struct nc_denial ret_list[static NC_END_DENIALS_MAX])
{
	static const uint32_t bits[NC_DENIAL_LIMIT_MAX] = {
		[NC_DENIAL_MEMORY] = NC_HIT_MEMORY,
		[NC_DENIAL_PIDS] = NC_HIT_PIDS,
		[NC_DENIAL_DISK] = NC_HIT_DISK,
		[NC_DENIAL_INODES] = NC_HIT_INODES,
		[NC_DENIAL_FILES] = NC_HIT_FILES,
	};
	enum nc_denial_limit last = nc_denials_limit(end);
	size_t n = 0;

	for (size_t i = 0; i < end->n_denied; i++)
		nc_denial_of_call(nc_outcome_call(&end->denied[i]), nc_denials_box(end),
			end->denied[i].count, &ret_list[n++]);
	for (enum nc_denial_limit i = 0; i < NC_DENIAL_LIMIT_MAX; i++)
		if (i == last || end->hit & bits[i])
			nc_denial_of_limit(i, met(end, i), &ret_list[n++]);
	return n;
}
