/* Control groups: where the hierarchies are. */
#include "kernel/cgroup.h"

#include <assert.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/text.h"

/* Where systemd mounts them, and Docker, and most others. */
#define USUAL "/sys/fs/cgroup"

static const char *const v1_names[NC_CGROUP_CONTROLLER_MAX] = {
	[NC_CGROUP_MEMORY] = "memory",
	[NC_CGROUP_CPU] = "cpu",
	[NC_CGROUP_PIDS] = "pids",
	[NC_CGROUP_IO] = "blkio",
	[NC_CGROUP_FREEZER] = "freezer",
	[NC_CGROUP_CPUACCT] = "cpuacct",
};

/*
 * Our own path in the hierarchy that has the controller (NULL: version 2), from the text of
 * /proc/self/cgroup, whose lines are "number:controllers:path". Cut out of a copy in line.
 */
static const char *own_path(const char *text, const char *controller, char *line, size_t size)
{
	while (*text) {
		const char *end = strchrnul(text, '\n');
		char *first, *second;

		if ((size_t)(end - text) < size) {
			memcpy(line, text, (size_t)(end - text));
			line[end - text] = '\0';
			first = strchr(line, ':');
			second = first ? strchr(first + 1, ':') : NULL;
			if (second) {
				*second = '\0';
				if (controller ? nc_text_has_word(first + 1, ',', controller)
					       : strncmp(line, "0:", 2) == 0 && first[1] == '\0')
					return second + 1;
			}
		}
		text = *end ? end + 1 : end;
	}
	return "/";
}

/*
 * The directory of path below a mount point. In a container the path may be one of the host's that
 * does not exist here; then the top of what is mounted is our own.
 */
static char *own_dir(const char *mount_point, const char *path)
{
	struct stat status;
	char *dir = NULL;

	if (nc_streq(path, "/"))
		return strdup(mount_point);
	if (asprintf(&dir, "%s%s", mount_point, path) < 0)
		return NULL;
	if (stat(dir, &status) == 0 && S_ISDIR(status.st_mode))
		return dir;
	free(dir);
	return strdup(mount_point);
}

static int take_v2(struct nc_cgroup_host *host, const char *point, const char *groups)
{
	char copy[1024];

	if (host->v2_dir)
		return 0;
	host->v2_dir = own_dir(point, own_path(groups, NULL, copy, sizeof(copy)));
	host->v2_top = strdup(point);
	return host->v2_dir && host->v2_top ? 0 : -ENOMEM;
}

/* A hierarchy of version 1; words have commas between, and others among them than controllers. */
static int take_v1(
	struct nc_cgroup_host *host, const char *words, const char *point, const char *groups)
{
	char copy[1024];

	for (size_t i = 0; i < NC_CGROUP_CONTROLLER_MAX; i++) {
		if (host->v1_dir[i] || !nc_text_has_word(words, ',', v1_names[i]))
			continue;
		host->v1_dir[i] = own_dir(point, own_path(groups, v1_names[i], copy, sizeof(copy)));
		host->v1_top[i] = strdup(point);
		if (!host->v1_dir[i] || !host->v1_top[i])
			return -ENOMEM;
	}
	return 0;
}

/* One line of mountinfo: "... root point options - type source superoptions". */
static int take_mount(struct nc_cgroup_host *host, const char *line, const char *groups)
{
	char point[512], type[32], options[512];
	const char *tail = strstr(line, " - cgroup");

	/* most lines are not for us, and sscanf() is slow */
	if (!tail || sscanf(line, "%*s %*s %*s %*s %511s", point) != 1 ||
		sscanf(tail, " - %31s %*s %511s", type, options) != 2)
		return 0;
	if (nc_streq(type, "cgroup2"))
		return take_v2(host, point, groups);
	return nc_streq(type, "cgroup") ? take_v1(host, options, point, groups) : 0;
}

int nc_cgroup_parse(struct nc_cgroup_host *host, char *mounts, const char *groups)
{
	int r = 0;

	assert(mounts && groups);
	for (char *line = mounts, *end; r == 0 && *line; line = end) {
		end = strchrnul(line, '\n');
		if (*end)
			*end++ = '\0';
		r = take_mount(host, line, groups);
	}
	if (r < 0)
		nc_cgroup_done(host);
	return r;
}

