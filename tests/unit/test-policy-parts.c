/* The parts that the analysis is made of: memory, decoders, data, names, patterns. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "policy/arena.h"
#include "policy/datum.h"
#include "policy/decode.h"
#include "policy/lists.h"
#include "policy/scope.h"

static void arena_zeroes_aligns_and_stops_at_its_maximum(void **state)
{
	struct nc_arena arena = {.max = 64 * 1024};
	size_t taken = 0;

	(void)state;
	for (size_t size = 1; size < 200; size++) {
		unsigned char *memory = nc_arena_alloc(&arena, size);

		assert_non_null(memory);
		assert_int_equal((uintptr_t)memory % _Alignof(max_align_t), 0);
		for (size_t i = 0; i < size; i++)
			assert_int_equal(memory[i], 0);
		memset(memory, 0xff, size);
		taken += size;
	}
	assert_null(nc_arena_alloc(&arena, 64 * 1024 - taken));
	assert_int_equal(arena.error, -EFBIG);
	assert_null(nc_arena_alloc(&arena, 1)); /* sticky */
	nc_arena_done(&arena);
	assert_non_null(nc_arena_alloc(&arena, 1));
	assert_null(nc_arena_alloc(&arena, SIZE_MAX));
	nc_arena_done(&arena);
}

static void arena_joins_in_place_where_it_can(void **state)
{
	struct nc_arena arena = {.max = 1024 * 1024};
	char *first = nc_arena_text(&arena, "ab", 2);
	char *joined = nc_arena_join(&arena, first, 2, "cd", 2);
	char *other;

	(void)state;
	assert_ptr_equal(joined, first);
	assert_string_equal(joined, "abcd");
	assert_string_equal(nc_arena_join(&arena, joined, 4, joined, 4), "abcdabcd");
	other = nc_arena_text(&arena, "x", 1);
	/* no more the newest: what was there stays as it is */
	joined = nc_arena_join(&arena, first, 2, "ZZ", 2);
	assert_ptr_not_equal(joined, first);
	assert_string_equal(joined, "abZZ");
	assert_string_equal(first, "abcdabcd");
	assert_string_equal(other, "x");
	for (size_t i = 0; i < 5000; i++)
		joined = nc_arena_join(&arena, joined, 4 + i, "y", 1);
	assert_int_equal(strlen(joined), 5004);
	nc_arena_done(&arena);
}

static void assert_decodes(ssize_t (*decode)(const char *text, size_t size, char *out),
	const char *text, const char *to)
{
	char out[256] = "";
	ssize_t size = decode(text, strlen(text), out);

	if (!to) {
		assert_int_equal(size, -EINVAL);
		return;
	}
	assert_int_equal(size, strlen(to));
	assert_memory_equal(out, to, strlen(to));
}

static void decoders_decode(void **state)
{
	(void)state;
	assert_decodes(nc_decode_base64, "aGVsbG8=", "hello");
	assert_decodes(nc_decode_base64, "aGVs\nbG8", "hello");
	assert_decodes(nc_decode_base64, "_-_-", "\xff\xef\xfe");
	assert_decodes(nc_decode_base64, "a=b", NULL);
	assert_decodes(nc_decode_base64, "a!", NULL);
	assert_decodes(nc_decode_base32, "NBSWY3DP", "hello");
	assert_decodes(nc_decode_hex, "68 65 6C6c6f", "hello");
	assert_decodes(nc_decode_hex, "686", NULL);
	assert_decodes(nc_decode_hex, "6x", NULL);
	assert_decodes(nc_decode_rot13, "Uryyb, jbeyq!", "Hello, world!");
	assert_decodes(nc_decode_reverse, "olleh", "hello");
	assert_decodes(nc_decode_percent, "h%65llo%2", "hello%2");
	assert_decodes(nc_decode_escapes, "\\x68\\145\\u006c\\u{6c}\\U0000006f\\n\\q", "hello\nq");
	assert_decodes(nc_decode_escapes, "a\\\nb\\", "ab\\");
	assert_decodes(nc_decode_escapes, "\\u00e4\\u{1f600}", "\xc3\xa4\xf0\x9f\x98\x80");
	assert_decodes(nc_decode_escapes, "\\x\\u{}\\u{zz", "xu{}u{zz");
}

static void numbers_are_read_as_languages_write_them(void **state)
{
	static const struct {
		const char *text;
		long long number;
	} good[] = {
		{"0", 0}, {"1_000", 1000}, {"0x1F", 31}, {"0o17", 15}, {"0b101", 5}, {"007", 7}};
	static const char *const bad[] = {"", "1.5", "x", "0x", "99999999999999999999", "1e3"};
	long long number;

	(void)state;
	for (size_t i = 0; i < unit_count(good); i++) {
		assert_int_equal(nc_decode_number(good[i].text, strlen(good[i].text), &number), 0);
		assert_int_equal(number, good[i].number);
	}
	for (size_t i = 0; i < unit_count(bad); i++)
		assert_int_equal(nc_decode_number(bad[i], strlen(bad[i]), &number), -EINVAL);
}

