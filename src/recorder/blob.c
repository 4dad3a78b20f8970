/* Code and output beside the journal. */
#include "recorder/blob.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/path.h"

/* "ab/cdef...": a directory of two digits, a name of 62. */
#define NAME_SIZE (NC_SHA256_HEX_SIZE + 1)
#define USAGE_DIGITS 20
/* Files that a put has not finished are a crash's by then. */
#define LEFTOVER_SECONDS 3600
/* Room is made for more than the next one, or every one would look at all. */
#define ROOM_SHARE 8

static void name_of(const unsigned char *digest, char out[static NAME_SIZE])
{
	char hex[NC_SHA256_HEX_SIZE];

	nc_sha256_hex(digest, hex);
	(void)snprintf(out, NAME_SIZE, "%.2s/%s", hex, hex + 2);
}

int nc_blobs_open(struct nc_blobs *blobs, int history_fd, uint64_t max_bytes)
{
	int r;

	*blobs = (struct nc_blobs){.dir_fd = -EBADF, .usage_fd = -EBADF, .max_bytes = max_bytes};
	r = blobs->dir_fd = nc_path_open(history_fd, "blobs", O_RDONLY | O_DIRECTORY, 0);
	if (r >= 0)
		r = blobs->usage_fd = nc_path_open(history_fd, "usage", O_RDWR | O_CREAT, 0600);
	if (r < 0)
		nc_blobs_done(blobs);
	return r < 0 ? r : 0;
}

void nc_blobs_done(struct nc_blobs *blobs)
{
	blobs->dir_fd = nc_fd_close(blobs->dir_fd);
	blobs->usage_fd = nc_fd_close(blobs->usage_fd);
}

