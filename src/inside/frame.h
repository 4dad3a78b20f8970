/*
 * The frame of a box's root: what is the same in every box, the host's directories, devices, links
 * and a few small files. A box makes it for itself, or gets a copy of one that its spawner has made
 * once for many, which costs a fraction of it.
 */
#ifndef NC_INSIDE_FRAME_H
#define NC_INSIDE_FRAME_H

#include <stdbool.h>
#include <sys/stat.h>

/* The users of a box, as files of /etc. */
extern const char nc_frame_passwd[], nc_frame_group[];

/* Puts a file of ours where there is none. 0 or -errno, as below. */
int nc_frame_make_file(int at_fd, const char *path, const char *text);

/* Makes what a mount of that mode can stand on: something of its own kind. */
int nc_frame_make_place(mode_t mode, int at_fd, const char *path);

/* An empty file system for it, detached, with room for little more. */
int nc_frame_new_root(void);

/*
 * Puts everything into the root, whose top root_fd is: directories, links, files, devices, and with
 * `host` the host's directories (else an image's come). `is_here`: the root is attached and the
 * working directory, which is cheaper. The host's tree is still to be seen at "/".
 */
int nc_frame_put(int root_fd, bool host, bool is_here);

/*
 * Makes one to be copied: nobody can write to it ever, whatever he is allowed in his own user
 * namespace, since the file system itself is read-only and belongs to the caller's. Before Linux
 * 6.15, where nothing can be attached to what is detached: -EINVAL. Otherwise a descriptor; with
 * nc_mount_copy it gives detached copies, in the caller's mount namespace alone.
 */
int nc_frame_compose(void);

#endif
