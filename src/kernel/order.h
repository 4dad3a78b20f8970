/* Which orders the spawner carries out: its own maxima, whatever the other side thinks of them. */
#ifndef NC_ORDER_CHECK_H
#define NC_ORDER_CHECK_H

#include "kernel/boxwire.h"

/* Whether its numbers are in range and its parts fit together; n_binds were allowed. */
bool nc_order_is_sane(const struct nc_box_order *order, size_t n_binds);

/* What a box is made of and held by stays as it was: a further command can name nothing of that. */
bool nc_order_is_further(const struct nc_box_order *order);

#endif
