/*
 * On which processor we run. For those few whom others wait for, and not for long: a cold `nacre
 * exec` takes 1.15 times as long without it (bench/ab.py, 31 rounds, two processors, 1.11 to 1.26).
 */
#ifndef NC_PROCESSOR_H
#define NC_PROCESSOR_H

#include <sched.h>
#include <stdbool.h>

/* Goes to another one, if there is one to be had, and may come back afterwards. */
void nc_processor_leave(void);

/* Stays on this one until nc_processor_roam, with the set that we had. Whether we do. */
bool nc_processor_stay(cpu_set_t *ret_had);

/* 0 or -errno. */
int nc_processor_roam(const cpu_set_t *had);

#endif
