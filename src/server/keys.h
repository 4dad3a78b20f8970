/*
 * API keys: who may ask a daemon, for which tenant, and what. Of a key only its SHA-256 is kept, in
 * keys.json in the directory `serve` of the state: a key has 192 bits of chance, so that there is
 * nothing to guess, and no slow hash is needed.
 *
 * A key that was revoked stays in the file. So a daemon that ever had a key goes on asking for one.
 */
#ifndef NC_KEYS_H
#define NC_KEYS_H

#include <jansson.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "server/http.h"

/* "nk_", 12 digits that name it, "_", 48 digits that nobody else knows, a NUL. */
#define NC_KEY_ID_SIZE 13
#define NC_KEY_SIZE_TEXT (3 + (NC_KEY_ID_SIZE - 1) + 1 + 48 + 1)

struct nc_key {
	char id[NC_KEY_ID_SIZE];
	unsigned char hash[NC_SHA256_SIZE];
	char tenant[NC_REQUEST_NAME_MAX + 1];
	char name[NC_REQUEST_NAME_MAX + 1]; /* "": none */
	enum nc_role role;
	char created[NC_CLOCK_STAMP_SIZE];
	char revoked[NC_CLOCK_STAMP_SIZE]; /* "": not */
};

struct nc_keys {
	struct nc_key *key;
	size_t count;
	struct stat from; /* of the file that was read; zeroed: there was none */
};

extern const char *const nc_role_names[NC_ROLE_MAX];
enum nc_role nc_role_parse(const char *name); /* NC_ROLE_MAX: none of them */

/* Opens the directory for it in the state, makes it if it is to be. A descriptor, or -errno. */
int nc_keys_dir(const char *state_dir, bool make, struct nacre_err *err);

/* Reads the file; one that is not there has no keys. -EINVAL with err: it is damaged. */
int nc_keys_read(int dir_fd, struct nc_keys *ret_keys, struct nacre_err *err);
void nc_keys_done(struct nc_keys *keys);

#define cleanup_keys nc_cleanup(nc_keys_done)

/* Whether another file stands there than that which was read. */
bool nc_keys_changed(int dir_fd, const struct nc_keys *keys);

/* Replaces the file, so that the daemon can read it and nobody else. */
int nc_keys_write(int dir_fd, const struct nc_keys *keys, struct nacre_err *err);

/* Adds one; text is all that is ever told of its secret. -ENOSPC: there are too many. */
int nc_keys_add(struct nc_keys *keys, const char *tenant, enum nc_role role, const char *name,
	char ret_text[static NC_KEY_SIZE_TEXT], struct nacre_err *err);

/* -ENOENT with err: there is none of that id. */
int nc_keys_revoke(struct nc_keys *keys, const char *id, struct nacre_err *err);

/* The key that text is; NULL: none that holds. Its time tells nothing about secrets. */
const struct nc_key *nc_keys_find(const struct nc_keys *keys, const char *text);

/* What people may see of it. */
json_t *nc_key_json(const struct nc_key *key);

#endif
