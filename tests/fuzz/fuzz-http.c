/*
 * Reads hostile bytes as a request, a reply and a chunked body. What is taken for a request and
 * written again must be one request to the same host with the same end.
 */
#include "fuzz.h"

#include <assert.h>
#include <string.h>

#include "egress/http.h"
#include "egress/rules.h"

static void rewrite(const struct nc_http_request *request)
{
	static const struct nc_secrets none;
	nc_buf_cleanup struct nc_buf out = NC_BUF(4 * NC_EGRESS_HEAD_MAX);
	const char *end;

	nc_http_write_request(&out, request, &none, false);
	assert(out.error == 0);
	end = memmem(out.data, out.size, "\r\n\r\n", 4);
	assert(end && end + 4 == out.data + out.size);
	assert(!memchr(out.data, '\0', out.size));
	(void)nc_path_is_unambiguous(request->path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct nc_origin origin = {{.kind = NC_HOST_NAME, .text = "a.test"}, 443};
	const char *text = (const char *)data;
	struct nc_chunks chunks = {.tolerant = size % 2};
	struct nc_http_request request;
	struct nc_http_reply reply;
	enum nc_reason reason;

	if (nc_http_read_request(text, size, NULL, &request, &reason) > 0) {
		assert(request.head.size <= size && request.port != 0);
		if (!request.tunnel)
			rewrite(&request);
	}
	if (nc_http_read_request(text, size, &origin, &request, &reason) > 0) {
		assert(!request.tunnel && strcmp(request.host.text, origin.host.text) == 0);
		rewrite(&request);
	}
	if (nc_http_read_reply(text, size, NC_METHOD_GET, &reply) > 0) {
		nc_buf_cleanup struct nc_buf out = NC_BUF(4 * NC_EGRESS_HEAD_MAX);

		nc_http_write_reply(&out, &reply, true);
		assert(out.error == 0 && reply.status >= 100 && reply.status < 600);
	}
	assert(nc_chunks_take(&chunks, text, size) <= (ssize_t)size);
	return 0;
}
