/*
 * What boxes are shown of the host's tree, read-only, where it exists: container boxes by mounts
 * (inside/frame.h), process boxes by Landlock (fence.h).
 *
 * Of /etc it is what packages bring and programs need, and nothing that says who or where the host
 * is: no names, no addresses, no accounts, no keys, no services of its own
 * (tests/func/test_etc.py has the rule).
 */
#ifndef NC_SHOWN_H
#define NC_SHOWN_H

/*
 * Calls each with every path, without a slash in front, whether it is there or not. 0, or the first
 * answer that is not. Async-signal-safe.
 */
int nc_shown_walk(int (*each)(void *context, const char *path), void *context);

#endif
