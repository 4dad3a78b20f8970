/*
 * Files on their way into a box or out of it: a stream of heads, each followed by the path and, for
 * a file, its bytes; the last head says how it went. Both ends take the other for hostile.
 */
#ifndef NC_PACK_H
#define NC_PACK_H

#include <stdbool.h>
#include <stdint.h>

#define NC_PACK_HEAD_SIZE 16U

enum nc_pack_kind {
	NC_PACK_END,	 /* nothing follows; error tells whether it is all */
	NC_PACK_FILE,	 /* path and size bytes follow */
	NC_PACK_SKIPPED, /* path follows; the file has size bytes, and error says why it stays */
	NC_PACK_KIND_MAX,
};

struct nc_pack_head {
	enum nc_pack_kind kind;
	bool executable;
	bool old; /* it gets a time long past, as if nobody had read it since it was written */
	uint16_t path_size; /* without a NUL; 0 for NC_PACK_END */
	uint32_t error;	    /* errno, or 0 */
	uint64_t size;
};

void nc_pack_put_head(unsigned char out[static NC_PACK_HEAD_SIZE], const struct nc_pack_head *head);

/* -EBADMSG: no head. */
int nc_pack_get_head(
	const unsigned char in[static NC_PACK_HEAD_SIZE], struct nc_pack_head *ret_head);

#endif
