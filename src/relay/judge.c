/* What the near end lets through. */
#include "relay/judge.h"

#include <errno.h>

#include "base/error.h"
#include "kernel/boxwire.h"

bool nc_judge_is_order(uint16_t type)
{
	return type == NC_BOX_RUN || type == NC_BOX_NEXT;
}

bool nc_judge_wants_door(const void *data, size_t size)
{
	static struct nc_box_order order;

	return nc_boxwire_read_order(data, size, &order) == 0 && order.flags & NC_ORDER_DOOR;
}

void nc_judge_refuse(struct nc_wire_out *out, const void *data, size_t size, int error)
{
	struct nacre_err err = {0};
	struct nc_wire_in in;

	(void)nc_wire_open(&in, data, size);
	(void)nc_wire_get_u32(&in); /* its number */
	if (error == -EOPNOTSUPP)
		nc_err_set(&err, error,
			"Neither directories nor a way to the network can be handed on to there");
	else
		nc_err_errno(&err, error, "Hand on an order");
	nc_wire_begin(out, NC_BOX_FAILED);
	nc_wire_put_u64(out, nc_wire_get_u64(&in));
	nc_wire_put_u8(out, NC_FAIL_BOX);
	nc_wire_put_u32(out, (uint32_t)-error);
	nc_wire_put_text(out, err.message);
}

/* The descriptors that a worker takes: see kernel/boxwire.h. */
static bool fits(uint16_t type, const struct nc_carry *list, size_t n)
{
	if (type == NC_BOX_ADOPT)
		return n <= 3;
	return n == 0 || (type == NC_BOX_STARTED && n == 1 && list[0].kind == NC_CARRY_BOTH);
}

const char *nc_judge_message(
	bool near, const void *data, size_t size, const struct nc_carry *list, size_t n)
{
	struct nc_wire_in in;

	if (nc_wire_open(&in, data, size) < 0)
		return "It sends what is no message";
	if (near && (in.type < NC_BOX_WELCOME || !fits(in.type, list, n)))
		return "It sends what no holder says";
	return NULL;
}
