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

/* Pieces come in multiples of this, which is also how they are aligned. */
#define GRAIN 16U
/* Up to here a piece that was freed waits for the next of its size; larger ones are malloc()'s. */
#define SMALL_MAX 1024U
/* The first block has room for a script; each further one is twice as large, up to a huge page. */
#define BLOCK_MIN ((size_t)256 * 1024)

/* Stands before each piece. */
struct head {
	size_t room;
	size_t unused; /* keeps what follows aligned */
};

struct large {
	struct large *next, **link;
	struct head head;
};

struct block {
	struct block *next;
	size_t used, size; /* of the whole, this head included */
	size_t unused;
};

_Static_assert(sizeof(struct head) % GRAIN == 0 && sizeof(struct large) % GRAIN == 0 &&
		       sizeof(struct block) % GRAIN == 0,
	"pieces are aligned");

static struct heap {
	struct block *blocks; /* the last one stays for the next text */
	struct large *large;
	void *idle[SMALL_MAX / GRAIN + 1]; /* by size; each piece leads to the next */
	size_t taken;
} heap;

static void *give(size_t size);

static struct head *head_of(void *piece)
{
	return (struct head *)piece - 1;
}

static struct large *large_of(void *piece)
{
	return (struct large *)((unsigned char *)piece - sizeof(struct large));
}

/* tree-sitter cannot do without, and would end the process itself. */
static void *must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static void add_block(void)
{
	size_t size = heap.blocks ? heap.blocks->size * 2 : BLOCK_MIN;
	struct block *block;

	if (size > NC_PAGES_HUGE)
		size = NC_PAGES_HUGE;
	block = must(nc_pages_alloc(size));
	*block = (struct block){.next = heap.blocks, .used = sizeof(*block), .size = size};
	heap.blocks = block;
	heap.taken += size;
}

static void *give_small(size_t room)
{
	void *piece = heap.idle[room / GRAIN];
	const size_t size = sizeof(struct head) + room;
	struct head *head;

	if (piece) {
		memcpy(&heap.idle[room / GRAIN], piece, sizeof(void *));
		return piece;
	}
	if (!heap.blocks || heap.blocks->size - heap.blocks->used < size)
		add_block();
	head = (struct head *)(void *)((unsigned char *)heap.blocks + heap.blocks->used);
	heap.blocks->used += size;
	head->room = room;
	return head + 1;
}

static void *give_large(size_t room)
{
	struct large *large = must(malloc(sizeof(*large) + room));

	*large = (struct large){.next = heap.large, .link = &heap.large, .head.room = room};
	if (large->next)
		large->next->link = &large->next;
	heap.large = large;
	heap.taken += room;
	return large + 1;
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
	size_t room;

	if (!piece)
		return;
	room = head_of(piece)->room;
	if (room <= SMALL_MAX) {
		memcpy(piece, &heap.idle[room / GRAIN], sizeof(void *));
		heap.idle[room / GRAIN] = piece;
		return;
	}
	heap.taken -= room;
	*large_of(piece)->link = large_of(piece)->next;
	if (large_of(piece)->next)
		large_of(piece)->next->link = large_of(piece)->link;
	free(large_of(piece));
}

static void *give_more(void *piece, size_t size)
{
	const size_t room = piece ? head_of(piece)->room : 0;
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
	assert(!heap.large && (!heap.blocks || heap.blocks->used == sizeof(*heap.blocks)));
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
		struct large *large = heap.large;

		heap.large = large->next;
		free(large);
	}
	if (heap.blocks)
		heap.blocks->used = sizeof(*heap.blocks);
	memset(heap.idle, 0, sizeof(heap.idle));
	heap.taken = heap.blocks ? heap.blocks->size : 0;
}
