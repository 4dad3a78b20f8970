/*
 * A directory tree as an archive (base/tar.h), and back. Neither follows a symbolic link below the
 * directory that it is given, nor waits for a FIFO; what is unpacked stays in that directory,
 * whatever the archive says and whoever changes the tree meanwhile.
 *
 * Kept are names, files, directories, links of both kinds and FIFOs, with the permissions of user,
 * group and others and, of files, the seconds of their last change.
 */
#ifndef NC_TARBALL_H
#define NC_TARBALL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/* What is packed: names in base_fd, each with all that is below; "." is all of it. */
struct nc_tarball_pack {
	int base_fd;
	const char *const *names; /* end in NULL */
	const char *leave_out;	  /* a path that is not packed; or NULL */
	uint64_t max;		  /* bytes of files, in all */
};

/*
 * Writes the archive to out_fd, members in the order of their names, so that equal trees are equal
 * archives. All is looked at first: most that is wrong is found before the first byte. -EFBIG:
 * more than max; -E2BIG: too many entries, -ELOOP: too deep, or what the kernel says.
 */
int nc_tarball_pack(const struct nc_tarball_pack *pack, int out_fd, struct nacre_err *err);

/* Links of an archive that were not made, since they lead out of the directory. */
struct nc_tarball_left {
	size_t count;
	char first[NC_TEXT_QUOTED_MAX]; /* the path of the first, quoted */
};

/*
 * Unpacks the archive of in_fd into base_fd, over what is there; directories that are there stay.
 * What came before a fault stays. Errors as nc_tar_take, -ENODATA: it is cut off.
 *
 * ret_left: symbolic links that lead out of base_fd are left out, and counted. Without it they are
 * made as the archive has them, which is for trees that only boxes will look at.
 */
int nc_tarball_unpack(
	int base_fd, int in_fd, struct nc_tarball_left *ret_left, struct nacre_err *err);

#endif
