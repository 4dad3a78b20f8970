/*
 * A growable byte buffer with a maximum. Its error is sticky: after a failed append every later one
 * does nothing, so that a text can be built without a check per line and judged once at the end.
 *
 *	nc_buf_cleanup struct nc_buf text = NC_BUF(NC_CONFIG_FILE_MAX);
 *	nc_buf_addf(&text, "%s:%u", name, line);
 *	if (text.error < 0)
 *		return text.error;
 */
#ifndef NC_BUF_H
#define NC_BUF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct nc_buf {
	char *data;	 /* NUL behind the last byte as soon as anything was added, else NULL */
	size_t size;	 /* bytes in use */
	size_t capacity; /* bytes allocated, the NUL's included */
	size_t max;	 /* size never exceeds it */
	int error;	 /* 0, -ENOMEM or -EFBIG */
	bool wipes;	 /* what it gives up is erased: it may hold secrets */
};

/* An empty buffer that holds at most maximum bytes. */
#define NC_BUF(maximum)                                                                            \
	{                                                                                          \
		.max = (maximum)                                                                   \
	}

/* Frees what it holds; the buffer can be used again. */
void nc_buf_done(struct nc_buf *buf);

#define nc_buf_cleanup nc_cleanup(nc_buf_done)

void nc_buf_add(struct nc_buf *buf, const void *data, size_t size);
void nc_buf_adds(struct nc_buf *buf, const char *text);
void nc_buf_addf(struct nc_buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The text so far; "" for an empty buffer. Valid until the next change. */
const char *nc_buf_text(const struct nc_buf *buf);

/* Hands the text over, to be freed by the caller, or returns buf->error. Empties the buffer. */
int nc_buf_take(struct nc_buf *buf, char **ret_text);

#endif
