/* The growable buffer: its maximum, its sticky error, handing over. */
#include "unit.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"

static bool out_of_memory;

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_realloc(void *memory, size_t size)
{
	if (!out_of_memory)
		return __real_realloc(memory, size);
	errno = ENOMEM;
	return NULL;
}

static void assert_holds(const struct nc_buf *buf, const char *text)
{
	assert_int_equal(buf->size, strlen(text));
	assert_string_equal(nc_buf_text(buf), text);
}

static void a_new_buffer_is_empty(void **state)
{
	const struct nc_buf buf = NC_BUF(10);

	(void)state;
	assert_null(buf.data);
	assert_int_equal(buf.size, 0);
	assert_int_equal(buf.max, 10);
	assert_int_equal(buf.error, 0);
	assert_string_equal(nc_buf_text(&buf), "");
}

static void appends_in_order(void **state)
{
	nc_buf_cleanup struct nc_buf buf = NC_BUF(100);

	(void)state;
	nc_buf_add(&buf, "abcdef", 2);
	assert_holds(&buf, "ab");
	nc_buf_adds(&buf, "-text-");
	assert_holds(&buf, "ab-text-");
	nc_buf_addf(&buf, "%s:%u", "name", 12U);
	assert_holds(&buf, "ab-text-name:12");
	nc_buf_addf(&buf, "%s", "");
	nc_buf_adds(&buf, "");
	nc_buf_add(&buf, NULL, 0);
	assert_holds(&buf, "ab-text-name:12");
	assert_ptr_equal(nc_buf_text(&buf), buf.data);
	assert_int_equal(buf.error, 0);
}

static void keeps_bytes_that_are_nul(void **state)
{
	static const char bytes[] = {'a', '\0', 'b', '\0'};
	nc_buf_cleanup struct nc_buf buf = NC_BUF(100);

	(void)state;
	nc_buf_add(&buf, bytes, sizeof(bytes));
	nc_buf_add(&buf, bytes, sizeof(bytes));
	assert_int_equal(buf.size, 8);
	assert_memory_equal(buf.data, "a\0b\0a\0b\0", 9);
}

static void grows_with_room_for_the_nul_at_every_size(void **state)
{
	nc_buf_cleanup struct nc_buf buf = NC_BUF(5000);

	(void)state;
	for (size_t i = 0; i < 5000; i++) {
		const char c = (char)('a' + i % 26);

		nc_buf_add(&buf, &c, 1);
		assert_int_equal(buf.size, i + 1);
		assert_true(buf.capacity > buf.size);
		assert_int_equal(buf.data[i + 1], '\0');
	}
	for (size_t i = 0; i < 5000; i++)
		assert_int_equal(buf.data[i], 'a' + i % 26);
	assert_int_equal(buf.error, 0);
}

static void holds_its_maximum_and_not_one_more(void **state)
{
	static const size_t maxima[] = {0, 1, 62, 63, 64, 65, 127, 128, 129, 4095, 4096, 4097};
	static char data[5000];

	(void)state;
	memset(data, 'x', sizeof(data));
	for (size_t i = 0; i < unit_count(maxima); i++) {
		nc_buf_cleanup struct nc_buf exact = NC_BUF(maxima[i]);
		nc_buf_cleanup struct nc_buf over = NC_BUF(maxima[i]);

		nc_buf_add(&exact, data, maxima[i]);
		assert_int_equal(exact.error, 0);
		assert_int_equal(exact.size, maxima[i]);
		nc_buf_add(&exact, data, 0);
		assert_int_equal(exact.error, 0);
		nc_buf_add(&exact, data, 1);
		assert_int_equal(exact.error, -EFBIG);
		assert_int_equal(exact.size, maxima[i]);

		nc_buf_add(&over, data, maxima[i] + 1);
		assert_int_equal(over.error, -EFBIG);
		assert_int_equal(over.size, 0);
		assert_string_equal(nc_buf_text(&over), "");
	}
}

static void formats_up_to_its_maximum_and_not_one_more(void **state)
{
	nc_buf_cleanup struct nc_buf buf = NC_BUF(70);

	(void)state;
	nc_buf_addf(&buf, "%070d", 7);
	assert_int_equal(buf.error, 0);
	assert_int_equal(buf.size, 70);
	assert_int_equal(buf.data[69], '7');
	nc_buf_done(&buf);
	nc_buf_adds(&buf, "a");
	nc_buf_addf(&buf, "%070d", 7);
	assert_int_equal(buf.error, -EFBIG);
	assert_holds(&buf, "a");
}

static void a_size_that_would_overflow_is_too_big(void **state)
{
	static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2, 10};

	(void)state;
	for (size_t i = 0; i < unit_count(sizes); i++) {
		nc_buf_cleanup struct nc_buf buf = NC_BUF(10);

		nc_buf_adds(&buf, "a");
		nc_buf_add(&buf, "0123456789", sizes[i]);
		assert_int_equal(buf.error, -EFBIG);
		assert_holds(&buf, "a");
	}
}

static void add_one_of_each(struct nc_buf *buf)
{
	nc_buf_add(buf, "a", 1);
	nc_buf_adds(buf, "b");
	nc_buf_addf(buf, "%c", 'c');
}

