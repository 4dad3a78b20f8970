/* What may be kept and thrown away again, by the digest of everything that it is made from. */
#ifndef NC_KEEP_H
#define NC_KEEP_H

#include <stddef.h>

/* A digest as text. */
#define NC_KEY_SIZE 65
/* As many digits of a key tell its owner. */
#define NC_KEY_OWNER 16

struct nc_digest;

/* NULL: no memory. Adding to NULL does nothing, and its key is "". */
struct nc_digest *nc_digest_new(void);

/* Adds a part with its length, so that two parts cannot pass for two others. */
void nc_digest_add(struct nc_digest *digest, const void *data, size_t size);
void nc_digest_text(struct nc_digest *digest, const char *text);

/* Which file a program of this name is in the host's tree, and when it was changed. */
void nc_digest_program(struct nc_digest *digest, const char *name);

/* What was added so far says whose it is: keys of the same owner begin with the same digits. */
void nc_digest_own(struct nc_digest *digest);

/* The key, "" if there is none; frees the digest. */
void nc_digest_end(struct nc_digest *digest, char key[static NC_KEY_SIZE]);

/*
 * Reads what is kept in the directory `kind` of cache_fd under the key; the caller frees *ret_data.
 * -errno if there is nothing.
 */
int nc_keep_read(int cache_fd, const char *kind, const char *key, size_t max, char **ret_data,
	size_t *ret_size);

/*
 * Keeps it, if it can be. What was not read for longest goes when there is no room: of the same
 * owner if that one has more than a quarter of it, else of anybody.
 */
void nc_keep_write(int cache_fd, const char *kind, const char *key, const char *data, size_t size);

#endif
