/* What a program printed on one stream. */
#include "engine/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"

/* Room for the line that says what is missing. */
#define GAP_MAX 64

void nc_output_init(struct nc_output *output, size_t inline_max)
{
	*output = (struct nc_output){
		.inline_max = inline_max, .head = NC_BUF(inline_max / 2), .whole_fd = -EBADF};
}

void nc_output_done(struct nc_output *output)
{
	nc_buf_done(&output->head);
	free(output->tail);
	if (output->inline_max > 0)
		output->whole_fd = nc_fd_close(output->whole_fd);
	*output = (struct nc_output){.whole_fd = -EBADF};
}

static size_t tail_max(const struct nc_output *output)
{
	return output->inline_max - output->inline_max / 2;
}

/* Bytes that are not in the head. */
static uint64_t behind_head(const struct nc_output *output)
{
	return output->bytes - output->head.size;
}

/* The head is full: from here on there are a tail and the whole. */
static void begin_tail(struct nc_output *output)
{
	output->tail = malloc(tail_max(output));
	if (output->no_whole) {
		output->error = output->tail ? -EFBIG : -ENOMEM;
		return;
	}
	output->whole_fd = memfd_create("nacre-output", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (!output->tail)
		output->error = -ENOMEM;
	else if (output->whole_fd < 0)
		output->error = -errno;
	else
		output->error =
			nc_fd_write_all(output->whole_fd, output->head.data, output->head.size);
}

static void add_to_tail(struct nc_output *output, const char *data, size_t size)
{
	size_t max = tail_max(output);
	uint64_t at = behind_head(output);

	if (size > max) {
		at += size - max;
		data += size - max;
		size = max;
	}
	while (size > 0) {
		size_t place = (size_t)(at % max);
		size_t n = size < max - place ? size : max - place;

		memcpy(output->tail + place, data, n);
		at += n;
		data += n;
		size -= n;
	}
}

void nc_output_add(struct nc_output *output, const char *data, size_t size)
{
	size_t room = output->head.max - output->head.size;
	size_t n = size < room ? size : room;

	nc_buf_add(&output->head, data, n);
	if (output->head.error < 0)
		output->error = output->head.error;
	output->bytes += n;
	data += n;
	size -= n;
	if (size == 0)
		return;
	if (!output->tail && output->error == 0)
		begin_tail(output);
	if (output->tail)
		add_to_tail(output, data, size);
	if (output->error == 0 && output->bytes + size > NC_BLOB_MAX) {
		output->error = -EFBIG;
		output->whole_fd = nc_fd_close(output->whole_fd);
	}
	if (output->error == 0)
		output->error = nc_fd_write_all(output->whole_fd, data, size);
	output->bytes += size;
}

bool nc_output_seal(struct nc_output *output)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

	if (output->error == 0 && output->whole_fd >= 0 &&
		fcntl(output->whole_fd, F_ADD_SEALS, seals) < 0)
		output->error = -errno;
	return output->error == 0;
}

bool nc_output_is_cut(const struct nc_output *output)
{
	return behind_head(output) > tail_max(output) || (output->error < 0 && !output->tail);
}

/* Where the last character of a text that was cut begins, if not all of it is there. */
static size_t whole_characters(const char *text, size_t size)
{
	for (size_t back = 1; back <= 3 && back <= size; back++) {
		unsigned char c = (unsigned char)text[size - back];
		size_t length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

		if ((c & 0xc0) == 0x80)
			continue;
		return length > back ? size - back : size;
	}
	return size;
}

int nc_output_text(const struct nc_output *output, struct nc_buf *ret_text)
{
	uint64_t behind = output->tail ? behind_head(output) : 0;
	size_t max = tail_max(output), size = behind < max ? (size_t)behind : max;
	size_t head = output->head.size, begin = 0,
	       from = (size_t)((behind - size) % (max ? max : 1));
	char *tail = size > 0 ? malloc(size) : NULL;

	if (size > 0 && !tail)
		return -ENOMEM;
	for (size_t i = 0; i < size; i++)
		tail[i] = output->tail[(from + i) % max];
	if (nc_output_is_cut(output)) {
		head = whole_characters(nc_buf_text(&output->head), head);
		while (begin < size && begin < 3 && ((unsigned char)tail[begin] & 0xc0) == 0x80)
			begin++;
	}
	nc_buf_add(ret_text, nc_buf_text(&output->head), head);
	if (nc_output_is_cut(output))
		nc_buf_addf(ret_text, "\n... %llu bytes left out ...\n",
			(unsigned long long)(output->bytes - head - (size - begin)));
	if (size > 0)
		nc_buf_add(ret_text, tail + begin, size - begin);
	free(tail);
	return ret_text->error;
}

json_t *nc_output_json(const struct nc_output *output)
{
	nc_buf_cleanup struct nc_buf text = NC_BUF(output->inline_max + GAP_MAX);

	if (nc_output_text(output, &text) < 0)
		return NULL;
	return nc_json_text(nc_buf_text(&text), text.size);
}

int nc_output_set(const struct nc_output *output, json_t *object, const char *name)
{
	nc_buf_cleanup struct nc_buf text = NC_BUF(output->inline_max + GAP_MAX);

	if (nc_output_text(output, &text) < 0)
		return -ENOMEM;
	return nc_json_set_bytes(object, name, nc_buf_text(&text), text.size);
}

size_t nc_output_held(const struct nc_output *output)
{
	return output->head.capacity + (output->tail ? tail_max(output) : 0);
}
