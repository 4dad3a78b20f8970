/* Memory in blocks that double, freed together. */
#include "policy/arena.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_MIN ((size_t)4 * 1024)
#define BLOCK_MAX ((size_t)1024 * 1024)
#define ALIGNMENT _Alignof(max_align_t)

struct nc_arena_block {
	struct nc_arena_block *before;
	size_t used, size; /* of data */
	max_align_t data[];
};

static char *block_data(struct nc_arena_block *block)
{
	return (char *)block->data;
}

/* Makes a fresh block the last one, with room for at least size bytes. */
static bool add_block(struct nc_arena *arena, size_t size)
{
	size_t wanted = arena->last ? arena->last->size * 2 : BLOCK_MIN;
	struct nc_arena_block *block;

	if (wanted > BLOCK_MAX)
		wanted = BLOCK_MAX;
	if (wanted < size)
		wanted = size;
	if (wanted > arena->max - arena->taken)
		wanted = arena->max - arena->taken;
	if (wanted < size) {
		arena->error = -EFBIG;
		return false;
	}
	block = calloc(1, sizeof(*block) + wanted);
	if (!block) {
		arena->error = -ENOMEM;
		return false;
	}
	block->before = arena->last;
	block->size = wanted;
	arena->last = block;
	arena->taken += wanted;
	return true;
}

void *nc_arena_alloc(struct nc_arena *arena, size_t size)
{
	size_t rounded;
	char *memory;

	if (arena->error < 0)
		return NULL;
	if (__builtin_add_overflow(size, ALIGNMENT - 1, &rounded)) {
		arena->error = -EFBIG;
		return NULL;
	}
	rounded -= rounded % ALIGNMENT;
	if ((!arena->last || arena->last->size - arena->last->used < rounded) &&
		!add_block(arena, rounded))
		return NULL;
	memory = block_data(arena->last) + arena->last->used;
	arena->last->used += rounded;
	return memory;
}

char *nc_arena_text(struct nc_arena *arena, const char *data, size_t size)
{
	char *text = size < SIZE_MAX ? nc_arena_alloc(arena, size + 1) : NULL;

	if (text && size > 0)
		memcpy(text, data, size);
	return text;
}

/* Whether data is the newest text of the arena, and what may still stand behind it. */
static bool is_newest(const struct nc_arena *arena, const char *data, size_t size)
{
	struct nc_arena_block *block = arena->last;
	uintptr_t begin, at = (uintptr_t)data;

	if (!block)
		return false;
	begin = (uintptr_t)block_data(block);
	if (at < begin || at - begin >= block->used)
		return false;
	size += 1 + at - begin;
	size += ALIGNMENT - 1;
	return size - size % ALIGNMENT == block->used;
}

char *nc_arena_join(
	struct nc_arena *arena, const char *data, size_t size, const char *more, size_t more_size)
{
	size_t all;
	char *text;

	if (arena->error < 0)
		return NULL;
	if (__builtin_add_overflow(size, more_size, &all) || all == SIZE_MAX) {
		arena->error = -EFBIG;
		return NULL;
	}
	if (size > 0 && is_newest(arena, data, size)) {
		struct nc_arena_block *block = arena->last;
		size_t offset = (size_t)(data - block_data(block));
		size_t end = offset + all + 1;

		end += ALIGNMENT - 1;
		end -= end % ALIGNMENT;
		if (end <= block->size) {
			text = block_data(block) + offset;
			/* memmove: a text may be joined with a part of itself */
			memmove(text + size, more, more_size);
			text[all] = '\0';
			block->used = end;
			return text;
		}
	}
	text = nc_arena_alloc(arena, all + 1);
	if (!text)
		return NULL;
	if (size > 0)
		memcpy(text, data, size);
	if (more_size > 0)
		memcpy(text + size, more, more_size);
	return text;
}

void nc_arena_done(struct nc_arena *arena)
{
	struct nc_arena_block *block = arena->last;

	while (block) {
		struct nc_arena_block *before = block->before;

		free(block);
		block = before;
	}
	*arena = (struct nc_arena){.max = arena->max};
}
