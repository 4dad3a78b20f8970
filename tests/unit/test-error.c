/* The public error object: filled, cut, wrapped. */
#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/error.h"

#define LONGEST (NACRE_ERR_MESSAGE_MAX - 1)

/* size times the letter x; valid until the next call. */
static const char *filler(size_t size)
{
	static char text[4 * NACRE_ERR_MESSAGE_MAX];

	assert_true(size < sizeof(text));
	memset(text, 'x', size);
	text[size] = '\0';
	return text;
}

static void assert_cut(const struct nacre_err *err)
{
	assert_int_equal(strnlen(err->message, sizeof(err->message)), LONGEST);
	assert_string_equal(err->message + LONGEST - 3, "...");
	assert_int_not_equal(err->message[LONGEST - 4], '.');
}

static void set_fills_code_and_message(void **state)
{
	struct nacre_err err = {0};

	(void)state;
	assert_int_equal(nc_err_set(&err, -EPERM, "%s has %d", "box", 7), -EPERM);
	assert_int_equal(err.code, -EPERM);
	assert_string_equal(err.message, "box has 7");
}

static void set_replaces_what_was_there(void **state)
{
	struct nacre_err err = {0};

	(void)state;
	nc_err_set(&err, -EPERM, "%s", filler(500));
	assert_int_equal(nc_err_set(&err, -EIO, "short"), -EIO);
	assert_int_equal(err.code, -EIO);
	assert_string_equal(err.message, "short");
	nc_err_set(&err, -EIO, "%s", "");
	assert_string_equal(err.message, "");
}

static void null_err_still_returns_the_code(void **state)
{
	(void)state;
	assert_int_equal(nc_err_set(NULL, -ENOENT, "%s", filler(2000)), -ENOENT);
	assert_int_equal(nc_err_errno(NULL, -ENOENT, "%s", filler(2000)), -ENOENT);
}

static void set_cuts_only_what_does_not_fit(void **state)
{
	struct nacre_err err = {0};

	(void)state;
	nc_err_set(&err, -EIO, "%s", filler(LONGEST));
	assert_string_equal(err.message, filler(LONGEST));
	for (size_t size = LONGEST + 1; size < LONGEST + 6; size++) {
		assert_int_equal(nc_err_set(&err, -EIO, "%s", filler(size)), -EIO);
		assert_cut(&err);
		assert_memory_equal(err.message, filler(size), LONGEST - 3);
	}
	nc_err_set(&err, -EIO, "%s", filler(3000));
	assert_cut(&err);
}

static void errno_appends_the_description(void **state)
{
	struct nacre_err err = {0};

	(void)state;
	assert_int_equal(nc_err_errno(&err, -EACCES, "Open '%s'", "/x"), -EACCES);
	assert_int_equal(err.code, -EACCES);
	assert_string_equal(err.message, "Open '/x': Permission denied");
	assert_int_equal(nc_err_errno(&err, -9999, "Odd"), -9999);
	assert_string_equal(err.message, "Odd: Unknown error");
}

static void errno_cuts_only_what_does_not_fit(void **state)
{
	static const char tail[] = ": Permission denied";
	const size_t fits = LONGEST - strlen(tail);
	struct nacre_err err = {0};

	(void)state;
	nc_err_errno(&err, -EACCES, "%s", filler(fits));
	assert_int_equal(strlen(err.message), LONGEST);
	assert_memory_equal(err.message, filler(fits), fits);
	assert_string_equal(err.message + fits, tail);
	for (size_t size = fits + 1; size < LONGEST + 4; size++) {
		nc_err_errno(&err, -EACCES, "%s", filler(size));
		assert_int_equal(err.code, -EACCES);
		assert_int_equal(strnlen(err.message, sizeof(err.message)), LONGEST);
		assert_string_equal(err.message + LONGEST - 3, "...");
	}
}

static void wrap_puts_context_in_front(void **state)
{
	struct nacre_err err = {0};

	(void)state;
	nc_err_errno(&err, -EACCES, "Open '%s'", "/x");
	assert_int_equal(nc_err_wrap(&err, "Load %s", "policy"), -EACCES);
	assert_int_equal(err.code, -EACCES);
	assert_string_equal(err.message, "Load policy: Open '/x': Permission denied");
	assert_int_equal(nc_err_wrap(&err, "Start"), -EACCES);
	assert_string_equal(err.message, "Start: Load policy: Open '/x': Permission denied");
}

static void wrap_takes_percent_signs_of_the_cause_as_they_are(void **state)
{
	struct nacre_err err = {0};

	(void)state;
	nc_err_set(&err, -EINVAL, "%s", "100%s %n");
	nc_err_wrap(&err, "%s", "50%d");
	assert_string_equal(err.message, "50%d: 100%s %n");
}

