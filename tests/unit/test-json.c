/* Foreign JSON, foreign text as JSON, printing. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"

static bool out_of_memory;

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_realloc(void *memory, size_t size)
{
	return out_of_memory ? NULL : __real_realloc(memory, size);
}

/* jansson's own malloc, which is not ours to wrap: fails after so many allocations */
static size_t allocations_left;

static void *some_memory(size_t size)
{
	if (allocations_left == 0)
		return NULL;
	allocations_left--;
	return malloc(size);
}

/* Parses a copy of its exact size, so that the sanitizer sees a look behind it. */
static int parse(const char *text, size_t size, json_t **ret_value, struct nacre_err *err)
{
	char *copy = malloc(size ? size : 1);
	int r;

	assert_non_null(copy);
	memcpy(copy, text, size);
	r = nc_json_parse(copy, size, ret_value, err);
	free(copy);
	return r;
}

static void assert_refused(const char *text, size_t size)
{
	json_t *const untouched = json_true();
	json_t *value = untouched;
	struct nacre_err err = {0};
	int r = parse(text, size, &value, &err);

	if (r == 0)
		json_decref(value);
	if (r != -EINVAL)
		fail_msg("%d for %s", r, text);
	assert_ptr_equal(value, untouched);
	assert_int_equal(err.code, -EINVAL);
	assert_true(strlen(err.message) > 0);
	assert_int_equal(parse(text, size, &value, NULL), -EINVAL);
}

/* Parses text and prints it again on one line. */
static void assert_read_as(const char *text, size_t size, const char *printed)
{
	cleanup_json json_t *value = NULL;
	cleanup_free char *again = NULL;
	struct nacre_err err = {0};

	if (parse(text, size, &value, &err) < 0)
		fail_msg("%s: %s", text, err.message);
	assert_int_equal(err.code, 0);
	again = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	assert_non_null(again);
	assert_string_equal(again, printed);
}

static void parse_takes_one_value(void **state)
{
	static const char *const values[][2] = {
		{"{}", "{}"},
		{"[]", "[]"},
		{"null", "null"},
		{"true", "true"},
		{"0", "0"},
		{"-1", "-1"},
		{"9223372036854775807", "9223372036854775807"},
		{"\"\"", "\"\""},
		{"\"x\"", "\"x\""},
		{" \t\r\n[1 , 2]\n ", "[1,2]"},
		{"{\"b\": 1, \"a\": {\"b\": [true]}}", "{\"b\":1,\"a\":{\"b\":[true]}}"},
		{"\"\\u00e9\xe2\x82\xac\"", "\"\xc3\xa9\xe2\x82\xac\""},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(values); i++)
		assert_read_as(values[i][0], strlen(values[i][0]), values[i][1]);
}

static void parse_refuses_what_is_not_json(void **state)
{
	static const char *const values[] = {"", " ", "{", "[", "}", "]", "[1", "[1,", "[1,]",
		"{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{1:1}", "'a'", "\"a", "\"\n\"",
		"\"\\x\"", "\"\\ud800\"", "01", "+1", "1.", ".5", "1e", "1e999", "0x1",
		"9223372036854775808", "NaN", "Infinity", "nul", "True", "/* */ 1", "1 // one",
		"\xef\xbb\xbf{}", "\"\xff\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\""};

	(void)state;
	for (size_t i = 0; i < unit_count(values); i++)
		assert_refused(values[i], strlen(values[i]));
}

static void parse_refuses_what_follows_the_value(void **state)
{
	static const char *const values[] = {
		"{} x", "{}{}", "[][]", "1 2", "1,", "null null", "\"a\"\"b\"", "{}]", "[]}"};

	(void)state;
	for (size_t i = 0; i < unit_count(values); i++)
		assert_refused(values[i], strlen(values[i]));
}

static void parse_refuses_nul(void **state)
{
	static const struct {
		const char *text;
		size_t size;
	} values[] = {
		{"\0", 1},
		{"{}\0", 3},
		{"{}\0garbage", 10},
		{"\0{}", 3},
		{"\"a\0b\"", 5},
		{"\"\\u0000\"", 8},
		{"{\"\\u0000\":1}", 12},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(values); i++)
		assert_refused(values[i].text, values[i].size);
}

