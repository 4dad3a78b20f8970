/* Steps on the files and directories of control groups, the same in both versions. */
#include "kernel/cgroup_face.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"

/* A name of a group, '/', the longest name of a file. */
#define FILE_PATH_MAX (NC_CGROUP_NAME_MAX + 80)

bool nc_cgroup_name_ok(const char *name)
{
	size_t size = strlen(name);

	/* no dots: neither "..", nor a name that a file of the kernel's has or may get */
	return size > 0 && size <= NC_CGROUP_NAME_MAX &&
	       strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			    "0123456789_-") == size;
}

static int file_path(char *path, size_t size, const struct nc_cgroup_place *place, const char *file)
{
	return snprintf(path, size, "%s/%s", place->name, file) < (int)size ? 0 : -ENAMETOOLONG;
}

int nc_cgroup_open_file(const struct nc_cgroup_place *place, const char *file, int flags)
{
	char path[FILE_PATH_MAX];
	int fd, r = file_path(path, sizeof(path), place, file);

	if (r < 0)
		return r;
	fd = openat(place->fd, path, flags | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

bool nc_cgroup_has_file(const struct nc_cgroup_place *place, const char *file)
{
	char path[FILE_PATH_MAX];

	/* if in doubt it is there: then using it fails, instead of a limit missing in silence */
	return file_path(path, sizeof(path), place, file) == 0 &&
	       (faccessat(place->fd, path, F_OK, 0) == 0 || errno != ENOENT);
}

int nc_cgroup_read(int fd, char *text, size_t size)
{
	size_t done = 0;

	/* a file of many lines may come in pieces of a page */
	for (;;) {
		ssize_t n = pread(fd, text + done, size - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
		if (done == size)
			return -EFBIG;
		/* a short file needs no second call: it ends with a newline and less than a page */
		if (done < 1024 && text[done - 1] == '\n')
			break;
	}
	text[done] = '\0';
	return 0;
}

int nc_cgroup_read_file(
	const struct nc_cgroup_place *place, const char *file, char *text, size_t size)
{
	cleanup_close int fd = nc_cgroup_open_file(place, file, O_RDONLY);

	return fd < 0 ? fd : nc_cgroup_read(fd, text, size);
}

int nc_cgroup_write_file(const struct nc_cgroup_place *place, const char *file, const char *text)
{
	char path[FILE_PATH_MAX];
	int r = file_path(path, sizeof(path), place, file);

	return r < 0 ? r : nc_fd_write_control(place->fd, path, text);
}

int nc_cgroup_put(const struct nc_cgroup_setting *setting, size_t knob, const char *text,
	const char *wanted, struct nacre_err *err)
{
	const char *file = setting->file[knob], *name = setting->place.name;
	cleanup_close int own_fd = -EBADF;
	int r = 0, fd = setting->fd[knob];
	char now[128];

	if (fd < 0) {
		fd = own_fd = nc_cgroup_open_file(&setting->place, file, O_RDWR);
		r = fd < 0 ? fd : 0;
	}
	if (r == 0 && pwrite(fd, text, strlen(text), 0) < 0)
		r = -errno;
	if (r == 0)
		r = nc_cgroup_read(fd, now, sizeof(now));
	if (r < 0)
		return nc_err_errno(err, r, "Set %s of group '%s' to %s", file, name, text);
	now[strcspn(now, "\n")] = '\0';
	if (!nc_streq(now, wanted))
		return nc_err_set(err, -ERANGE, "Set %s of group '%s' to %s: the kernel made it %s",
			file, name, text, now);
	return 0;
}

int nc_cgroup_memory_busy(
	const struct nc_cgroup_setting *setting, const char *file, struct nacre_err *err)
{
	char used[32] = "?";

	(void)nc_cgroup_read_file(&setting->place, file, used, sizeof(used)); /* for the message */
	used[strcspn(used, "\n")] = '\0';
	return nc_err_set(err, -EBUSY,
		"Set %s of group '%s' to %" PRIu64 ": %s bytes are in use already",
		setting->file[0], setting->place.name, setting->value, used);
}

uint64_t nc_cgroup_number(const char *text)
{
	uint64_t value = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	return value;
}

void nc_cgroup_field(const char *text, const char *key, uint64_t *value)
{
	size_t size = strlen(key);

	while (*text) {
		if (strncmp(text, key, size) == 0 && text[size] == ' ') {
			*value = nc_cgroup_number(text + size + 1);
			return;
		}
		text = strchrnul(text, '\n');
		text += *text == '\n';
	}
}

static uint64_t page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t nc_cgroup_pages(uint64_t bytes)
{
	return bytes - bytes % page_size();
}

uint64_t nc_cgroup_pages_max(void)
{
	return nc_cgroup_pages(INT64_MAX);
}

void nc_cgroup_quota(uint64_t cpu_milli, uint64_t *ret_quota_us, uint64_t *ret_period_us)
{
	/* the kernel wants a quota of 1 ms or more and a period of 1 s or less */
	*ret_period_us = cpu_milli < 10 ? 1000000 : NC_CGROUP_PERIOD_US;
	if (__builtin_mul_overflow(cpu_milli, *ret_period_us / 1000, ret_quota_us))
		*ret_quota_us = UINT64_MAX; /* which it refuses */
}

int nc_cgroup_limit_pids(const struct nc_cgroup_setting *setting, struct nacre_err *err)
{
	char text[24] = "max";

	if (setting->value)
		(void)snprintf(text, sizeof(text), "%" PRIu64, setting->value);
	return nc_cgroup_put(setting, 0, text, text, err);
}

void nc_cgroup_take_peak(const char *text, struct nc_cgroup_usage *usage)
{
	usage->memory_peak_bytes = nc_cgroup_number(text);
}

void nc_cgroup_take_now(const char *text, struct nc_cgroup_usage *usage)
{
	usage->memory_now_bytes = nc_cgroup_number(text);
}

void nc_cgroup_take_oom(const char *text, struct nc_cgroup_usage *usage)
{
	nc_cgroup_field(text, "oom_kill", &usage->oom_kills);
}

void nc_cgroup_take_pids_now(const char *text, struct nc_cgroup_usage *usage)
{
	usage->pids_now = nc_cgroup_number(text);
}

void nc_cgroup_take_pids_peak(const char *text, struct nc_cgroup_usage *usage)
{
	usage->pids_peak = nc_cgroup_number(text);
}

void nc_cgroup_take_pids_refused(const char *text, struct nc_cgroup_usage *usage)
{
	nc_cgroup_field(text, "max", &usage->pids_refused);
}

void nc_cgroup_pause(unsigned int *moment_us)
{
	*moment_us = *moment_us ? *moment_us * 2 : 100;
	if (*moment_us > 10000)
		*moment_us = 10000;
	(void)usleep(*moment_us); /* cut short by a signal it is followed by another */
}

int nc_cgroup_place_each(const struct nc_cgroup_place *place,
	int (*each)(int dir_fd, const char *name, void *context), void *context)
{
	cleanup_closedir DIR *dir = NULL;
	cleanup_close int fd =
		openat(place->fd, place->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int r = 0;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	(void)take_fd(fd); /* the stream closes it */
	while (r >= 0) {
		const struct dirent *entry;

		errno = 0;
		entry = readdir(dir);
		if (!entry)
			return -errno;
		if (entry->d_type == DT_DIR && !nc_streq(entry->d_name, ".") &&
			!nc_streq(entry->d_name, ".."))
			r = each(dirfd(dir), entry->d_name, context);
	}
	return r;
}

struct removal {
	uint64_t deadline_ns;
	unsigned int depth;
};

static int remove_below(int dir_fd, const char *name, void *context)
{
	const struct removal *above = context;
	struct removal removal = {above->deadline_ns, above->depth + 1};
	struct nc_cgroup_place place = {dir_fd, name};
	unsigned int moment_us = 0;

	if (removal.depth > NC_CGROUP_DEPTH_MAX)
		return -ELOOP;
	for (;;) {
		struct stat status;
		int r;

		if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != EBUSY)
			return -errno;
		/* a group with groups in it is as busy as one with processes */
		if (fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
			status.st_nlink > 2) {
			r = nc_cgroup_place_each(&place, remove_below, &removal);
			if (r < 0)
				return r;
		}
		if (nc_clock_ns() >= removal.deadline_ns)
			return -EBUSY;
		nc_cgroup_pause(&moment_us);
	}
}

int nc_cgroup_place_remove(const struct nc_cgroup_place *place)
{
	struct removal removal = {nc_clock_ns() + NC_CGROUP_BUSY_MS * NC_NS_PER_MS, 0};

	return remove_below(place->fd, place->name, &removal);
}
