/* User namespaces. */
#ifndef NC_USERNS_H
#define NC_USERNS_H

/* Enters a fresh user namespace in which we are id 0 and nobody else exists. 0 or -errno. */
int nc_userns_enter_self(void);

#endif
