/* The memory of tree-sitter, used as it uses it: by its own pointers to the functions. */
#include "unit.h"

#include <stdint.h>
#include <string.h>

#include "policy/heap.h"

#define PIECES 300
#define ROUNDS 30000

extern void *(*ts_current_malloc)(size_t size);
extern void *(*ts_current_calloc)(size_t count, size_t size);
extern void *(*ts_current_realloc)(void *piece, size_t size);
extern void (*ts_current_free)(void *piece);

struct piece {
	unsigned char *data;
	size_t size;
	unsigned char mark;
};

static size_t next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static void assert_whole(const struct piece *piece)
{
	for (size_t i = 0; i < piece->size; i++)
		assert_int_equal(piece->data[i], piece->mark);
}

/* Mostly small, some of many blocks, and none at all. */
static size_t some_size(uint32_t *seed)
{
	size_t kind = next(seed) % 10;

	return kind == 0 ? next(seed) % 100000 : kind < 3 ? next(seed) % 2000 : next(seed) % 100;
}

static void resize(struct piece *piece, size_t size, uint32_t *seed)
{
	struct piece old = *piece;

	piece->data = ts_current_realloc(piece->data, size);
	assert_int_equal((uintptr_t)piece->data % 8, 0); /* nothing in tree-sitter wants more */
	old.data = piece->data;
	old.size = old.size < size ? old.size : size;
	assert_whole(&old);
	piece->size = size;
	piece->mark = (unsigned char)next(seed);
	memset(piece->data, piece->mark, size);
}

static void pieces_are_nobody_elses(void **state)
{
	static struct piece pieces[PIECES];
	uint32_t seed = 7;

	(void)state;
	if (!nc_heap_begin())
		skip(); /* sanitizers see to it */
	for (size_t i = 0; i < ROUNDS; i++) {
		struct piece *piece = &pieces[next(&seed) % PIECES];

		assert_whole(piece);
		if (next(&seed) % 3 > 0) {
			resize(piece, some_size(&seed), &seed);
			continue;
		}
		ts_current_free(piece->data);
		*piece = (struct piece){0};
	}
	assert_true(nc_heap_taken() > 100000);
	nc_heap_end();
	memset(pieces, 0, sizeof(pieces));
}

static void zeroes_are_zeroes(void **state)
{
	unsigned char *piece;

	(void)state;
	if (!nc_heap_begin())
		skip();
	piece = ts_current_malloc(100);
	memset(piece, 0xff, 100);
	ts_current_free(piece);
	ts_current_free(NULL);
	piece = ts_current_calloc(10, 10);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(piece[i], 0);
	nc_heap_end();
}

static void the_end_gives_everything_back(void **state)
{
	size_t before;

	(void)state;
	if (!nc_heap_begin())
		skip();
	nc_heap_end();
	before = nc_heap_taken();
	for (int i = 0; i < 3; i++) {
		assert_true(nc_heap_begin());
		for (size_t k = 0; k < 10000; k++)
			memset(ts_current_malloc(k % 3000), 1, k % 3000);
		assert_true(nc_heap_taken() > 10000000);
		nc_heap_end();
		assert_true(nc_heap_taken() <= before + 300000);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_nobody_elses),
		cmocka_unit_test(zeroes_are_zeroes),
		cmocka_unit_test(the_end_gives_everything_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
