/* Reads hostile bytes as a host: what is taken has one form, which is taken again as itself. */
#include "fuzz.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "config/host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[300];
	struct nc_host host, again;
	uint16_t port;

	if (size < sizeof(text)) {
		struct nc_host_pattern pattern;

		memcpy(text, data, size);
		text[size] = '\0';
		(void)nc_host_parse_pattern(text, &pattern);
	}
	if (nc_host_parse_port((const char *)data, size, &host, &port) < 0)
		return 0;
	(void)snprintf(text, sizeof(text), host.kind == NC_HOST_V6 ? "[%s]" : "%s", host.text);
	assert(nc_host_parse(text, strlen(text), &again) == 0);
	assert(again.kind == host.kind && strcmp(again.text, host.text) == 0);
	assert(host.kind == NC_HOST_NAME || memcmp(again.address, host.address, 16) == 0);
	return 0;
}
