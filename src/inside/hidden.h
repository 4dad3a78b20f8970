/* What of the host's tree nobody may read, where root of a box would be its owner's like. */
#ifndef NC_INSIDE_HIDDEN_H
#define NC_INSIDE_HIDDEN_H

/*
 * Takes out of sight, in the upper directory of an overlay that is to be made over the lower one,
 * whatever there is not for everybody to read: files, and directories as a whole. Looks at all of
 * it. 0 or -errno.
 */
int nc_hidden_cover(const char *lower, const char *upper);

#endif
