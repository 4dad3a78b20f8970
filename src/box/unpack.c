/* Files that go into a box or come out of it, as the stream of nacre-files. */
#include "box/unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/path.h"

static void expect(struct nc_unpack *unpack, size_t wanted)
{
	unpack->part.size = 0;
	unpack->wanted = wanted;
}

void nc_unpack_init(struct nc_unpack *unpack, size_t max_bytes)
{
	*unpack = (struct nc_unpack){.max_bytes = max_bytes};
	unpack->part.max = max_bytes > NC_PATH_MAX ? max_bytes : NC_PATH_MAX;
	expect(unpack, NC_PACK_HEAD_SIZE);
}

void nc_unpack_done(struct nc_unpack *unpack)
{
	for (size_t i = 0; i < unpack->n_files; i++) {
		free(unpack->files[i].path);
		free(unpack->files[i].data);
	}
	free(unpack->files);
	nc_buf_done(&unpack->part);
	*unpack = (struct nc_unpack){0};
}

static int take_head(struct nc_unpack *unpack)
{
	int r = nc_pack_get_head((const unsigned char *)unpack->part.data, &unpack->head);

	if (r < 0)
		return r;
	if (unpack->head.kind == NC_PACK_END) {
		unpack->ended = true;
		unpack->error = (int)unpack->head.error;
		return 0;
	}
	unpack->state = NC_UNPACK_PATH;
	expect(unpack, unpack->head.path_size);
	return 0;
}

static struct nc_unpacked *new_file(struct nc_unpack *unpack)
{
	if (unpack->n_files == unpack->capacity) {
		size_t capacity = unpack->capacity * 2 + 8;
		struct nc_unpacked *files = reallocarray(unpack->files, capacity, sizeof(*files));

		if (!files)
			return NULL;
		unpack->files = files;
		unpack->capacity = capacity;
	}
	unpack->files[unpack->n_files] = (struct nc_unpacked){0};
	return &unpack->files[unpack->n_files++];
}

static int take_path(struct nc_unpack *unpack)
{
	const struct nc_pack_head *head = &unpack->head;
	struct nc_unpacked *file;

	if (strlen(unpack->part.data) != head->path_size || !nc_path_is_plain(unpack->part.data) ||
		unpack->n_files == NC_CAPTURE_FILES_MAX)
		return -EBADMSG;
	if (head->kind == NC_PACK_FILE && head->size > unpack->max_bytes - unpack->bytes)
		return -EFBIG;
	file = new_file(unpack);
	if (!file)
		return -ENOMEM;
	*file = (struct nc_unpacked){.path = strdup(unpack->part.data),
		.size = head->size,
		.executable = head->executable,
		.error = (int)head->error};
	if (!file->path)
		return -ENOMEM;
	unpack->state =
		head->kind == NC_PACK_FILE && head->size > 0 ? NC_UNPACK_DATA : NC_UNPACK_HEAD;
	expect(unpack, unpack->state == NC_UNPACK_DATA ? (size_t)head->size : NC_PACK_HEAD_SIZE);
	return 0;
}

static int take_data(struct nc_unpack *unpack)
{
	unpack->bytes += unpack->part.size;
	unpack->state = NC_UNPACK_HEAD;
	unpack->wanted = NC_PACK_HEAD_SIZE;
	return nc_buf_take(&unpack->part, &unpack->files[unpack->n_files - 1].data);
}

int nc_unpack_add(struct nc_unpack *unpack, const char *data, size_t size)
{
	while (size > 0) {
		size_t missing = unpack->wanted - unpack->part.size;
		size_t n = size < missing ? size : missing;
		int r;

		if (unpack->ended)
			return -EBADMSG;
		nc_buf_add(&unpack->part, data, n);
		if (unpack->part.error < 0)
			return unpack->part.error;
		data += n;
		size -= n;
		if (n < missing)
			return 0;
		r = unpack->state == NC_UNPACK_HEAD   ? take_head(unpack)
		    : unpack->state == NC_UNPACK_PATH ? take_path(unpack)
						      : take_data(unpack);
		if (r < 0)
			return r;
	}
	return 0;
}

static void add(struct nc_buf *stream, struct nc_pack_head head, const char *path, const char *data)
{
	unsigned char bytes[NC_PACK_HEAD_SIZE];

	head.kind = NC_PACK_FILE;
	head.path_size = (uint16_t)strlen(path);
	nc_pack_put_head(bytes, &head);
	nc_buf_add(stream, bytes, sizeof(bytes));
	nc_buf_adds(stream, path);
	if (data)
		nc_buf_add(stream, data, head.size);
}

void nc_pack_add(
	struct nc_buf *stream, const char *path, const char *data, size_t size, bool executable)
{
	add(stream, (struct nc_pack_head){.executable = executable, .size = size}, path, data);
}

void nc_pack_add_old(struct nc_buf *stream, const char *path, const char *data, size_t size)
{
	add(stream, (struct nc_pack_head){.old = true, .size = size}, path, data);
}

void nc_pack_end(struct nc_buf *stream)
{
	unsigned char bytes[NC_PACK_HEAD_SIZE];

	nc_pack_put_head(bytes, &(struct nc_pack_head){.kind = NC_PACK_END});
	nc_buf_add(stream, bytes, sizeof(bytes));
}
