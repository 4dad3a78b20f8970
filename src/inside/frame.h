/*
 * The frame of a box's root: what is the same in every box, the host's directories, devices, links
 * and a few small files. A box makes it for itself, or gets a copy of one that its spawner has made
 * once for many, which costs a fraction of it.
 */
#ifndef NC_INSIDE_FRAME_H
#define NC_INSIDE_FRAME_H

#include <stdbool.h>

/* The tables in frame.c have no more than that. */
#define NC_FRAME_SHOWN_MAX 48
#define NC_FRAME_DEVICES_MAX 8

/* What is picked up from the host, as detached mounts. */
struct nc_frame {
	bool host;			   /* with the host's directories; else an image's come */
	int shown_fd[NC_FRAME_SHOWN_MAX];  /* -EBADF: it does not exist, or is a link */
	char link[NC_FRAME_SHOWN_MAX][64]; /* where it points to; "" if it is no link */
	int device_fd[NC_FRAME_DEVICES_MAX];
};

/* The users of a box, as files of /etc. */
extern const char nc_frame_passwd[], nc_frame_group[];

/* Puts a file of ours where there is none. 0 or -errno, as below. */
int nc_frame_make_file(int at_fd, const char *path, const char *text);

/* Makes what a mount can stand on: something of its own kind. */
int nc_frame_make_place(int mount_fd, int at_fd, const char *path);

/*
 * Picks up what the host has for it, in the mount namespace of the caller. After a failure as well:
 * nc_frame_done, or the end of the process.
 */
int nc_frame_pick(struct nc_frame *frame, bool host);
void nc_frame_done(struct nc_frame *frame);

/* An empty file system for it, detached, with room for little more. */
int nc_frame_new_root(void);

/* Puts the pieces into the root, whose top root_fd is: directories, links, files, and mounts. */
int nc_frame_put(const struct nc_frame *frame, int root_fd);

/*
 * Makes one to be copied: nobody can write to it ever, whatever he is allowed in his own user
 * namespace, since the file system itself is read-only and belongs to the caller's. Before Linux
 * 6.15, where nothing can be attached to what is detached: -EINVAL. Otherwise a descriptor; with
 * nc_mount_copy it gives detached copies, in the caller's mount namespace alone.
 */
int nc_frame_compose(void);

#endif
