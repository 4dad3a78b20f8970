/* The file system of a box. */
#ifndef NC_SPAWNER_ROOT_H
#define NC_SPAWNER_ROOT_H

#include <stdint.h>
#include <sys/types.h>

/* The user that the payload is inside; see /etc/passwd there. */
#define NC_SANDBOX_ID 1000U

struct nc_root_spec {
	uint64_t disk_bytes; /* of /workspace, /tmp and /dev/shm together */
	uint64_t inodes;
};

/*
 * Builds the root of a box and moves into it. Called in the first process of fresh user, mount,
 * pid, net and uts namespaces, with all capabilities over them and no other process around. 0 or
 * -errno; *ret_step then says what was tried. Allocates nothing.
 */
int nc_root_build(const struct nc_root_spec *spec, const char **ret_step);

#endif
