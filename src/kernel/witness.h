/* What the spawner tells nacre-recorder: the birth and the death of boxes, as it saw them. */
#ifndef NC_WITNESS_H
#define NC_WITNESS_H

#include "kernel/boxwire.h"

/* birth_ns: from the order to the first instruction of the program. 0 or -errno; never waits. */
int nc_witness_birth(int witness_fd, uint64_t box, const char *name, uint64_t birth_ns);
int nc_witness_death(int witness_fd, const char *name, const struct nc_box_end *end);

#endif
