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
		return errno == ENOENT ? nc_err_set(err, -ENOENT,
						 "%s cannot be made: the directory above it is "
						 "missing on this host; make it",
						 path)
				       : nc_err_errno(err, -errno, "Make %s", path);
	fd = openat(at_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status) < 0)
		return nc_err_errno(err, -errno, "Open %s", path);
	if (status.st_uid != geteuid() || (status.st_mode & 077) != 0)
		return nc_err_set(err, -EPERM, "%s is not ours alone: chown %u, chmod 700", path,
			nc_privilege_outer_id());
	return take_fd(fd);
}

/* Who sweeps takes a file without a lock for a dead one's, and removes it: then once more. */
static int lock_self(struct nc_locks *locks, const char *id)
{
	struct stat status = {0};

	while (status.st_nlink == 0) {
		(void)nc_fd_close(locks->self_fd);
		locks->self_fd =
			openat(locks->dir_fd, id, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (locks->self_fd < 0 || flock(locks->self_fd, LOCK_EX) < 0 ||
			fstat(locks->self_fd, &status) < 0)
			return -errno;
	}
	return 0;
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
	int r;

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
	r = lock_self(locks, id);
	if (r < 0)
		return nc_err_errno(err, r, "Lock %s/" LOCKS "/%s", path, id);
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

/*
 * Its file, locked by us; -errno: it lives, or it is another one who looks at it. One that was
 * removed after it was opened says nothing: its spawner may live, with another file of that name.
 */
static int lock_dead(const struct nc_locks *locks, const char *id)
{
	cleanup_close int fd = openat(locks->dir_fd, id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &status) < 0)
		return -errno;
	return status.st_nlink > 0 ? take_fd(fd) : -ENOENT;
}

int nc_locks_note_place(const struct nc_locks *locks, const char *place)
{
	return nc_fd_write_all(locks->self_fd, place, strlen(place));
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

static bool is_old(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && status.st_mtime < time(NULL) - DEAD_LOCK_SECONDS;
}

bool nc_dead_take(const struct nc_locks *locks, const char *place, struct nc_dead *ret_dead)
{
	int list_fd = openat(locks->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_closedir DIR *dir = list_fd < 0 ? NULL : fdopendir(list_fd);
	bool any = false;

	ret_dead->locks = locks;
	ret_dead->n = 0;
	for (struct dirent *entry = dir ? readdir(dir) : NULL; entry && ret_dead->n < NC_DEAD_MAX;
		entry = readdir(dir)) {
		cleanup_close int fd = -EBADF;

		if (strncmp(entry->d_name, "sp_", 3) != 0 || strlen(entry->d_name) >= NC_ID_SIZE)
			continue;
		fd = lock_dead(locks, entry->d_name);
		any |= fd >= 0;
		if (fd < 0 || !(was_in(fd, place) || is_old(fd)))
			continue;
		(void)snprintf(ret_dead->id[ret_dead->n], NC_ID_SIZE, "%s", entry->d_name);
		ret_dead->fd[ret_dead->n++] = take_fd(fd);
	}
	return any;
}

bool nc_dead_has(const struct nc_dead *dead, const char *id)
{
	cleanup_close int fd = -EBADF;

	for (size_t i = 0; i < dead->n; i++)
		if (strcmp(dead->id[i], id) == 0)
			return true;
	/* no file: a spawner of another /run, of which we know nothing */
	fd = strncmp(id, "sp_", 3) == 0 ? lock_dead(dead->locks, id) : -ENOENT;
	return fd >= 0;
}

void nc_dead_leave(struct nc_dead *dead, bool done)
{
	for (size_t i = 0; i < dead->n; i++) {
		if (done)
			(void)unlinkat(dead->locks->dir_fd, dead->id[i], 0);
		(void)close(dead->fd[i]);
	}
	dead->n = 0;
}
