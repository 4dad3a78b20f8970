/* Reads hostile bytes as JSON and as text that must become valid JSON. */
#include "fuzz.h"

#include <assert.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_json json_t *value = NULL;
	cleanup_json json_t *text = nc_json_text((const char *)data, size);
	struct nacre_err err = {0};
	int r = nc_json_parse((const char *)data, size, &value, &err);

	assert(r == err.code && (r == 0) == (value != NULL));
	assert(text && json_is_string(text)); /* jansson itself refuses what is not UTF-8 */
	return 0;
}
