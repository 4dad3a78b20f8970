/* Hostile bytes as frames, in pieces of a size that they choose: what comes out does not depend on
 * it. */
#include "fuzz.h"

#include <assert.h>

#include "base/frame.h"

/* How many frames there are before the end or a fault, which *ret_code is. */
static size_t take_all(const char *data, size_t size, size_t piece, int *ret_code)
{
	struct nc_frame_in in = {.max = 1024, .max_values = 64};
	size_t frames = 0;
	int r = 0;

	while (r >= 0 && size > 0) {
		size_t room = size < piece ? size : piece, used = 0;
		cleanup_json json_t *object = NULL;
		struct nacre_err err = {0};

		r = nc_frame_take(&in, data, room, &used, &object, &err);
		assert((r < 0) == (err.code < 0) && (r == 1) == (object != NULL));
		assert(r < 0 || (used <= room && (r == 1 || used == room)));
		assert(in.body.size <= in.max);
		frames += r == 1;
		data += used;
		size -= used;
	}
	nc_frame_in_done(&in);
	*ret_code = r < 0 ? r : 0;
	return frames;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int whole = 0, pieces = 0;
	size_t frames;

	if (size == 0)
		return 0;
	frames = take_all((const char *)data + 1, size - 1, size, &whole);
	assert(take_all((const char *)data + 1, size - 1, data[0] % 16 + 1U, &pieces) == frames);
	assert(whole == pieces);
	return 0;
}
