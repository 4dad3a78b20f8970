/* Mounts that show the files of one owner as another's. */
#ifndef NC_IDMAP_H
#define NC_IDMAP_H

#include <sys/stat.h>

/*
 * Shows what belongs to the owner of source as id's, and nothing else as anybody's; what id makes
 * there belongs to that owner. mount_fd is detached, with all that is below it. 0 or -errno:
 * -EINVAL where the file system or the kernel (before 5.12) cannot do it.
 */
int nc_idmap_mount(int mount_fd, const struct stat *source, unsigned int id);

/*
 * A detached, read-only mount of a directory, as id's, to put something over it: of that mount
 * alone, as overlayfs sees it. A descriptor, or -errno as above.
 */
int nc_idmap_lower(int source_fd, unsigned int id);

#endif
