/* A directory tree as an archive, and back. */
#include "base/tarball.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/tar.h"
#include "base/text.h"

#define CHUNK (128U * 1024)
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define FILE_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
/* Each level holds a descriptor. */
#define DEPTH_MAX 256
#define ENTRIES_MAX 1000000U
/* The head of a member, with words for two paths of the longest. */
#define HEAD_MAX (32U * 1024)

static int fault(struct nacre_err *err, int code, const char *path)
{
	char quoted[NC_TEXT_QUOTED_MAX];

	return nc_err_errno(err, code, "%s", nc_text_quote(quoted, path));
}

/* ---- out ---- */

/* A file with more than one name, by the first of them. */
struct linked {
	dev_t dev;
	ino_t ino;
	char path[];
};

struct packer {
	const struct nc_tarball_pack *pack;
	int out_fd;
	bool looks; /* the first time: nothing is written */
	uint64_t bytes;
	size_t entries;
	void *linked; /* a tree of struct linked, tsearch(3) */
	struct nc_tar_member member;
	struct nc_buf head;
	struct nacre_err *err;
};

static int compare_linked(const void *a, const void *b)
{
	const struct linked *one = a, *other = b;

	if (one->dev != other->dev)
		return one->dev < other->dev ? -1 : 1;
	return one->ino == other->ino ? 0 : one->ino < other->ino ? -1 : 1;
}

/* The name under which the file was packed before; NULL: it was not, and is remembered. */
static const char *find_linked(struct packer *packer, const struct stat *status)
{
	size_t size = strlen(packer->member.path) + 1;
	struct linked *fresh = malloc(sizeof(*fresh) + size);
	struct linked *const *found;

	if (!fresh)
		return NULL; /* it is packed twice */
	fresh->dev = status->st_dev;
	fresh->ino = status->st_ino;
	memcpy(fresh->path, packer->member.path, size);
	found = tsearch(fresh, &packer->linked, compare_linked);
	if (!found || *found != fresh)
		free(fresh);
	return found && *found != fresh ? (*found)->path : NULL;
}

static int write_head(struct packer *packer)
{
	if (packer->looks)
		return 0;
	packer->head.size = 0;
	nc_tar_put(&packer->head, &packer->member);
	return packer->head.error < 0
		       ? packer->head.error
		       : nc_fd_write_all(packer->out_fd, packer->head.data, packer->head.size);
}

/* So many bytes and what fills the block; a file that has become shorter ends in zeros. */
static int write_data(struct packer *packer, int fd, uint64_t size)
{
	static char chunk[CHUNK];
	uint64_t left = size + nc_tar_padding(size);

	while (left > 0) {
		size_t n = left < CHUNK ? (size_t)left : CHUNK;
		size_t of_file = size < n ? (size_t)size : n;
		ssize_t got = nc_fd_read_upto(fd, chunk, of_file);
		int r;

		if (got < 0)
			return (int)got;
		memset(chunk + got, 0, n - (size_t)got);
		r = nc_fd_write_all(packer->out_fd, chunk, n);
		if (r < 0)
			return r;
		size -= of_file;
		left -= n;
	}
	return 0;
}

static int pack_file(struct packer *packer, int dir_fd, const char *name, const struct stat *status)
{
	cleanup_close int fd = -EBADF;
	const char *first = status->st_nlink > 1 ? find_linked(packer, status) : NULL;
	struct stat now;
	int r;

	if (first) {
		packer->member.kind = NC_TAR_LINK;
		(void)snprintf(packer->member.target, sizeof(packer->member.target), "%s", first);
		return write_head(packer);
	}
	/* who packs is not who reads: decoys tell the difference. Others' files allow no such
	 * thing. */
	fd = openat(dir_fd, name, FILE_FLAGS | O_NOATIME);
	if (fd < 0 && errno == EPERM)
		fd = openat(dir_fd, name, FILE_FLAGS);
	if (fd < 0 || fstat(fd, &now) < 0)
		return -errno;
	if (!S_ISREG(now.st_mode))
		return -ESTALE;
	packer->member.size = (uint64_t)now.st_size;
	if (packer->member.size > packer->pack->max - packer->bytes)
		return -EFBIG;
	packer->bytes += packer->member.size;
	r = write_head(packer);
	return r < 0 || packer->looks ? r : write_data(packer, fd, packer->member.size);
}

