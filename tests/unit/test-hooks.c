/* The layer inside of interpreters: what a policy comes to, and records that may be lies. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "policy/denial.h"
#include "policy/hooks.h"

static const char token[] = "0123456789abcdef0123456789abcdef";

static void gather(void *context, const char *data, size_t size)
{
	nc_buf_add(context, data, size);
}

/* What passes of a stream that comes in pieces of so many bytes. */
static void feed(
	struct nc_hook_reader *reader, struct nc_buf *passed, const char *text, size_t piece)
{
	size_t size = strlen(text);

	nc_hook_reader_init(reader, token);
	for (size_t at = 0; at < size; at += piece)
		nc_hook_reader_add(
			reader, text + at, size - at < piece ? size - at : piece, gather, passed);
	nc_hook_reader_end(reader, gather, passed);
}

#define RECORD(text)                                                                               \
	"\x1e"                                                                                     \
	"0123456789abcdef0123456789abcdef\t" text "\n"

static void records_leave_the_stream(void **state)
{
	static const char text[] = "be" RECORD("!\t1\t7\tprocess.run\tsubprocess.Popen ls\tmain.py")
		RECORD("!\t4\t7\tprocess.run\tsubprocess.Popen "
		       "ls\tmain.py") "fore \x1e after \x1e"
				      "0123 " RECORD("?\t1\t0\tcode."
						     "eval\t\t") "\x1e";

	(void)state;
	for (size_t piece = 1; piece < sizeof(text); piece++) {
		nc_buf_cleanup struct nc_buf passed = NC_BUF(4096);
		struct nc_hook_reader reader;

		feed(&reader, &passed, text, piece);
		assert_string_equal(nc_buf_text(&passed), "before \x1e after \x1e"
							  "0123 \x1e");
		assert_int_equal(reader.n_records, 2);
		assert_true(reader.records[0].refused);
		assert_int_equal(reader.records[0].count, 4);
		assert_int_equal(reader.records[0].line, 7);
		assert_int_equal(reader.records[0].rule, NC_RULE_RUN);
		assert_string_equal(reader.records[0].object, "subprocess.Popen ls");
		assert_string_equal(reader.records[0].file, "main.py");
		assert_false(reader.records[1].refused);
		assert_int_equal(reader.records[1].rule, NC_RULE_EVAL);
	}
}

/* Whoever knows the token can say what he likes, within bounds. */
static void lies_are_bounded(void **state)
{
	static const char *const bad[] = {RECORD(""), RECORD("!"),
		RECORD("!\t1\t7\tprocess.run\tx"), RECORD("!\t0\t7\tprocess.run\tx\ty"),
		RECORD("!\t1\t-7\tprocess.run\tx\ty"), RECORD("!\t1\t7\tno.such-rule\tx\ty"),
		RECORD("!!\t1\t7\tprocess.run\tx\ty"), RECORD("x\t1\t7\tprocess.run\tx\ty"),
		RECORD("!\t99999999999\t7\tprocess.run\tx\ty")};
	struct nc_hook_reader reader;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		nc_buf_cleanup struct nc_buf passed = NC_BUF(4096);

		feed(&reader, &passed, bad[i], 5);
		assert_int_equal(reader.n_records, 0);
		assert_int_equal(passed.size, 0);
	}
	nc_hook_reader_init(&reader, token);
	for (int i = 0; i < 1000; i++) {
		nc_buf_cleanup struct nc_buf passed = NC_BUF(4096);
		char text[256];

		(void)snprintf(text, sizeof(text), RECORD("!\t1\t%d\tprocess.run\tx\x1b[2J\ty"), i);
		nc_hook_reader_add(&reader, text, strlen(text), gather, &passed);
	}
	assert_int_equal(reader.n_records, NC_HOOK_RECORDS_MAX);
	assert_string_equal(reader.records[5].object, "x?[2J");
}

