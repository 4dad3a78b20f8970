/* Reads hostile bytes as the greeting of TLS; a part of one that is read is not another one. */
#include "fuzz.h"

#include <assert.h>
#include <string.h>

#include "egress/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nc_hello hello, part;

	if (nc_hello_parse(data, size, &hello) <= 0)
		return 0;
	assert(!hello.named || hello.host.kind == NC_HOST_NAME);
	for (size_t i = 0; i < size; i += 1 + size / 16) {
		int r = nc_hello_parse(data, i, &part);

		assert(r >= 0);
		assert(r == 0 || (part.named == hello.named && part.hidden == hello.hidden));
		assert(r == 0 || !part.named || strcmp(part.host.text, hello.host.text) == 0);
	}
	return 0;
}