static int pack_symlink(struct packer *packer, int dir_fd, const char *name)
{
	ssize_t n =
		readlinkat(dir_fd, name, packer->member.target, sizeof(packer->member.target) - 1);

	if (n < 0)
		return -errno;
	packer->member.target[n] = '\0';
	packer->member.kind = NC_TAR_SYMLINK;
	return write_head(packer);
}

static int pack_below(struct packer *packer, int dir_fd, size_t length, int depth);

/* One entry of a directory; its path is in member.path already, and length bytes long. */
static int pack_entry(struct packer *packer, int dir_fd, const char *name, size_t length, int depth)
{
	struct nc_tar_member *member = &packer->member;
	struct stat status;
	int r;

	if (packer->entries++ == ENTRIES_MAX)
		return -E2BIG;
	if (fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno; /* it has gone meanwhile */
	member->mode = status.st_mode & 0777;
	member->mtime_s = status.st_mtim.tv_sec;
	member->target[0] = '\0';
	member->size = 0;
	member->kind = NC_TAR_FILE;
	if (S_ISREG(status.st_mode))
		return pack_file(packer, dir_fd, name, &status);
	if (S_ISLNK(status.st_mode))
		return pack_symlink(packer, dir_fd, name);
	if (S_ISFIFO(status.st_mode)) {
		member->kind = NC_TAR_FIFO;
		return write_head(packer);
	}
	if (!S_ISDIR(status.st_mode))
		return 0; /* sockets and devices mean nothing elsewhere */
	if (depth == DEPTH_MAX)
		return -ELOOP;
	member->kind = NC_TAR_DIR;
	r = length > 0 ? write_head(packer) : 0;
	return r < 0 ? r : pack_below(packer, openat(dir_fd, name, DIR_FLAGS), length, depth + 1);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct names {
	char **name;
	size_t count, capacity;
};

static void names_done(struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->name[i]);
	free(names->name);
}

static int add_name(struct names *names, const char *name)
{
	if (names->count == names->capacity) {
		size_t capacity = names->capacity * 2 + 16;
		char **more = reallocarray(names->name, capacity, sizeof(*more));

		if (!more)
			return -ENOMEM;
		names->name = more;
		names->capacity = capacity;
	}
	names->name[names->count] = strdup(name);
	return names->name[names->count] ? (names->count++, 0) : -ENOMEM;
}

static int read_names(DIR *dir, struct names *names)
{
	struct dirent *entry;
	int r = 0;

	while (r == 0 && (errno = 0, entry = readdir(dir))) {
		if (nc_streq(entry->d_name, ".") || nc_streq(entry->d_name, ".."))
			continue;
		r = names->count < ENTRIES_MAX ? add_name(names, entry->d_name) : -E2BIG;
	}
	if (r == 0 && errno != 0)
		r = -errno;
	if (r == 0 && names->count > 0)
		qsort(names->name, names->count, sizeof(*names->name), compare_names);
	return r;
}

/* Puts name behind the first length bytes of the path. The new length, or -ENAMETOOLONG. */
static ssize_t set_path(struct packer *packer, size_t length, const char *name)
{
	char *path = packer->member.path;
	size_t room = sizeof(packer->member.path) - length;
	int n = snprintf(path + length, room, "%s%s", length > 0 ? "/" : "", name);

	return (size_t)n < room ? (ssize_t)length + n : -ENAMETOOLONG;
}

/* Everything below a directory, which is closed; its path is the first length bytes. */
static int pack_below(struct packer *packer, int dir_fd, size_t length, int depth)
{
	cleanup_closedir DIR *dir = dir_fd < 0 ? NULL : fdopendir(dir_fd);
	nc_cleanup(names_done) struct names names = {0};
	int r;

	if (!dir) {
		r = -errno;
		(void)nc_fd_close(dir_fd);
		return r;
	}
	r = read_names(dir, &names);
	for (size_t i = 0; r == 0 && i < names.count; i++) {
		ssize_t n = set_path(packer, length, names.name[i]);

		r = n < 0 ? (int)n : 0;
		if (r == 0 && packer->pack->leave_out &&
			nc_streq(packer->pack->leave_out, packer->member.path))
			continue;
		if (r == 0)
			r = pack_entry(packer, dirfd(dir), names.name[i], (size_t)n, depth);
	}
	return r;
}

/* What the kernel's words for it would be about something else. */
static int pack_fault(struct nacre_err *err, int code, const char *path)
{
	char quoted[NC_TEXT_QUOTED_MAX];
	const char *text = code == -ELOOP   ? "directories are nested too deeply"
			   : code == -E2BIG ? "too many files for one archive"
			   : code == -EFBIG ? "with it the archive is too large"
					    : nc_errno_text(code);

	return nc_err_set(err, code, "%s: %s", nc_text_quote(quoted, path), text);
}

/* The path in member is where it failed. */
static int pack_once(struct packer *packer)
{
	int r = 0;

	packer->bytes = 0;
	packer->entries = 0;
	for (const char *const *name = packer->pack->names; r == 0 && *name; name++) {
		bool all = nc_streq(*name, ".");

		(void)snprintf(
			packer->member.path, sizeof(packer->member.path), "%s", all ? "" : *name);
		r = pack_entry(
			packer, packer->pack->base_fd, *name, strlen(packer->member.path), 0);
	}
	tdestroy(packer->linked, free);
	packer->linked = NULL;
	return r < 0 ? pack_fault(packer->err, r, packer->member.path) : 0;
}

int nc_tarball_pack(const struct nc_tarball_pack *pack, int out_fd, struct nacre_err *err)
{
	static struct packer packer; /* large */
	int r;

	packer = (struct packer){.pack = pack,
		.out_fd = out_fd,
		.looks = true,
		.head = NC_BUF(HEAD_MAX),
		.err = err};
	r = pack_once(&packer);
	packer.looks = false;
	if (r == 0)
		r = pack_once(&packer);
	packer.member = (struct nc_tar_member){.kind = NC_TAR_END};
	if (r == 0 && (r = write_head(&packer)) < 0)
		(void)fault(err, r, "the archive");
	nc_buf_done(&packer.head);
	return r;
}

/* ---- in ---- */

/* Opens the directory of path's last name below base_fd, through no link. The names above it are
 * made if they are missing and make is set. */
static int open_parent(int base_fd, const char *path, bool make, const char **ret_name)
{
	cleanup_close int at_fd = nc_fd_dup(base_fd);
	const char *slash;

	for (; at_fd >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
		char name[NC_NAME_MAX + 1];
		int fd;

		(void)snprintf(name, sizeof(name), "%.*s", (int)(slash - path), path);
		if (make && mkdirat(at_fd, name, 0755) < 0 && errno != EEXIST)
			return -errno;
		fd = openat(at_fd, name, DIR_FLAGS);
		if (fd < 0)
			return -errno;
		(void)nc_fd_close(at_fd);
		at_fd = fd;
	}
	*ret_name = path;
	return take_fd(at_fd);
}

static int copy_in(int in_fd, int to_fd, uint64_t size)
{
	static char chunk[CHUNK];
	uint64_t left = size + nc_tar_padding(size);

	while (left > 0) {
		ssize_t n = nc_fd_read_upto(in_fd, chunk, left < CHUNK ? (size_t)left : CHUNK);
		size_t of_file = n > 0 && size < (uint64_t)n ? (size_t)size : (size_t)n;
		int r;

		if (n <= 0)
			return n < 0 ? (int)n : -ENODATA;
		r = nc_fd_write_all(to_fd, chunk, of_file);
		if (r < 0)
			return r;
		size -= of_file;
		left -= (uint64_t)n;
	}
	return 0;
}

static int unpack_file(int dir_fd, const char *name, const struct nc_tar_member *member, int in_fd)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = member->mtime_s}};
	cleanup_close int fd = openat(dir_fd, name,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : copy_in(in_fd, fd, member->size);

	if (r == 0 && fchmod(fd, member->mode) < 0)
		r = -errno;
	if (r == 0)
		(void)futimens(fd, times); /* a time that the file system does not know is none */
	return r;
}

