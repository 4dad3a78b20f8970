/* What a worker that is started again finds of the one before: descriptors, by name. */
#ifndef NC_HEIRS_H
#define NC_HEIRS_H

#include "base/error.h"
#include "kernel/boxwire.h"

struct nc_heirs {
	const char *name[NC_WORKER_HEIRS_MAX]; /* NULL: it was taken */
	int fd[NC_WORKER_HEIRS_MAX];
	size_t count;
};

/* Before the spawner is split off: name is static and has no comma; no descriptor is no heir. */
void nc_heirs_add(struct nc_heirs *heirs, const char *name, int fd);

/* Their names, for whoever is started again, in its environment. */
int nc_heirs_announce(const struct nc_heirs *heirs, struct nacre_err *err);

/* In a worker that was started again; false: this is the first. */
bool nc_heirs_find(struct nc_heirs *ret_heirs);

/* The first of that name, which is the caller's now; -EBADF: there is none, or no more. */
int nc_heirs_take(struct nc_heirs *heirs, const char *name);

/* In a worker that was started again: the descriptor of that name, which is not taken; -EBADF. */
int nc_heirs_number(const char *name);

#endif
