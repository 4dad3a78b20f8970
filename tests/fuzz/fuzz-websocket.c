/* Reads hostile bytes as frames of a WebSocket, in pieces whose sizes are hostile too. */
#include "fuzz.h"

#include <assert.h>

#include "server/websocket.h"

#define MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nc_ws_reader reader;
	size_t step = size > 0 ? data[0] % 16 + 1U : 1;

	nc_ws_reader_init(&reader, size > 1 && data[1] & 1, MAX);
	for (size_t at = 2; at < size;) {
		size_t n = size - at < step ? size - at : step;
		ssize_t used = nc_ws_take(&reader, (const char *)data + at, n);

		assert((used < 0) == (reader.fault != 0) && used <= (ssize_t)n);
		if (used < 0)
			break;
		assert(reader.whole || used == (ssize_t)n);
		assert(!reader.whole || reader.size <= MAX);
		assert(!reader.whole || reader.kind < NC_WS_CLOSE ||
			reader.size <= NC_WS_CONTROL_MAX);
		at += (size_t)used;
	}
	nc_ws_reader_done(&reader);
	return 0;
}