/* jansson alone passes over a NUL there. */
static void parse_refuses_nul_behind_a_number(void **state)
{
	static const struct {
		const char *text;
		size_t size;
	} values[] = {
		{"1\0", 2},
		{"1.5\0", 4},
		{"[1\0]", 4},
		{"[1\0,2]", 6},
		{"{\"a\":1\0}", 8},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(values); i++)
		assert_refused(values[i].text, values[i].size);
}

static void parse_refuses_a_key_twice(void **state)
{
	static const char *const twice[] = {"{\"a\":1,\"a\":1}", "{\"a\":1,\"b\":2,\"a\":3}",
		"[{\"x\":{\"a\":1,\"a\":2}}]", "{\"a\":1,\"\\u0061\":2}", "{\"\":1,\"\":2}"};
	static const char once[] = "{\"a\":{\"a\":1},\"A\":[{\"a\":1},{\"a\":2}]}";

	(void)state;
	for (size_t i = 0; i < unit_count(twice); i++)
		assert_refused(twice[i], strlen(twice[i]));
	assert_read_as(once, strlen(once), once);
}

/* Text of head, levels arrays or objects within each other, and tail. */
static const char *nested(const char *head, size_t levels, bool objects, const char *tail)
{
	static struct nc_buf text = NC_BUF(100000);

	nc_buf_done(&text);
	nc_buf_adds(&text, head);
	for (size_t i = 0; i < levels; i++)
		nc_buf_adds(&text, objects ? "{\"k\":" : "[");
	if (objects)
		nc_buf_adds(&text, "1");
	for (size_t i = 0; i < levels; i++)
		nc_buf_adds(&text, objects ? "}" : "]");
	nc_buf_adds(&text, tail);
	assert_int_equal(text.error, 0);
	return nc_buf_text(&text);
}

static void assert_nested(bool taken, const char *text)
{
	if (taken)
		assert_read_as(text, strlen(text), text);
	else
		assert_refused(text, strlen(text));
}

static void parse_takes_64_levels_and_not_65(void **state)
{
	(void)state;
	assert_int_equal(NC_JSON_DEPTH_MAX, 64);
	for (int objects = 0; objects < 2; objects++) {
		assert_nested(true, nested("", 63, objects, ""));
		assert_nested(true, nested("", 64, objects, ""));
		assert_nested(false, nested("", 65, objects, ""));
		assert_nested(false, nested("", 10000, objects, ""));
	}
	assert_nested(true, nested("{\"a\":", 63, false, "}"));
	assert_nested(false, nested("{\"a\":", 64, false, "}"));
	assert_nested(true, nested("[{},[],", 63, true, ",[[]]]"));
	assert_nested(false, nested("[{},[],", 64, true, ",[[]]]"));
}

static void depth_is_not_counted_inside_strings(void **state)
{
	const char *brackets =
		"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{";
	char text[256];

	(void)state;
	assert_true(strlen(brackets) > 64);
	snprintf(text, sizeof(text), "[\"%s\"]", brackets);
	assert_nested(true, text);
	snprintf(text, sizeof(text), "[\"\\\"%s\"]", brackets);
	assert_nested(true, text);
	snprintf(text, sizeof(text), "{\"\\\\\\\"%s\":1}", brackets);
	assert_nested(true, text);
	/* closing ones inside a string do not make room either */
	assert_nested(false, nested("[\"]]]]]]]]\",", 64, false, "]"));
	/* a string that ends in a backslash has ended */
	assert_nested(true, nested("[\"\\\\\",", 63, false, "]"));
	assert_nested(false, nested("[\"\\\\\",", 64, false, "]"));
	assert_nested(false, nested("[\"\\\\\\\\\",", 64, false, "]"));
}

static void depth_is_that_of_the_deepest_and_not_the_sum(void **state)
{
	char text[1024] = "[";
	size_t used = 1;

	(void)state;
	for (size_t i = 0; i < 200; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "[],");
	snprintf(text + used, sizeof(text) - used, "{}]");
	assert_nested(true, text);
}

static void parse_says_where_it_failed(void **state)
{
	static const char text[] = "{\"a\": 1,\n \"b\": x}";
	struct nacre_err err = {0};
	json_t *value = NULL;

	(void)state;
	assert_int_equal(nc_json_parse(text, strlen(text), &value, &err), -EINVAL);
	assert_non_null(strstr(err.message, "line 2"));
	assert_non_null(strstr(err.message, "column 7"));
}

