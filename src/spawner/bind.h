/* What a box is shown of the host's tree beside the usual: binds and images, as detached mounts. */
#ifndef NC_SPAWNER_BIND_H
#define NC_SPAWNER_BIND_H

#include "spawner/box.h"

/*
 * A detached mount of what the bind names, read-only unless it says otherwise. For a box with ids
 * of its own the owner of the source is shown as the sandbox's user, and what that user makes
 * belongs to that owner. Returns a descriptor, or -errno with err.
 */
int nc_bind_tree(const struct nc_nursery *nursery, const struct nc_box_bind *bind,
	const struct nc_slot *slot, struct nacre_err *err);

/* A detached, read-only mount of an image's directory. by_path: see bind.c. */
int nc_bind_image(int image_fd, bool by_path);

#endif
