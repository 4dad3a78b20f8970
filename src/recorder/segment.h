/* The files of a journal, in order, and the lines in them. Nothing here trusts what it reads. */
#ifndef NC_SEGMENT_H
#define NC_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* "000000000001.jsonl" and a NUL. */
#define NC_SEGMENT_NAME_SIZE 32
void nc_segment_name(uint64_t number, char out[static NC_SEGMENT_NAME_SIZE]);

/* The numbers of all segments in a journal's directory, ascending. The caller frees them. */
int nc_segment_list(int journal_fd, uint64_t **ret_numbers, size_t *ret_count);

/* Reads lines from a place on to the end of the last segment. */
struct nc_reader {
	int journal_fd; /* borrowed */
	uint64_t *numbers;
	size_t n_numbers;
	size_t at; /* index of the segment that is read */
	int fd;
	char *buffer;
	size_t begin, end;  /* what is in it and not yet given out */
	uint64_t offset;    /* of begin in its file */
	uint64_t line;	    /* number of the line that was given out last, in its file */
	bool cut;	    /* the last line had no newline, or was longer than any line of ours */
	uint64_t line_from; /* where that line begins in its file */
};

/* What is not open yet can be done with: struct nc_reader reader = NC_READER_CLOSED; */
#define NC_READER_CLOSED                                                                           \
	{                                                                                          \
		.fd = -EBADF                                                                       \
	}

/* From the first line if segment is 0. -ENOMEM, -EMFILE and the like. */
int nc_reader_open(struct nc_reader *reader, int journal_fd, uint64_t segment, uint64_t offset);
void nc_reader_done(struct nc_reader *reader);

#define cleanup_reader nc_cleanup(nc_reader_done)

/*
 * The next line, without its newline; it borrows from the reader until the next call. Returns 1, 0
 * at the end, or -errno.
 */
int nc_reader_next(struct nc_reader *reader, const char **ret_line, size_t *ret_size);

/* The number of the segment of the last line. */
uint64_t nc_reader_segment(const struct nc_reader *reader);

#endif
