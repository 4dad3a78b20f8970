/* Memory with a maximum that is given back all at once. Its error is sticky, as that of nc_buf. */
#ifndef NC_ARENA_H
#define NC_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct nc_arena_block;

struct nc_arena {
	struct nc_arena_block *last; /* the block in use; it knows those before it */
	size_t taken;		     /* bytes of all blocks */
	size_t max;
	int error; /* 0, -ENOMEM, or -EFBIG when max is reached */
};

/* Zeroed memory that lives until nc_arena_done, or NULL with arena->error set. */
void *nc_arena_alloc(struct nc_arena *arena, size_t size);

/* A copy of size bytes with a NUL behind, or NULL. */
char *nc_arena_text(struct nc_arena *arena, const char *data, size_t size);

/*
 * A text that begins with the size bytes at data and goes on with those at more, and a NUL. Where
 * data is the arena's newest text it grows in place, so that long chains of + cost what they add.
 */
char *nc_arena_join(
	struct nc_arena *arena, const char *data, size_t size, const char *more, size_t more_size);

void nc_arena_done(struct nc_arena *arena);

#endif
