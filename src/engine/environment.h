/*
 * Environments: packages that programs need beside what the image has, installed once and then
 *shown to boxes as a read-only layer.
 *
 * Theory of operation: an environment is known by a digest of whose it is and everything that it is
 * made from: the language, its interpreter, the names of the packages, the place they come from.
 * A tenant is shown the operator's (nacre env build) and its own, see engine/owner.h. It stands in
 *the store `environments` (box/store.h) as
 *
 *	<key>/layer/		what boxes are shown
 *	<key>/lock.json		what is in it, and where each part came from
 *	<key>/used		whose time of change says when it was used last
 *
 * and is never changed. One without packages is the build cache of a compiler (nc_warmer_of()).
 * Whoever uses one holds a shared lock on its directory; it is removed only
 * under an exclusive one. Whoever builds one holds a lock on .build-<key>.
 */
#ifndef NC_ENVIRONMENT_H
#define NC_ENVIRONMENT_H

#include <jansson.h>
#include <time.h>

#include "box/staging.h"
#include "config/config.h"
#include "engine/keep.h"

/* The most that one may take on the disk. */
#define NC_ENVIRONMENT_MAX (1ULL << 30)

/* Where they are kept and what they are made from. */
struct nc_environments {
	int store_fd;	    /* the worker's; -EBADF: there is none */
	uint64_t max_bytes; /* of all together */
	struct {
		int fd;		  /* a directory, open to read; or -EBADF */
		const char *path; /* borrowed from the configuration; or NULL */
		const struct nc_packages_config *config; /* the same: index and hosts; or NULL */
	} source[NC_LANGUAGE_MAX];
};

/* Empty; may be closed. */
void nc_environments_init(struct nc_environments *all);
void nc_environments_close(struct nc_environments *all);

#define cleanup_environments nc_cleanup(nc_environments_close)

/*
 * Opens the store, and makes it if it is to be; as nc_store_open. What packages come from is opened
 * with the caller's rights by nc_environments_open_source. -ENOENT without err: there is no store.
 */
int nc_environments_open(struct nc_environments *all, const struct nc_config *config, bool make,
	bool ranges, struct nacre_err *err);
int nc_environments_open_source(
	struct nc_environments *all, const struct nc_config *config, struct nacre_err *err);

/* The same with descriptors that were opened before; -EBADF: there is none. */
void nc_environments_take(struct nc_environments *all, const struct nc_config *config, int store_fd,
	int python_fd, int javascript_fd);

/* Whether packages come from anywhere, and whether over the network. */
bool nc_environments_have_source(const struct nc_environments *all, enum nc_language language);
bool nc_environments_have_index(const struct nc_environments *all, enum nc_language language);

/* The most that one may take. */
uint64_t nc_environments_each(const struct nc_environments *all);

/*
 * The key of a tenant's environment, "" for the operator's; the order of packages does not matter.
 * Without any it is the build cache of the language's compiler. "" without memory.
 */
void nc_environment_key(const struct nc_environments *all, const char *tenant,
	enum nc_language language, const char *const *packages, size_t n_packages,
	char key[static NC_KEY_SIZE]);

/* One that is in use. */
struct nc_environment {
	char key[NC_KEY_SIZE];
	int dir_fd;   /* locked: while it is open nobody removes it */
	int layer_fd; /* for a box */
	json_t *lock; /* what is in it */
};

void nc_environment_init(struct nc_environment *environment);
void nc_environment_close(struct nc_environment *environment);

/* Opens one for use and notes that. -ENOENT: there is none; other -errno: it is broken. */
int nc_environment_open(
	const struct nc_environments *all, const char *key, struct nc_environment *ret_environment);

/* Locks the right to build one, for as long as the descriptor is open. -EAGAIN: another does. */
int nc_environment_lock(const struct nc_environments *all, const char *key);
/* Gives it back. */
void nc_environment_unlock(const struct nc_environments *all, const char *key, int lock_fd);

/*
 * Keeps what stands in the root of the staging directory, with a lock file to be written there, as
 * the environment; removes others that were not used for longest if there is no room. "size" is
 * added to lock. -EFBIG: it is too large.
 */
int nc_environment_keep(const struct nc_environments *all, const struct nc_staging *stage,
	const char *key, json_t *lock, struct nacre_err *err);

struct nc_environment_entry {
	const char *key;
	uint64_t bytes;
	struct timespec used;
	const json_t *lock;
};

/* Calls back for each, those that were not used for longest first, until that is negative. */
int nc_environment_visit(const struct nc_environments *all,
	int (*visit)(void *context, const struct nc_environment_entry *entry), void *context);

/* -EBUSY with err: it is in use. */
int nc_environment_remove(
	const struct nc_environments *all, const char *key, struct nacre_err *err);

/*
 * Removes what was not used for longest until one more of wanted bytes would fit: first of the
 * owner of its key, who has a quarter of the room, then of all. Key "": what there is shall fit.
 * -ENOSPC: in vain.
 */
int nc_environment_make_room(
	const struct nc_environments *all, const char *key, uint64_t wanted, struct nacre_err *err);

/* Removes what killed builds left. */
void nc_environment_sweep(const struct nc_environments *all);

#endif
