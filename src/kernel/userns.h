/* User namespaces. */
#ifndef NC_USERNS_H
#define NC_USERNS_H

#include <stdbool.h>

/* Enters a fresh user namespace in which we are id 0 and nobody else exists. 0 or -errno. */
int nc_userns_enter_self(void);

/* Whether one can be made, by making one. */
bool nc_userns_can_make(void);

#endif
