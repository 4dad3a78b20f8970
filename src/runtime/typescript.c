/* TypeScript, by Node, which strips the types and does not check them. */
#include "runtime/node.h"

#include <string.h>

static const char *source_name_for(const char *code, size_t size)
{
	return nc_node_is_module(code, size) ? "main.mts" : "main.ts";
}

static const char *const older_argv[] = {"node", "--disable-warning=ExperimentalWarning",
	"--experimental-strip-types", "{source}", NULL};

/* 22.18 and 23.6 strip types unasked; from 22.6 on others do it if told to. */
static const char *const *run_argv_for(const char *answer)
{
	struct nc_span span = {answer, strlen(answer)};
	uint32_t major, minor;

	if (strstr(answer, "typescript=") && !strstr(answer, "typescript=no"))
		return nc_runtime_typescript.run.argv;
	if (!nc_span_number(&span, &major) || !nc_span_skip(&span, ".") ||
		!nc_span_number(&span, &minor))
		return NULL;
	if (major < 22 || (major == 22 && minor < 6))
		return NULL;
	return older_argv;
}

const struct nc_runtime nc_runtime_typescript = {
	.language = NC_TYPESCRIPT,
	.name = "typescript",
	.aliases = NC_WORDS("ts", "mts", "cts"),
	.extensions = NC_WORDS("ts", "mts", "cts"),
	.interpreters = NC_WORDS("ts-node", "tsx"),
	.source_name = "main.ts",
	.source_name_for = source_name_for,
	.run =
		{
			.argv = NC_WORDS(
				"node", "--disable-warning=ExperimentalWarning", "{source}"),
			.needs = {.processes = 32}, /* as javascript */
		},
	.diagnose = nc_node_diagnose,
	.version_argv = NC_NODE_VERSION_ARGV,
	.run_argv_for = run_argv_for,
	.too_old = "this Node cannot strip types, which 22.6 and newer can",
	.fix = "install Node 22.6 or newer below /usr",
};
