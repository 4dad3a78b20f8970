/* C, by the host's cc. */
#include "runtime/c.h"

static bool read_message(struct nc_span message, struct nc_diagnostic *diagnostic)
{
	if (nc_span_skip(&message, "fatal error: "))
		nc_diagnostic_say(diagnostic, "fatal error", message);
	else if (nc_span_skip(&message, "error: "))
		nc_diagnostic_say(diagnostic, "error", message);
	else
		return false;
	return true;
}

/* "main.c:(.text+0x5): undefined reference to `foo'" */
static bool diagnose_linker(const struct nc_failure *failure, struct nc_diagnostic *diagnostic)
{
	struct nc_span rest = {failure->text, failure->size}, line;

	while (nc_span_line(&rest, &line)) {
		const char *at = nc_span_find(line, "undefined reference to ");

		if (!at)
			at = nc_span_find(line, "multiple definition of ");
		if (!at)
			continue;
		nc_diagnostic_say(diagnostic, "link error", nc_span_behind(line, at));
		return true;
	}
	return false;
}

/* "main: /workspace/main.c:3: f: Assertion `x' failed." */
static bool diagnose_assertion(const struct nc_failure *failure, struct nc_diagnostic *diagnostic)
{
	struct nc_span rest = {failure->text, failure->size}, line;
	bool found = false;

	while (nc_span_line(&rest, &line)) {
		const char *at = nc_span_find(line, ": Assertion `");
		const char *name = nc_span_find(line, ": ");
		struct nc_place_read place;

		if (!at || !name)
			continue;
		nc_diagnostic_say(diagnostic, "assertion", nc_span_behind(line, at + 2));
		line = nc_span_behind(line, name + 2);
		if (nc_span_place(&line, &place))
			(void)nc_diagnostic_place(diagnostic, failure, &place);
		found = true;
	}
	return found;
}

bool nc_c_diagnose(const struct nc_failure *failure, struct nc_diagnostic *diagnostic)
{
	if (failure->step == NC_STEP_RUN)
		return diagnose_assertion(failure, diagnostic);
	return nc_diagnose_first(failure, read_message, diagnostic) ||
	       diagnose_linker(failure, diagnostic);
}

const struct nc_runtime nc_runtime_c = {
	.language = NC_C,
	.name = "c",
	.aliases = NC_WORDS("gcc"),
	.extensions = NC_WORDS("c"),
	.interpreters = NC_WORDS("tcc"),
	.source_name = "main.c",
	.sources = NC_SOURCES_LIST,
	.libraries = NC_WORDS("-lm"),
	.compile =
		{
			.argv = NC_WORDS("cc", "-O1", "-pipe", "-fdiagnostics-color=never",
				"-pthread", "-I.", "-Iinclude", "-o", "{program}", "{source}"),
			.needs = {.memory_mb = 512,
				.processes = 32,
				.disk_mb = 100,
				.wall_seconds = 30},
		},
	.run =
		{
			.argv = NC_WORDS("{program}"),
		},
	.diagnose = nc_c_diagnose,
	.version_argv = NC_WORDS("cc", "-dumpfullversion"),
	.fix = "apt-get install gcc libc6-dev",
};
