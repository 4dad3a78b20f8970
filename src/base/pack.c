/* Files on their way into a box or out of it: heads. */
#include "base/pack.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/limits.h"

void nc_pack_put_head(unsigned char out[static NC_PACK_HEAD_SIZE], const struct nc_pack_head *head)
{
	uint16_t path_size = htole16(head->path_size);
	uint32_t error = htole32(head->error);
	uint64_t size = htole64(head->size);

	out[0] = (unsigned char)head->kind;
	out[1] = head->old ? 2 : head->executable;
	memcpy(out + 2, &path_size, 2);
	memcpy(out + 4, &error, 4);
	memcpy(out + 8, &size, 8);
}

int nc_pack_get_head(
	const unsigned char in[static NC_PACK_HEAD_SIZE], struct nc_pack_head *ret_head)
{
	struct nc_pack_head head = {.executable = in[1] == 1, .old = in[1] == 2};

	memcpy(&head.path_size, in + 2, 2);
	memcpy(&head.error, in + 4, 4);
	memcpy(&head.size, in + 8, 8);
	head.path_size = le16toh(head.path_size);
	head.error = le32toh(head.error);
	head.size = le64toh(head.size);
	if (in[0] >= NC_PACK_KIND_MAX || in[1] > 2 || head.path_size > NC_PATH_MAX ||
		(in[0] == NC_PACK_END) != (head.path_size == 0))
		return -EBADMSG;
	head.kind = in[0];
	*ret_head = head;
	return 0;
}
