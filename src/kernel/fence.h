/* Landlock around the payload of a box: the second wall behind the mounts. */
#ifndef NC_FENCE_H
#define NC_FENCE_H

/*
 * Restricts this process, for good, to reading and running everything in the box and writing where
 * the box is writable; keeps signals and abstract sockets inside where the kernel can. Uses what
 * the kernel's ABI has. Returns that ABI (0: no Landlock here), or -errno. Async-signal-safe.
 */
int nc_fence_payload(void);

/*
 * Takes every file, TCP port, abstract socket and signal to others away from this process, for
 * good; descriptors that are open stay. For our own programs once they have read what they need.
 * Returns as nc_fence_payload does.
 */
int nc_fence_all(void);

#endif
