/* Whether the host runs short of memory. */
#ifndef NC_PRESSURE_H
#define NC_PRESSURE_H

#include <stdbool.h>

/*
 * meminfo_fd is /proc/meminfo, or -EBADF, of which nothing is known and false. Less than a
 * sixteenth of all memory to be had is short; once it is, so is less than an eighth.
 */
bool nc_pressure_is_high(int meminfo_fd, bool was_high);

#endif
