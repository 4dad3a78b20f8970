/*
 * Files of samples: "=== head" begins each, and all up to the next one is its body. They are data,
 * so that real output of real programs can be kept as it is.
 */
#ifndef NC_SECTIONS_H
#define NC_SECTIONS_H

#include "unit.h"

#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "base/span.h"

#define SECTIONS_FILE_MAX (1024U * 1024)

struct section {
	char head[1024];
	struct nc_span body;
};

/* Reads a file of tests/unit; the caller frees it. */
static inline struct nc_span sections_read(const char *name)
{
	char path[512];
	char *text = NULL;
	size_t size = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", NC_UNIT_DIR, name);
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(nc_fd_read_all(fd, SECTIONS_FILE_MAX, &text, &size), 0);
	return (struct nc_span){text, size};
}

/* Takes the next section off rest; what stands before the first one is a comment. */
static inline bool section_next(struct nc_span *rest, struct section *ret)
{
	struct nc_span line, before;
	bool found = false;

	for (before = *rest; nc_span_line(rest, &line); before = *rest) {
		if (nc_span_begins(line, "=== ") && found) {
			*rest = before;
			break;
		}
		if (!nc_span_skip(&line, "=== "))
			continue;
		nc_span_copy(line, ret->head, sizeof(ret->head));
		ret->body = *rest;
		found = true;
	}
	if (found)
		ret->body.size = (size_t)(rest->text - ret->body.text);
	return found;
}

#endif
