/*
 * What a box is shown of the host's tree beside the usual: binds, images, layers and programs of
 * ours, as detached mounts.
 */
#ifndef NC_KERNEL_BIND_H
#define NC_KERNEL_BIND_H

#include <stdbool.h>

#include "base/error.h"
#include "kernel/slot.h"

/*
 * A detached mount of what source_fd is, read-only unless writable. For a box with ids of its own
 * the owner of the source is shown as the sandbox's user, and what that user makes belongs to that
 * owner. Returns a descriptor, or -errno with err, which names the target.
 */
int nc_bind_tree(int source_fd, bool by_path, const char *target, bool writable,
	const struct nc_slot *slot, struct nacre_err *err);

/* A detached, read-only mount of a directory, as nobody's. by_path: see bind.c. */
int nc_bind_image(int image_fd, bool by_path);

/* The same of a program of ours that runs in boxes; or -errno with err. */
int nc_bind_program(const char *name, bool by_path, struct nacre_err *err);

#endif