static int unpack_link(int base_fd, int dir_fd, const char *name, const char *target)
{
	const char *target_name = "";
	cleanup_close int target_fd = open_parent(base_fd, target, false, &target_name);

	if (target_fd < 0)
		return target_fd;
	return linkat(target_fd, target_name, dir_fd, name, 0) < 0 ? -errno : 0;
}

/* A directory that is there stays; its owner can always use it. */
static int unpack_dir(int dir_fd, const char *name, mode_t mode)
{
	struct stat status;

	if (mkdirat(dir_fd, name, mode | 0700) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	return fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode)
		       ? 0
		       : -ENOTDIR;
}

/*
 * Whether a symbolic link at path stays below the directory that path is relative to. ".." may only
 * come first, and no more often than there are directories above the link: behind a name it would
 * be the parent of wherever a link of that name leads. Every name after that is a file, a directory
 * or a link of which the same is true.
 */
static bool stays_below(const char *path, const char *target)
{
	if (*target == '/')
		return false;
	for (; strncmp(target, "..", 2) == 0 && (!target[2] || target[2] == '/');
		target += strspn(target, "/")) {
		path = strchr(path, '/');
		if (!path++)
			return false;
		target += 2;
	}
	for (; (target = strstr(target, "/..")); target += 3)
		if (!target[3] || target[3] == '/')
			return false;
	return true;
}

