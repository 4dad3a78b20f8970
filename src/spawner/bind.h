/*
 * What a box is shown of the host's tree beside the usual: binds, images and layers, as detached
 * mounts.
 */
#ifndef NC_SPAWNER_BIND_H
#define NC_SPAWNER_BIND_H

#include "spawner/box.h"

/*
 * A detached mount of what source_fd is, read-only unless writable. For a box with ids of its own
 * the owner of the source is shown as the sandbox's user, and what that user makes belongs to that
 * owner. Returns a descriptor, or -errno with err, which names the target.
 */
int nc_bind_tree(const struct nc_nursery *nursery, int source_fd, const char *target, bool writable,
	const struct nc_slot *slot, struct nacre_err *err);

/* A detached, read-only mount of a directory, as nobody's. by_path: see bind.c. */
int nc_bind_image(int image_fd, bool by_path);

#endif
