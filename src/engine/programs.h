/* Compiled programs that are kept, by the digest of everything that they are made from. */
#ifndef NC_PROGRAMS_H
#define NC_PROGRAMS_H

#include "engine/execution.h"

/* Gives every compiled step its key, and the program if it is there. */
void nc_programs_find(struct nc_execution *execution);

/* Keeps the program of a step, if there is room; what cannot be kept is compiled again. */
void nc_programs_keep(const struct nc_execution *execution, const struct nc_step_state *step);

#endif
