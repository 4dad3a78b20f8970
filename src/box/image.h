/*
 * Directory images: file trees that boxes can have instead of the host's own, by name. They are
 * kept in <state>/images/<name>, where state is $NACRE_STATE, or /var/lib/nacre for root, or
 * $XDG_DATA_HOME/nacre (~/.local/share/nacre).
 *
 * Theory of operation: the store belongs to the unprivileged side (NC_WORKER_ID when root started
 * us) and is closed to everybody else; boxes get at an image through the spawner's mount alone.
 * What stands in the store under its name is whole. Everything else happens in a staging directory,
 * .stage-<random>, whose first part no name of an image can have: an import fills <staging>/root
 * and renames it to its name, a removal renames the image into one, and both then remove what is
 * left. Whoever works in a staging directory holds a lock on it, so what a killed process left can
 * be told from what is in use.
 */
#ifndef NC_IMAGE_H
#define NC_IMAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/error.h"
#include "base/id.h"

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

/*
 * Opens the store. A descriptor (a directory, readable), or -errno with err; -ENOENT without err:
 * there is none yet. With make it is made, for which a root of ranges (nc_privilege_ranges) must
 * not have dropped its privilege; it is the worker's.
 */
int nc_image_store_open(bool make, bool ranges, struct nacre_err *err);

/* -EEXIST with err: there is such an image. Early word of what nc_image_commit decides. */
int nc_image_check_free(int store_fd, const char *name, struct nacre_err *err);

struct nc_image_stage {
	char name[sizeof(".stage-") + NC_ID_SIZE];
	int dir_fd; /* locked */
};

/*
 * Makes an empty staging directory and locks it. With ranges it is made as the worker, whose store
 * it is, so that nothing in there can lead a privileged hand astray. 0, or -errno with err.
 */
int nc_image_stage_open(
	int store_fd, bool ranges, struct nc_image_stage *ret_stage, struct nacre_err *err);

/* Makes <staging>/root, mode 0755, as nc_image_stage_open. A descriptor, or -errno. */
int nc_image_stage_root(const struct nc_image_stage *stage, bool ranges, struct nacre_err *err);

/* Removes it with all that is in it. 0 or -errno; what stays is swept later. */
int nc_image_stage_close(int store_fd, bool ranges, struct nc_image_stage *stage);

/*
 * The rest is for the unprivileged side, after nc_privilege_drop.
 *
 * Gives <staging>/root its name. -EEXIST: there is such an image, and replace is false; else that
 * one is in the staging directory afterwards.
 */
int nc_image_commit(int store_fd, const struct nc_image_stage *stage, const char *name,
	bool replace, struct nacre_err *err);

/* Takes the image out of the store and removes it. -ENOENT with err: there is none. */
int nc_image_remove(int store_fd, const char *name, struct nacre_err *err);

/* Removes what killed processes left. What fails is left to the next. */
void nc_image_sweep(int store_fd);

struct nc_image_entry {
	const char *name;
	uint64_t bytes; /* on the disk; not of what lies deeper than 256 directories */
	struct timespec imported;
};

/* Calls back for each image, in no order, until that returns a negative value. 0 or -errno. */
int nc_image_visit(int store_fd, int (*visit)(void *context, const struct nc_image_entry *entry),
	void *context);

#endif
