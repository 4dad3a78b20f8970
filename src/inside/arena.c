/*
 * Theory of operation: a fork copies an entry of the page tables for every page that was ever
 * written to, and the end of the child takes them all down again; for a small program that is a
 * good part of all its time. A large page has one entry, and where a child writes to it, its small
 * ones are still counted as one. But the kernel makes large pages only of what is aligned and in
 * one piece, which what an allocator maps bit by bit is not. So arenas come from one region.
 */
#include "inside/arena.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define LARGE (2UL << 20)
/* What Python asks for since 3.10; smaller ones of older versions are as good where they lie. */
#define ARENA (1UL << 20)
/* Of addresses; what is not used is given back. */
#define REGION (256UL << 20)

struct allocator {
	void *context;
	void *(*alloc)(void *context, size_t size);
	void (*free)(void *context, void *memory, size_t size);
};

__attribute__((weak)) extern void PyObject_SetArenaAllocator(struct allocator *allocator);

static uintptr_t region, next, limit, heap;
static void **unused; /* arenas that were given back meanwhile, each with the next in it */

static uintptr_t round_up(uintptr_t address)
{
	return (address + LARGE - 1) & ~(LARGE - 1);
}

static void *alloc(void *context, size_t size)
{
	void *memory;

	(void)context;
	if (region && unused && size == ARENA) {
		memory = unused;
		unused = *unused;
		return memory;
	}
	if (region && size <= limit - next) {
		memory = (void *)next;
		next += size;
		return memory;
	}
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return memory != MAP_FAILED ? memory : NULL;
}

static void release(void *context, void *memory, size_t size)
{
	void **arena = memory;

	(void)context;
	if (region && size == ARENA && (uintptr_t)memory >= region && (uintptr_t)memory < next) {
		*arena = unused; /* a hole would keep its neighbours from becoming a large page */
		unused = arena;
	} else {
		(void)munmap(memory, size);
	}
}

void nc_arena_begin(void)
{
	struct allocator allocator = {.alloc = alloc, .free = release};
	void *memory;

	heap = (uintptr_t)sbrk(0);
	if (!PyObject_SetArenaAllocator)
		return;
	memory = mmap(NULL, REGION + LARGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return;
	region = next = round_up((uintptr_t)memory);
	limit = (uintptr_t)memory + REGION + LARGE;
	(void)munmap(memory, region - (uintptr_t)memory);
	PyObject_SetArenaAllocator(&allocator);
}

/* One by one: what was never used, or is no longer there, cannot be, and nothing hangs on it. */
static void collapse(uintptr_t from, uintptr_t to)
{
	for (uintptr_t at = round_up(from); at + LARGE <= to; at += LARGE)
		(void)madvise((void *)at, LARGE, MADV_COLLAPSE);
}

void nc_arena_settle(void)
{
	if (region) {
		uintptr_t end = round_up(next);

		if (end < limit)
			(void)munmap((void *)end, limit - end);
		collapse(region, end < limit ? end : limit);
		region = 0;
	}
	collapse(heap, (uintptr_t)sbrk(0));
}
