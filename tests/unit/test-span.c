/* Pieces of foreign bytes. */
#include "unit.h"

#include <string.h>

#include "base/span.h"

static struct nc_span span_of(const char *text)
{
	return (struct nc_span){text, strlen(text)};
}

static void assert_span(struct nc_span span, const char *text)
{
	assert_int_equal(span.size, strlen(text));
	assert_memory_equal(span.text, text, span.size);
}

static void test_lines(void **state)
{
	struct nc_span rest = span_of("a\r\n\nb"), line;

	(void)state;
	assert_true(nc_span_line(&rest, &line));
	assert_span(line, "a");
	assert_true(nc_span_line(&rest, &line));
	assert_span(line, "");
	assert_true(nc_span_line(&rest, &line));
	assert_span(line, "b");
	assert_false(nc_span_line(&rest, &line));
	rest = (struct nc_span){NULL, 0};
	assert_false(nc_span_line(&rest, &line));
}

static void test_words(void **state)
{
	struct nc_span span = span_of("ab ab");

	(void)state;
	assert_true(nc_span_find(span, "ab") == span.text);
	assert_true(nc_span_find_last(span, "ab") == span.text + 3);
	assert_null(nc_span_find(span, "ab ab "));
	assert_null(nc_span_find_last(span, "ab ab "));
	assert_null(nc_span_find_last(span_of(""), "a"));
	assert_true(nc_span_begins_any(span, "xa"));
	assert_false(nc_span_begins_any(span, "b"));
	assert_false(nc_span_begins_any((struct nc_span){"", 1}, "b"));
	assert_false(nc_span_begins_any(span_of(""), "b"));
	assert_false(nc_span_skip(&span, "b"));
	assert_true(nc_span_skip(&span, "ab"));
	assert_int_equal(nc_span_skip_blanks(&span), 1);
	assert_span(span, "ab");
	assert_span(nc_span_before(span, span.text + 1), "a");
	assert_span(nc_span_behind(span, span.text + 1), "b");
}

static void test_numbers(void **state)
{
	struct nc_span span = span_of("42x"), large = span_of("4294967296");
	uint32_t number = 7;

	(void)state;
	assert_true(nc_span_number(&span, &number));
	assert_int_equal(number, 42);
	assert_false(nc_span_number(&span, &number));
	assert_span(span, "x");
	assert_false(nc_span_number(&large, &number));
	assert_span(large, "4294967296");
	assert_int_equal(number, 42);
}

static void test_copies(void **state)
{
	char out[6];

	(void)state;
	nc_span_copy(span_of("a\n\x1b\xff"
			     "b"),
		out, sizeof(out));
	assert_string_equal(out, "a???b");
	nc_span_copy(span_of("1234\xc3\xa4"), out, sizeof(out)); /* the last one does not fit */
	assert_string_equal(out, "1234");
	nc_span_copy(span_of("\xe2\x80\xae\t"), out, sizeof(out));
	assert_string_equal(out, "? ");
	nc_span_copy((struct nc_span){"a\0b", 3}, out, sizeof(out));
	assert_string_equal(out, "a?b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
