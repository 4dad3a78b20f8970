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

struct nc_digest {
	EVP_MD_CTX *context;
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

/* Removes what was not used for longest until there is room. */
static void make_room(int store_fd, uint64_t wanted)
{
	for (;;) {
		cleanup_closedir DIR *dir = NULL;
		int fd = openat(store_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		struct timespec oldest = {0};
		char name[NC_NAME_MAX + 1] = "";
		struct dirent *entry;
		uint64_t sum = 0;

		dir = fd < 0 ? NULL : fdopendir(fd);
		if (!dir) {
			(void)nc_fd_close(fd);
			return;
		}
		while ((entry = readdir(dir))) {
			struct stat status;

			if (fstatat(store_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
				!S_ISREG(status.st_mode))
				continue;
			sum += (uint64_t)status.st_size;
			if (*name && (status.st_mtim.tv_sec > oldest.tv_sec ||
					     (status.st_mtim.tv_sec == oldest.tv_sec &&
						     status.st_mtim.tv_nsec > oldest.tv_nsec)))
				continue;
			oldest = status.st_mtim;
			(void)snprintf(name, sizeof(name), "%s", entry->d_name);
		}
		if (sum + wanted <= STORE_MAX || !*name || unlinkat(store_fd, name, 0) < 0)
			return;
	}
}

void nc_keep_write(int cache_fd, const char *kind, const char *key, const char *data, size_t size)
{
	cleanup_close int store_fd = *key ? open_kind(cache_fd, kind) : -ENOENT;

	if (store_fd < 0)
		return;
	make_room(store_fd, size);
	(void)nc_path_write(store_fd, key, data, size, 0600); /* or it is made again */
}
