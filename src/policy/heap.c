/* The memory of tree-sitter. */
#include "policy/heap.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <tree_sitter/api.h>

#include "policy/pages.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

/* Pieces come in multiples of this; nothing in tree-sitter wants to be aligned to more. */
#define GRAIN 8U
/* Up to here pieces of one size share slabs, and one that was freed waits for the next of its
 * size; a larger one has a slab of its own. */
#define SMALL_MAX 1024U
/* Slabs begin at multiples of this, so that a piece leads to its own: tree-sitter makes millions of
 * some 90 bytes, and has no room to spare for a head each. */
#define SLAB 16384U
/* The first block has room for a script; each further one is twice as large, up to a huge page. */
#define BLOCK_MIN ((size_t)256 * 1024)

struct slab {
	size_t room; /* of each of its pieces */
	size_t used; /* of all of it, this head included */
	struct slab *next, **link;
};

struct block {
	struct block *next;
	size_t used, size; /* of the whole, this head included */
};

_Static_assert(sizeof(struct slab) % GRAIN == 0 && sizeof(struct slab) + SMALL_MAX <= SLAB,
	"a slab has room for a piece, which is aligned");

static struct heap {
	struct block *blocks; /* the last one stays for the next text */
	struct slab *large;
	struct slab *open[SMALL_MAX / GRAIN + 1]; /* by size: has room, or has had */
	void *idle[SMALL_MAX / GRAIN + 1];	  /* each piece leads to the next */
	size_t taken;
} heap;

/* A large piece begins in the first of its many slabs' lengths. */
static struct slab *slab_of(void *piece)
{
	return (struct slab *)(void *)((unsigned char *)piece - (uintptr_t)piece % SLAB);
}

/* tree-sitter cannot do without, and would end the process itself. */
static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static size_t first_slab(const struct block *block)
{
	uintptr_t behind = (uintptr_t)(block + 1);

	return (behind + SLAB - 1) / SLAB * SLAB - (uintptr_t)block;
}

static void add_block(void)
{
	size_t size = heap.blocks ? heap.blocks->size * 2 : BLOCK_MIN;
	struct block *block;

	if (size > NC_PAGES_HUGE)
		size = NC_PAGES_HUGE;
	block = must(nc_pages_alloc(size));
	*block = (struct block){.next = heap.blocks, .used = first_slab(block), .size = size};
	heap.blocks = block;
}

static struct slab *add_slab(size_t room)
{
	struct slab *slab;

	if (!heap.blocks || heap.blocks->size - heap.blocks->used < SLAB)
		add_block();
	slab = (struct slab *)(void *)((unsigned char *)heap.blocks + heap.blocks->used);
	heap.blocks->used += SLAB;
	heap.taken += SLAB;
	*slab = (struct slab){.room = room, .used = sizeof(*slab)};
	return heap.open[room / GRAIN] = slab;
}

static void *give_small(size_t room)
{
	void *piece = heap.idle[room / GRAIN];
	struct slab *slab = heap.open[room / GRAIN];

	if (piece) {
		memcpy(&heap.idle[room / GRAIN], piece, sizeof(void *));
		return piece;
	}
	if (!slab || SLAB - slab->used < room)
		slab = add_slab(room);
	piece = (unsigned char *)slab + slab->used;
	slab->used += room;
	return piece;
}

static void *give_large(size_t room)
{
	struct slab *slab =
		must(aligned_alloc(SLAB, (sizeof(*slab) + room + SLAB - 1) / SLAB * SLAB));

	*slab = (struct slab){.room = room, .next = heap.large, .link = &heap.large};
	if (slab->next)
		slab->next->link = &slab->next;
	heap.large = slab;
	heap.taken += room;
	return slab + 1;
}

static void *give(size_t size)
{
	if (size > SIZE_MAX / 2)
		abort();
	size = size > 0 ? (size + GRAIN - 1) / GRAIN * GRAIN : GRAIN;
	return size <= SMALL_MAX ? give_small(size) : give_large(size);
}

static void *give_zeroed(size_t count, size_t size)
{
	size_t all;
	void *piece = give(__builtin_mul_overflow(count, size, &all) ? SIZE_MAX : all);

	return memset(piece, 0, all);
}

static void take_back(void *piece)
{
	struct slab *slab = piece ? slab_of(piece) : NULL;
	size_t room;

	if (!slab)
		return;
	room = slab->room;
	if (room <= SMALL_MAX) {
		memcpy(piece, &heap.idle[room / GRAIN], sizeof(void *));
		heap.idle[room / GRAIN] = piece;
		return;
	}
	heap.taken -= room;
	*slab->link = slab->next;
	if (slab->next)
		slab->next->link = slab->link;
	free(slab);
}

static void *give_more(void *piece, size_t size)
{
	const size_t room = piece ? slab_of(piece)->room : 0;
	void *other;

	if (piece && size <= room)
		return piece;
	other = give(size);
	if (piece)
		memcpy(other, piece, room);
	take_back(piece);
	return other;
}

bool nc_heap_begin(void)
{
	if (SANITIZED)
		return false;
	assert(!heap.large && (!heap.blocks || heap.blocks->used == first_slab(heap.blocks)));
	ts_set_allocator(give, give_zeroed, give_more, take_back);
	return true;
}

size_t nc_heap_taken(void)
{
	return heap.taken;
}

void nc_heap_end(void)
{
	while (heap.blocks && heap.blocks->next) {
		struct block *block = heap.blocks;

		heap.blocks = block->next;
		free(block);
	}
	while (heap.large) {
		struct slab *slab = heap.large;

		heap.large = slab->next;
		free(slab);
	}
	if (heap.blocks)
		heap.blocks->used = first_slab(heap.blocks);
	memset(heap.open, 0, sizeof(heap.open));
	memset(heap.idle, 0, sizeof(heap.idle));
	heap.taken = 0;
}
