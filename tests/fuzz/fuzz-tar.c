/* Reads hostile bytes as the heads of an archive, whose data are passed over. */
#include "fuzz.h"

#include <assert.h>
#include <string.h>

#include "base/path.h"
#include "base/tar.h"

/* The block with a good sum in it: no fuzzer would find one. */
static const unsigned char *repair(const uint8_t *data)
{
	static unsigned char block[NC_TAR_BLOCK];
	unsigned int sum = 0;

	memcpy(block, data, sizeof(block));
	memset(block + 148, ' ', 8);
	for (size_t i = 0; i < sizeof(block); i++)
		sum += block[i];
	if (sum == 8 * ' ')
		return data; /* zeros, or not much else */
	for (int i = 5; i >= 0; i--, sum /= 8)
		block[148 + i] = (unsigned char)('0' + sum % 8);
	block[154] = '\0';
	return block;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct nc_tar_reader reader;
	int r = 0;

	nc_tar_reader_init(&reader);
	while (r >= 0 && size >= NC_TAR_BLOCK) {
		const struct nc_tar_member *member = &reader.member;

		r = nc_tar_take(&reader, reader.words_left > 0 ? data : repair(data));
		data += NC_TAR_BLOCK;
		size -= NC_TAR_BLOCK;
		assert(r >= 0 || reader.why);
		if (r <= 0)
			continue;
		if (member->kind == NC_TAR_END)
			break;
		assert(nc_path_is_plain(member->path) ||
			(!*member->path && member->kind == NC_TAR_DIR));
		assert(member->kind != NC_TAR_LINK || nc_path_is_plain(member->target));
		assert(member->mode <= 0777);
		if (member->size > size)
			break;
		data += member->size - member->size % NC_TAR_BLOCK;
		size -= member->size - member->size % NC_TAR_BLOCK;
		if (nc_tar_padding(member->size) && size >= NC_TAR_BLOCK) {
			data += NC_TAR_BLOCK;
			size -= NC_TAR_BLOCK;
		}
	}
	nc_tar_reader_done(&reader);
	return 0;
}
