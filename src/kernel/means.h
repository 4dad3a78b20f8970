/* What a box is held by, and what that is worth. */
#ifndef NC_MEANS_H
#define NC_MEANS_H

#include "kernel/boxwire.h"

/* The mechanisms that differ from box to box of one host. */
struct nc_means {
	uint32_t landlock; /* the ABI; 0: none */
	bool reported;	   /* refused calls are reported */
	bool pid_ns;	   /* it has a pid namespace: nothing of it can survive */
	bool users;	   /* its commands may be root of it, and its other users */
	bool alone;	   /* it can make no processes, because nothing could end them */
};

void nc_means_grade(const struct nc_box_host *host, enum nc_tier tier, const struct nc_means *means,
	enum nc_grade ret_grades[static NC_STRENGTH_MAX]);

/*
 * Why no box here can be what the order wants, or be held by what it requires, as far as that is
 * known before it is made: Landlock turns out later. NULL: it can. Static memory.
 */
const char *nc_means_refuse(const struct nc_box_host *host, const struct nc_box_order *order);

/* Says it with the end of a command; the tier stands there. */
void nc_means_tell(
	const struct nc_box_host *host, const struct nc_means *means, struct nc_box_end *end);

#endif
