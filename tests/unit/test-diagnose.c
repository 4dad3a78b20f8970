/* Where and why programs failed, by what real compilers and interpreters wrote: diagnose.txt. */
#include "sections.h"

#include "base/limits.h"
#include "base/text.h"
#include "runtime/runtime.h"

/* A sample: "language step source -> file:line:column kind | message", or "-> nothing". */
struct sample {
	char language[32], step[16], source[64];
	const char *expected;
	struct nc_failure failure;
};

/* A body may begin with "--- code", and then has the program before "--- text". */
static void split_body(struct nc_span body, struct nc_failure *failure)
{
	static const char mark[] = "--- text\n";
	const char *at;

	if (nc_span_skip(&body, "--- code\n")) {
		at = nc_span_find(body, mark);
		assert_non_null(at);
		failure->code = body.text;
		failure->code_size = (size_t)(at - body.text);
		body = nc_span_behind(body, at + strlen(mark));
	}
	failure->text = body.text;
	failure->size = body.size;
}

static void read_sample(const struct section *section, struct sample *sample)
{
	*sample = (struct sample){0};
	assert_int_equal(sscanf(section->head, "%31s %15s %63s", sample->language, sample->step,
				 sample->source),
		3);
	sample->expected = strstr(section->head, " -> ");
	assert_non_null(sample->expected);
	sample->expected += strlen(" -> ");
	sample->failure.step = nc_streq(sample->step, "compile") ? NC_STEP_COMPILE : NC_STEP_RUN;
	sample->failure.source = sample->source;
	split_body(section->body, &sample->failure);
}

static void describe(int r, const struct nc_diagnostic *diagnostic, char *out, size_t size)
{
	if (r == -ENOENT)
		(void)snprintf(out, size, "nothing");
	else
		(void)snprintf(out, size, "%s:%u:%u %s |%s%s", diagnostic->file, diagnostic->line,
			diagnostic->column, diagnostic->kind, *diagnostic->message ? " " : "",
			diagnostic->message);
}

static void test_real_texts(void **state)
{
	struct nc_span file = sections_read("diagnose.txt"), rest = file;
	struct section section;
	size_t count[NC_LANGUAGE_MAX] = {0};

	(void)state;
	while (section_next(&rest, &section)) {
		struct nc_diagnostic diagnostic = {0};
		struct sample sample;
		enum nc_language language;
		char got[1024];
		int r;

		read_sample(&section, &sample);
		language = nc_language_parse(sample.language);
		assert_true(language >= 0);
		count[language]++;
		r = nc_runtime_diagnose(nc_runtimes[language], &sample.failure, &diagnostic);
		describe(r, &diagnostic, got, sizeof(got));
		if (strncmp(got, sample.expected, sizeof(section.head)) != 0)
			print_error("%s\n  got %s\n", section.head, got);
		assert_string_equal(got, sample.expected);
	}
	for (size_t i = 0; i < NC_LANGUAGE_MAX; i++)
		assert_true(count[i] >= 3);
	free((void *)(uintptr_t)file.text);
}

static int diagnose(enum nc_language language, enum nc_step step, const char *text, size_t size,
	struct nc_diagnostic *ret)
{
	struct nc_failure failure = {
		.step = step, .source = "/workspace/main", .text = text, .size = size};

	return nc_runtime_diagnose(nc_runtimes[language], &failure, ret);
}

/* What a terminal would obey, and what is not UTF-8, does not come through. */
static void test_texts_are_clean(void **state)
{
	static const char text[] = "Traceback (most recent call last):\n"
				   "  File \"/workspace/\x1b[31mm\xff.py\", line 1\n"
				   "Bad: a\tb\x1b]0;x\x07\xe2\x80\xae\xc2\x9b\xc3\xa4\n";
	struct nc_diagnostic diagnostic;

	(void)state;
	assert_int_equal(diagnose(NC_PYTHON, NC_STEP_RUN, text, strlen(text), &diagnostic), 0);
	assert_string_equal(diagnostic.file, "?[31mm?.py");
	assert_string_equal(diagnostic.kind, "Bad");
	assert_string_equal(diagnostic.message, "a b?]0;x???\xc3\xa4");
}

/* Texts are cut between characters. */
static void test_long_texts_are_cut(void **state)
{
	char text[4096] = "Traceback (most recent call last):\n  File \"x\", line 1\nE: ";
	size_t size = strlen(text);
	struct nc_diagnostic diagnostic;

	(void)state;
	while (size + 2 < sizeof(text)) {
		memcpy(text + size, "\xc3\xa4", 2);
		size += 2;
	}
	assert_int_equal(diagnose(NC_PYTHON, NC_STEP_RUN, text, size, &diagnostic), 0);
	assert_int_equal(strlen(diagnostic.message), 510);
	assert_int_equal(diagnostic.message[509], (char)0xa4);
}

/* Of long texts a run's end counts, and a compiler's beginning. */
static void test_windows(void **state)
{
	static const char run[] = "panic: late\n\n\t/workspace/main.go:7 +0x1\n";
	static const char compile[] = "./main.go:7:2: undefined: y\n";
	size_t size = 2 * NC_DIAGNOSE_MAX;
	char *text = malloc(size);
	struct nc_diagnostic diagnostic;

	(void)state;
	assert_non_null(text);
	memset(text, '\n', size);
	memcpy(text + size - strlen(run), run, strlen(run));
	assert_int_equal(diagnose(NC_GO, NC_STEP_RUN, text, size, &diagnostic), 0);
	assert_int_equal(diagnostic.line, 7);
	assert_string_equal(diagnostic.message, "late");
	memcpy(text, compile, strlen(compile));
	assert_int_equal(diagnose(NC_GO, NC_STEP_COMPILE, text, size, &diagnostic), 0);
	assert_int_equal(diagnostic.column, 2);
	free(text);
}

static void test_nothing_to_read(void **state)
{
	struct nc_diagnostic diagnostic = {.line = 99};

	(void)state;
	for (enum nc_language i = 0; i < NC_LANGUAGE_MAX; i++)
		for (enum nc_step step = 0; step < NC_STEP_MAX; step++) {
			assert_int_equal(diagnose(i, step, "", 0, &diagnostic), -ENOENT);
			assert_int_equal(diagnose(i, step, NULL, 0, &diagnostic), -ENOENT);
			assert_int_equal(diagnose(i, step, "\n\n", 2, &diagnostic), -ENOENT);
		}
	assert_int_equal(diagnostic.line, 99);
}

/* Numbers that no file has lines for are no places. */
static void test_absurd_numbers(void **state)
{
	static const char text[] = "main.c:99999999999999999999:1: error: far away\n"
				   "main.c:0:1: error: nowhere\n"
				   "main.c:3:99999999999999999999: error: no column\n";
	struct nc_diagnostic diagnostic;

	(void)state;
	assert_int_equal(diagnose(NC_C, NC_STEP_COMPILE, text, strlen(text), &diagnostic), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real_texts),
		cmocka_unit_test(test_texts_are_clean),
		cmocka_unit_test(test_long_texts_are_cut),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_nothing_to_read),
		cmocka_unit_test(test_absurd_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
