/* Locks: on ranges of user ids, and on the spawner itself. */
#include "kernel/slot.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"

#define LOCKS "spawners"
#define PLACE_MAX 512

/* A week: any session whose groups a dead spawner left something in has come by until then. */
#define DEAD_LOCK_SECONDS (7 * 86400)

/* Ranges of this process: locks on a file that is open once do not keep out ourselves. */
static unsigned char taken[(NC_SLOT_COUNT + 7) / 8];

static void base_path(bool ranges, char *out, size_t size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (ranges)
		(void)snprintf(out, size, "/run/nacre");
	else if (runtime && runtime[0] == '/')
		(void)snprintf(out, size, "%s/nacre", runtime);
	else
		(void)snprintf(out, size, "/tmp/nacre-run-%u", nc_privilege_outer_id());
}

/* Somebody else's directory could hand one range to two boxes. */
static int open_private(int at_fd, const char *path, struct nacre_err *err)
{
	struct stat status;
	cleanup_close int fd = -EBADF;

	if (mkdirat(at_fd, path, 0700) < 0 && errno != EEXIST)
		return nc_err_errno(err, -errno, "Make %s", path);
	fd = openat(at_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status) < 0)
		return nc_err_errno(err, -errno, "Open %s", path);
	if (status.st_uid != geteuid() || (status.st_mode & 077) != 0)
		return nc_err_set(err, -EPERM, "%s is not ours alone: chown %u, chmod 700", path,
			nc_privilege_outer_id());
	return take_fd(fd);
}

void nc_locks_let_go(struct nc_locks *locks, const char *id)
{
	if (locks->self_fd >= 0)
		(void)unlinkat(locks->dir_fd, id, 0);
	locks->self_fd = nc_fd_close(locks->self_fd);
}

void nc_locks_close(struct nc_locks *locks, const char *id)
{
	nc_locks_let_go(locks, id);
	locks->ids_fd = nc_fd_close(locks->ids_fd);
	locks->dir_fd = nc_fd_close(locks->dir_fd);
}

int nc_locks_open(struct nc_locks *locks, bool ranges, const char *id, struct nacre_err *err)
{
	char path[256];
	cleanup_close int base_fd = -EBADF;

	if (locks->open)
		return 0;
	nc_locks_close(locks, id); /* what is left of a try before */
	base_path(ranges, path, sizeof(path));
	base_fd = open_private(AT_FDCWD, path, err);
	if (base_fd < 0)
		return base_fd;
	locks->dir_fd = open_private(base_fd, LOCKS, err);
	if (locks->dir_fd < 0)
		return locks->dir_fd;
	locks->self_fd =
		openat(locks->dir_fd, id, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (locks->self_fd < 0 || flock(locks->self_fd, LOCK_EX | LOCK_NB) < 0)
		return nc_err_errno(err, -errno, "Lock %s/" LOCKS "/%s", path, id);
	if (ranges)
		locks->ids_fd =
			openat(base_fd, "ids", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (ranges && locks->ids_fd < 0)
		return nc_err_errno(err, -errno, "Open %s/ids", path);
	locks->open = true;
	return 0;
}

/* One byte per range, locked by whoever has the file open: children that have it too do not count,
 * since we let go by unlocking, not by closing. */
static int set_lock(int fd, short type, unsigned int index)
{
	struct flock lock = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)index, .l_len = 1};

	return fcntl(fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

static int try_slot(int fd, unsigned int index, struct nc_slot *ret_slot)
{
	int r = taken[index / 8] & 1U << index % 8 ? -EAGAIN : set_lock(fd, F_WRLCK, index);

	if (r < 0)
		return r;
	taken[index / 8] |= (unsigned char)(1U << index % 8);
	*ret_slot = (struct nc_slot){true, NC_SLOT_FIRST_ID + index * NC_SLOT_IDS};
	return 0;
}

int nc_slot_take(const struct nc_locks *locks, struct nc_slot *ret_slot)
{
	static unsigned int next;
	static bool begun;
	int r = begun ? 0 : nc_random(&next, sizeof(next));

	if (r < 0)
		return r;
	/*
	 * From a random one on, so that spawners do not queue up at the first; then in turn, as
	 * neighbours are one lock to the kernel, which goes through all of them.
	 */
	begun = true;
	for (unsigned int i = 0; i < NC_SLOT_COUNT; i++) {
		r = try_slot(locks->ids_fd, next++ % NC_SLOT_COUNT, ret_slot);
		if (r != -EAGAIN && r != -EACCES)
			return r;
	}
	return -EBUSY;
}

void nc_slot_give_back(const struct nc_locks *locks, struct nc_slot *slot)
{
	unsigned int index = (slot->first_id - NC_SLOT_FIRST_ID) / NC_SLOT_IDS;

	if (!slot->held)
		return;
	(void)set_lock(locks->ids_fd, F_UNLCK, index);
	taken[index / 8] &= (unsigned char)~(1U << index % 8);
	slot->held = false;
}

bool nc_locks_is_dead(const struct nc_locks *locks, const char *id)
{
	cleanup_close int fd = openat(locks->dir_fd, id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	/* no file: a spawner of another /run, of which we know nothing */
	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

int nc_locks_note_place(const struct nc_locks *locks, const char *place)
{
	return nc_fd_write_all(locks->self_fd, place, strlen(place));
}

bool nc_locks_has_dead(const struct nc_locks *locks)
{
	int fd = openat(locks->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir))
		if (entry->d_name[0] != '.' && nc_locks_is_dead(locks, entry->d_name))
			return true;
	return false;
}

static bool was_in(int fd, const char *place)
{
	char text[PLACE_MAX + 1];
	ssize_t size = nc_fd_read_upto(fd, text, PLACE_MAX);

	if (size < 0)
		return false;
	text[size] = '\0';
	/* without a place it died before it made any */
	return size == 0 || strcmp(text, place) == 0;
}

void nc_locks_forget_dead(const struct nc_locks *locks, const char *place)
{
	int list_fd = openat(locks->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_closedir DIR *dir = list_fd < 0 ? NULL : fdopendir(list_fd);
	time_t long_ago = time(NULL) - DEAD_LOCK_SECONDS;

	for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
		cleanup_close int fd = -EBADF;
		struct stat status;

		if (entry->d_name[0] == '.')
			continue;
		fd = openat(locks->dir_fd, entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &status) < 0)
			continue;
		if (was_in(fd, place) || status.st_mtime < long_ago)
			(void)unlinkat(locks->dir_fd, entry->d_name, 0); /* or it is gone */
	}
}
