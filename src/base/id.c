/* Random bytes and names that nobody can guess. */
#include "base/id.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

int nc_random(void *data, size_t size)
{
	char *at = data;

	while (size > 0) {
		ssize_t n = getrandom(at, size, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

static char *put_hex(char *out, const unsigned char *bytes, size_t size)
{
	static const char digits[] = "0123456789abcdef";

	for (; size > 0; bytes++, size--) {
		*out++ = digits[*bytes >> 4];
		*out++ = digits[*bytes & 15];
	}
	return out;
}

int nc_uuid(char out[static NC_UUID_SIZE])
{
	static const size_t groups[] = {4, 2, 2, 2, 6};
	unsigned char bytes[16];
	const unsigned char *from = bytes;
	int r = nc_random(bytes, sizeof(bytes));

	if (r < 0)
		return r;
	bytes[6] = (unsigned char)((bytes[6] & 0x0f) | 0x40); /* version 4: random */
	bytes[8] = (unsigned char)((bytes[8] & 0x3f) | 0x80); /* variant 1: RFC 9562 */
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (i > 0)
			*out++ = '-';
		out = put_hex(out, from, groups[i]);
		from += groups[i];
	}
	*out = '\0';
	return 0;
}

int nc_id_new(const char *kind, char out[static NC_ID_SIZE])
{
	unsigned char bytes[16];
	int r = nc_random(bytes, sizeof(bytes));

	assert(strlen(kind) == 2);
	if (r < 0)
		return r;
	memcpy(out, kind, 2);
	out[2] = '_';
	*put_hex(out + 3, bytes, sizeof(bytes)) = '\0';
	return 0;
}
