/*
 * The steps of each language with the real compilers and interpreters of this machine: a program
 * that says hello, and one that fails. What a box adds is tested elsewhere.
 */
#include "unit.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "kernel/tree.h"
#include "runtime/runtime.h"

#define OUTPUT_MAX (64U * 1024)
#define WORDS_MAX 64
#define NOBODY 65534

struct bench {
	const struct nc_runtime *runtime;
	const char *const *run_argv;
	char dir[64], source[128], program[128], output[128];
};

static int remove_all(void **state)
{
	struct bench *bench = *state;
	cleanup_close int tmp_fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (bench && bench->dir[0])
		(void)nc_tree_remove(
			tmp_fd, strrchr(bench->dir, '/') + 1, nc_clock_ns() + 20 * 1000000000ULL);
	free(bench);
	return 0;
}

/* Asks the host; skips the test where the language is missing. */
static void find_tools(struct bench *bench)
{
	struct nc_ask ask = {.argv = bench->runtime->version_argv};
	struct nc_runtime_report report;

	nc_ask_start(&ask);
	nc_ask_finish(&ask, 1, nc_clock_ns() + 20 * 1000000000ULL);
	nc_runtime_judge(bench->runtime, &ask, &report);
	bench->run_argv = nc_runtime_run_argv(bench->runtime, nc_buf_text(&ask.output));
	nc_ask_done(&ask);
	/* Debian's Node is too old for TypeScript: that it says so is all that can be asked */
	if (bench->runtime->too_old && nc_streq(report.reason, bench->runtime->too_old))
		skip();
	if (!report.ok)
		unit_skip(report.reason);
}

static struct bench *prepare(void **state, enum nc_language language)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	assert_non_null(bench);
	*state = bench;
	bench->runtime = nc_runtimes[language];
	(void)snprintf(bench->dir, sizeof(bench->dir), "/tmp/nacre-tools-XXXXXX");
	assert_non_null(mkdtemp(bench->dir));
	assert_int_equal(chmod(bench->dir, 0777), 0);
	(void)snprintf(
		bench->program, sizeof(bench->program), "%s/" NC_RUNTIME_PROGRAM_NAME, bench->dir);
	(void)snprintf(bench->output, sizeof(bench->output), "%s/output", bench->dir);
	find_tools(bench);
	return bench;
}

/* Makes a NULL-terminated list of words that stand end to end. */
static void split(const struct nc_buf *words, size_t count, char **list)
{
	char *at = words->data;

	assert_true(count < WORDS_MAX);
	for (size_t i = 0; i < count; i++) {
		list[i] = at;
		at += strlen(at) + 1;
	}
	list[count] = NULL;
}

static void run_child(const struct bench *bench, char **argv, char **env)
{
	int fd = open(bench->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0 ||
		chdir(bench->dir) < 0 || (geteuid() == 0 && (setgid(NOBODY) || setuid(NOBODY))))
		_exit(126);
	execvpe(argv[0], argv, env);
	_exit(127);
}

/* Runs one step as an ordinary user, with nothing in its environment but what a box has. */
static int run_step(const struct bench *bench, const char *const *argv, const char *const *env)
{
	nc_buf_cleanup struct nc_buf words = NC_BUF(4096), variables = NC_BUF(4096);
	char *word_list[WORDS_MAX], *variable_list[WORDS_MAX], home[96];
	char *extra[] = {
		(char[]){"PATH=/usr/local/bin:/usr/bin:/bin"}, (char[]){"LANG=C.UTF-8"}, home};
	size_t count;
	int status;
	pid_t pid;

	(void)snprintf(home, sizeof(home), "HOME=%s", bench->dir);
	assert_int_equal(
		nc_runtime_argv(argv, bench->source, bench->program, NULL, 0, &words, &count), 0);
	split(&words, count, word_list);
	assert_int_equal(nc_runtime_argv(env, bench->source, bench->program, extra,
				 unit_count(extra), &variables, &count),
		0);
	split(&variables, count, variable_list);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		run_child(bench, word_list, variable_list);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void write_source(struct bench *bench, const char *code)
{
	const char *name = nc_runtime_source_name(bench->runtime, code, strlen(code));
	int fd;

	(void)snprintf(bench->source, sizeof(bench->source), "%s/%s", bench->dir, name);
	fd = open(bench->source, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, code, strlen(code)), strlen(code));
	assert_int_equal(close(fd), 0);
}

/* Compiles and runs; returns the step that failed, or NC_STEP_MAX. */
static enum nc_step run_all(struct bench *bench, const char *code)
{
	const struct nc_runtime *runtime = bench->runtime;

	write_source(bench, code);
	if (runtime->compile.argv && run_step(bench, runtime->compile.argv, runtime->compile.env))
		return NC_STEP_COMPILE;
	if (run_step(bench, bench->run_argv, runtime->run.env))
		return NC_STEP_RUN;
	return NC_STEP_MAX;
}

static char *read_output(const struct bench *bench, size_t *ret_size)
{
	cleanup_close int fd = open(bench->output, O_RDONLY | O_CLOEXEC);
	char *text = NULL;

	assert_true(fd >= 0);
	assert_int_equal(nc_fd_read_all(fd, OUTPUT_MAX, &text, ret_size), 0);
	return text;
}

