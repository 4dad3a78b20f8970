/*
 * The body of a request, read where it may take its time: large ones by a thread, and the programs
 * in them by processes without rights (engine/analysts.h). The loop does neither.
 */
#ifndef NC_INTAKE_H
#define NC_INTAKE_H

#include "engine/study.h"
#include "server/server.h"

/* The steps of a route that reads. */
struct nc_intake_plan {
	/* Reads the bytes, perhaps in another thread: it may use nothing else. NULL: no memory. */
	void *(*read)(const char *text, size_t size);
	void (*forget)(void *what);
	/* Says what is to be studied, if anything; false: the request is answered. Or NULL. */
	bool (*list)(struct nc_server *server, struct nc_exchange *exchange, void *what,
		struct nc_study *study);
	/* Goes on; what and study are freed after it. */
	void (*then)(struct nc_server *server, struct nc_exchange *exchange, void *what,
		struct nc_study *study);
	/* As `read`, for a route whose large bodies come in a file, which it takes over. Or NULL.
	 */
	void *(*read_file)(int fd, size_t size);
};

/* Begins with the body of the exchange; `then` may be called before the return. */
void nc_intake_begin(
	struct nc_server *server, struct nc_exchange *exchange, const struct nc_intake_plan *plan);

/* A body that is JSON, for `read`: its value, or what is wrong with it. */
struct nc_read_json {
	json_t *value;	      /* NULL: there is none */
	struct nacre_err err; /* then */
};
void *nc_read_json(const char *text, size_t size);
void nc_read_json_forget(void *what);

/* When all of it ends. */
void nc_intakes_drop(struct nc_server *server);

#endif
