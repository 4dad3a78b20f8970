/*
 * Which name stands for what. A scope is a function, known by the number of its node; 0 is the
 * whole program. Bindings outlive the walk that made them, so that a second walk knows what is
 * bound further down.
 */
#ifndef NC_SCOPE_H
#define NC_SCOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nc_binding {
	const char *name; /* borrowed */
	uint32_t size;
	uint32_t scope;
	uint32_t datum;
	uint32_t used; /* 0: an empty place */
};

struct nc_scopes {
	struct nc_binding *table;
	uint32_t capacity, count; /* the capacity is a power of two */
	int error;		  /* 0, -ENOMEM, -EFBIG */
};

void nc_scopes_done(struct nc_scopes *scopes);

/* Borrows name, which must live as long as the scopes. */
void nc_scopes_bind(
	struct nc_scopes *scopes, uint32_t scope, const char *name, size_t size, uint32_t datum);

/* The binding in just this scope, or NULL. Valid until the next call of nc_scopes_bind. */
const struct nc_binding *nc_scopes_find(
	const struct nc_scopes *scopes, uint32_t scope, const char *name, size_t size);

#endif
