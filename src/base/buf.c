/* A growable byte buffer with a maximum. */
#include "base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"

void nc_buf_done(struct nc_buf *buf)
{
	if (buf->wipes && buf->data && buf->capacity < NC_MAPPED_MIN)
		explicit_bzero(buf->data, buf->capacity);
	nc_freep(&buf->data);
	*buf = (struct nc_buf){.max = buf->max, .wipes = buf->wipes};
}

/* As realloc(), which leaves copies behind of what is not mapped by itself. */
static char *move(struct nc_buf *buf, size_t capacity)
{
	char *grown = malloc(capacity);

	if (!grown || !buf->data)
		return grown;
	memcpy(grown, buf->data, buf->size + 1);
	explicit_bzero(buf->data, buf->capacity);
	free(buf->data);
	return grown;
}

/* Makes room for size more bytes and the NUL. */
static int reserve(struct nc_buf *buf, size_t size)
{
	size_t wanted, capacity;
	char *grown;

	if (buf->error < 0)
		return buf->error;
	assert(buf->max < SIZE_MAX / 4 && buf->size <= buf->max);
	if (size > buf->max - buf->size)
		return buf->error = -EFBIG;
	wanted = buf->size + size + 1;
	if (wanted <= buf->capacity)
		return 0;
	capacity = buf->capacity ? buf->capacity : 64;
	while (capacity < wanted)
		capacity *= 2;
	grown = buf->wipes && buf->capacity < NC_MAPPED_MIN ? move(buf, capacity)
							    : realloc(buf->data, capacity);
	if (!grown)
		return buf->error = -ENOMEM;
	buf->data = grown;
	buf->capacity = capacity;
	return 0;
}

void nc_buf_add(struct nc_buf *buf, const void *data, size_t size)
{
	if (reserve(buf, size) < 0)
		return;
	if (size > 0)
		memcpy(buf->data + buf->size, data, size);
	buf->size += size;
	buf->data[buf->size] = '\0';
}

void nc_buf_adds(struct nc_buf *buf, const char *text)
{
	nc_buf_add(buf, text, strlen(text));
}

void nc_buf_addf(struct nc_buf *buf, const char *format, ...)
{
	va_list arguments;
	int wanted;

	va_start(arguments, format);
	wanted = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	assert(wanted >= 0);
	if (reserve(buf, (size_t)wanted) < 0)
		return;
	va_start(arguments, format);
	(void)vsnprintf(buf->data + buf->size, (size_t)wanted + 1, format, arguments);
	va_end(arguments);
	buf->size += (size_t)wanted;
}

const char *nc_buf_text(const struct nc_buf *buf)
{
	return buf->data ? buf->data : "";
}

int nc_buf_take(struct nc_buf *buf, char **ret_text)
{
	int error;

	nc_buf_add(buf, "", 0); /* an empty text is allocated too */
	error = buf->error;
	if (error == 0)
		*ret_text = take_ptr(buf->data);
	nc_buf_done(buf);
	return error;
}
