/* The languages: descriptors, and what the host has of each. */
#include "runtime/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"

/* One question serves both: typescript is "strip" or "transform" from Node 22.6 on. */
static const char *const node_argv[] = {"node", "-p",
	"process.versions.node + ' typescript=' + (process.features.typescript || 'no')", NULL};

static const char *const python_argv[] = {"python3", "--version", NULL};
static const char *const bash_argv[] = {"bash", "--version", NULL};
static const char *const go_argv[] = {"go", "version", NULL};
static const char *const rust_argv[] = {"rustc", "--version", NULL};
static const char *const c_argv[] = {"cc", "-dumpfullversion", NULL};

const struct nc_runtime nc_runtimes[NC_LANGUAGE_MAX] = {
	[NC_PYTHON] = {"python", python_argv, NULL, NULL, "apt-get install python3"},
	[NC_JAVASCRIPT] = {"javascript", node_argv, NULL, NULL, "apt-get install nodejs"},
	[NC_TYPESCRIPT] = {"typescript", node_argv, "typescript=no",
		"this Node cannot strip types, which 22.6 and newer can",
		"install Node 22.6 or newer below /usr"},
	[NC_SHELL] = {"shell", bash_argv, NULL, NULL, "apt-get install bash"},
	[NC_GO] = {"go", go_argv, NULL, NULL, "apt-get install golang-go"},
	[NC_RUST] = {"rust", rust_argv, NULL, NULL, "apt-get install rustc"},
	[NC_C] = {"c", c_argv, NULL, NULL, "apt-get install gcc libc6-dev"},
};

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
	else if (runtime->lacking && strstr(answer, runtime->lacking))
		(void)snprintf(report.reason, sizeof(report.reason), "%s", runtime->too_old);
	report.ok = report.reason[0] == '\0';
	*ret_report = report;
}
