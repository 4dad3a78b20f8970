/* Ranges of user ids, one per living box. */
#include "spawner/slot.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"

#define RUN_DIR "/run/nacre"

/* A week: any session whose groups a dead spawner left something in has come by until then. */
#define DEAD_LOCK_SECONDS (7 * 86400)

int nc_slot_open_dir(struct nacre_err *err)
{
	struct stat status;
	cleanup_close int fd = -EBADF;

	if (mkdir(RUN_DIR, 0700) < 0 && errno != EEXIST)
		return nc_err_errno(err, -errno, "Make " RUN_DIR);
	fd = open(RUN_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status) < 0)
		return nc_err_errno(err, -errno, "Open " RUN_DIR);
	/* somebody else's directory could hand one range to two boxes */
	if (status.st_uid != geteuid() || (status.st_mode & 077) != 0)
		return nc_err_set(
			err, -EPERM, RUN_DIR " is not root's alone: chown root, chmod 700");
	return take_fd(fd);
}

static int try_slot(int dir_fd, unsigned int index, struct nc_slot *ret_slot)
{
	char name[32];
	cleanup_close int fd = -EBADF;

	(void)snprintf(name, sizeof(name), "ids-%u", index);
	fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	ret_slot->lock_fd = take_fd(fd);
	ret_slot->first_id = NC_SLOT_FIRST_ID + index * NC_SLOT_IDS;
	return 0;
}

int nc_slot_take(int dir_fd, struct nc_slot *ret_slot)
{
	unsigned int start;
	int r = nc_random(&start, sizeof(start));

	if (r < 0)
		return r;
	/* from a random one on, so that spawners do not queue up at the first */
	for (unsigned int i = 0; i < NC_SLOT_COUNT; i++) {
		r = try_slot(dir_fd, (start % NC_SLOT_COUNT + i) % NC_SLOT_COUNT, ret_slot);
		if (r != -EWOULDBLOCK)
			return r;
	}
	return -EBUSY;
}

void nc_slot_give_back(struct nc_slot *slot)
{
	slot->lock_fd = nc_fd_close(slot->lock_fd);
}

int nc_slot_lock_self(int dir_fd, const char *id, struct nacre_err *err)
{
	cleanup_close int fd =
		openat(dir_fd, id, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	int error = fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;

	if (fd >= 0 && error < 0)
		(void)unlinkat(dir_fd, id, 0); /* a sweep looks for groups, not for locks */
	if (error < 0)
		return nc_err_errno(err, error, "Lock " RUN_DIR "/%s", id);
	return take_fd(fd);
}

bool nc_slot_is_dead(int dir_fd, const char *id)
{
	cleanup_close int fd = openat(dir_fd, id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	/* no file: a spawner of another /run, of which we know nothing */
	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

void nc_slot_sweep(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	time_t long_ago = time(NULL) - DEAD_LOCK_SECONDS;

	for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
		struct stat status;

		if (strncmp(entry->d_name, "sp_", 3) == 0 &&
			fstatat(dir_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
			status.st_mtime < long_ago && nc_slot_is_dead(dir_fd, entry->d_name))
			(void)unlinkat(dir_fd, entry->d_name, 0); /* another may have been faster */
	}
}

void nc_slot_unlock_self(int dir_fd, const char *id, int lock_fd)
{
	if (lock_fd >= 0)
		(void)unlinkat(dir_fd, id, 0);
	(void)nc_fd_close(lock_fd);
}
