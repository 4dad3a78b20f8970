/*
 * The spawner of a plain `nacre exec`, begun before this program's own start. See
 * docs/decisions/0007.
 */
#ifndef NC_EARLY_H
#define NC_EARLY_H

struct nc_early {
	int fd;	    /* the worker's end of the pair to the spawner; 0: nothing was begun */
	int parent; /* the process that becomes the spawner */
};

/*
 * Written before libc starts, in what goes on as the worker; defined by its reader. Hidden, so that
 * it is found without relocation.
 */
__attribute__((visibility("hidden"))) extern struct nc_early nc_early;

#endif
