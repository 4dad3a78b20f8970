/* What filter_gen.c prints: the programs, and the names of the calls. For filter.c alone. */
#ifndef NC_FILTER_BYTES_H
#define NC_FILTER_BYTES_H

#include <linux/filter.h>
#include <stddef.h>

#include "kernel/filter.h"

struct nc_filter_bytes {
	const struct sock_filter *code; /* NULL: the profile has no such variant */
	unsigned short length;
};

extern const struct nc_filter_bytes nc_filter_bytes[NC_FILTER_MAX][NC_FILTER_VARIANT_MAX];

/* By number; NULL where there is no call. */
extern const char *const nc_filter_names[];
extern const size_t nc_filter_n_names;

#endif
