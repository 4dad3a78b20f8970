/* One set of limits, as resource_limits.yaml has many and a policy one. */
#ifndef NC_LIMIT_VALUES_H
#define NC_LIMIT_VALUES_H

#include "config/schema.h"

struct nc_limit_values {
	struct nc_value memory_mb;
	struct nc_value cpu_cores; /* in thousandths of a core */
	struct nc_value execution_time_seconds;
	struct nc_value max_processes;
	struct nc_value disk_mb;
};

/* Their fields, without built-in values. */
extern const struct nc_field nc_limit_fields[];

#endif
