/* What is to run, and in what kind of box: what is wanted, and never how a holder does it. */
#ifndef NC_EXEC_SPEC_H
#define NC_EXEC_SPEC_H

#include "kernel/boxwire.h"

struct nc_exec_spec {
	uint64_t id;   /* of the box that it makes, or goes on in */
	uint64_t home; /* the box that stays in which it runs, beside what else runs there; or 0 */
	uint64_t warm; /* the pre-forked interpreter that is preferred, if one is ready; or 0 */
	char name[NC_BOX_NAME_MAX + 1]; /* what the journal calls it; or "" */
	enum nc_tier tier;
	struct nc_box_limits limits;
	enum nc_grade required[NC_STRENGTH_MAX]; /* held by less nothing foreign runs */
	/* of the box */
	bool stays;    /* it outlives the command, whatever ends that, until it is dropped */
	bool shared;   /* commands run in it beside each other, its limits hold for all of them */
	bool survives; /* it outlives this worker, for the next one to adopt */
	bool door;     /* what listens at its door is its way to the network */
	bool guests;   /* others come in to it by that */
	bool users;    /* its commands may run as other users than the sandbox's, as root too */
	bool writable; /* its root can be written to, within its limits */
	/* of the command */
	bool files;    /* it is nacre-files, whatever argv[0] says */
	bool lends;    /* it is an interpreter that lends its children to other boxes */
	bool waits;    /* it is started now, and told what to run by the next command of its box */
	bool alone;    /* in a process box: it can make no processes */
	bool terminal; /* instead of pipes */
	uint32_t rows, columns;
	char user[NC_BOX_USER_MAX + 1]; /* by name or number; "": the sandbox's */
	char dir[NC_BOX_DIR_MAX + 1];	/* working directory, absolute */
	struct nc_box_words argv;
	struct nc_box_words env; /* "NAME=value" */
	uint32_t n_layers;	 /* directories of the worker's own, by descriptor */
	bool layer_writable[NC_BOX_LAYERS_MAX];
	uint32_t n_binds;
	struct nc_box_bind binds[NC_BOX_BINDS_MAX];
};

/* Whether any box will do for it, also one that was prepared before it was known. */
bool nc_exec_is_neutral(const struct nc_exec_spec *exec);

#endif
