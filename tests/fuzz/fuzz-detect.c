/* Asks which language hostile bytes are in, and what Node would call them. */
#include "fuzz.h"

#include <assert.h>
#include <string.h>

#include "engine/detect.h"
#include "runtime/runtime.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nc_detection detection = {.language = NC_LANGUAGE_INVALID};
	const char *code = (const char *)data;
	int r = nc_detect(NULL, code, size, &detection);

	assert(r == 0 || r == -ENOENT);
	assert((r == 0) == (detection.language >= 0));
	assert(r < 0 || (detection.language < NC_LANGUAGE_MAX && *detection.reason));
	assert(memchr(detection.reason, '\0', sizeof(detection.reason)));
	for (size_t i = 0; i < NC_LANGUAGE_MAX; i++)
		assert(nc_language_of_file(nc_runtime_source_name(nc_runtimes[i], code, size)) ==
			(enum nc_language)i);
	return 0;
}
