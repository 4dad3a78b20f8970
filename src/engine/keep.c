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
/* What a small one counts for: whoever writes looks at all of them. */
#define COUNTS_MIN (64ULL << 10)

struct nc_digest {
	EVP_MD_CTX *context;
	char owner[NC_KEY_OWNER + 1]; /* "": it tells none */
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
		for (size_t i = 0; i < NC_KEY_OWNER / 2; i++)
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
		memcpy(key, digest->owner, NC_KEY_OWNER);
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

/* What there is of a kind. */
struct file {
	char name[NC_NAME_MAX + 1]; /* "": it was removed */
	uint64_t counts_for;
	struct timespec used;
};

static uint64_t counts_for(uint64_t size)
{
	return size < COUNTS_MIN ? COUNTS_MIN : size;
}

static int by_use(const void *a, const void *b)
{
	const struct timespec *left = &((const struct file *)a)->used;
	const struct timespec *right = &((const struct file *)b)->used;

	if (left->tv_sec != right->tv_sec)
		return left->tv_sec < right->tv_sec ? -1 : 1;
	return left->tv_nsec < right->tv_nsec ? -1 : left->tv_nsec > right->tv_nsec;
}

/* What was not used for longest first. Without memory: some of them. */
static struct file *look(int store_fd, size_t *ret_count)
{
	int fd = openat(store_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct file *files = NULL;
	size_t n = 0;

	if (!dir)
		(void)nc_fd_close(fd);
	while (dir && (entry = readdir(dir))) {
		struct stat status;
		struct file *grown;

		if (fstatat(store_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISREG(status.st_mode))
			continue;
		grown = n & (n - 1) ? files : reallocarray(files, n ? 2 * n : 1, sizeof(*files));
		if (!grown)
			break;
		files = grown;
		files[n] = (struct file){
			.counts_for = counts_for((uint64_t)status.st_size), .used = status.st_mtim};
		(void)snprintf(files[n].name, sizeof(files[n].name), "%s", entry->d_name);
		n++;
	}
	if (n > 0)
		qsort(files, n, sizeof(*files), by_use);
	*ret_count = n;
	return files;
}

/* Removes of what is an owner's ("": anybody's) as much, beginning with the first. */
static uint64_t remove_some(
	int store_fd, struct file *files, size_t n, const char *owner, uint64_t too_much)
{
	uint64_t gone = 0;

	for (size_t i = 0; i < n && gone < too_much; i++) {
		if (!*files[i].name || strncmp(files[i].name, owner, strlen(owner)) != 0 ||
			unlinkat(store_fd, files[i].name, 0) < 0)
			continue;
		gone += files[i].counts_for;
		files[i].name[0] = '\0';
	}
	return gone;
}

/* Removes what was not used for longest until there is room, and the owner within its share. */
static void make_room(int store_fd, const char *key, uint64_t wanted)
{
	uint64_t all = counts_for(wanted), own = all;
	char owner[NC_KEY_OWNER + 1];
	size_t n;
	cleanup_free struct file *files = look(store_fd, &n);

	(void)snprintf(owner, sizeof(owner), "%s", key);
	for (size_t i = 0; i < n; i++) {
		all += files[i].counts_for;
		own += strncmp(files[i].name, owner, NC_KEY_OWNER) == 0 ? files[i].counts_for : 0;
	}
	if (own > SHARE_MAX)
		all -= remove_some(store_fd, files, n, owner, own - SHARE_MAX);
	if (all > STORE_MAX)
		(void)remove_some(store_fd, files, n, "", all - STORE_MAX);
}

void nc_keep_write(int cache_fd, const char *kind, const char *key, const char *data, size_t size)
{
	cleanup_close int store_fd = *key ? open_kind(cache_fd, kind) : -ENOENT;

	if (store_fd < 0)
		return;
	make_room(store_fd, key, size);
	(void)nc_path_write(store_fd, key, data, size, 0600); /* or it is made again */
}
