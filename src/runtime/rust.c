/* Rust, by rustc alone. */
#include "runtime/runtime.h"

#include <string.h>

/* "error[E0308]: mismatched types", "error: expected expression" */
static bool read_error(struct nc_span line, struct nc_diagnostic *diagnostic)
{
	struct nc_span kind = {"error", strlen("error")};
	const char *end;

	if (!nc_span_skip(&line, "error"))
		return false;
	if (nc_span_skip(&line, "[")) {
		end = nc_span_find(line, "]");
		if (!end)
			return false;
		kind = nc_span_before(line, end);
		line = nc_span_behind(line, end + 1);
	}
	if (!nc_span_skip(&line, ": "))
		return false;
	nc_span_copy(kind, diagnostic->kind, sizeof(diagnostic->kind));
	nc_span_copy(line, diagnostic->message, sizeof(diagnostic->message));
	return true;
}

/* The first error, and " --> /workspace/main.rs:2:5" below it, before the next empty line. */
static bool diagnose_compiler(const struct nc_failure *failure, struct nc_diagnostic *diagnostic)
{
	struct nc_span rest = {failure->text, failure->size}, line;
	bool found = false;

	while (nc_span_line(&rest, &line)) {
		struct nc_place_read place;

		if (!found) {
			found = read_error(line, diagnostic);
			continue;
		}
		if (line.size == 0)
			break;
		(void)nc_span_skip_blanks(&line);
		if (nc_span_skip(&line, "--> ") && nc_span_place(&line, &place) &&
			nc_diagnostic_place(diagnostic, failure, &place))
			break;
	}
	return found;
}

/*
 * Before 1.73 "'message', file:2:5", and the message may have several lines; text begins behind
 * the first quote.
 */
static bool read_old_panic(
	const struct nc_failure *failure, struct nc_span text, struct nc_diagnostic *diagnostic)
{
	struct nc_span line, message = text;

	message.size = 0;
	while (nc_span_line(&text, &line)) {
		const char *at = nc_span_find_last(line, "', ");
		struct nc_place_read place;

		if (message.size == 0)
			message = line;
		if (!at)
			continue;
		if (message.text == line.text)
			message = nc_span_before(line, at);
		line = nc_span_behind(line, at + strlen("', "));
		if (!nc_span_place(&line, &place) || line.size > 0)
			continue;
		nc_diagnostic_say(diagnostic, "panic", message);
		(void)nc_diagnostic_place(diagnostic, failure, &place);
		return true;
	}
	return false;
}

/* From 1.73 on "file:2:5:", and the message in the next lines. */
static bool read_new_panic(
	const struct nc_failure *failure, struct nc_span text, struct nc_diagnostic *diagnostic)
{
	struct nc_place_read place;
	struct nc_span line = {0};

	if (!nc_span_place(&text, &place) || !nc_span_skip(&text, ":\n"))
		return false;
	(void)nc_span_line(&text, &line);
	nc_diagnostic_say(diagnostic, "panic", line);
	(void)nc_diagnostic_place(diagnostic, failure, &place);
	return true;
}

/* "Error: ..." is what main returned, "thread 'main' has overflowed its stack" the end of it. */
static bool read_other(const struct nc_failure *failure, struct nc_diagnostic *diagnostic)
{
	struct nc_span rest = {failure->text, failure->size}, line;
	bool found = false;

	while (nc_span_line(&rest, &line)) {
		if (nc_span_begins(line, "thread '") &&
			nc_span_find(line, "' has overflowed its stack"))
			nc_diagnostic_say(diagnostic, "stack overflow", line);
		else if (nc_span_skip(&line, "Error: "))
			nc_diagnostic_say(diagnostic, "Error", line);
		else
			continue;
		found = true;
	}
	return found;
}

/* The last panic: those of other threads come before that of main, which ends the program. */
static bool diagnose_run(const struct nc_failure *failure, struct nc_diagnostic *diagnostic)
{
	static const char mark[] = " panicked at ";
	struct nc_span all = {failure->text, failure->size};
	const char *at = nc_span_find_last(all, mark);
	struct nc_span text;

	if (!at)
		return read_other(failure, diagnostic);
	text = nc_span_behind(all, at + strlen(mark));
	if (nc_span_skip(&text, "'"))
		return read_old_panic(failure, text, diagnostic);
	return read_new_panic(failure, text, diagnostic);
}

static bool diagnose(const struct nc_failure *failure, struct nc_diagnostic *diagnostic)
{
	return failure->step == NC_STEP_RUN ? diagnose_run(failure, diagnostic)
					    : diagnose_compiler(failure, diagnostic);
}

const struct nc_runtime nc_runtime_rust = {
	.language = NC_RUST,
	.name = "rust",
	.aliases = NC_WORDS("rs"),
	.extensions = NC_WORDS("rs"),
	.interpreters = NC_WORDS("rust-script"),
	.source_name = "main.rs",
	.compile =
		{
			/* The compiler's own libstd.so saves half of a small program's time, most
			 * of which is linking; rpath finds it outside of the usual places. */
			.argv = NC_WORDS("rustc", "--edition", "2021", "--color", "never", "-C",
				"opt-level=1", "-C", "codegen-units=4", "-C", "overflow-checks=yes",
				"-C", "prefer-dynamic", "-C", "rpath", "-o", "{program}",
				"{source}"),
			.needs = {.memory_mb = 1024,
				.processes = 64,
				.disk_mb = 256,
				.wall_seconds = 60},
		},
	.run =
		{
			.argv = NC_WORDS("{program}"),
			.env = NC_WORDS("RUST_BACKTRACE=0"),
			/* std::thread is part of every other example */
			.needs = {.processes = 32},
		},
	.diagnose = diagnose,
	.version_argv = NC_WORDS("rustc", "--version"),
	.fix = "apt-get install rustc",
};