static void parse_says_where_it_is_too_deep(void **state)
{
	const char *text = nested("\n\n", 65, false, "");
	struct nacre_err err = {0};
	json_t *value = NULL;

	(void)state;
	assert_int_equal(nc_json_parse(text, strlen(text), &value, &err), -EINVAL);
	assert_non_null(strstr(err.message, "64"));
	assert_non_null(strstr(err.message, "line 3"));
}

static void parse_bears_every_failed_allocation(void **state)
{
	static const char text[] = "{\"a\":[\"b\",1,{\"c\":\"d\"}],\"e\":null}";
	size_t n = 0;
	int r;

	(void)state;
	do {
		json_t *const untouched = json_true();
		json_t *value = untouched;
		struct nacre_err err = {0};

		allocations_left = n++;
		json_set_alloc_funcs(some_memory, free);
		r = nc_json_parse(text, strlen(text), &value, &err);
		json_set_alloc_funcs(malloc, free);
		assert_int_equal(err.code, r);
		if (r < 0)
			assert_ptr_equal(value, untouched);
		else
			json_decref(value);
	} while (r < 0 && n < 1000);
	assert_int_equal(r, 0);
	assert_true(n > 5);
}

static const struct {
	const char *bytes;
	size_t size;
	const char *text;
	size_t text_size;
} texts[] = {
	{"", 0, "", 0},
	{"plain", 5, "plain", 5},
	{"plain", 3, "pla", 3},
	{"a\0b", 3, "a\0b", 3},
	{"\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x9a", 9, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x9a", 9},
	{"\xff", 1, "\xef\xbf\xbd", 3},
	{"a\x80z", 3, "a\xef\xbf\xbdz", 5},
	{"\xe2\x82", 2, "\xef\xbf\xbd\xef\xbf\xbd", 6},
	{"\xe2\x82\xac", 2, "\xef\xbf\xbd\xef\xbf\xbd", 6},
	{"\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", 9},
	{"\xef\xbf\xbe\xef\xbf\xbf", 6, "\xef\xbf\xbe\xef\xbf\xbf", 6},
	{"\xef\xbf\xbd", 3, "\xef\xbf\xbd", 3},
};

static void text_replaces_what_is_not_utf8(void **state)
{
	(void)state;
	for (size_t i = 0; i < unit_count(texts); i++) {
		cleanup_json json_t *value = nc_json_text(texts[i].bytes, texts[i].size);

		assert_true(json_is_string(value));
		assert_int_equal(json_string_length(value), texts[i].text_size);
		assert_memory_equal(
			json_string_value(value), texts[i].text, texts[i].text_size + 1);
	}
}

static void text_takes_every_pair_of_bytes(void **state)
{
	(void)state;
	for (unsigned int pair = 0; pair < 0x10000; pair++) {
		const char bytes[2] = {(char)(pair >> 8), (char)pair};
		cleanup_json json_t *value = nc_json_text(bytes, sizeof(bytes));

		if (!json_is_string(value))
			fail_msg("no text for %04x", pair);
	}
}

static void text_without_memory_is_null(void **state)
{
	json_t *ours, *theirs;

	(void)state;
	out_of_memory = true;
	ours = nc_json_text("text", 4);
	out_of_memory = false;
	assert_null(ours);
	allocations_left = 0;
	json_set_alloc_funcs(some_memory, free);
	theirs = nc_json_text("text", 4);
	json_set_alloc_funcs(malloc, free);
	assert_null(theirs);
}

/* What nc_json_print wrote; the caller frees it. */
static char *printed(json_t *value, bool indented)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(nc_json_print(out, value, indented), 0);
	/* it is there before the stream is closed */
	assert_non_null(text);
	assert_true(size > 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void print_writes_one_line_or_many(void **state)
{
	cleanup_json json_t *value = json_pack("{s:i, s:[s, n]}", "b", 1, "a", "x\n");
	cleanup_free char *line = printed(json_incref(value), false);
	cleanup_free char *lines = printed(json_incref(value), true);
	cleanup_free char *scalar = printed(json_integer(7), false);
	cleanup_free char *empty = printed(json_object(), true);
	static const char wanted[] =
		"{\n  \"b\": 1,\n  \"a\": [\n    \"x\\n\",\n    null\n  ]\n}\n";

	(void)state;
	assert_string_equal(line, "{\"b\":1,\"a\":[\"x\\n\",null]}\n");
	assert_string_equal(lines, wanted);
	assert_string_equal(scalar, "7\n");
	assert_string_equal(empty, "{}\n");
}

static void print_takes_the_reference_over(void **state)
{
	cleanup_json json_t *value = json_array();
	cleanup_free char *text = NULL;
	cleanup_fclose FILE *full = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(full);
	text = printed(json_incref(value), false);
	assert_int_equal(value->refcount, 1);
	assert_true(nc_json_print(full, json_incref(value), false) < 0);
	assert_int_equal(value->refcount, 1);
}

static void print_of_null_means_no_memory(void **state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_non_null(out);
	assert_int_equal(nc_json_print(out, NULL, false), -ENOMEM);
	assert_int_equal(nc_json_print(out, NULL, true), -ENOMEM);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, "");
	free(text);
}

static void print_to_a_full_device_fails(void **state)
{
	static const int bufferings[] = {_IOFBF, _IOLBF, _IONBF};
	static char large[100000];

	(void)state;
	memset(large, 'x', sizeof(large) - 1);
	for (size_t i = 0; i < unit_count(bufferings); i++) {
		cleanup_fclose FILE *out = fopen("/dev/full", "w");

		assert_non_null(out);
		assert_int_equal(setvbuf(out, NULL, bufferings[i], 4096), 0);
		assert_true(nc_json_print(out, json_true(), false) < 0);
		assert_true(nc_json_print(out, json_string(large), true) < 0);
	}
}

static void counts_values_and_not_what_strings_hold(void **state)
{
	(void)state;
	assert_int_equal(nc_json_count("", 0), 1);
	assert_int_equal(nc_json_count("[1,2,3]", 7), 4);
	assert_int_equal(nc_json_count("{\"a,[\":\"\\\",{\"}", 14), 2);
	assert_int_equal(nc_json_count(",,,,", 4), 5);
	assert_int_equal(nc_json_count("[\"\\", 3), 2); /* ends in the middle of an escape */
}

static void long_texts_become_null(void **state)
{
	json_t *value = json_pack("{s:s, s:s, s:i, s:[s, {s:s, s:s}]}", "a", "1234", "b", "12345",
		"c", 7, "d", "123456", "e", "12345", "f", "");
	cleanup_free char *text = NULL;

	(void)state;
	nc_json_shorten(value, 4);
	text = json_dumps(value, JSON_COMPACT);
	assert_string_equal(
		text, "{\"a\":\"1234\",\"b\":null,\"c\":7,\"d\":[null,{\"e\":null,\"f\":\"\"}]}");
	json_decref(value);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_takes_one_value),
		cmocka_unit_test(parse_refuses_what_is_not_json),
		cmocka_unit_test(parse_refuses_what_follows_the_value),
		cmocka_unit_test(parse_refuses_nul),
		cmocka_unit_test(parse_refuses_nul_behind_a_number),
		cmocka_unit_test(parse_refuses_a_key_twice),
		cmocka_unit_test(parse_takes_64_levels_and_not_65),
		cmocka_unit_test(depth_is_not_counted_inside_strings),
		cmocka_unit_test(depth_is_that_of_the_deepest_and_not_the_sum),
		cmocka_unit_test(parse_says_where_it_failed),
		cmocka_unit_test(parse_says_where_it_is_too_deep),
		cmocka_unit_test(parse_bears_every_failed_allocation),
		cmocka_unit_test(text_replaces_what_is_not_utf8),
		cmocka_unit_test(text_takes_every_pair_of_bytes),
		cmocka_unit_test(text_without_memory_is_null),
		cmocka_unit_test(print_writes_one_line_or_many),
		cmocka_unit_test(print_takes_the_reference_over),
		cmocka_unit_test(print_of_null_means_no_memory),
		cmocka_unit_test(long_texts_become_null),
		cmocka_unit_test(print_to_a_full_device_fails),
		cmocka_unit_test(counts_values_and_not_what_strings_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
