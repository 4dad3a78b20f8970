/*
 * Directory images: file trees that boxes can have instead of the host's own, by name. They are
 * kept in <state>/images/<name>, where state is $NACRE_STATE, or /var/lib/nacre for root, or
 * $XDG_DATA_HOME/nacre (~/.local/share/nacre).
 *
 * Theory of operation: the store belongs to the unprivileged side (NC_WORKER_ID when root started
 * us) and is closed to everybody else; boxes get at an image through the spawner's mount alone.
 * What stands in the store under its name is whole; see box/staging.h for how that is.
 */
#ifndef NC_IMAGE_H
#define NC_IMAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/error.h"
#include "box/staging.h"

/* The image that needs no import: the host's own programs and libraries. */
#define NC_IMAGE_HOST "host"
#define NC_IMAGE_NAME_MAX 64U

/*
 * Letters, digits, '.', '_' and '-', and neither a dot nor a dash in front; not that of the host's.
 * 0, or -EINVAL with err.
 */
int nc_image_name_check(const char *name, struct nacre_err *err);

/* Opens an image's directory. A descriptor, or -errno with err. */
int nc_image_open(const char *name, struct nacre_err *err);

/* The same in a store that is open; less than 0: there is none. */
int nc_image_at(int store_fd, const char *name, struct nacre_err *err);

/*
 * Opens the store. A descriptor (a directory, readable), or -errno with err; -ENOENT without err:
 * there is none yet. With make it is made, for which a root of ranges (nc_privilege_ranges) must
 * not have dropped its privilege; it is the worker's.
 */
int nc_image_store_open(bool make, bool ranges, struct nacre_err *err);

/* -EEXIST with err: there is such an image. Early word of what nc_image_commit decides. */
int nc_image_check_free(int store_fd, const char *name, struct nacre_err *err);

/*
 * The rest is for the unprivileged side, after nc_privilege_drop.
 *
 * Gives <staging>/root its name. -EEXIST: there is such an image, and replace is false; else that
 * one is in the staging directory afterwards.
 */
int nc_image_commit(int store_fd, const struct nc_staging *stage, const char *name, bool replace,
	struct nacre_err *err);

/* Takes the image out of the store and removes it. -ENOENT with err: there is none. */
int nc_image_remove(int store_fd, const char *name, struct nacre_err *err);

struct nc_image_entry {
	const char *name;
	uint64_t bytes; /* on the disk; not of what lies deeper than 256 directories */
	struct timespec imported;
};

/* Calls back for each image, in no order, until that returns a negative value. 0 or -errno. */
int nc_image_visit(int store_fd, int (*visit)(void *context, const struct nc_image_entry *entry),
	void *context);

#endif