static void assert_says(struct bench *bench, const char *code, const char *expected)
{
	enum nc_step failed = run_all(bench, code);
	size_t size;
	cleanup_free char *output = read_output(bench, &size);

	if (failed != NC_STEP_MAX)
		print_error("%.*s\n", (int)size, output);
	assert_int_equal(failed, NC_STEP_MAX);
	assert_int_equal(size, strlen(expected));
	assert_memory_equal(output, expected, size);
}

static void assert_fails(
	struct bench *bench, const char *code, enum nc_step step, uint32_t line, const char *kind)
{
	enum nc_step failed = run_all(bench, code);
	size_t size;
	cleanup_free char *output = read_output(bench, &size);
	struct nc_failure failure = {.step = step,
		.source = bench->source,
		.code = code,
		.code_size = strlen(code),
		.text = output,
		.size = size};
	struct nc_diagnostic diagnostic;

	assert_int_equal(failed, step);
	assert_int_equal(nc_runtime_diagnose(bench->runtime, &failure, &diagnostic), 0);
	if (diagnostic.line != line || !nc_streq(diagnostic.kind, kind))
		print_error("%.*s\n", (int)size, output);
	assert_int_equal(diagnostic.line, line);
	assert_string_equal(diagnostic.kind, kind);
	assert_string_equal(diagnostic.file, strrchr(bench->source, '/') + 1);
}

static void test_python(void **state)
{
	struct bench *bench = prepare(state, NC_PYTHON);

	assert_says(bench, "print('h\xc3\xa4', end='')", "h\xc3\xa4");
	assert_fails(bench, "x = [1]\n\nx[3]\n", NC_STEP_RUN, 3, "IndexError");
	assert_fails(bench, "x = (1\n\n", NC_STEP_RUN, 1, "SyntaxError");
	/* sets have one order */
	assert_says(bench, "print(*{'a', 'b', 'c', 'd'} - set('b'))", "d c a\n");
}

static void test_javascript(void **state)
{
	struct bench *bench = prepare(state, NC_JAVASCRIPT);

	assert_says(bench, "console.log(typeof require)", "function\n");
	assert_says(bench, "import { sep } from 'path';\nconsole.log(sep)", "/\n");
	assert_fails(bench, "\nnull.x", NC_STEP_RUN, 2, "TypeError");
	assert_fails(bench, "let a;\nlet b = ;", NC_STEP_RUN, 2, "SyntaxError");
	assert_fails(bench, "import 'fs';\n\nnull.x", NC_STEP_RUN, 3, "TypeError");
}

static void test_typescript(void **state)
{
	struct bench *bench = prepare(state, NC_TYPESCRIPT);

	assert_says(bench, "const a: number = 1; console.log(a)", "1\n");
	assert_fails(bench, "const a: any = null;\na.x", NC_STEP_RUN, 2, "TypeError");
}

static void test_shell(void **state)
{
	struct bench *bench = prepare(state, NC_SHELL);

	assert_says(bench, "a=(x y)\necho \"${a[1]}\"", "y\n");
	assert_fails(bench, "set -e\nnosuchcommand", NC_STEP_RUN, 2, "error");
	assert_fails(bench, "echo a\nfor ; do\n", NC_STEP_RUN, 2, "syntax error");
}

static void test_go(void **state)
{
	struct bench *bench = prepare(state, NC_GO);

	assert_says(bench, "package main\nimport \"fmt\"\nfunc main() { fmt.Println(1) }\n", "1\n");
	assert_fails(
		bench, "package main\nfunc main() {\n\tx := 1\n}\n", NC_STEP_COMPILE, 3, "error");
	assert_fails(
		bench, "package main\nfunc main() {\n\tpanic(1)\n}\n", NC_STEP_RUN, 3, "panic");
}

static void test_rust(void **state)
{
	struct bench *bench = prepare(state, NC_RUST);

	assert_says(bench, "fn main() { println!(\"{}\", 1) }", "1\n");
	assert_fails(bench, "fn main() {\n  let x: i32 = \"\";\n}\n", NC_STEP_COMPILE, 2, "E0308");
	assert_fails(bench, "fn main() {\n  panic!(\"x\");\n}\n", NC_STEP_RUN, 2, "panic");
}

static void test_c(void **state)
{
	struct bench *bench = prepare(state, NC_C);

	assert_says(bench, "#include <stdio.h>\nint main(void) { puts(\"1\"); }\n", "1\n");
	assert_fails(bench, "int main(void) {\n  return x;\n}\n", NC_STEP_COMPILE, 2, "error");
	assert_fails(bench, "#include <assert.h>\nint main(void) {\n  assert(0);\n}\n", NC_STEP_RUN,
		3, "assertion");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_python, remove_all),
		cmocka_unit_test_teardown(test_javascript, remove_all),
		cmocka_unit_test_teardown(test_typescript, remove_all),
		cmocka_unit_test_teardown(test_shell, remove_all),
		cmocka_unit_test_teardown(test_go, remove_all),
		cmocka_unit_test_teardown(test_rust, remove_all),
		cmocka_unit_test_teardown(test_c, remove_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
