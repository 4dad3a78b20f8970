/* The threat detector on an execution that runs: what its policy wants ended is ended. */
#ifndef NC_VIGIL_H
#define NC_VIGIL_H

#include "engine/execution.h"

/* Its program begins; without memory for it nobody looks before the end. */
void nc_vigil_begin(struct nc_execution *execution);

/* Nothing of it runs any more; again does no harm. */
void nc_vigil_end(struct nc_execution *execution);

#endif
