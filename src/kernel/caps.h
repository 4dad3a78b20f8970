/* Capabilities and the other ways to privilege. */
#ifndef NC_CAPS_H
#define NC_CAPS_H

#include <stdint.h>

/*
 * Closes every way to new capabilities for this process and its children: the bounding and ambient
 * sets, and the securebits by which user id 0 would get them back. What is permitted now stays.
 * Async-signal-safe. 0 or -errno.
 */
int nc_caps_bound(void);

/*
 * The same for a root of its own user namespace, and for whatever it executes: the bounding set is
 * `keep`, which user id 0 has and loses when it becomes another, as everywhere. Also before
 * nc_caps_set.
 */
int nc_caps_bound_root(uint64_t keep);

/* Keeps exactly the capabilities in keep (bits by number), permitted and effective. */
int nc_caps_set(uint64_t keep);

#endif
