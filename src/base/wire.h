/*
 * Messages between our processes. A message is one packet on a SOCK_SEQPACKET pair: a header and
 * fields of explicit width, little-endian, put and got one by one; no struct crosses as memory.
 *
 *	header: u16 0x634e ("Nc"), u16 type, u32 size of what follows
 *	text and bytes: u32 length, then the bytes; text holds no NUL
 *
 * Both sides are sticky: after the first failure every later put or get does nothing (getters
 * return 0 or ""), and the result is asked for once, at the end.
 */
#ifndef NC_WIRE_H
#define NC_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/* Building: nc_wire_begin, nc_wire_put_*, nc_wire_send. */
struct nc_wire_out {
	struct nc_buf buf;
};

/* out holds nothing: it is zeroed or done with. */
void nc_wire_begin(struct nc_wire_out *out, uint16_t type);
void nc_wire_out_done(struct nc_wire_out *out);
void nc_wire_put_u8(struct nc_wire_out *out, uint8_t value);
void nc_wire_put_u16(struct nc_wire_out *out, uint16_t value);
void nc_wire_put_u32(struct nc_wire_out *out, uint32_t value);
void nc_wire_put_u64(struct nc_wire_out *out, uint64_t value);
void nc_wire_put_text(struct nc_wire_out *out, const char *text);
void nc_wire_put_bytes(struct nc_wire_out *out, const void *data, size_t size);

/*
 * Completes the header and sends the message with n_fds descriptors, which stay the caller's.
 * Returns 0, the error that a put met (-EMSGSIZE: too big), or sendmsg's.
 */
int nc_wire_send(int socket_fd, struct nc_wire_out *out, const int *fds, size_t n_fds);

/* Reading a message that is in memory. It borrows data until the last get. */
struct nc_wire_in {
	const unsigned char *at;
	size_t left;
	uint16_t type;
	int error;
	bool lenient; /* what is left over at the end is a newer partner's, and skipped */
};

/* Checks the header. 0, or -EBADMSG if this is no message of ours. */
int nc_wire_open(struct nc_wire_in *in, const void *data, size_t size);

uint8_t nc_wire_get_u8(struct nc_wire_in *in);
uint16_t nc_wire_get_u16(struct nc_wire_in *in);
uint32_t nc_wire_get_u32(struct nc_wire_in *in);
uint64_t nc_wire_get_u64(struct nc_wire_in *in);

/* Copies at most max bytes with a NUL behind; out holds max + 1. Longer, or with a NUL inside:
 * error. */
void nc_wire_get_text(struct nc_wire_in *in, char *out, size_t max);

/* Bytes inside the message, at most max of them; *ret_data borrows from it. */
size_t nc_wire_get_bytes(struct nc_wire_in *in, size_t max, const void **ret_data);

/* 0 if every get succeeded and nothing is left over that is not skipped, else -EBADMSG. */
int nc_wire_close(const struct nc_wire_in *in);

/* A message as it came, with the descriptors that came with it. Reuse it for the next one. */
struct nc_wire_packet {
	unsigned char *data; /* NC_WIRE_MESSAGE_MAX bytes, allocated by the first receive */
	size_t size;
	int fds[16]; /* NC_WIRE_FDS_MAX; taken ones are replaced by -EBADF */
	size_t n_fds;
};

/*
 * Receives one packet; descriptors arrive with CLOEXEC. Closes those of the packet before. Returns
 * 1, 0 when the other side has closed, or an error: -EBADMSG for a packet that is longer than
 * NC_WIRE_MESSAGE_MAX or brings more than max_fds descriptors, all of which are closed then.
 */
int nc_wire_receive(int socket_fd, struct nc_wire_packet *packet, size_t max_fds);

/* Frees it and closes the descriptors that nobody took. */
void nc_wire_packet_done(struct nc_wire_packet *packet);

#define cleanup_wire_out nc_cleanup(nc_wire_out_done)
#define cleanup_wire_packet nc_cleanup(nc_wire_packet_done)

#endif
