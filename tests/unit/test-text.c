/* Text: UTF-8, quoting for messages and JSON, the nearest word. */
#include "unit.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

static void streq_compares_whole_strings(void **state)
{
	(void)state;
	assert_true(nc_streq("", ""));
	assert_true(nc_streq("abc", "abc"));
	assert_false(nc_streq("abc", "ab"));
	assert_false(nc_streq("ab", "abc"));
	assert_false(nc_streq("abc", "abC"));
}

static void after_gives_what_follows_the_prefix(void **state)
{
	static const struct {
		const char *text, *prefix, *rest;
	} cases[] = {
		{"name=value", "name=", "value"},
		{"name=", "name=", ""},
		{"name", "name=", NULL},
		{"Name=value", "name=", NULL},
		{"", "x", NULL},
		{"", "", ""},
		{"x", "", "x"},
		{"\xff\xfe", "\xff", "\xfe"},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++) {
		const char *rest = nc_text_after(cases[i].text, cases[i].prefix);

		if (!cases[i].rest)
			assert_null(rest);
		else
			assert_ptr_equal(rest, cases[i].text + strlen(cases[i].prefix));
	}
}

static void has_word_looks_at_whole_parts(void **state)
{
	static const struct {
		const char *list, *word;
		bool has;
	} cases[] = {
		{"a,b,c", "a", true},
		{"a,b,c", "b", true},
		{"a,b,c", "c", true},
		{"a", "a", true},
		{"one,two", "two", true},
		{"one,two", "tw", false},
		{"one,two", "wo", false},
		{"one,two", "on", false},
		{"one,two", "twoo", false},
		{"one,two", "one,two", false},
		{"twoo,two", "two", true},
		{"xone,one", "one", true},
		{"one two", "one", false},
		{"one, two", "two", false},
		{"One", "one", false},
		{"", "a", false},
		{",", "a", false},
		{",a,", "a", true},
	};

	(void)state;
	for (size_t i = 0; i < unit_count(cases); i++)
		if (nc_text_has_word(cases[i].list, ',', cases[i].word) != cases[i].has)
			fail_msg("'%s' in '%s'", cases[i].word, cases[i].list);
	assert_true(nc_text_has_word("one two", ' ', "two"));
	assert_true(nc_text_has_word("/usr/bin:/bin", ':', "/bin"));
}

/* Writes point in the form of length bytes, be it allowed or not. */
static void encode(unsigned long point, size_t length, char out[static 4])
{
	static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = length - 1; i > 0; i--, point >>= 6)
		out[i] = (char)(0x80 | (point & 0x3f));
	out[0] = (char)(marks[length] | point);
}

static bool is_valid(unsigned long point, size_t length)
{
	size_t shortest = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;

	return length == shortest && (point < 0xd800 || point > 0xdfff) && point <= 0x10ffff;
}

static void utf8_takes_exactly_the_valid_sequences(void **state)
{
	static const unsigned long ends[] = {0, 0x80, 0x800, 0x10000, 0x200000};
	char bytes[4];

	(void)state;
	for (size_t length = 1; length <= 4; length++) {
		for (unsigned long point = 0; point < ends[length]; point++) {
			size_t want = is_valid(point, length) ? length : 0, got;

			encode(point, length, bytes);
			got = nc_text_utf8(bytes, length);
			if (got != want)
				fail_msg("U+%04lX in %zu bytes: %zu", point, length, got);
		}
	}
}

static void utf8_knows_no_lead_bytes_but_the_valid_ones(void **state)
{
	(void)state;
	for (unsigned int lead = 0; lead < 256; lead++) {
		const char bytes[4] = {(char)lead, (char)0x90, (char)0x80, (char)0x80};
		size_t want = lead < 0x80    ? 1
			      : lead < 0xc2  ? 0
			      : lead < 0xe0  ? 2
			      : lead == 0xe0 ? 0
			      : lead < 0xf0  ? 3
			      : lead < 0xf4  ? 4
					     : 0;

		assert_int_equal(nc_text_utf8(bytes, sizeof(bytes)), want);
	}
}