static void readable_is_what_could_be_code(void **state)
{
	(void)state;
	assert_true(nc_decode_is_readable("import os", 9));
	assert_false(nc_decode_is_readable("\x89PNG\r\n", 6));
	assert_false(nc_decode_is_readable("12345 67890", 11));
	assert_false(nc_decode_is_readable("", 0));
}

static void data_join_mark_and_stop(void **state)
{
	struct nc_arena arena = {.max = 16 * 1024 * 1024};
	struct nc_data data;
	uint32_t a, b, both, name;
	char *long_text = calloc(1, NC_FOLDED_MAX);

	(void)state;
	assert_int_equal(nc_data_init(&data, &arena), 0);
	assert_int_equal(nc_datum(&data, 0)->kind, NC_DATUM_NONE);
	a = nc_datum_text(&data, "sys", 3);
	b = nc_datum_text(&data, "tem", 3);
	both = nc_datum_concat(&data, a, b);
	assert_true(nc_datum_is_text(nc_datum(&data, both), "system"));
	assert_true(nc_datum(&data, both)->built);
	both = nc_datum_concat(&data, a, 0);
	assert_true(nc_datum(&data, both)->partial);
	assert_false(nc_datum_is_text(nc_datum(&data, both), "sys" NC_HOLE));
	assert_int_equal(nc_datum_concat(&data, 0, 0), 0);
	name = nc_datum_name(&data, "os", 2);
	name = nc_datum_member(&data, nc_datum(&data, name), "popen", 5);
	name = nc_datum_result(&data, nc_datum(&data, name));
	assert_true(nc_datum_is_name(nc_datum(&data, name), "os.popen()"));
	for (int i = 0; i < 40; i++)
		name = nc_datum_member(&data, nc_datum(&data, name), "x.y.z", 5);
	assert_int_equal(name, 0); /* too long to be any name of ours */
	b = nc_datum_text(&data, long_text, NC_FOLDED_MAX);
	assert_false(nc_datum(&data, b)->too_long);
	assert_true(nc_datum(&data, nc_datum_concat(&data, b, a))->too_long);
	nc_data_done(&data);
	nc_arena_done(&arena);
	free(long_text);
}

static void scopes_keep_names_apart(void **state)
{
	struct nc_scopes scopes = {0};
	static char names[1000][8];

	(void)state;
	assert_null(nc_scopes_find(&scopes, 0, "x", 1));
	for (uint32_t i = 0; i < 1000; i++) {
		int size = snprintf(names[i], sizeof(names[i]), "n%u", i);

		nc_scopes_bind(&scopes, i % 3, names[i], (size_t)size, i + 1);
	}
	for (uint32_t i = 0; i < 1000; i++) {
		const struct nc_binding *binding =
			nc_scopes_find(&scopes, i % 3, names[i], strlen(names[i]));

		assert_non_null(binding);
		assert_int_equal(binding->datum, i + 1);
		assert_null(nc_scopes_find(&scopes, 7, names[i], strlen(names[i])));
	}
	nc_scopes_bind(&scopes, 0, "n0", 2, 77);
	assert_int_equal(nc_scopes_find(&scopes, 0, "n0", 2)->datum, 77);
	assert_int_equal(scopes.count, 1000);
	nc_scopes_done(&scopes);
}

static void patterns_are_taken_apart(void **state)
{
	static const struct {
		const char *text;
		enum nc_pattern_kind kind;
		const char *name, *argument;
	} cases[] = {
		{"__import__", NC_PATTERN_NAME, "__import__", NULL},
		{"process.exit", NC_PATTERN_NAME, "process.exit", NULL},
		{"globals()", NC_PATTERN_CALL, "globals", NULL},
		{"eval(", NC_PATTERN_CALL, "eval", NULL},
		{"require('fs')", NC_PATTERN_ARGUMENT, "require", "fs"},
		{"require(\"fs\"", NC_PATTERN_ARGUMENT, "require", "fs"},
		{">/dev/", NC_PATTERN_WRITE, "/dev/", NULL},
		{">> /dev/", NC_PATTERN_WRITE, "/dev/", NULL},
		{"a && b", NC_PATTERN_TEXT, "a && b", NULL},
		{"f('a', 'b')", NC_PATTERN_TEXT, "f('a', 'b')", NULL},
		{"(", NC_PATTERN_TEXT, "(", NULL},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++) {
		struct nc_pattern pattern;

		nc_pattern_parse(cases[i].text, &pattern);
		assert_int_equal(pattern.kind, cases[i].kind);
		assert_int_equal(pattern.size, strlen(cases[i].name));
		assert_memory_equal(pattern.name, cases[i].name, pattern.size);
		if (cases[i].argument) {
			assert_int_equal(pattern.argument_size, strlen(cases[i].argument));
			assert_memory_equal(
				pattern.argument, cases[i].argument, pattern.argument_size);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(arena_zeroes_aligns_and_stops_at_its_maximum),
		cmocka_unit_test(arena_joins_in_place_where_it_can),
		cmocka_unit_test(decoders_decode),
		cmocka_unit_test(numbers_are_read_as_languages_write_them),
		cmocka_unit_test(readable_is_what_could_be_code),
		cmocka_unit_test(data_join_mark_and_stop),
		cmocka_unit_test(scopes_keep_names_apart),
		cmocka_unit_test(patterns_are_taken_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
