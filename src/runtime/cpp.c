/* C++, by the host's c++. */
#include "runtime/c.h"

/*
 * "terminate called after throwing an instance of 'std::out_of_range'", and in the next line, if
 * the exception has one, "  what():  message".
 */
static bool diagnose_exception(const struct nc_failure *failure, struct nc_diagnostic *diagnostic)
{
	struct nc_span rest = {failure->text, failure->size}, line;
	char type[sizeof(diagnostic->kind)] = "";

	while (nc_span_line(&rest, &line)) {
		const char *end;

		if (nc_span_skip(&line, "terminate called after throwing an instance of '")) {
			end = nc_span_find_last(line, "'");
			if (end)
				line.size = (size_t)(end - line.text);
			nc_span_copy(line, type, sizeof(type));
			nc_diagnostic_say(diagnostic, type, line);
		} else if (*type && nc_span_skip(&line, "  what():  ")) {
			nc_diagnostic_say(diagnostic, type, line);
		}
	}
	return *type != '\0';
}

static bool diagnose(const struct nc_failure *failure, struct nc_diagnostic *diagnostic)
{
	return (failure->step == NC_STEP_RUN && diagnose_exception(failure, diagnostic)) ||
	       nc_c_diagnose(failure, diagnostic);
}

const struct nc_runtime nc_runtime_cpp = {
	.language = NC_CPP,
	.name = "cpp",
	.aliases = NC_WORDS("c++", "cxx", "g++"),
	.extensions = NC_WORDS("cpp", "cc", "cxx"),
	.interpreters = NC_WORDS(NULL),
	.source_name = "main.cpp",
	.sources = NC_SOURCES_LIST,
	.compile =
		{
			.argv = NC_WORDS("c++", "-O1", "-pipe", "-fdiagnostics-color=never",
				"-pthread", "-I.", "-Iinclude", "-o", "{program}", "{source}"),
			.needs = {.memory_mb = 1024,
				.processes = 32,
				.disk_mb = 256,
				.wall_seconds = 60},
		},
	.run =
		{
			.argv = NC_WORDS("{program}"),
		},
	.diagnose = diagnose,
	.version_argv = NC_WORDS("c++", "-dumpfullversion"),
	.fix = "apt-get install g++",
};