static void wrap_cuts_only_what_does_not_fit(void **state)
{
	struct nacre_err err = {0};

	(void)state;
	nc_err_set(&err, -EIO, "%s", filler(LONGEST - 3));
	assert_int_equal(nc_err_wrap(&err, "c"), -EIO);
	assert_memory_equal(err.message, "c: ", 3);
	assert_string_equal(err.message + 3, filler(LONGEST - 3));

	nc_err_set(&err, -EIO, "%s", filler(LONGEST - 2));
	assert_int_equal(nc_err_wrap(&err, "c"), -EIO);
	assert_memory_equal(err.message, "c: x", 4);
	assert_cut(&err);

	nc_err_set(&err, -EIO, "%s", filler(LONGEST));
	assert_int_equal(nc_err_wrap(&err, "c"), -EIO);
	assert_memory_equal(err.message, "c: x", 4);
	assert_cut(&err);
}

static void wrap_in_a_context_that_does_not_fit(void **state)
{
	struct nacre_err err = {0};

	(void)state;
	for (size_t size = LONGEST - 4; size < LONGEST + 4; size++) {
		nc_err_set(&err, -EIO, "the cause");
		assert_int_equal(nc_err_wrap(&err, "%s", filler(size)), -EIO);
		assert_int_equal(strnlen(err.message, sizeof(err.message)), LONGEST);
		assert_string_equal(err.message + LONGEST - 3, "...");
	}
}

static const struct {
	int code;
	const char *name;
	const char *text;
} known[] = {
	{EPERM, "EPERM", "Operation not permitted"},
	{ENOENT, "ENOENT", "No such file or directory"},
	{EACCES, "EACCES", "Permission denied"},
	{EAGAIN, "EAGAIN", "Resource temporarily unavailable"},
	{ETIMEDOUT, "ETIMEDOUT", "Connection timed out"},
	{EHWPOISON, "EHWPOISON", "Memory page has hardware error"},
};

static void known_numbers_have_names_and_texts_with_either_sign(void **state)
{
	(void)state;
	for (size_t i = 0; i < unit_count(known); i++) {
		assert_string_equal(nc_errno_name(known[i].code), known[i].name);
		assert_string_equal(nc_errno_name(-known[i].code), known[i].name);
		assert_string_equal(nc_errno_text(known[i].code), known[i].text);
		assert_string_equal(nc_errno_text(-known[i].code), known[i].text);
	}
}

static void unknown_numbers_have_a_text_and_no_name(void **state)
{
	static const int unknown[] = {134, 4095, 4096, 9999, INT_MAX};

	(void)state;
	for (size_t i = 0; i < unit_count(unknown); i++) {
		assert_string_equal(nc_errno_name(unknown[i]), "E?");
		assert_string_equal(nc_errno_name(-unknown[i]), "E?");
		assert_non_null(nc_errno_text(unknown[i]));
		assert_non_null(nc_errno_text(-unknown[i]));
		/* the same memory each time: nothing was allocated */
		assert_ptr_equal(nc_errno_text(unknown[i]), nc_errno_text(-unknown[i]));
	}
	for (int code = -5000; code <= 5000; code++) {
		assert_non_null(nc_errno_text(code));
		assert_non_null(nc_errno_name(code));
	}
}

static void zero_has_no_name(void **state)
{
	(void)state;
	assert_string_equal(nc_errno_name(0), "E?");
}

/* A code may come from another process; its negation does not exist. */
static void the_least_integer_is_unknown_too(void **state)
{
	(void)state;
	assert_string_equal(nc_errno_name(INT_MIN), "E?");
	assert_non_null(nc_errno_text(INT_MIN));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_fills_code_and_message),
		cmocka_unit_test(set_replaces_what_was_there),
		cmocka_unit_test(null_err_still_returns_the_code),
		cmocka_unit_test(set_cuts_only_what_does_not_fit),
		cmocka_unit_test(errno_appends_the_description),
		cmocka_unit_test(errno_cuts_only_what_does_not_fit),
		cmocka_unit_test(wrap_puts_context_in_front),
		cmocka_unit_test(wrap_takes_percent_signs_of_the_cause_as_they_are),
		cmocka_unit_test(wrap_cuts_only_what_does_not_fit),
		cmocka_unit_test(wrap_in_a_context_that_does_not_fit),
		cmocka_unit_test(known_numbers_have_names_and_texts_with_either_sign),
		cmocka_unit_test(unknown_numbers_have_a_text_and_no_name),
		cmocka_unit_test(zero_has_no_name),
		cmocka_unit_test(the_least_integer_is_unknown_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
