/* Reads hostile bytes as a configuration file; the first byte tells which. */
#include "fuzz.h"

#include <assert.h>
#include <string.h>

#include "config/config.h"

static int count(
	void *context, const char *path, const struct nc_field *field, const struct nc_value *value)
{
	size_t *leaves = context;

	assert(strlen(path) > 0 && field->name);
	assert(value->n_list == 0 || value->list[value->n_list] == NULL);
	(*leaves)++;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char name[] = "fuzz.yaml";
	struct nc_config config = {0};
	struct nacre_err err = {0};
	enum nc_config_file file;
	void *values;
	size_t leaves = 0;
	int r;

	if (size == 0)
		return 0;
	file = data[0] % NC_CONFIG_FILE_COUNT;
	values = (char *)&config +
		 ((const char *)nc_config_values(&config, file) - (const char *)&config);
	nc_schema_preset(nc_config_fields(file), values);
	r = nc_schema_read(
		nc_config_fields(file), values, name, (const char *)data + 1, size - 1, &err);
	assert(r == err.code && (r == 0 || strlen(err.message) > strlen(name)));
	assert(r == 0 || r == -ENOMEM || strncmp(err.message, name, strlen(name)) == 0);
	(void)nc_schema_visit(nc_config_fields(file), values, count, &leaves);
	assert(leaves > 0);
	nc_schema_done(nc_config_fields(file), values);
	return 0;
}
