/* Values of secrets in what comes back, in all spellings, cut anywhere. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "egress/mask.h"

#define VALUE "p\"e/a r\\l&5"

static struct nc_secrets one(const char *value, bool bare)
{
	struct nc_secrets secrets = {0};

	assert_int_equal(
		nc_secrets_add(&secrets, &(struct nc_egress_secret){.placeholder = "NACRE-SECRET",
						 .value = value,
						 .host = "good.test",
						 .header = "Authorization",
						 .bare = bare}),
		0);
	return secrets;
}

static struct nc_host host_of(const char *name)
{
	struct nc_host host;

	assert_int_equal(nc_host_parse(name, strlen(name), &host), 0);
	return host;
}

/* What comes out of the text, which comes in pieces of at most so many bytes. */
static void pass(struct nc_mask *mask, const char *text, size_t piece, char *out, size_t size)
{
	const size_t total = strlen(text);
	size_t looked = 0, gone = 0;

	assert_true(total < size);
	memcpy(out, text, total + 1);
	nc_mask_begin(mask);
	while (looked < total) {
		size_t n = total - looked < piece ? total - looked : piece, held;

		nc_mask_look(mask, out + looked, n, true);
		looked += n;
		held = nc_mask_held(mask);
		/* what has gone is never held or changed again */
		assert_true(looked - held >= gone);
		gone = looked - held;
	}
}

static void finds_all_spellings(void **state)
{
	static const char *const spellings[] = {
		VALUE,
		"pp\"e/a r\\l&5",
		"p\\\"e/a r\\\\l&5",
		"p\\u0022e\\/a\\u0020r\\u005C\\u006c\\u00265",
		"p%22e%2Fa%20r%5Cl%265",
		"p%22e%2fa+r%5cl%265",
		"%70%22%65%2f%61%20%72%5c%6c%26%35",
		"7022652f6120725c6c2635",
		"7022652F6120725C6C2635",
		"cCJlL2EgclxsJjU=",
		"eHAiZS9hIHJcbCY1",
		"eHhwImUvYSByXGwmNQ==",
		"eHhw\r\nImUvY\r\nSByXGwmNQ==",
		"eHhwImUvYSByXGwmNQ%3D%3D",
		"eHhwImUvYSByXGwmNXh4",
		"Pz8/cCJlL2EgclxsJjU+Pg==",
		"Pz8\\/cCJlL2EgclxsJjU+Pg==",
		"Pz8_cCJlL2EgclxsJjU-Pg==",
		"Pz8%2FcCJlL2EgclxsJjU%2bPg==",
	};
	struct nc_secrets secrets = one(VALUE, false);
	const struct nc_host host = host_of("good.test");

	(void)state;
	for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
		char text[256], out[256];

		(void)snprintf(text, sizeof(text), "<%s> and %s.", spellings[i], spellings[i]);
		for (size_t piece = 1; piece <= strlen(text); piece++) {
			struct nc_mask *mask = nc_mask_new(&secrets, &host);

			assert_non_null(mask);
			pass(mask, text, piece, out, sizeof(out));
			if (nc_mask_found(mask) < 2)
				fail_msg("not found: %s in pieces of %zu: %s", text, piece, out);
			assert_int_equal(strlen(out), strlen(text));
			assert_non_null(strstr(out, "****"));
			assert_non_null(strstr(out, " and "));
			nc_mask_free(mask);
		}
	}
	nc_secrets_done(&secrets);
}

static void leaves_all_else_alone(void **state)
{
	static const char text[] = "p\"e/a r\\l& p%22e%2 \\u00 \\ 7022652f cCJlL2E p\"e/a r\\l%";
	struct nc_secrets secrets = one(VALUE, false), bare = one(VALUE, true);
	const struct nc_host host = host_of("good.test"), other = host_of("other.test");
	struct nc_mask *mask = nc_mask_new(&secrets, &host);
	char out[256];

	(void)state;
	pass(mask, text, 3, out, sizeof(out));
	assert_string_equal(out, text);
	assert_int_equal(nc_mask_found(mask), 0);
	nc_mask_free(mask);
	assert_true(nc_mask_is_wanted(&secrets, &host));
	assert_false(nc_mask_is_wanted(&secrets, &other));
	assert_false(nc_mask_is_wanted(&bare, &host));
	nc_secrets_done(&secrets);
	nc_secrets_done(&bare);
}

static void passes_over_framing(void **state)
{
	struct nc_secrets secrets = one("abcabcabd", false);
	const struct nc_host host = host_of("good.test");
	struct nc_mask *mask = nc_mask_new(&secrets, &host);
	char first[] = "xabcabcabca", frame[] = "\r\n5\r\n", second[] = "bcabdab";
	char all[64];

	(void)state;
	(void)snprintf(all, sizeof(all), "%s%s%s", first, frame, second);
	nc_mask_begin(mask);
	nc_mask_look(mask, all, strlen(first), true);
	nc_mask_look(mask, all + strlen(first), strlen(frame), false);
	nc_mask_look(mask, all + strlen(first) + strlen(frame), strlen(second), true);
	assert_string_equal(all, "xabcabc****\r\n5\r\n*****ab");
	assert_true(nc_mask_found(mask) > 0);
	assert_int_equal(nc_mask_held(mask), 2); /* another may begin */
	nc_mask_free(mask);
	nc_secrets_done(&secrets);
}

static void values_come_later(void **state)
{
	struct nc_secrets secrets = one("", false);

	(void)state;
	assert_false(nc_secrets_are_whole(&secrets));
	assert_int_equal(nc_secrets_fill(&secrets, "NACRE-OTHER", "value"), 0);
	assert_false(nc_secrets_are_whole(&secrets));
	assert_int_equal(nc_secrets_fill(&secrets, "NACRE-SECRET", "abc"), -EINVAL); /* too short */
	assert_int_equal(nc_secrets_fill(&secrets, "NACRE-SECRET", "value"), 0);
	assert_true(nc_secrets_are_whole(&secrets));
	nc_secrets_done(&secrets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_all_spellings),
		cmocka_unit_test(leaves_all_else_alone),
		cmocka_unit_test(passes_over_framing),
		cmocka_unit_test(values_come_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
