/* JavaScript, by Node. */
#include "runtime/node.h"

static const char *source_name_for(const char *code, size_t size)
{
	return nc_node_is_module(code, size) ? "main.mjs" : "main.js";
}

const struct nc_runtime nc_runtime_javascript = {
	.language = NC_JAVASCRIPT,
	.name = "javascript",
	.aliases = NC_WORDS("js", "mjs", "cjs", "node", "nodejs"),
	.extensions = NC_WORDS("js", "mjs", "cjs"),
	.interpreters = NC_WORDS("node", "nodejs"),
	.source_name = "main.js",
	.source_name_for = source_name_for,
	.run =
		{
			.argv = NC_WORDS("node", "{source}"),
			/* Node alone has 7 threads, and a worker thread of its own user's 1 more */
			.needs = {.processes = 32},
		},
	.diagnose = nc_node_diagnose,
	.version_argv = NC_NODE_VERSION_ARGV,
	.fix = "apt-get install nodejs",
};