static int leave_out(struct nc_tarball_left *left, const char *path)
{
	if (left->count++ == 0)
		(void)nc_text_quote(left->first, path);
	return 0;
}

/* A second name of a symbolic link would be one at another place, from where it leads elsewhere. */
static int unlink_second_symlink(
	int dir_fd, const char *name, const char *path, struct nc_tarball_left *left)
{
	struct stat status;

	if (fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISLNK(status.st_mode))
		return 0;
	return unlinkat(dir_fd, name, 0) < 0 ? -errno : leave_out(left, path);
}

static int unpack_member(
	int base_fd, const struct nc_tar_member *member, int in_fd, struct nc_tarball_left *left)
{
	const char *name = "";
	cleanup_close int dir_fd = open_parent(base_fd, member->path, true, &name);
	int r;

	if (dir_fd < 0)
		return dir_fd;
	if (member->kind == NC_TAR_DIR)
		return unpack_dir(dir_fd, name, member->mode);
	if (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)
		return -errno;
	switch (member->kind) {
	case NC_TAR_FILE:
		return unpack_file(dir_fd, name, member, in_fd);
	case NC_TAR_LINK:
		r = unpack_link(base_fd, dir_fd, name, member->target);
		return r == 0 && left ? unlink_second_symlink(dir_fd, name, member->path, left) : r;
	case NC_TAR_SYMLINK:
		if (left && !stays_below(member->path, member->target))
			return leave_out(left, member->path);
		return symlinkat(member->target, dir_fd, name) < 0 ? -errno : 0;
	case NC_TAR_FIFO:
		if (left) /* whoever opened it there would wait for good */
			return leave_out(left, member->path);
		return mkfifoat(dir_fd, name, member->mode) < 0 ? -errno : 0;
	case NC_TAR_DIR:
	case NC_TAR_END:
		break; /* not here */
	}
	return -EINVAL;
}

/* The next member. */
static int read_member(struct nc_tar_reader *reader, int in_fd, struct nacre_err *err)
{
	unsigned char block[NC_TAR_BLOCK];
	char quoted[NC_TEXT_QUOTED_MAX];
	int r;

	do {
		ssize_t n = nc_fd_read_upto(in_fd, block, sizeof(block));

		if (n < 0)
			return nc_err_errno(err, (int)n, "The archive");
		if (n < (ssize_t)sizeof(block))
			return nc_err_set(err, -ENODATA, "The archive is cut off");
		r = nc_tar_take(reader, block);
	} while (r == 0);
	if (r < 0)
		return *reader->member.path
			       ? nc_err_set(err, r, "%s: %s",
					 nc_text_quote(quoted, reader->member.path), reader->why)
			       : nc_err_set(err, r, "The archive: %s", reader->why);
	return 0;
}

int nc_tarball_unpack(
	int base_fd, int in_fd, struct nc_tarball_left *ret_left, struct nacre_err *err)
{
	static struct nc_tar_reader reader; /* large */
	int r;

	if (ret_left)
		*ret_left = (struct nc_tarball_left){0};
	nc_tar_reader_init(&reader);
	while ((r = read_member(&reader, in_fd, err)) == 0 && reader.member.kind != NC_TAR_END) {
		if (!*reader.member.path)
			continue;
		r = unpack_member(base_fd, &reader.member, in_fd, ret_left);
		if (r == -ENODATA)
			r = nc_err_set(err, r, "The archive is cut off");
		else if (r < 0)
			(void)fault(err, r, reader.member.path);
		if (r < 0)
			break;
	}
	nc_tar_reader_done(&reader);
	return r;
}
