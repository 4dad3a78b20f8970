/*
 * Reads hostile bytes as a message: the first byte tells how many getters to call, the next ones
 * which, the rest is the message. What was read without error must encode to the same bytes.
 */
#include "fuzz.h"

#include <assert.h>
#include <string.h>

#include "base/limits.h"
#include "base/wire.h"

#define TEXT_MAX 64

/* Calls one getter, and the putter that undoes it. */
static void step(struct nc_wire_in *in, struct nc_wire_out *out, uint8_t which)
{
	char text[TEXT_MAX + 1];
	const void *bytes;
	size_t size;

	switch (which % 6) {
	case 0:
		nc_wire_put_u8(out, nc_wire_get_u8(in));
		break;
	case 1:
		nc_wire_put_u16(out, nc_wire_get_u16(in));
		break;
	case 2:
		nc_wire_put_u32(out, nc_wire_get_u32(in));
		break;
	case 3:
		nc_wire_put_u64(out, nc_wire_get_u64(in));
		break;
	case 4:
		nc_wire_get_text(in, text, TEXT_MAX);
		assert(strlen(text) <= TEXT_MAX);
		nc_wire_put_text(out, text);
		break;
	default:
		size = nc_wire_get_bytes(in, NC_WIRE_MESSAGE_MAX, &bytes);
		assert(size <= NC_WIRE_MESSAGE_MAX);
		nc_wire_put_bytes(out, bytes, size);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_wire_out struct nc_wire_out out = {0};
	struct nc_wire_in in;
	size_t steps = size > 0 ? data[0] % 16 : 0;
	const uint8_t *message;
	size_t message_size;

	if (size < 1 + steps)
		return 0;
	message = data + 1 + steps;
	message_size = size - 1 - steps;
	if (nc_wire_open(&in, message, message_size) < 0) {
		assert(nc_wire_get_u64(&in) == 0 && nc_wire_close(&in) < 0);
		return 0;
	}
	nc_wire_begin(&out, in.type);
	for (size_t i = 0; i < steps; i++)
		step(&in, &out, data[1 + i]);
	if (nc_wire_close(&in) == 0) {
		/* the header's size field is filled when a message is sent: compare what follows */
		assert(out.buf.error == 0 && out.buf.size == message_size);
		assert(memcmp(out.buf.data + 8, message + 8, message_size - 8) == 0);
	}
	return 0;
}
