/* What processes use, looked up one by one. */
#include "kernel/sample.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "kernel/process.h"

/* A file of /proc that is one line; a list of children may be longer, and is cut. */
#define LINE_MAX_SIZE 4096

/* Of a group's processes that many are listed, and the last of them are looked at. */
#define LISTED_MAX 4096
#define LOOKED_AT_MAX 64

struct look {
	pid_t pids[NC_SAMPLE_PROCESSES_MAX];
	size_t count;
	struct nc_sample sample;
};

/* Reads a file of the process into text, NUL-terminated; false if there is none any more. */
static bool read_line(int dir_fd, const char *path, char text[LINE_MAX_SIZE])
{
	cleanup_close int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : nc_fd_read_upto(fd, text, LINE_MAX_SIZE - 1);

	if (size <= 0)
		return false;
	text[size] = '\0';
	return true;
}

/* "size resident shared ...", in pages. */
static void add_memory(struct look *look, const char *text)
{
	uint64_t resident, shared;
	char *at;

	(void)strtoull(text, &at, 10);
	resident = strtoull(at, &at, 10);
	shared = strtoull(at, &at, 10);
	if (resident > shared)
		look->sample.memory_bytes += (resident - shared) * (uint64_t)getpagesize();
}

/* The name may hold anything, also ')': what follows the last one is numbers, the state first. */
static void add_cpu(struct look *look, const char *text)
{
	const char *at = strrchr(text, ')');
	uint64_t ticks = 0, number;
	char *next;

	if (!at || strlen(at) < 4)
		return;
	at += 3;
	/* fields 4 to 17; the last four are utime, stime, cutime and cstime */
	for (int field = 4; field <= 17; field++) {
		number = strtoull(at, &next, 10);
		ticks += field >= 14 ? number : 0;
		at = next;
	}
	look->sample.cpu_us += ticks * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

static void add_pid(struct look *look, long pid)
{
	if (pid > 1 && look->count < NC_SAMPLE_PROCESSES_MAX)
		look->pids[look->count++] = (pid_t)pid;
}

/* Every thread may have children of its own. */
static void add_children(struct look *look, int dir_fd)
{
	int tasks_fd = openat(dir_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_closedir DIR *tasks = tasks_fd < 0 ? NULL : fdopendir(tasks_fd);

	for (struct dirent *entry = tasks ? readdir(tasks) : NULL; entry; entry = readdir(tasks)) {
		char path[300], text[LINE_MAX_SIZE];
		char *at = text, *end;

		(void)snprintf(path, sizeof(path), "%s/children", entry->d_name);
		if (entry->d_name[0] == '.' || !read_line(tasks_fd, path, text))
			continue;
		for (long pid = strtol(at, &end, 10); end != at; pid = strtol(at, &end, 10)) {
			add_pid(look, pid);
			at = end;
		}
	}
}

static void look_at(struct look *look, pid_t pid)
{
	char path[32], text[LINE_MAX_SIZE];
	cleanup_close int dir_fd = -EBADF;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0 || !read_line(dir_fd, "statm", text))
		return; /* it has ended */
	look->sample.processes++;
	add_memory(look, text);
	if (read_line(dir_fd, "stat", text))
		add_cpu(look, text);
	add_children(look, dir_fd);
}

int nc_sample_take(
	const pid_t *roots, size_t n_roots, uint64_t allowed_bytes, struct nc_sample *ret_sample)
{
	struct look *look = calloc(1, sizeof(*look));

	if (!look)
		return -ENOMEM;
	for (size_t i = 0; i < n_roots; i++)
		add_pid(look, roots[i]);
	/* children are added behind, until there are no more or the list is full */
	for (size_t i = 0; i < look->count; i++)
		look_at(look, look->pids[i]);
	if (look->sample.memory_bytes > allowed_bytes) {
		look->sample.memory_bytes = 0;
		for (size_t i = 0; i < look->count; i++)
			look->sample.memory_bytes += nc_process_memory(look->pids[i]);
	}
	*ret_sample = look->sample;
	free(look);
	return 0;
}

static uint64_t age_ns(const struct nc_process *process)
{
	uint64_t born_ns = process->start_ticks * (NC_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
	struct timespec now = {0};
	uint64_t now_ns;

	(void)clock_gettime(CLOCK_BOOTTIME, &now); /* cannot fail for this clock */
	now_ns = (uint64_t)now.tv_sec * NC_NS_PER_S + (uint64_t)now.tv_nsec;
	return now_ns > born_ns ? now_ns - born_ns : 0;
}

/*
 * The newest, not the one with the highest number: numbers begin again at some point, and a process
 * that is alone once in a while says nothing of those that were made and ended before.
 */
struct nc_made nc_sample_made(pid_t first, const struct nc_cgroup *group)
{
	pid_t from = nc_process_depth(first).innermost, last = 0, pids[LISTED_MAX];
	struct nc_process newest = {0}, process;
	int n = nc_cgroup_pids(group, pids, LISTED_MAX), old = n - LOOKED_AT_MAX;

	/* they are listed as they came, or by number: the newest is most likely the last */
	for (int i = n - 1; from > 0 && i >= 0 && i >= old; i--) {
		pid_t number;

		if (nc_process_read(pids[i], &process) < 0 ||
			process.start_ticks < newest.start_ticks)
			continue;
		number = nc_process_depth(pids[i]).innermost;
		/* of those of one tick the last */
		if (number == 0 || (process.start_ticks == newest.start_ticks && number < last))
			continue;
		newest = process;
		last = number;
	}
	return last > from ? (struct nc_made){(uint64_t)(last - from), age_ns(&newest)}
			   : (struct nc_made){0};
}
