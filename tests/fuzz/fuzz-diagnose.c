/*
 * Reads hostile bytes as what a failed program wrote; the first byte tells the language and the
 * step, and all up to the first NUL is its source.
 */
#include "fuzz.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"
#include "runtime/runtime.h"

/* Ends in room, is UTF-8 and has nothing that a terminal would obey. */
static void check_text(const char *text, size_t room)
{
	size_t left = strnlen(text, room);

	assert(left < room);
	while (left > 0) {
		size_t length = nc_text_utf8(text, left);

		assert(length > 0);
		assert(length > 1 || ((unsigned char)*text >= ' ' && *text != '\x7f'));
		text += length;
		left -= length;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nc_failure failure = {.source = "/workspace/main.py"};
	struct nc_diagnostic diagnostic;
	const struct nc_runtime *runtime;
	const char *nul;
	int r;

	if (size == 0)
		return 0;
	runtime = nc_runtimes[data[0] % NC_LANGUAGE_MAX];
	failure.step = data[0] / NC_LANGUAGE_MAX % NC_STEP_MAX;
	failure.text = (const char *)data + 1;
	failure.size = size - 1;
	nul = memchr(failure.text, '\0', failure.size);
	if (nul) {
		failure.code = failure.text;
		failure.code_size = (size_t)(nul - failure.text);
		failure.text = nul + 1;
		failure.size -= failure.code_size + 1;
	}
	r = nc_runtime_diagnose(runtime, &failure, &diagnostic);
	assert(r == 0 || r == -ENOENT);
	if (r < 0)
		return 0;
	check_text(diagnostic.file, sizeof(diagnostic.file));
	check_text(diagnostic.kind, sizeof(diagnostic.kind));
	check_text(diagnostic.message, sizeof(diagnostic.message));
	assert((diagnostic.line > 0) == (diagnostic.file[0] != '\0'));
	assert(diagnostic.column == 0 || diagnostic.line > 0);
	return 0;
}