static void utf8_looks_at_no_more_than_it_may(void **state)
{
	static const char *const sequences[] = {
		"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x90\x9a"};

	(void)state;
	assert_int_equal(nc_text_utf8(NULL, 0), 0);
	for (size_t length = 1; length <= 4; length++) {
		for (size_t size = 0; size <= length; size++) {
			/* of its exact size, so that the sanitizer sees a look too far */
			char *copy = malloc(size ? size : 1);

			assert_non_null(copy);
			memcpy(copy, sequences[length - 1], size);
			assert_int_equal(nc_text_utf8(copy, size), size == length ? length : 0);
			free(copy);
		}
		assert_int_equal(nc_text_utf8(sequences[length - 1], length - 1), 0);
		assert_int_equal(nc_text_utf8(sequences[length - 1], 100), length);
	}
}

static void utf8_wants_every_continuation(void **state)
{
	static const char *const broken[] = {"\xc3(", "\xc3\xc3", "\xe2(\xac", "\xe2\x82(",
		"\xe2\x82\xe2", "\xf0(\x90\x9a", "\xf0\x9f(\x9a", "\xf0\x9f\x90(",
		"\xf0\x9f\x90\xff"};

	(void)state;
	for (size_t i = 0; i < unit_count(broken); i++)
		assert_int_equal(nc_text_utf8(broken[i], strlen(broken[i])), 0);
}