static int lock_usage(struct nc_blobs *blobs, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
	int r;

	do
		r = fcntl(blobs->usage_fd, F_OFD_SETLKW, &lock);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

/* What cannot be read counts as nothing: the next sweep counts again. */
static uint64_t read_usage(const struct nc_blobs *blobs)
{
	char text[USAGE_DIGITS + 1] = "";
	uint64_t total = 0;

	if (pread(blobs->usage_fd, text, USAGE_DIGITS, 0) == USAGE_DIGITS)
		(void)nc_parse_u64(text + strspn(text, " "), 0, INT64_MAX, &total);
	return total;
}

static void write_usage(struct nc_blobs *blobs, uint64_t total)
{
	char text[USAGE_DIGITS + 1];

	(void)snprintf(text, sizeof(text), "%*" PRIu64, USAGE_DIGITS, total);
	(void)!pwrite(blobs->usage_fd, text, USAGE_DIGITS, 0); /* a guess that is too small */
}

/* One blob as a sweep sees it. */
struct found {
	char name[NAME_SIZE];
	int64_t used;
	uint64_t bytes;
};

struct sweep {
	struct found *found;
	size_t n, room;
	uint64_t bytes;
	int64_t now;
	uint64_t max_age_s;
};

static int remember(struct sweep *sweep, const struct found *found)
{
	if (sweep->n == sweep->room) {
		size_t room = 2 * sweep->room + 256;
		struct found *grown = reallocarray(sweep->found, room, sizeof(*found));

		if (!grown)
			return -ENOMEM;
		sweep->found = grown;
		sweep->room = room;
	}
	sweep->found[sweep->n++] = *found;
	sweep->bytes += found->bytes;
	return 0;
}

static int look_at(struct sweep *sweep, int dir_fd, const char *dir, const char *name)
{
	struct found found;
	struct stat status;
	int64_t age;

	if (name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0')))
		return 0;
	if (fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	age = sweep->now - (int64_t)status.st_mtim.tv_sec;
	if ((sweep->max_age_s > 0 && age > (int64_t)sweep->max_age_s) ||
		(name[0] == '.' && age > LEFTOVER_SECONDS)) {
		(void)unlinkat(dir_fd, name, 0);
		return 0;
	}
	if (name[0] == '.')
		return 0;
	found = (struct found){
		.used = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec,
		.bytes = (uint64_t)status.st_size};
	(void)snprintf(found.name, sizeof(found.name), "%.2s/%.62s", dir, name);
	return remember(sweep, &found);
}

static int look_into(struct sweep *sweep, int blobs_fd, const char *name)
{
	int fd = nc_path_open(blobs_fd, name, O_RDONLY | O_DIRECTORY, 0);
	cleanup_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int r = 0;

	if (!dir) {
		(void)nc_fd_close(fd);
		return 0; /* no directory of ours */
	}
	for (struct dirent *entry; r == 0 && (entry = readdir(dir));)
		r = look_at(sweep, fd, name, entry->d_name);
	return r;
}

static int oldest_first(const void *a, const void *b)
{
	const struct found *left = a, *right = b;

	return (left->used > right->used) - (left->used < right->used);
}

/* Looks at all of them and removes what is too old, then the oldest until target bytes are left. */
static int sweep_to(struct nc_blobs *blobs, uint64_t max_age_s, uint64_t target)
{
	struct sweep sweep = {.now = time(NULL), .max_age_s = max_age_s};
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < 256; i++) {
		char name[8];

		(void)snprintf(name, sizeof(name), "%02x", i);
		r = look_into(&sweep, blobs->dir_fd, name);
	}
	if (r == 0 && sweep.bytes > target)
		qsort(sweep.found, sweep.n, sizeof(*sweep.found), oldest_first);
	for (size_t i = 0; r == 0 && sweep.bytes > target && i < sweep.n; i++)
		if (unlinkat(blobs->dir_fd, sweep.found[i].name, 0) == 0 || errno == ENOENT)
			sweep.bytes -= sweep.found[i].bytes;
	free(sweep.found);
	if (r == 0)
		write_usage(blobs, sweep.bytes);
	return r;
}

int nc_blobs_sweep(struct nc_blobs *blobs, uint64_t max_age_s)
{
	int r = lock_usage(blobs, F_WRLCK);

	if (r < 0)
		return r;
	r = sweep_to(blobs, max_age_s, blobs->max_bytes > 0 ? blobs->max_bytes : UINT64_MAX);
	(void)lock_usage(blobs, F_UNLCK);
	return r;
}

/* Counts size bytes in, after making room for them. */
static int reserve(struct nc_blobs *blobs, size_t size)
{
	uint64_t total, max = blobs->max_bytes;
	int r = lock_usage(blobs, F_WRLCK);

	if (r < 0)
		return r;
	total = read_usage(blobs);
	if (max > 0 && total + size > max) {
		r = sweep_to(blobs, 0,
			size < max - max / ROOM_SHARE ? max - max / ROOM_SHARE - size : 0);
		total = read_usage(blobs);
	}
	if (r == 0)
		write_usage(blobs, total + size);
	(void)lock_usage(blobs, F_UNLCK);
	return r;
}

/* Counts them out again: they are not there, or were already. */
static void release(struct nc_blobs *blobs, uint64_t size)
{
	uint64_t total;

	if (lock_usage(blobs, F_WRLCK) < 0)
		return;
	total = read_usage(blobs);
	write_usage(blobs, total > size ? total - size : 0);
	(void)lock_usage(blobs, F_UNLCK);
}

static int write_new(int dir_fd, const char *name, const void *data, size_t size)
{
	char temporary[NC_ID_SIZE];
	cleanup_close int fd = -EBADF;
	int r = nc_id_new(".b", temporary);

	if (r < 0)
		return r;
	r = fd = nc_path_open(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (r < 0)
		return r;
	r = nc_fd_write_all(fd, data, size);
	if (r == 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir_fd, temporary, 0);
	return r;
}

/* Whether it is there, and whole as far as its length tells; if so it is young again. */
static bool have(const struct nc_blobs *blobs, const char *name, size_t size)
{
	cleanup_close int fd = nc_path_open(blobs->dir_fd, name, O_RDONLY, 0);
	struct stat status;

	return fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	       (uint64_t)status.st_size == size && futimens(fd, NULL) == 0;
}

static int make_dir(struct nc_blobs *blobs, const char *name)
{
	char dir[3] = {name[0], name[1], '\0'};

	return mkdirat(blobs->dir_fd, dir, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static bool is_too_large(const struct nc_blobs *blobs, uint64_t size)
{
	return size > NC_BLOB_MAX || (blobs->max_bytes > 0 && size > blobs->max_bytes);
}

int nc_blobs_put(struct nc_blobs *blobs, const void *data, size_t size,
	unsigned char ret_digest[static NC_SHA256_SIZE])
{
	unsigned char digest[NC_SHA256_SIZE];
	char name[NAME_SIZE];
	int r = 0;

	if (is_too_large(blobs, size))
		return -EFBIG;
	nc_sha256(data, size, digest);
	name_of(digest, name);
	if (!have(blobs, name, size)) {
		const char dir[3] = {name[0], name[1], '\0'};
		cleanup_close int dir_fd = -EBADF;

		r = reserve(blobs, size);
		if (r == 0)
			r = make_dir(blobs, name);
		if (r == 0)
			r = dir_fd = nc_path_open(blobs->dir_fd, dir, O_RDONLY | O_DIRECTORY, 0);
		if (r >= 0)
			r = write_new(dir_fd, name + 3, data, size);
	}
	if (r >= 0)
		memcpy(ret_digest, digest, sizeof(digest));
	return r < 0 ? r : 0;
}

/* ---- part by part ---- */

void nc_blobs_drop(struct nc_blobs *blobs, struct nc_blob_draft *draft)
{
	if (draft->fd < 0)
		return;
	draft->fd = nc_fd_close(draft->fd);
	(void)unlinkat(blobs->dir_fd, draft->name, 0);
	release(blobs, draft->size);
}

static int begin_draft(struct nc_blobs *blobs, struct nc_blob_draft *draft, uint64_t size)
{
	char id[NC_ID_SIZE];
	int r = is_too_large(blobs, size) ? -EFBIG : nc_id_new(".b", id);

	if (r == 0)
		r = reserve(blobs, (size_t)size);
	if (r < 0)
		return r;
	draft->size = size;
	draft->written = 0;
	nc_sha256_begin(&draft->hash);
	/* in one of the directories that are swept */
	(void)snprintf(draft->name, sizeof(draft->name), "00/%s", id);
	r = make_dir(blobs, draft->name);
	if (r == 0)
		r = draft->fd =
			nc_path_open(blobs->dir_fd, draft->name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (r < 0)
		release(blobs, size);
	return r < 0 ? r : 0;
}

static int copy_part(struct nc_blob_draft *draft, int fd)
{
	char data[64 * 1024];
	uint64_t end = draft->written + NC_BLOB_PART;

	if (end > draft->size)
		end = draft->size;
	while (draft->written < end) {
		size_t wanted = end - draft->written < sizeof(data) ? (size_t)(end - draft->written)
								    : sizeof(data);
		ssize_t n = pread(fd, data, wanted, (off_t)draft->written);
		int r = n < 0	 ? -errno
			: n == 0 ? -EIO
				 : nc_fd_write_all(draft->fd, data, (size_t)n);

		if (r < 0)
			return r;
		nc_sha256_add(&draft->hash, data, (size_t)n);
		draft->written += (uint64_t)n;
	}
	return draft->written < draft->size ? -EINPROGRESS : 0;
}

/* All of it is there: it gets its name, unless there is one like it. */
static int end_draft(struct nc_blobs *blobs, struct nc_blob_draft *draft, unsigned char *digest)
{
	char name[NAME_SIZE];
	int r;

	nc_sha256_end(&draft->hash, digest);
	name_of(digest, name);
	if (have(blobs, name, (size_t)draft->size)) {
		nc_blobs_drop(blobs, draft);
		return 0;
	}
	r = make_dir(blobs, name);
	if (r == 0 && renameat(blobs->dir_fd, draft->name, blobs->dir_fd, name) < 0)
		r = -errno;
	if (r == 0)
		draft->fd = nc_fd_close(draft->fd);
	return r;
}

int nc_blobs_put_part(struct nc_blobs *blobs, struct nc_blob_draft *draft, int fd, uint64_t size,
	uint64_t offset, unsigned char ret_digest[static NC_SHA256_SIZE])
{
	unsigned char digest[NC_SHA256_SIZE];
	int r = 0;

	if (offset == 0) {
		nc_blobs_drop(blobs, draft);
		r = begin_draft(blobs, draft, size);
	} else if (draft->fd < 0 || offset != draft->written || size != draft->size) {
		r = -ESTALE;
	}
	if (r < 0)
		return r;
	r = copy_part(draft, fd);
	if (r == 0)
		r = end_draft(blobs, draft, digest);
	if (r == 0)
		memcpy(ret_digest, digest, sizeof(digest));
	else if (r != -EINPROGRESS)
		nc_blobs_drop(blobs, draft);
	return r;
}

int nc_blob_read(int history_fd, const unsigned char digest[static NC_SHA256_SIZE], char **ret_data,
	size_t *ret_size)
{
	cleanup_close int dir_fd = nc_path_open(history_fd, "blobs", O_RDONLY | O_DIRECTORY, 0);
	cleanup_free char *data = NULL;
	unsigned char found[NC_SHA256_SIZE];
	char name[NAME_SIZE];
	size_t size = 0;
	int r = dir_fd;

	name_of(digest, name);
	nc_sha256("", 0, found);
	if (nc_sha256_equal(found, digest)) /* nothing is there without being kept */
		r = (data = calloc(1, 1)) ? 0 : -ENOMEM;
	else if (r >= 0)
		r = nc_path_read(dir_fd, name, NC_BLOB_MAX, &data, &size);
	if (r < 0)
		return r;
	nc_sha256(data, size, found);
	if (!nc_sha256_equal(found, digest))
		return -EBADMSG;
	*ret_data = take_ptr(data);
	*ret_size = size;
	return 0;
}
