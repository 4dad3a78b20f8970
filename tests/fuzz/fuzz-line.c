/* Takes hostile bytes apart as a line of the journal; what is taken apart must be where it says. */
#include "fuzz.h"

#include <assert.h>

#include "recorder/line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const unsigned char key[NC_SHA256_SIZE] = {0};
	const char *line = (const char *)data;
	struct nc_line_parts parts;
	struct nc_link link;

	nc_link_first(&link, key);
	(void)nc_line_follows(&link, line, size);
	(void)nc_line_is_about(line, size, "finish", "ex_1");
	if (nc_line_split(line, size, &parts) < 0)
		return 0;
	assert(parts.seq > 0 && parts.signed_size < size);
	assert(line[parts.signed_size] == ',' && line[size - 1] == '}');
	return 0;
}
