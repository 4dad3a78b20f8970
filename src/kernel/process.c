/* Processes as /proc shows them. */
#include "kernel/process.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/text.h"

/* stat, statm, io and the beginning of status, which has what we look for. */
#define TEXT_SIZE 4096

ssize_t nc_process_text(pid_t pid, const char *file, char *ret_text, size_t size)
{
	cleanup_close int fd = -EBADF;
	char path[64];
	ssize_t used;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	used = fd < 0 ? -errno : nc_fd_read_upto(fd, ret_text, size - 1);
	if (used < 0)
		return used == -ENOENT ? -ESRCH : used;
	ret_text[used] = '\0';
	return used;
}

/* One that has something in it. */
static int read_file(pid_t pid, const char *name, char text[TEXT_SIZE])
{
	ssize_t size = nc_process_text(pid, name, text, TEXT_SIZE);

	if (size < 0)
		return (int)size;
	return size > 0 ? 0 : -ESRCH;
}

static uint64_t ticks_to_us(uint64_t ticks)
{
	return ticks * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* Numbers with blanks between them, at most max; how many there were. */
static size_t parse_numbers(const char *text, uint64_t *ret_numbers, size_t max)
{
	size_t count = 0;
	char *end;

	for (; count < max; count++, text = end) {
		ret_numbers[count] = strtoull(text, &end, 10);
		if (end == text)
			break;
	}
	return count;
}

/*
 * "pid (name) state ...". The name may hold anything, also ')': it ends at the last one. The fields
 * have numbers in proc(5); the state is 3.
 */
static int parse_stat(const char *text, struct nc_process *ret_process)
{
	enum { PARENT = 4, USER = 14, SYSTEM, USER_BELOW, SYSTEM_BELOW, THREADS = 20, START = 22 };
	const char *name = strchr(text, '('), *end = strrchr(text, ')');
	struct nc_process process = {0};
	uint64_t field[START + 1];
	size_t size;

	if (!name || !end || end < name || strlen(end) < 4 ||
		parse_numbers(end + 3, field + PARENT, START + 1 - PARENT) < START + 1 - PARENT)
		return -EPROTO;
	size = (size_t)(end - name - 1);
	if (size >= sizeof(process.name))
		size = sizeof(process.name) - 1;
	memcpy(process.name, name + 1, size);
	process.parent = (pid_t)field[PARENT];
	process.start_ticks = field[START];
	process.user_us = ticks_to_us(field[USER] + field[USER_BELOW]);
	process.system_us = ticks_to_us(field[SYSTEM] + field[SYSTEM_BELOW]);
	process.threads = field[THREADS];
	process.dead = end[2] == 'Z' || end[2] == 'X';
	*ret_process = process;
	return 0;
}

int nc_process_read(pid_t pid, struct nc_process *ret_process)
{
	char text[TEXT_SIZE];
	int r = read_file(pid, "stat", text);

	if (r == 0)
		r = parse_stat(text, ret_process);
	if (r == 0)
		ret_process->pid = pid;
	return r;
}

bool nc_process_is(const struct nc_process *process)
{
	struct nc_process now;

	return nc_process_read(process->pid, &now) == 0 && !now.dead &&
	       now.start_ticks == process->start_ticks;
}

int nc_process_list(struct nc_process **ret_list, size_t *ret_count)
{
	cleanup_closedir DIR *dir = opendir("/proc");
	cleanup_free struct nc_process *list = NULL;
	size_t count = 0, room = 0;

	if (!dir)
		return -errno;
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		if (count == room) {
			struct nc_process *more;

			room = room ? room * 2 : 256;
			more = room > NC_PROCESSES_MAX ? NULL
						       : reallocarray(list, room, sizeof(*list));
			if (!more)
				return room > NC_PROCESSES_MAX ? -E2BIG : -ENOMEM;
			list = more;
		}
		/* one that cannot be read has ended */
		if (nc_process_read((pid_t)strtol(entry->d_name, NULL, 10), &list[count]) == 0)
			count++;
	}
	*ret_list = take_ptr(list);
	*ret_count = count;
	return 0;
}

/* The number behind "name:" at the beginning of a line, or 0. */
static uint64_t field(const char *text, const char *name)
{
	for (const char *line = text; *line; line += line[0] == '\n') {
		const char *behind = nc_text_after(line, name);

		if (behind)
			return strtoull(behind, NULL, 10);
		line = strchrnul(line, '\n');
	}
	return 0;
}

uint64_t nc_process_memory(pid_t pid)
{
	enum { TOTAL, RESIDENT, SHARED, FIELDS }; /* in pages */
	char text[TEXT_SIZE];
	uint64_t number[FIELDS];

	/* behind a line that tells of addresses */
	if (read_file(pid, "smaps_rollup", text) == 0)
		return field(text, "Pss:") * 1024;
	if (read_file(pid, "statm", text) < 0 || parse_numbers(text, number, FIELDS) < FIELDS ||
		number[RESIDENT] < number[SHARED])
		return 0;
	return (number[RESIDENT] - number[SHARED]) * (uint64_t)getpagesize();
}

void nc_process_io(pid_t pid, uint64_t *ret_read, uint64_t *ret_written)
{
	char text[TEXT_SIZE];

	*ret_read = *ret_written = 0;
	if (read_file(pid, "io", text) < 0)
		return;
	*ret_read = field(text, "read_bytes:");
	*ret_written = field(text, "write_bytes:");
}

uint64_t nc_process_files(pid_t pid)
{
	cleanup_closedir DIR *dir = NULL;
	uint64_t count = 0;
	struct stat status;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	/* since Linux 6.2 its size is the number, and nobody need walk through a million */
	if (stat(path, &status) == 0 && status.st_size > 0)
		return (uint64_t)status.st_size;
	dir = opendir(path);
	for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir))
		count += entry->d_name[0] != '.';
	return count;
}

struct nc_process_depth nc_process_depth(pid_t pid)
{
	struct nc_process_depth depth = {0};
	char text[TEXT_SIZE];
	char *at, *end;

	if (read_file(pid, "status", text) < 0)
		return depth;
	at = strstr(text, "\nNSpid:");
	for (at = at ? at + strlen("\nNSpid:") : text; *at == '\t'; at = end) {
		depth.innermost = (pid_t)strtol(at, &end, 10);
		depth.namespaces++;
	}
	return depth;
}

uint64_t nc_process_age(const struct nc_process *process)
{
	uint64_t started_s = process->start_ticks / (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_BOOTTIME, &now); /* cannot fail for this clock */
	return (uint64_t)now.tv_sec > started_s ? (uint64_t)now.tv_sec - started_s : 0;
}
