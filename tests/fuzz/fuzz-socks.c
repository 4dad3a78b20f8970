/* Reads hostile bytes as the greeting and the request of SOCKS. */
#include "fuzz.h"

#include <assert.h>

#include "egress/socks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nc_host host;
	uint16_t port;
	int n = nc_socks_greeting(data, size);

	assert(n <= (int)size);
	n = nc_socks_request(data, size, &host, &port);
	assert(n <= (int)size);
	assert(n <= 0 || (port != 0 && host.text[0] != '\0'));
	return 0;
}
