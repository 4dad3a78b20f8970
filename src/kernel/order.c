#include "kernel/order.h"

static bool binds_are_sane(const struct nc_box_order *order, size_t n_binds)
{
	if (order->n_binds > 0 && order->tier != NC_TIER_CONTAINER)
		return false;
	for (size_t i = 0; i < order->n_binds; i++)
		if (order->binds[i].index >= n_binds || !nc_box_target_ok(order->binds[i].target))
			return false;
	return true;
}

bool nc_order_is_sane(const struct nc_box_order *order, size_t n_binds)
{
	const bool packed = nc_box_fds_has(&order->fds, NC_FD_PACK);
	const uint32_t flags = order->flags;

	return order->tier <= NC_TIER_PROCESS && nc_box_limits_ok(&order->limits) &&
	       order->dir[0] == '/' && binds_are_sane(order, n_binds) &&
	       !(flags & NC_ORDER_FILES && (packed || flags & NC_ORDER_TTY)) &&
	       !((flags & NC_ORDER_DOOR) && order->tier != NC_TIER_CONTAINER) &&
	       !((flags & NC_ORDER_ZYGOTE) &&
		       (order->tier != NC_TIER_CONTAINER || packed ||
			       flags & (NC_ORDER_FILES | NC_ORDER_TTY | NC_ORDER_KEEP |
					       NC_ORDER_HOME | NC_ORDER_USERS |
					       NC_ORDER_WRITABLE))) &&
	       !((flags & NC_ORDER_GUESTS) && !(flags & NC_ORDER_DOOR)) &&
	       !((flags & NC_ORDER_HOME) && !(flags & NC_ORDER_STAY));
}

bool nc_order_is_further(const struct nc_box_order *order)
{
	return order->n_binds == 0 && nc_box_layers(order) == 0 &&
	       !nc_box_fds_has(&order->fds, NC_FD_IMAGE) &&
	       !(order->flags &
		       (NC_ORDER_DOOR | NC_ORDER_HOME | NC_ORDER_USERS | NC_ORDER_WRITABLE));
}
