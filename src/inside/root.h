/* The file system of a box. */
#ifndef NC_INSIDE_ROOT_H
#define NC_INSIDE_ROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/boxwire.h"
#include "kernel/privilege.h"

/* A detached mount, and where it goes. */
struct nc_root_bind {
	int fd;
	const char *target; /* absolute */
};

struct nc_root_spec {
	uint64_t disk_bytes; /* of /workspace, /tmp and /dev/shm together */
	uint64_t inodes;
	int frame_fd; /* a detached root with the host's directories; -EBADF: it is made here */
	int image_fd; /* a detached mount whose directories are shown; -EBADF: the host's are */
	bool users;   /* its commands may have user namespaces below it, one each */
	/*
	 * All of it can be written to, on the limited file system: over image_fd, whose owner is
	 * root of the box, or over the host's /usr, which image_fd is then
	 */
	bool writable, over_usr;
	bool layers; /* binds below /opt, where an image has nothing to show then */
	size_t n_binds;
	struct nc_root_bind bind[NC_BOX_LAYERS_MAX + NC_BOX_BINDS_MAX + 1]; /* and nacre-sudo */
};

/*
 * Builds the root of a box and moves into it. Called in the first process of fresh user, mount,
 * pid, net and uts namespaces, with all capabilities over them and no other process around. 0 or
 * -errno; *ret_step then says what was tried. Allocates nothing.
 */
int nc_root_build(const struct nc_root_spec *spec, const char **ret_step);

#endif
