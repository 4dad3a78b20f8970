/* The languages: the table of descriptors, and what is the same for all of them. */
#include "runtime/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"

const struct nc_runtime *const nc_runtimes[NC_LANGUAGE_MAX] = {
	[NC_PYTHON] = &nc_runtime_python,
	[NC_JAVASCRIPT] = &nc_runtime_javascript,
	[NC_TYPESCRIPT] = &nc_runtime_typescript,
	[NC_SHELL] = &nc_runtime_shell,
	[NC_GO] = &nc_runtime_go,
	[NC_RUST] = &nc_runtime_rust,
	[NC_C] = &nc_runtime_c,
	[NC_CPP] = &nc_runtime_cpp,
};

static bool has_word(const char *const *list, const char *word)
{
	for (; *list; list++)
		if (nc_streq(*list, word))
			return true;
	return false;
}

enum nc_language nc_language_parse(const char *name)
{
	for (enum nc_language i = 0; i < NC_LANGUAGE_MAX; i++)
		if (nc_streq(nc_runtimes[i]->name, name) || has_word(nc_runtimes[i]->aliases, name))
			return i;
	return NC_LANGUAGE_INVALID;
}

enum nc_language nc_language_of_file(const char *file_name)
{
	const char *ending = strrchr(file_name, '.');

	for (enum nc_language i = 0; ending && i < NC_LANGUAGE_MAX; i++)
		if (has_word(nc_runtimes[i]->extensions, ending + 1))
			return i;
	return NC_LANGUAGE_INVALID;
}

/* Whether the two are equal but for a version behind the second: "python" and "python3.11". */
static bool is_version_of(const char *program, const char *interpreter)
{
	const char *version = nc_text_after(interpreter, program);

	return version && version[strspn(version, "0123456789.-")] == '\0';
}

enum nc_language nc_language_of_interpreter(const char *interpreter)
{
	for (enum nc_language i = 0; i < NC_LANGUAGE_MAX; i++)
		for (const char *const *at = nc_runtimes[i]->interpreters; *at; at++)
			if (is_version_of(*at, interpreter))
				return i;
	return NC_LANGUAGE_INVALID;
}

const char *nc_runtime_source_name(const struct nc_runtime *runtime, const char *code, size_t size)
{
	return runtime->source_name_for ? runtime->source_name_for(code, size)
					: runtime->source_name;
}

const char *const *nc_runtime_run_argv(const struct nc_runtime *runtime, const char *answer)
{
	return runtime->run_argv_for ? runtime->run_argv_for(answer) : runtime->run.argv;
}

/* Adds a word with its placeholders filled in. */
static void expand(struct nc_buf *words, const char *word, const char *source, const char *program)
{
	while (*word) {
		size_t plain = strcspn(word, "{");
		const char *rest;

		nc_buf_add(words, word, plain);
		word += plain;
		if ((rest = nc_text_after(word, "{source}")))
			nc_buf_adds(words, source);
		else if ((rest = nc_text_after(word, "{program}")))
			nc_buf_adds(words, program);
		else if (*word)
			nc_buf_add(words, word, 1);
		word = rest ? rest : word + (*word != '\0');
	}
	nc_buf_add(words, "", 1);
}

int nc_runtime_argv(const char *const *template, const char *source, const char *program,
	char *const *args, size_t n_args, struct nc_buf *ret_words, size_t *ret_count)
{
	size_t count = 0;

	for (; template && template[count]; count++)
		expand(ret_words, template[count], source, program);
	for (size_t i = 0; i < n_args; i++)
		nc_buf_add(ret_words, args[i], strlen(args[i]) + 1);
	if (ret_words->error < 0)
		return ret_words->error == -EFBIG ? -E2BIG : ret_words->error;
	*ret_count = count + n_args;
	return 0;
}

int nc_runtime_diagnose(const struct nc_runtime *runtime, const struct nc_failure *failure,
	struct nc_diagnostic *ret_diagnostic)
{
	struct nc_failure seen = *failure;
	struct nc_diagnostic diagnostic = {0};

	if (seen.size > NC_DIAGNOSE_MAX) {
		if (seen.step == NC_STEP_RUN)
			seen.text += seen.size - NC_DIAGNOSE_MAX;
		seen.size = NC_DIAGNOSE_MAX;
	}
	if (!runtime->diagnose(&seen, &diagnostic))
		return -ENOENT;
	*ret_diagnostic = diagnostic;
	return 0;
}

/* The first thing in text that looks like 1.2 or 1.2.3. */
static void find_version(const char *text, char *out, size_t size)
{
	static const char digits[] = "0123456789";

	for (text += strcspn(text, digits); *text; text += strcspn(text, digits)) {
		size_t whole = strspn(text, digits);
		size_t all = strspn(text, "0123456789.");

		if (text[whole] == '.' && all > whole + 1) {
			(void)snprintf(out, size, "%.*s", (int)all, text);
			return;
		}
		text += all;
	}
	out[0] = '\0';
}

/* Looks along the caller's own PATH, to explain why a program that is there does not count. */
static bool find_elsewhere(const char *name, char *out, size_t size)
{
	const char *path = getenv("PATH");

	for (const char *dir = path ? path : ""; *dir;) {
		const char *end = strchrnul(dir, ':');

		if (snprintf(out, size, "%.*s/%s", (int)(end - dir), dir, name) < (int)size &&
			access(out, X_OK) == 0)
			return true;
		dir = *end ? end + 1 : end;
	}
	return false;
}

static void explain_missing(const char *name, char *out, size_t size)
{
	char elsewhere[256];

	if (find_elsewhere(name, elsewhere, sizeof(elsewhere)))
		(void)snprintf(
			out, size, "%s is outside of /usr, where boxes cannot see it", elsewhere);
	else
		(void)snprintf(out, size, "no %s in " NC_ASK_PATH, name);
}

void nc_runtime_judge(const struct nc_runtime *runtime, const struct nc_ask *ask,
	struct nc_runtime_report *ret_report)
{
	struct nc_runtime_report report = {0};
	const char *answer = nc_buf_text(&ask->output);

	(void)snprintf(report.program, sizeof(report.program), "%s", ask->program);
	find_version(answer, report.version, sizeof(report.version));
	if (ask->status == -ENOENT)
		explain_missing(runtime->version_argv[0], report.reason, sizeof(report.reason));
	else if (ask->status < 0)
		(void)snprintf(report.reason, sizeof(report.reason), "%s: %s", ask->program,
			nc_errno_text(ask->status));
	else if (ask->status != 0 || report.version[0] == '\0')
		(void)snprintf(report.reason, sizeof(report.reason),
			"%s does not tell its version (exit status %d)", ask->program, ask->status);
	else if (!nc_runtime_run_argv(runtime, answer))
		(void)snprintf(report.reason, sizeof(report.reason), "%s", runtime->too_old);
	report.ok = report.reason[0] == '\0';
	*ret_report = report;
}
