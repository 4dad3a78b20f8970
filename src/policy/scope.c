/* Which name stands for what: one hash table for all scopes. */
#include "policy/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/bounds.h"

#define CAPACITY_MIN 256U

void nc_scopes_done(struct nc_scopes *scopes)
{
	free(scopes->table);
	*scopes = (struct nc_scopes){0};
}

/* FNV-1a. Names that collide on purpose cost time, which the maximum of bindings bounds. */
static uint32_t hash(uint32_t scope, const char *name, size_t size)
{
	uint32_t value = 2166136261U ^ scope;

	for (size_t i = 0; i < size; i++)
		value = (value ^ (unsigned char)name[i]) * 16777619U;
	return value ^ value >> 15;
}

/* The place of a name: where it is, or the empty place where it would be. The table has one. */
static struct nc_binding *place(
	const struct nc_scopes *scopes, uint32_t scope, const char *name, size_t size)
{
	uint32_t at = hash(scope, name, size);

	for (;; at++) {
		struct nc_binding *binding = &scopes->table[at & (scopes->capacity - 1)];

		if (!binding->used)
			return binding;
		if (binding->scope == scope && binding->size == size &&
			memcmp(binding->name, name, size) == 0)
			return binding;
	}
}

static int grow(struct nc_scopes *scopes)
{
	struct nc_scopes larger = {
		.capacity = scopes->capacity ? scopes->capacity * 2 : CAPACITY_MIN,
		.count = scopes->count,
	};

	if (larger.capacity > NC_BINDINGS_MAX)
		return -EFBIG;
	larger.table = calloc(larger.capacity, sizeof(*larger.table));
	if (!larger.table)
		return -ENOMEM;
	for (uint32_t i = 0; i < scopes->capacity; i++) {
		const struct nc_binding *old = &scopes->table[i];

		if (old->used)
			*place(&larger, old->scope, old->name, old->size) = *old;
	}
	free(scopes->table);
	*scopes = larger;
	return 0;
}

void nc_scopes_bind(
	struct nc_scopes *scopes, uint32_t scope, const char *name, size_t size, uint32_t datum)
{
	struct nc_binding *binding;

	if (scopes->error < 0 || size > NC_NAME_TEXT_MAX)
		return;
	/* at most three quarters full, so that an empty place always ends a search */
	if (scopes->count >= scopes->capacity / 4 * 3)
		scopes->error = grow(scopes);
	if (scopes->error < 0)
		return;
	binding = place(scopes, scope, name, size);
	scopes->count += !binding->used;
	*binding = (struct nc_binding){
		.name = name, .size = (uint32_t)size, .scope = scope, .datum = datum, .used = 1};
}

const struct nc_binding *nc_scopes_find(
	const struct nc_scopes *scopes, uint32_t scope, const char *name, size_t size)
{
	const struct nc_binding *binding;

	if (scopes->capacity == 0)
		return NULL;
	binding = place(scopes, scope, name, size);
	return binding->used ? binding : NULL;
}
