/* What may be kept and thrown away again. */
#include "engine/keep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/path.h"

/* Of each kind. */
#define STORE_MAX (1ULL << 30)
#define SHARE_MAX (STORE_MAX / 4) /* of one owner */

/* Digits of a key that tell its owner. */
#define OWNER 16

struct nc_digest {
	EVP_MD_CTX *context;
	char owner[OWNER + 1]; /* "": it tells none */
};

struct nc_digest *nc_digest_new(void)
{
	struct nc_digest *digest = calloc(1, sizeof(*digest));

	if (!digest)
		return NULL;
	digest->context = EVP_MD_CTX_new();
	if (digest->context && EVP_DigestInit_ex(digest->context, EVP_sha256(), NULL) == 1)
		return digest;
	EVP_MD_CTX_free(digest->context);
	free(digest);
	return NULL;
}

void nc_digest_add(struct nc_digest *digest, const void *data, size_t size)
{
	uint64_t length = size;

	if (!digest)
		return;
	(void)EVP_DigestUpdate(digest->context, &length, sizeof(length));
	(void)EVP_DigestUpdate(digest->context, data, size);
}

void nc_digest_text(struct nc_digest *digest, const char *text)
{
	nc_digest_add(digest, text, strlen(text));
}

void nc_digest_program(struct nc_digest *digest, const char *name)
{
	static const char *const dirs[] = {"/usr/local/bin", "/usr/bin", "/bin"};

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		struct stat status;
		char path[256];

		(void)snprintf(path, sizeof(path), "%s/%s", dirs[i], name);
		if (stat(path, &status) < 0)
			continue;
		nc_digest_add(digest, &status.st_ino, sizeof(status.st_ino));
		nc_digest_add(digest, &status.st_size, sizeof(status.st_size));
		nc_digest_add(digest, &status.st_mtim, sizeof(status.st_mtim));
	}
}

void nc_digest_own(struct nc_digest *digest)
{
	unsigned char bytes[EVP_MAX_MD_SIZE];
	EVP_MD_CTX *copy = digest ? EVP_MD_CTX_new() : NULL;

	/* without memory it has no share of its own */
	if (copy && EVP_MD_CTX_copy_ex(copy, digest->context) == 1 &&
		EVP_DigestFinal_ex(copy, bytes, NULL) == 1)
		for (size_t i = 0; i < OWNER / 2; i++)
			(void)snprintf(digest->owner + 2 * i, 3, "%02x", bytes[i]);
	EVP_MD_CTX_free(copy);
}

void nc_digest_end(struct nc_digest *digest, char key[static NC_KEY_SIZE])
{
	unsigned char bytes[EVP_MAX_MD_SIZE];
	unsigned int size = 0;

	key[0] = '\0';
	if (!digest)
		return;
	if (EVP_DigestFinal_ex(digest->context, bytes, &size) == 1)
		for (unsigned int i = 0; i < size; i++)
			(void)snprintf(key + 2 * (size_t)i, 3, "%02x", bytes[i]);
	if (key[0] && digest->owner[0])
		memcpy(key, digest->owner, OWNER);
	EVP_MD_CTX_free(digest->context);
	free(digest);
}

/* The directory of a kind; -EBADF: nothing is kept here. */
static int open_kind(int cache_fd, const char *kind)
{
	if (cache_fd < 0)
		return -EBADF;
	if (mkdirat(cache_fd, kind, 0700) < 0 && errno != EEXIST)
		return -errno;
	return nc_path_open(cache_fd, kind, O_RDONLY | O_DIRECTORY, 0);
}

int nc_keep_read(int cache_fd, const char *kind, const char *key, size_t max, char **ret_data,
	size_t *ret_size)
{
	cleanup_close int store_fd = *key ? open_kind(cache_fd, kind) : -ENOENT;
	int r = store_fd < 0 ? store_fd : nc_path_read(store_fd, key, max, ret_data, ret_size);

	if (r == 0)
		(void)utimensat(store_fd, key, NULL, 0); /* or it goes sooner than it might */
	return r;
}

/* What was not used for longest, of anybody or of one owner. */
struct oldest {
	uint64_t sum;
	struct timespec used;
	char name[NC_NAME_MAX + 1];
};

static void consider(struct oldest *oldest, const char *name, const struct stat *status)
{
	oldest->sum += (uint64_t)status->st_size;
	if (*oldest->name && (status->st_mtim.tv_sec > oldest->used.tv_sec ||
				     (status->st_mtim.tv_sec == oldest->used.tv_sec &&
					     status->st_mtim.tv_nsec > oldest->used.tv_nsec)))
		return;
	oldest->used = status->st_mtim;
	(void)snprintf(oldest->name, sizeof(oldest->name), "%s", name);
}

static int look(int store_fd, const char *key, struct oldest *all, struct oldest *own)
{
	cleanup_closedir DIR *dir = NULL;
	int fd = openat(store_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;

	*all = *own = (struct oldest){0};
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return nc_fd_close(fd);
	while ((entry = readdir(dir))) {
		struct stat status;

		if (fstatat(store_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISREG(status.st_mode))
			continue;
		consider(all, entry->d_name, &status);
		if (strncmp(entry->d_name, key, OWNER) == 0)
			consider(own, entry->d_name, &status);
	}
	return 0;
}

/* Removes what was not used for longest until there is room, and the owner within its share. */
static void make_room(int store_fd, const char *key, uint64_t wanted)
{
	struct oldest all, own;

	while (look(store_fd, key, &all, &own) == 0) {
		const char *name = own.sum + wanted > SHARE_MAX && *own.name ? own.name
				   : all.sum + wanted > STORE_MAX	     ? all.name
									     : "";

		if (!*name || unlinkat(store_fd, name, 0) < 0)
			return;
	}
}

void nc_keep_write(int cache_fd, const char *kind, const char *key, const char *data, size_t size)
{
	cleanup_close int store_fd = *key ? open_kind(cache_fd, kind) : -ENOENT;

	if (store_fd < 0)
		return;
	make_room(store_fd, key, size);
	(void)nc_path_write(store_fd, key, data, size, 0600); /* or it is made again */
}
