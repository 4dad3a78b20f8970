/* The files of a journal, in order, and the lines in them. */
#include "recorder/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limits.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/text.h"

#define SUFFIX ".jsonl"
#define NUMBER_DIGITS 12
#define NUMBER_MAX 999999999999ULL
#define BUFFER_SIZE (4U * NC_LINE_MAX)

void nc_segment_name(uint64_t number, char out[static NC_SEGMENT_NAME_SIZE])
{
	(void)snprintf(out, NC_SEGMENT_NAME_SIZE, "%0*" PRIu64 SUFFIX, NUMBER_DIGITS, number);
}

/* 0 if the name is not one of a segment. */
static uint64_t number_of(const char *name)
{
	char digits[NUMBER_DIGITS + 1];
	const char *significant;
	uint64_t number;

	if (strlen(name) != NUMBER_DIGITS + sizeof(SUFFIX) - 1 ||
		!nc_streq(name + NUMBER_DIGITS, SUFFIX))
		return 0;
	memcpy(digits, name, NUMBER_DIGITS);
	digits[NUMBER_DIGITS] = '\0';
	significant = digits + strspn(digits, "0");
	return nc_parse_u64(significant, 1, NUMBER_MAX, &number) < 0 ? 0 : number;
}

static int ascending(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

int nc_segment_list(int journal_fd, uint64_t **ret_numbers, size_t *ret_count)
{
	/* a descriptor of its own: positions of directories are shared by duplicates */
	int fd = openat(journal_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	cleanup_free uint64_t *numbers = NULL;
	size_t n = 0, room = 0;

	if (!dir) {
		int r = -errno;

		(void)nc_fd_close(fd);
		return r;
	}
	for (struct dirent *entry; (entry = readdir(dir));) {
		uint64_t number = number_of(entry->d_name);

		if (number == 0)
			continue;
		if (n == NC_SEGMENTS_MAX)
			return -E2BIG;
		if (n == room) {
			uint64_t *grown =
				reallocarray(numbers, room = 2 * room + 16, sizeof(uint64_t));

			if (!grown)
				return -ENOMEM;
			(void)take_ptr(numbers);
			numbers = grown;
		}
		numbers[n++] = number;
	}
	if (n > 0)
		qsort(numbers, n, sizeof(uint64_t), ascending);
	*ret_numbers = take_ptr(numbers);
	*ret_count = n;
	return 0;
}

static int open_segment(struct nc_reader *reader, uint64_t offset)
{
	char name[NC_SEGMENT_NAME_SIZE];
	int fd;

	nc_segment_name(reader->numbers[reader->at], name);
	fd = nc_path_open(reader->journal_fd, name, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	reader->fd = nc_fd_close(reader->fd);
	reader->fd = fd;
	reader->begin = reader->end = 0;
	reader->offset = offset;
	reader->line = 0;
	return offset > 0 && lseek(fd, (off_t)offset, SEEK_SET) < 0 ? -errno : 0;
}

int nc_reader_open(struct nc_reader *reader, int journal_fd, uint64_t segment, uint64_t offset)
{
	int r;

	*reader = (struct nc_reader){.journal_fd = journal_fd, .fd = -EBADF};
	r = nc_segment_list(journal_fd, &reader->numbers, &reader->n_numbers);
	if (r < 0)
		return r;
	reader->buffer = malloc(BUFFER_SIZE);
	if (!reader->buffer)
		r = -ENOMEM;
	while (r == 0 && reader->at < reader->n_numbers && reader->numbers[reader->at] < segment)
		reader->at++;
	if (r == 0 && reader->at < reader->n_numbers)
		r = open_segment(reader, reader->numbers[reader->at] == segment ? offset : 0);
	if (r < 0)
		nc_reader_done(reader);
	return r;
}

void nc_reader_done(struct nc_reader *reader)
{
	nc_freep(&reader->numbers);
	nc_freep(&reader->buffer);
	reader->fd = nc_fd_close(reader->fd);
}

/* Reads more behind what is there. 0: the file ends. */
static ssize_t fill(struct nc_reader *reader)
{
	size_t size = reader->end - reader->begin;
	ssize_t n;

	memmove(reader->buffer, reader->buffer + reader->begin, size);
	reader->begin = 0;
	reader->end = size;
	n = nc_fd_read_upto(reader->fd, reader->buffer + size, BUFFER_SIZE - size);
	if (n > 0)
		reader->end += (size_t)n;
	return n;
}

static void give(struct nc_reader *reader, size_t size, size_t newline, const char **ret_line,
	size_t *ret_size)
{
	*ret_line = reader->buffer + reader->begin;
	*ret_size = size;
	reader->cut = newline == 0 || size + newline > NC_LINE_MAX;
	reader->line++;
	reader->line_from = reader->offset;
	reader->begin += size + newline;
	reader->offset += size + newline;
}

int nc_reader_next(struct nc_reader *reader, const char **ret_line, size_t *ret_size)
{
	while (reader->at < reader->n_numbers) {
		size_t size = reader->end - reader->begin;
		const char *from = reader->buffer + reader->begin;
		const char *newline = size > 0 ? memchr(from, '\n', size) : NULL;
		ssize_t n;
		int r;

		if (newline) {
			give(reader, (size_t)(newline - from), 1, ret_line, ret_size);
			return 1;
		}
		/* what fills the whole buffer without an end is no line: it is given in pieces */
		n = size == BUFFER_SIZE ? 0 : fill(reader);
		if (n < 0)
			return (int)n;
		if (n > 0)
			continue;
		if (size > 0) {
			give(reader, size, 0, ret_line, ret_size);
			return 1;
		}
		if (reader->at + 1 == reader->n_numbers)
			return 0;
		reader->at++;
		r = open_segment(reader, 0);
		if (r < 0)
			return r;
	}
	return 0;
}

uint64_t nc_reader_segment(const struct nc_reader *reader)
{
	return reader->at < reader->n_numbers ? reader->numbers[reader->at] : 0;
}
