/* Go. */
#include "runtime/runtime.h"

static bool read_message(struct nc_span message, struct nc_diagnostic *diagnostic)
{
	bool syntax = nc_span_skip(&message, "syntax error: ");

	nc_diagnostic_say(diagnostic, syntax ? "syntax error" : "error", message);
	return message.size > 0;
}

/* Errors without a place, as of the linker: the first line that says something. */
static bool diagnose_linker(const struct nc_failure *failure, struct nc_diagnostic *diagnostic)
{
	struct nc_span rest = {failure->text, failure->size}, line;

	while (nc_span_line(&rest, &line))
		if (line.size > 0 && line.text[0] != '#')
			return read_message(line, diagnostic);
	return false;
}

/* "panic: message", "fatal error: message"; a panic while panicking has a tab in front. */
static bool read_panic(struct nc_span line, struct nc_diagnostic *diagnostic)
{
	(void)nc_span_skip(&line, "\t");
	if (nc_span_skip(&line, "panic: "))
		nc_diagnostic_say(diagnostic, "panic", line);
	else if (nc_span_skip(&line, "fatal error: "))
		nc_diagnostic_say(diagnostic, "fatal error", line);
	else
		return false;
	return true;
}

/* The panic, and below it the first place of the user's own: "\t/workspace/main.go:6 +0x1d". */
static bool diagnose_run(const struct nc_failure *failure, struct nc_diagnostic *diagnostic)
{
	struct nc_span rest = {failure->text, failure->size}, line;
	bool found = false, placed = false;

	while (nc_span_line(&rest, &line)) {
		struct nc_diagnostic next = {0};
		struct nc_place_read place;

		if (read_panic(line, &next)) {
			*diagnostic = next;
			found = true;
			placed = false;
		} else if (found && !placed && nc_span_skip(&line, "\t") &&
			   nc_span_place(&line, &place)) {
			placed = nc_diagnostic_place(diagnostic, failure, &place);
		}
	}
	return found;
}

static bool diagnose(const struct nc_failure *failure, struct nc_diagnostic *diagnostic)
{
	if (failure->step == NC_STEP_RUN)
		return diagnose_run(failure, diagnostic);
	return nc_diagnose_first(failure, read_message, diagnostic) ||
	       diagnose_linker(failure, diagnostic);
}

/*
 * Debian's Go 1.19 brings the standard library compiled, for the default flags only: -trimpath or
 * CGO_ENABLED=0 would compile it again, which takes seconds. Newer ones find it in a build cache
 * that was filled with the same environment (docs/languages.md). Modules are used where the files
 * have a go.mod; nothing is fetched for them. goindex=0: an index of modules would be written into
 * that cache, which is read-only, and Go 1.19 finds no package at all if it cannot.
 */
const struct nc_runtime nc_runtime_go = {
	.language = NC_GO,
	.name = "go",
	.aliases = NC_WORDS("golang"),
	.extensions = NC_WORDS("go"),
	.interpreters = NC_WORDS("go", "gorun"),
	.source_name = "main.go",
	.sources = NC_SOURCES_DIR,
	.compile =
		{
			.argv = NC_WORDS("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o",
				"{program}", "{source}"),
			.env = NC_WORDS("GO111MODULE=auto", "GOCACHE={program}.cache",
				"GOPATH={program}.path", "GODEBUG=goindex=0", "GOENV=off",
				"GOFLAGS=", "GOPROXY=off", "GOTELEMETRY=off", "GOTOOLCHAIN=local"),
			.needs = {.memory_mb = 1024,
				.processes = 64,
				.disk_mb = 256,
				.wall_seconds = 60},
		},
	.run =
		{
			.argv = NC_WORDS("{program}"),
			/* a thread per core, some of its own, one per call that waits */
			.needs = {.processes = 64},
		},
	.diagnose = diagnose,
	.version_argv = NC_WORDS("go", "version"),
	.fix = "apt-get install golang-go",
};
