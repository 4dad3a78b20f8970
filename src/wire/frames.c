/* Frames between two relays. */
#include "wire/frames.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define CARRY_SIZE 6U

void nc_relay_put_head(unsigned char out[static NC_RELAY_HEAD], const struct nc_relay_frame *frame)
{
	const uint32_t stream = htole32(frame->stream), size = htole32(frame->size);
	const uint64_t number = htole64(frame->number);

	memset(out, 0, 4);
	out[0] = (unsigned char)frame->type;
	memcpy(out + 4, &stream, 4);
	memcpy(out + 8, &number, 8);
	memcpy(out + 16, &size, 4);
}

int nc_relay_get_head(
	const unsigned char in[static NC_RELAY_HEAD], struct nc_relay_frame *ret_frame)
{
	static const struct {
		bool of_stream, of_all; /* what stream may be: a stream, or 0 */
		uint32_t size_max;
	} rules[NC_RELAY_TYPE_MAX] = {
		[NC_RELAY_HELLO] = {.of_stream = true},
		[NC_RELAY_MESSAGE] = {.of_all = true, .size_max = NC_RELAY_MESSAGE_MAX},
		[NC_RELAY_DATA] = {.of_stream = true, .size_max = NC_RELAY_PIECE_MAX},
		[NC_RELAY_CREDIT] = {.of_stream = true},
		[NC_RELAY_ACK] = {.of_stream = true, .of_all = true},
		[NC_RELAY_END] = {.of_stream = true, .of_all = true},
		[NC_RELAY_RESET] = {.of_stream = true},
	};
	struct nc_relay_frame frame;

	memcpy(&frame.stream, in + 4, 4);
	memcpy(&frame.number, in + 8, 8);
	memcpy(&frame.size, in + 16, 4);
	frame.stream = le32toh(frame.stream);
	frame.number = le64toh(frame.number);
	frame.size = le32toh(frame.size);
	if (in[0] == 0 || in[0] >= NC_RELAY_TYPE_MAX || in[1] || in[2] || in[3] ||
		frame.size > rules[in[0]].size_max ||
		!(frame.stream ? rules[in[0]].of_stream : rules[in[0]].of_all))
		return -EBADMSG;
	frame.type = (enum nc_relay_type)in[0];
	*ret_frame = frame;
	return 0;
}

size_t nc_relay_put_carries(unsigned char *out, const struct nc_carry *list, size_t n)
{
	out[0] = (unsigned char)n;
	for (size_t i = 0; i < n; i++) {
		const uint32_t stream = htole32(list[i].stream);
		unsigned char *at = out + 1 + i * CARRY_SIZE;

		at[0] = (unsigned char)list[i].kind;
		at[1] = list[i].of;
		memcpy(at + 2, &stream, 4);
	}
	return 1 + n * CARRY_SIZE;
}

static bool has_stream(enum nc_carry_kind kind)
{
	return kind == NC_CARRY_FROM || kind == NC_CARRY_INTO || kind == NC_CARRY_BOTH;
}

int nc_relay_get_carries(const unsigned char *in, size_t size,
	struct nc_carry ret_list[static NC_WIRE_FDS_MAX], size_t *ret_n)
{
	const size_t n = size > 0 ? in[0] : NC_WIRE_FDS_MAX + 1;

	if (n > NC_WIRE_FDS_MAX || size < 1 + n * CARRY_SIZE)
		return -EBADMSG;
	for (size_t i = 0; i < n; i++) {
		const unsigned char *at = in + 1 + i * CARRY_SIZE;
		struct nc_carry *carry = &ret_list[i];
		bool refers;

		if (at[0] >= NC_CARRY_MAX)
			return -EBADMSG;
		*carry = (struct nc_carry){.kind = (enum nc_carry_kind)at[0], .of = at[1]};
		memcpy(&carry->stream, at + 2, 4);
		carry->stream = le32toh(carry->stream);
		refers = carry->kind == NC_CARRY_SAME || carry->kind == NC_CARRY_MATE;
		if (has_stream(carry->kind) != (carry->stream > 0) ||
			(refers ? carry->of >= i ||
						(ret_list[carry->of].kind != NC_CARRY_FROM &&
							ret_list[carry->of].kind != NC_CARRY_INTO)
				: carry->of > 0))
			return -EBADMSG;
	}
	*ret_n = n;
	return (int)(1 + n * CARRY_SIZE);
}