const char *nc_cgroup_top(const struct nc_cgroup_host *host, const char *controllers)
{
	if (controllers[0] == '\0')
		return host->v2_top;
	for (size_t i = 0; i < NC_CGROUP_CONTROLLER_MAX; i++)
		if (nc_text_has_word(controllers, ',', v1_names[i]))
			return host->v1_top[i];
	return NULL;
}

static bool is_mounted(const char *point, bool v2)
{
	struct statfs status;

	return statfs(point, &status) == 0 &&
	       (unsigned long)status.f_type == (v2 ? CGROUP2_SUPER_MAGIC : CGROUP_SUPER_MAGIC);
}

static bool has_wanted(const char *words)
{
	bool wanted = false;

	for (size_t i = 0; i < NC_CGROUP_CONTROLLER_MAX; i++)
		wanted |= nc_text_has_word(words, ',', v1_names[i]);
	return wanted;
}

/* One line of /proc/self/cgroup. -ENOENT: its hierarchy is not where it usually is. */
static int take_usual(struct nc_cgroup_host *host, const char *line, const char *groups)
{
	char words[128], colon[2], point[sizeof(USUAL "/") + sizeof(words)];

	if (strncmp(line, "0::", 3) == 0) {
		(void)snprintf(point, sizeof(point), "%s",
			is_mounted(USUAL, true) ? USUAL : USUAL "/unified");
		return is_mounted(point, true) ? take_v2(host, point, groups) : -ENOENT;
	}
	if (sscanf(line, "%*[0-9]:%127[^:]%1[:]", words, colon) != 2)
		return -ENOENT;
	if (!has_wanted(words))
		return 0;
	(void)snprintf(point, sizeof(point), USUAL "/%s", words);
	return is_mounted(point, false) ? take_v1(host, words, point, groups) : -ENOENT;
}

/* Where everybody has them. -ENOENT: not all of them are there. */
static int find_usual(struct nc_cgroup_host *host, const char *groups)
{
	int r = 0;

	for (const char *line = groups; r == 0 && *line; line += *line == '\n') {
		r = take_usual(host, line, groups);
		line = strchrnul(line, '\n');
	}
	if (r < 0)
		nc_cgroup_done(host);
	return r;
}

int nc_cgroup_find(struct nc_cgroup_host *host)
{
	cleanup_free char *mounts = NULL;
	cleanup_free char *groups = NULL;
	int r = nc_fd_read_proc("/proc/self/cgroup", &groups);

	if (r == 0)
		r = find_usual(host, groups);
	if (r != -ENOENT)
		return r;
	/* on a host of many boxes that takes longer than to make one */
	r = nc_fd_read_proc("/proc/self/mountinfo", &mounts);
	return r < 0 ? r : nc_cgroup_parse(host, mounts, groups);
}

static size_t describe_dir(const char *dir, char *out, size_t size)
{
	struct stat status = {0};

	if (dir)
		(void)stat(dir, &status); /* zeros then, like another's */
	return (size_t)snprintf(out, size, "%llu:%llu ", (unsigned long long)status.st_dev,
		(unsigned long long)status.st_ino);
}

void nc_cgroup_describe(const struct nc_cgroup_host *host, char *out, size_t size)
{
	size_t used = describe_dir(host->v2_dir, out, size);

	for (size_t i = 0; i < NC_CGROUP_CONTROLLER_MAX && used < size; i++)
		used += describe_dir(host->v1_dir[i], out + used, size - used);
}

void nc_cgroup_done(struct nc_cgroup_host *host)
{
	nc_freep(&host->v2_dir);
	nc_freep(&host->v2_top);
	for (size_t i = 0; i < NC_CGROUP_CONTROLLER_MAX; i++) {
		nc_freep(&host->v1_dir[i]);
		nc_freep(&host->v1_top[i]);
	}
}

const char *nc_cgroup_version(const struct nc_cgroup_host *host)
{
	bool v1 = false;

	for (size_t i = 0; i < NC_CGROUP_CONTROLLER_MAX; i++)
		v1 |= host->v1_dir[i] != NULL;
	if (v1)
		return host->v2_dir ? "hybrid" : "v1";
	return host->v2_dir ? "v2" : "none";
}
