/* Descriptors of messages, which become streams, and streams, which become descriptors. */
#ifndef NC_CARRY_H
#define NC_CARRY_H

#include "wire/link.h"

/*
 * Says of each descriptor how it travels, opens its stream and takes it over; fds are -EBADF then.
 * Streams that are opened here belong to the next message. -EOPNOTSUPP: one of them cannot travel;
 * -EAGAIN: there are too many streams. Nothing was opened then. Otherwise -errno, for good.
 */
int nc_carry_off(struct nc_link *link, int *fds, size_t n, struct nc_carry *ret_list);

/*
 * The other way: descriptors for a message whose streams have been opened, to be closed by the
 * caller. 0, or -errno with none of them.
 */
int nc_carry_on(struct nc_link *link, int null_fd, const struct nc_carry *list, size_t n,
	int ret_fds[static NC_WIRE_FDS_MAX]);

#endif
