/*
 * What is said for `sudo` in a box: nacre-sudo asks nacre-files in the same box, which passes it on
 * to the daemon, and back. On both ways the same frames:
 *
 *	u8 client, u8 kind, u16 0, u32 size, little-endian, and so many bytes
 *
 * The client's number means something between nacre-files and the daemon only: it is in use from
 * its request until both have said their last word about it, GONE and EXIT or REFUSED.
 */
#ifndef NC_SUDOWIRE_H
#define NC_SUDOWIRE_H

#include <stddef.h>
#include <stdint.h>

#define NC_SUDO_VERSION 1U
#define NC_SUDO_CLIENTS_MAX 16U
#define NC_SUDO_HEAD 8U
#define NC_SUDO_FRAME_MAX 65536U
/* Of each direction, what may be on its way: input until GIVEN, output, with the heads of its
 * frames, until TAKEN says more. */
#define NC_SUDO_WINDOW 32768U
/* That, and what was read before the command was told to wait. */
#define NC_SUDO_HELD_MAX (NC_SUDO_WINDOW + 4U * 65536)

enum nc_sudo_kind {
	/* u8 version, u16 words, u16 variables; then a directory, words and variables, each with a
	 * NUL behind */
	NC_SUDO_REQUEST,
	NC_SUDO_INPUT,
	NC_SUDO_INPUT_END,
	NC_SUDO_TAKEN, /* u32: output that was written, with heads */
	NC_SUDO_GONE,  /* by nacre-files: the client has closed */
	/* from the daemon */
	NC_SUDO_OUTPUT,
	NC_SUDO_ERRORS,
	NC_SUDO_GIVEN,	 /* u32: so much more input may come */
	NC_SUDO_EXIT,	 /* u8 */
	NC_SUDO_REFUSED, /* a sentence */
	NC_SUDO_KIND_MAX,
};

struct nc_sudo_head {
	uint8_t client, kind;
	uint32_t size;
};

static inline uint32_t nc_sudo_get_u32(const unsigned char *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

static inline void nc_sudo_put_u32(unsigned char *bytes, uint32_t value)
{
	for (size_t i = 0; i < 4; i++)
		bytes[i] = (unsigned char)(value >> (8 * i));
}

static inline void nc_sudo_put_head(
	unsigned char bytes[static NC_SUDO_HEAD], const struct nc_sudo_head *head)
{
	bytes[0] = head->client;
	bytes[1] = head->kind;
	bytes[2] = bytes[3] = 0;
	nc_sudo_put_u32(bytes + 4, head->size);
}

/* 0, or -1: that is no head of a frame. */
static inline int nc_sudo_get_head(
	const unsigned char bytes[static NC_SUDO_HEAD], struct nc_sudo_head *ret_head)
{
	*ret_head = (struct nc_sudo_head){bytes[0], bytes[1], nc_sudo_get_u32(bytes + 4)};
	return bytes[0] < NC_SUDO_CLIENTS_MAX && bytes[1] < NC_SUDO_KIND_MAX && bytes[2] == 0 &&
			       bytes[3] == 0 && ret_head->size <= NC_SUDO_FRAME_MAX
		       ? 0
		       : -1;
}

#endif