/* A record that never ends is the program's own text after all. */
static void what_is_too_long_passes(void **state)
{
	nc_buf_cleanup struct nc_buf passed = NC_BUF(1U << 20);
	nc_buf_cleanup struct nc_buf text = NC_BUF(1U << 20);
	struct nc_hook_reader reader;

	(void)state;
	nc_buf_addf(&text, "\x1e%s\t", token);
	for (int i = 0; i < 5000; i++)
		nc_buf_adds(&text, "x");
	feed(&reader, &passed, nc_buf_text(&text), 100);
	assert_int_equal(reader.n_records, 0);
	assert_int_equal(passed.size, text.size);
	assert_memory_equal(passed.data, text.data, text.size);
}

static const struct nc_terms *terms_of(struct nc_book *book, const char *policy)
{
	const struct nc_terms *terms = NULL;
	struct nacre_err err = {0};

	assert_int_equal(nc_book_terms(book, policy, "", &terms, &err), 0);
	return terms;
}

static void profiles_switch_it(void **state)
{
	static const char *const writable[] = {"/workspace", NULL};
	struct nc_config config = {0};
	cleanup_book struct nc_book *book = NULL;
	nc_buf_cleanup struct nc_buf strict = NC_BUF(1U << 20), standard = NC_BUF(1U << 20);

	(void)state;
	assert_int_equal(nc_book_new(&config, &book), 0);
	assert_int_equal(nc_hooks_mode(terms_of(book, "strict")), NC_HOOKS_ENFORCE);
	assert_int_equal(nc_hooks_mode(terms_of(book, "standard")), NC_HOOKS_REPORT);
	assert_int_equal(nc_hooks_mode(terms_of(book, "audit")), NC_HOOKS_REPORT);
	nc_hooks_python(terms_of(book, "strict"), token, writable, &strict);
	nc_hooks_python(terms_of(book, "standard"), token, writable, &standard);
	assert_memory_equal(strict.data, token, NC_HOOK_TOKEN_SIZE);
	assert_non_null(strstr(nc_buf_text(&strict), "\nW\t/workspace/\n"));
	assert_non_null(strstr(nc_buf_text(&strict), "\nI\t!\tp\tsocket\tpolicy.import\t"));
	assert_non_null(strstr(nc_buf_text(&strict), "\nF\t!\tp\teval\tpolicy.function\t"));
	assert_non_null(strstr(nc_buf_text(&strict), "\nE\t!\tp\tctypes.*\tnative.call\t"));
	assert_non_null(strstr(nc_buf_text(&standard), "\nE\t?\ta\tos.system\tprocess.shell\t"));
	/* it refuses nothing that static analysis would not refuse */
	assert_null(strstr(nc_buf_text(&standard), "\t!\t"));
	assert_true(nc_hooks_holds_shell(terms_of(book, "strict")));
	assert_false(nc_hooks_holds_shell(terms_of(book, "standard")));
	assert_int_equal(nc_hooks_node(terms_of(book, "strict"), NC_JAVASCRIPT),
		NC_NODE_NO_PROGRAMS | NC_NODE_NO_WRITING | NC_NODE_NO_EVAL);
	assert_int_equal(nc_hooks_node(terms_of(book, "audit"), NC_JAVASCRIPT), 0);
}

static void denials_have_the_form_of_all(void **state)
{
	const struct nc_hook_record record = {.refused = true,
		.count = 3,
		.line = 9,
		.rule = NC_RULE_LIST_IMPORT,
		.object = "socket"};
	struct nc_denial denial;

	(void)state;
	nc_denial_of_hook(&record, &denial);
	assert_string_equal(denial.id, "language.policy.import");
	assert_string_equal(denial.layer, "language");
	assert_int_equal(denial.line, 9);
	assert_int_equal(denial.count, 3);
	assert_non_null(denial.allow_with);
	assert_true(strlen(denial.instead) > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_leave_the_stream),
		cmocka_unit_test(lies_are_bounded),
		cmocka_unit_test(what_is_too_long_passes),
		cmocka_unit_test(profiles_switch_it),
		cmocka_unit_test(denials_have_the_form_of_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
