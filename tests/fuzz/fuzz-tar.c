/* Reads hostile bytes as the heads of an archive, whose data are passed over. */
#include "fuzz.h"

#include <assert.h>

#include "base/path.h"
#include "base/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct nc_tar_reader reader;
	int r = 0;

	nc_tar_reader_init(&reader);
	while (r >= 0 && size >= NC_TAR_BLOCK) {
		const struct nc_tar_member *member = &reader.member;

		r = nc_tar_take(&reader, data);
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