static void too_big_is_sticky(void **state)
{
	nc_buf_cleanup struct nc_buf buf = NC_BUF(5);

	(void)state;
	nc_buf_adds(&buf, "ab");
	nc_buf_adds(&buf, "too long");
	assert_int_equal(buf.error, -EFBIG);
	add_one_of_each(&buf);
	assert_int_equal(buf.error, -EFBIG);
	assert_holds(&buf, "ab");
}

static void out_of_memory_is_sticky(void **state)
{
	nc_buf_cleanup struct nc_buf buf = NC_BUF(200);

	(void)state;
	nc_buf_adds(&buf, "ab");
	out_of_memory = true;
	nc_buf_addf(&buf, "%0100d", 1);
	out_of_memory = false;
	assert_int_equal(buf.error, -ENOMEM);
	assert_holds(&buf, "ab");
	add_one_of_each(&buf);
	nc_buf_addf(&buf, "%0300d", 1); /* the first error stays */
	assert_int_equal(buf.error, -ENOMEM);
	assert_holds(&buf, "ab");
}

static void out_of_memory_at_the_first_append(void **state)
{
	struct nc_buf buf = NC_BUF(200);

	(void)state;
	out_of_memory = true;
	add_one_of_each(&buf);
	out_of_memory = false;
	assert_int_equal(buf.error, -ENOMEM);
	assert_null(buf.data);
	assert_string_equal(nc_buf_text(&buf), "");
	nc_buf_done(&buf);
}

static void done_makes_it_usable_again(void **state)
{
	struct nc_buf buf = NC_BUF(3);

	(void)state;
	nc_buf_adds(&buf, "abc");
	nc_buf_adds(&buf, "d");
	assert_int_equal(buf.error, -EFBIG);
	errno = EXDEV;
	nc_buf_done(&buf);
	assert_int_equal(errno, EXDEV);
	assert_null(buf.data);
	assert_int_equal(buf.size, 0);
	assert_int_equal(buf.capacity, 0);
	assert_int_equal(buf.max, 3);
	assert_int_equal(buf.error, 0);
	nc_buf_done(&buf);
	nc_buf_adds(&buf, "xyz");
	assert_holds(&buf, "xyz");
	nc_buf_done(&buf);
}

static void take_hands_the_text_over(void **state)
{
	cleanup_free char *first = NULL;
	cleanup_free char *second = NULL;
	nc_buf_cleanup struct nc_buf buf = NC_BUF(5);

	(void)state;
	nc_buf_adds(&buf, "first");
	assert_int_equal(nc_buf_take(&buf, &first), 0);
	assert_null(buf.data);
	assert_int_equal(buf.size, 0);
	assert_string_equal(nc_buf_text(&buf), "");
	nc_buf_adds(&buf, "again");
	assert_int_equal(nc_buf_take(&buf, &second), 0);
	assert_string_equal(first, "first");
	assert_string_equal(second, "again");
}

static void take_of_nothing_is_an_empty_text(void **state)
{
	static const size_t maxima[] = {0, 5};

	(void)state;
	for (size_t i = 0; i < unit_count(maxima); i++) {
		cleanup_free char *text = NULL;
		nc_buf_cleanup struct nc_buf buf = NC_BUF(maxima[i]);

		assert_int_equal(nc_buf_take(&buf, &text), 0);
		assert_non_null(text);
		assert_string_equal(text, "");
	}
}

static void take_returns_the_error_and_empties(void **state)
{
	char untouched[] = "untouched";
	char *text = untouched;
	nc_buf_cleanup struct nc_buf buf = NC_BUF(3);

	(void)state;
	nc_buf_adds(&buf, "abc");
	nc_buf_adds(&buf, "d");
	assert_int_equal(nc_buf_take(&buf, &text), -EFBIG);
	assert_ptr_equal(text, untouched);
	assert_null(buf.data);
	assert_int_equal(buf.size, 0);
	assert_int_equal(buf.error, 0);
	nc_buf_adds(&buf, "abc");
	assert_holds(&buf, "abc");
}

static void take_without_memory(void **state)
{
	char untouched[] = "untouched";
	char *text = untouched;
	struct nc_buf buf = NC_BUF(3);
	int r;

	(void)state;
	out_of_memory = true;
	r = nc_buf_take(&buf, &text);
	out_of_memory = false;
	assert_int_equal(r, -ENOMEM);
	assert_ptr_equal(text, untouched);
	assert_int_equal(buf.error, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_buffer_is_empty),
		cmocka_unit_test(appends_in_order),
		cmocka_unit_test(keeps_bytes_that_are_nul),
		cmocka_unit_test(grows_with_room_for_the_nul_at_every_size),
		cmocka_unit_test(holds_its_maximum_and_not_one_more),
		cmocka_unit_test(formats_up_to_its_maximum_and_not_one_more),
		cmocka_unit_test(a_size_that_would_overflow_is_too_big),
		cmocka_unit_test(too_big_is_sticky),
		cmocka_unit_test(out_of_memory_is_sticky),
		cmocka_unit_test(out_of_memory_at_the_first_append),
		cmocka_unit_test(done_makes_it_usable_again),
		cmocka_unit_test(take_hands_the_text_over),
		cmocka_unit_test(take_of_nothing_is_an_empty_text),
		cmocka_unit_test(take_returns_the_error_and_empties),
		cmocka_unit_test(take_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
