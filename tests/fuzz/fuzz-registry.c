/* Reads hostile bytes as the record of a sandbox: what is taken has all of its members, and is the
 * same when it is written and read again. */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "engine/registry.h"
#include "engine/sandbox_spec.h"

/* The name of the file in which it stands. */
#define ID "sb_0123456789abcdef0123456789abcdef"

static void check_good(json_t *record)
{
	static struct nc_faults faults;
	cleanup_free char *text = json_dumps(record, JSON_COMPACT);
	cleanup_json json_t *again = NULL;
	cleanup_sandbox_spec struct nc_sandbox_spec spec = {0};
	struct nacre_err err = {0};

	assert(strcmp(json_string_value(json_object_get(record, "id")), ID) == 0);
	assert(strlen(json_string_value(json_object_get(record, "tenant"))) <= NC_REQUEST_NAME_MAX);
	assert(json_integer_value(json_object_get(record, "box")) >= 0);
	assert(text && nc_registry_parse(ID, text, strlen(text), &again, &err) == 0);
	assert(json_equal(record, again));
	faults = (struct nc_faults){0};
	(void)nc_sandbox_spec_read(json_incref(json_object_get(record, "spec")), &spec, &faults);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_json json_t *record = NULL;
	struct nacre_err err = {0};
	int r = nc_registry_parse(ID, (const char *)data, size, &record, &err);

	assert(r == 0 || ((r == -EINVAL || r == -EPROTONOSUPPORT) && err.code == r && !record));
	if (r == 0)
		check_good(record);
	return 0;
}
