/*
 * Landlock: the second wall around the payload of a container box, the only one around the files of
 * the host where a box has no mounts of its own, and around our own programs.
 */
#ifndef NC_FENCE_H
#define NC_FENCE_H

#include <stdbool.h>
#include <stddef.h>

/* What may be done with a file, or with everything below a directory. */
enum nc_fence_right {
	NC_FENCE_READ,	 /* read and run */
	NC_FENCE_WRITE,	 /* that, and make, change, rename and remove; no ioctl on devices */
	NC_FENCE_DEVICE, /* read, write and ioctl */
	NC_FENCE_RIGHT_MAX,
};

struct nc_fence_path {
	const char *path; /* followed if it is a link; passed over if it does not exist */
	enum nc_fence_right right;
};

struct nc_fence {
	const struct nc_fence_path *paths;
	size_t n_paths;
	bool shows_host; /* what all boxes are shown of it (shown.h) can be read */
	bool takes_tcp;	 /* no bind() and no connect(), from ABI 4 on */
};

/* In a container box: reads everything in it, writes where the box is writable. */
extern const struct nc_fence nc_fence_container;

/*
 * The same where the root can be written to as well. There /proc is covered by the rule too, and
 * must be a read-only mount.
 */
extern const struct nc_fence nc_fence_writable;

/*
 * In a process box, which sees the host's tree: reads programs, libraries and what they need of
 * /etc; writes nowhere. Its scratch directory is an extra path.
 *
 * What Landlock does not cover is the filter's part (NC_FILTER_PROCESS): modes, owners, times and
 * extended attributes of any file, inotify, unix sockets with a path, truncate() before ABI 3,
 * signals before ABI 6. Nobody's part is stat(): names that are guessed are seen to exist.
 */
extern const struct nc_fence nc_fence_process;

/*
 * Restricts this process, for good, to the paths of the fence and the extra ones; keeps signals and
 * abstract sockets inside where the kernel can (ABI 6). no_new_privs is already set. Returns the
 * kernel's ABI (0: no Landlock here, nothing is restricted), or -errno. Copies everything.
 * Async-signal-safe; may be called between fork and exec.
 */
int nc_fence_payload(
	const struct nc_fence *fence, const struct nc_fence_path *extra, size_t n_extra);

/*
 * Only keeps signals and abstract sockets inside, for who has children that must do more. Returns
 * the ABI as above; 0 also where that keeps nothing.
 */
int nc_fence_scopes(void);

/*
 * Takes every file, TCP port, abstract socket and signal to others away from this process, for
 * good; descriptors that are open stay. For our own programs once they have read what they need.
 * Returns as nc_fence_payload does.
 */
int nc_fence_all(void);

/* The ABI of Landlock that this kernel has; 0: none. errno says why. */
int nc_fence_abi(void);

/*
 * The same, but for the files, directories and links below one directory, which must exist: there
 * it reads, makes, changes and removes, and runs nothing. NULL: no such directory.
 */
int nc_fence_worker(const char *writable_dir);

/* The same as nc_fence_all(), but that it may connect to TCP ports; it may bind to none. */
int nc_fence_egress(void);

/* The same as nc_fence_worker(), but that it only reads there. */
int nc_fence_reader(const char *readable_dir);

/*
 * The same for the directories that are open as these descriptors; those that are negative are
 * passed over.
 */
int nc_fence_stores(const int *store_fds, size_t n_stores);

/* The same, and that it only reads below further ones. */
int nc_fence_server(
	const int *store_fds, size_t n_stores, const int *readable_fds, size_t n_readable);

#endif
