/* What was refused to a command by the box that it ran in. */
#ifndef NC_END_DENIALS_H
#define NC_END_DENIALS_H

#include "kernel/boxwire.h"
#include "policy/denial.h"

/* What held it. */
enum nc_denial_box nc_denials_box(const struct nc_box_end *end);

/* What ended it, for a limit; NC_DENIAL_LIMIT_MAX: no limit did. */
enum nc_denial_limit nc_denials_limit(const struct nc_box_end *end);

/* Calls first, then limits. Returns how many. */
#define NC_END_DENIALS_MAX (NC_DENIED_MAX + NC_DENIAL_LIMIT_MAX)
size_t nc_denials_of_end(
	const struct nc_box_end *end, struct nc_denial ret_list[static NC_END_DENIALS_MAX]);

#endif