static const struct {
	const char *text;
	size_t size;
	const char *json;
} json_cases[] = {
	{"", 0, ""},
	{"plain /text'", 12, "plain /text'"},
	{"a\"b", 3, "a\\\"b"},
	{"a\\b", 3, "a\\\\b"},
	{"\n\r\t", 3, "\\n\\r\\t"},
	{"\0", 1, "\\u0000"},
	{"a\0b", 3, "a\\u0000b"},
	{"\x01\x08\x0c\x1b\x1f", 5, "\\u0001\\u0008\\u000c\\u001b\\u001f"},
	{" \x7e", 2, " ~"},
	{"\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x9a", 9, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x9a"},
	{"\xff", 1, "\\ufffd"},
	{"a\x80z", 3, "a\\ufffdz"},
	{"\xe2\x82", 2, "\\ufffd\\ufffd"},
	{"\xe2\x82!", 3, "\\ufffd\\ufffd!"},
	{"\xc0\xaf", 2, "\\ufffd\\ufffd"},
	{"\xed\xa0\x80", 3, "\\ufffd\\ufffd\\ufffd"},
	{"\xf4\x90\x80\x80", 4, "\\ufffd\\ufffd\\ufffd\\ufffd"},
	{"abc", 2, "ab"},
};

static void json_escapes_for_a_string(void **state)
{
	(void)state;
	for (size_t i = 0; i < unit_count(json_cases); i++) {
		nc_buf_cleanup struct nc_buf buf = NC_BUF(1000);

		nc_buf_adds(&buf, "<");
		nc_text_json(&buf, json_cases[i].text, json_cases[i].size);
		assert_int_equal(buf.error, 0);
		assert_int_equal(buf.size, 1 + strlen(json_cases[i].json));
		assert_string_equal(nc_buf_text(&buf) + 1, json_cases[i].json);
	}
}

static void json_leaves_no_control_character(void **state)
{
	(void)state;
	for (unsigned int c = 0; c < 0x20; c++) {
		nc_buf_cleanup struct nc_buf buf = NC_BUF(6);
		const char byte = (char)c;

		nc_text_json(&buf, &byte, 1);
		assert_int_equal(buf.error, 0);
		assert_int_equal(buf.data[0], '\\');
		for (size_t i = 0; i < buf.size; i++)
			assert_in_range(buf.data[i], 0x20, 0x7e);
	}
}

static const struct {
	const char *text, *quoted;
} quote_cases[] = {
	{"", "''"},
	{"text", "'text'"},
	{"two words", "'two words'"},
	{"it's", "'it\\x27s'"},
	{"'", "'\\x27'"},
	{"a\\b", "'a\\x5cb'"},
	{"a\nb\tc\r", "'a\\x0ab\\x09c\\x0d'"},
	{"\x01\x1b[2J\x1f\x7f", "'\\x01\\x1b[2J\\x1f\\x7f'"},
	{"\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x9a", "'\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x9a'"},
	{"\xff\x80", "'\\xff\\x80'"},
	{"\xe2\x82", "'\\xe2\\x82'"},
	{"\xed\xa0\x80", "'\\xed\\xa0\\x80'"},
	{"...", "'...'"},
};

static void quote_escapes_for_a_message(void **state)
{
	char out[NC_TEXT_QUOTED_MAX];

	(void)state;
	for (size_t i = 0; i < unit_count(quote_cases); i++) {
		assert_ptr_equal(nc_text_quote(out, quote_cases[i].text), out);
		assert_string_equal(out, quote_cases[i].quoted);
	}
}

/* U+0080 to U+009F are control characters too; U+009B begins a terminal's escape sequence. */
static void quote_escapes_the_control_characters_above_ascii(void **state)
{
	char out[NC_TEXT_QUOTED_MAX];

	(void)state;
	assert_string_equal(nc_text_quote(out, "\xc2\x9b"
					       "2J"),
		"'\\xc2\\x9b2J'");
	assert_string_equal(nc_text_quote(out, "\xc2\x80\xc2\x9f"), "'\\xc2\\x80\\xc2\\x9f'");
	assert_string_equal(nc_text_quote(out, "\xc2\xa0"), "'\xc2\xa0'");
}

/*
 * Quotes a text of lead letters and n times piece, each of which is to appear as shown: all of
 * them, or some and "...".
 */
static void check_length(size_t lead, const char *piece, const char *shown, size_t n)
{
	const size_t size = strlen(piece), shown_size = strlen(shown);
	char *text = malloc(lead + n * size + 1);
	char *out = malloc(NC_TEXT_QUOTED_MAX); /* the sanitizer watches its end */
	size_t kept = 0;

	assert_true(text && out);
	memset(text, 'x', lead);
	for (size_t i = 0; i < n; i++)
		memcpy(text + lead + i * size, piece, size);
	text[lead + n * size] = '\0';
	nc_text_quote(out, text);
	assert_true(strnlen(out, NC_TEXT_QUOTED_MAX) < NC_TEXT_QUOTED_MAX);
	assert_int_equal(out[0], '\'');
	assert_memory_equal(out + 1, text, lead);
	while (kept < n && strncmp(out + 1 + lead + kept * shown_size, shown, shown_size) == 0)
		kept++;
	assert_string_equal(out + 1 + lead + kept * shown_size, kept == n ? "'" : "...'");
	/* what would not have come near the end was not cut */
	assert_true(kept == n || lead + n * shown_size + sizeof("''") > NC_TEXT_QUOTED_MAX - 8);
	free(out);
	free(text);
}

static void quote_cuts_what_is_too_long_between_characters(void **state)
{
	(void)state;
	for (size_t lead = 0; lead < 4; lead++) {
		for (size_t n = 0; n < 250; n++) {
			check_length(lead, "x", "x", n);
			check_length(lead, "\n", "\\x0a", n);
			check_length(lead, "\xff", "\\xff", n);
			check_length(lead, "\xc3\xa9", "\xc3\xa9", n);
			check_length(lead, "\xe2\x82\xac", "\xe2\x82\xac", n);
			check_length(lead, "\xf0\x9f\x90\x9a", "\xf0\x9f\x90\x9a", n);
		}
	}
	check_length(0, "x", "x", 100000);
}

static const struct {
	const char *word;
	const char *offers[5];
	const char *best;
	size_t distance;
} nearest_cases[] = {
	{"doctor", {"run", "doctor", "ps"}, "doctor", 0},
	{"dcotor", {"run", "doctor", "ps"}, "doctor", 1}, /* a swap */
	{"od", {"do"}, "do", 1},
	{"docto", {"doctor"}, "doctor", 1},
	{"doctorr", {"doctor"}, "doctor", 1},
	{"xoctor", {"doctor"}, "doctor", 1},
	{"run", {"ps"}, NULL, 0},
	{"zzzzzz", {"doctor", "run"}, NULL, 0},
	{"", {"run", "ps", "doctor"}, NULL, 0},
	{"runs", {"ruin", "run"}, "run", 1},
	{"memory", {"memories", "memoryy", "memory", "memor"}, "memory", 0},
	{"net", {"set", "nit"}, "set", 1}, /* the first of equals */
	{"doctor", {NULL}, NULL, 0},
};

static void nearest_keeps_the_best(void **state)
{
	(void)state;
	for (size_t i = 0; i < unit_count(nearest_cases); i++) {
		struct nc_nearest nearest = {.word = nearest_cases[i].word};

		for (const char *const *offer = nearest_cases[i].offers; *offer; offer++)
			nc_nearest_offer(&nearest, *offer);
		if (!nearest_cases[i].best) {
			assert_null(nearest.best);
			continue;
		}
		assert_non_null(nearest.best);
		assert_string_equal(nearest.best, nearest_cases[i].best);
		assert_int_equal(nearest.distance, nearest_cases[i].distance);
	}
}

static void nearest_borrows_the_candidate(void **state)
{
	const char candidate[] = "doctor";
	struct nc_nearest nearest = {.word = "doctr"};

	(void)state;
	nc_nearest_offer(&nearest, candidate);
	assert_ptr_equal(nearest.best, candidate);
}

static void nearest_bears_words_of_any_length(void **state)
{
	char word[400], candidate[400];

	(void)state;
	for (size_t size = 40; size < 60; size++) {
		struct nc_nearest nearest = {.word = word};

		memset(word, 'w', size);
		word[size] = '\0';
		memset(candidate, 'w', size - 1);
		candidate[size - 1] = '\0';
		nc_nearest_offer(&nearest, candidate);
		assert_true(!nearest.best || nearest.distance == 1);
	}
	memset(word, 'w', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	for (size_t size = 1; size < 48; size++) {
		struct nc_nearest nearest = {.word = word};

		memset(candidate, 'w', size);
		candidate[size] = '\0';
		nc_nearest_offer(&nearest, candidate);
		assert_null(nearest.best);
	}
}

static void nearest_suggests_nothing_long_that_is_different(void **state)
{
	struct nc_nearest nearest = {.word = "run"};
	char candidate[400];

	(void)state;
	for (size_t size = 100; size < sizeof(candidate); size += 50) {
		memset(candidate, 'x', size);
		candidate[size] = '\0';
		nc_nearest_offer(&nearest, candidate);
		assert_null(nearest.best);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(streq_compares_whole_strings),
		cmocka_unit_test(after_gives_what_follows_the_prefix),
		cmocka_unit_test(has_word_looks_at_whole_parts),
		cmocka_unit_test(utf8_takes_exactly_the_valid_sequences),
		cmocka_unit_test(utf8_knows_no_lead_bytes_but_the_valid_ones),
		cmocka_unit_test(utf8_looks_at_no_more_than_it_may),
		cmocka_unit_test(utf8_wants_every_continuation),
		cmocka_unit_test(json_escapes_for_a_string),
		cmocka_unit_test(json_leaves_no_control_character),
		cmocka_unit_test(quote_escapes_for_a_message),
		cmocka_unit_test(quote_escapes_the_control_characters_above_ascii),
		cmocka_unit_test(quote_cuts_what_is_too_long_between_characters),
		cmocka_unit_test(nearest_keeps_the_best),
		cmocka_unit_test(nearest_borrows_the_candidate),
		cmocka_unit_test(nearest_bears_words_of_any_length),
		cmocka_unit_test(nearest_suggests_nothing_long_that_is_different),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
