/* How programs get their packages: found in the image, in an environment, or installed into one. */
#ifndef NC_BUILD_H
#define NC_BUILD_H

#include <uv.h>

#include "engine/environment.h"
#include "tier/hub.h"

struct nc_build;
struct nc_network;

/* What came of it. */
struct nc_build_result {
	struct nc_environment environment; /* to be taken over; closed: none is needed */
	bool built;			   /* not before */
	json_t *packages; /* name and version of each, borrowed: from the image or environment */
	const char *said; /* what the installer said; "" if there was none */
	size_t said_size;
	const char *status; /* of the execution, if it failed; NULL: all is there */
	struct nacre_err err;
};

struct nc_build_spec {
	const struct nc_environments *environments;
	uv_loop_t *loop;
	struct nc_hub *hub;
	const struct nc_holder *holder;
	struct nc_network *network; /* for an index; NULL: there is none */
	const char *tenant;	    /* whose it is to be; "": the operator's */
	enum nc_language language;  /* one that has an installer; without packages: a warmer */
	const char *const *packages;
	size_t n_packages;
	void *context;
	/* nc_build_work() and then nc_build_worked() are to be called; NULL: both at once */
	void (*aside)(void *context);
	/* what is being done, for people; may be NULL */
	void (*progress)(void *context, const char *text);
	/* once, as the last call, and not before nc_build_start has returned */
	void (*done)(void *context, struct nc_build_result *result);
};

/* Begins; everything in spec is borrowed until done(). -ENOMEM, and nothing is called. */
int nc_build_start(const struct nc_build_spec *spec, struct nc_build **ret_build);

/* What takes long and needs no loop, by a thread or not; the rest of it, on the loop. */
void nc_build_work(struct nc_build *build);
void nc_build_worked(struct nc_build *build);

/* Frees it without a call, when the hub is gone and nobody works on it. Accepts NULL. */
void nc_build_drop(struct nc_build *build);

/* done() follows, with status "cancelled". */
void nc_build_cancel(struct nc_build *build);

#endif
