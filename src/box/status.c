/* How a command ended, in the words of replies. */
#include "box/status.h"

#include <signal.h>

#include "kernel/filter.h"

/* What a program is called that ended so. */
const char *nc_outcome_status(const struct nc_box_end *end)
{
	switch (end->cause) {
	case NC_CAUSE_WALL:
		return "timeout";
	case NC_CAUSE_CPU:
		return "cpu_limit";
	case NC_CAUSE_MEMORY:
		return "memory_limit";
	case NC_CAUSE_OUTPUT:
		return "output_limit";
	case NC_CAUSE_CANCEL:
		return "cancelled";
	case NC_CAUSE_EXIT:
	case NC_CAUSE_MAX:
		break;
	}
	/* a file that grew too long, or a page of a file that the full disk had no room for */
	if (end->signal == SIGXFSZ || (end->signal == SIGBUS && end->hit & NC_HIT_DISK))
		return "disk_limit";
	if (end->signal)
		return "killed";
	return end->code == 0 ? "success" : "error";
}

const char *nc_outcome_call(const struct nc_box_denied *denied)
{
	const char *name = nc_filter_call_name((int)denied->call);

	return name ? name : "unknown";
}
