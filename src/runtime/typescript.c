/* TypeScript, by Node, which strips the types and does not check them, or by the package
 * typescript. */
#include "runtime/node.h"

#include <string.h>

static const char *source_name_for(const char *code, size_t size)
{
	return nc_node_is_module(code, size) ? "main.mts" : "main.ts";
}

static const char *const older_argv[] = {"node", "--disable-warning=ExperimentalWarning",
	"--experimental-strip-types", "{source}", NULL};

/*
 * Where Node cannot strip types the package typescript does, if it is in the image or among the
 * packages of the request: files are transpiled when they are loaded. The loader of ES modules asks
 * from a thread of its own, so that it gets the function as text. Lines of errors are those of the
 * source, by a map that is part of what is loaded.
 */
#define STRIP                                                                                      \
	"const strip = (ts, file, module) => {\n"                                                  \
	"  const {outputText, diagnostics} = ts.transpileModule(\n"                                \
	"    require('fs').readFileSync(file, 'utf8'), {fileName: file, reportDiagnostics: "       \
	"true,\n"                                                                                  \
	"    compilerOptions: {module, target: 'ES2022', esModuleInterop: true,\n"                 \
	"    inlineSourceMap: true, inlineSources: true}});\n"                                     \
	"  for (const {file: at, start, messageText} of diagnostics) {\n"                          \
	"    const {line, character} = at.getLineAndCharacterOfPosition(start);\n"                 \
	"    console.error(`${file}:${line + 1}\\n${at.text.split('\\n')[line]}\\n` +\n"           \
	"      `${' '.repeat(character)}^\\n\\nSyntaxError: ${\n"                                  \
	"      ts.flattenDiagnosticMessageText(messageText, ' ')}`);\n"                            \
	"    process.exit(1);\n"                                                                   \
	"  }\n"                                                                                    \
	"  return outputText;\n"                                                                   \
	"};\n"

static const char by_package[] = STRIP
	"const Module = require('module'), {pathToFileURL} = require('url');\n"
	"const ts = require('typescript'), main = process.argv[1];\n"
	"for (const ending of ['.ts', '.cts', '.mts'])\n"
	"  Module._extensions[ending] = (module, file) =>\n"
	"    module._compile(strip(ts, file, ts.ModuleKind.CommonJS), file);\n"
	"if (main.endsWith('.mts')) {\n"
	"  const hook = `import {createRequire} from 'node:module';\n"
	"    import {fileURLToPath} from 'node:url';\n"
	"    const require = createRequire(${JSON.stringify(main)}), ts = require('typescript');\n"
	"    const strip = ${strip};\n"
	"    export const load = async (url, context, next) => /\\\\.m?ts$/.test(url)\n"
	"      ? {format: 'module', shortCircuit: true,\n"
	"        source: strip(ts, fileURLToPath(url), ts.ModuleKind.ESNext)} : next(url, "
	"context);`;\n"
	"  Module.register('data:text/javascript,' + encodeURIComponent(hook));\n"
	"  import(pathToFileURL(main));\n"
	"} else {\n"
	"  Module.runMain(main);\n"
	"}\n";

static const char *const package_argv[] = {
	"node", "--enable-source-maps", "-e", by_package, "{source}", NULL};

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
	if (major > 22 || (major == 22 && minor >= 6))
		return older_argv;
	/* what loads modules for others is there since 20.6 */
	return strstr(answer, "package=yes") && (major > 20 || (major == 20 && minor >= 6))
		       ? package_argv
		       : NULL;
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
	.fix = "install Node 22.6 or newer below /usr, or with Node 20.6 or newer name the package "
	       "typescript (`packages`, --packages typescript@5.4.5)",
};
