/* Messages between our processes. */
#include "base/wire.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/limits.h"

#define WIRE_MAGIC 0x634eU
#define HEADER_SIZE 8U

_Static_assert(sizeof(((struct nc_wire_packet *)0)->fds) / sizeof(int) == NC_WIRE_FDS_MAX, "fds");

static void put_number(struct nc_wire_out *out, uint64_t value, size_t width)
{
	unsigned char bytes[8];

	for (size_t i = 0; i < width; i++)
		bytes[i] = (unsigned char)(value >> (8 * i));
	nc_buf_add(&out->buf, bytes, width);
}

void nc_wire_begin(struct nc_wire_out *out, uint16_t type)
{
	out->buf = (struct nc_buf)NC_BUF(NC_WIRE_MESSAGE_MAX);
	put_number(out, WIRE_MAGIC, 2);
	put_number(out, type, 2);
	put_number(out, 0, 4); /* the size, known when it is sent */
}

void nc_wire_out_done(struct nc_wire_out *out)
{
	nc_buf_done(&out->buf);
}

void nc_wire_put_u8(struct nc_wire_out *out, uint8_t value)
{
	put_number(out, value, 1);
}

void nc_wire_put_u16(struct nc_wire_out *out, uint16_t value)
{
	put_number(out, value, 2);
}

void nc_wire_put_u32(struct nc_wire_out *out, uint32_t value)
{
	put_number(out, value, 4);
}

void nc_wire_put_u64(struct nc_wire_out *out, uint64_t value)
{
	put_number(out, value, 8);
}

void nc_wire_put_text(struct nc_wire_out *out, const char *text)
{
	nc_wire_put_bytes(out, text, strlen(text));
}

void nc_wire_put_bytes(struct nc_wire_out *out, const void *data, size_t size)
{
	if (size > NC_WIRE_MESSAGE_MAX && out->buf.error == 0)
		out->buf.error = -EFBIG;
	put_number(out, size, 4);
	nc_buf_add(&out->buf, data, size);
}

int nc_wire_send(int socket_fd, struct nc_wire_out *out, const int *fds, size_t n_fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(NC_WIRE_FDS_MAX * sizeof(int))];
	} control = {0};
	struct iovec part = {.iov_base = out->buf.data, .iov_len = out->buf.size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	uint32_t size;
	ssize_t n;

	if (out->buf.error < 0)
		return out->buf.error == -EFBIG ? -EMSGSIZE : out->buf.error;
	if (n_fds > NC_WIRE_FDS_MAX)
		return -EMSGSIZE;
	size = (uint32_t)(out->buf.size - HEADER_SIZE);
	for (size_t i = 0; i < 4; i++)
		out->buf.data[4 + i] = (char)(size >> (8 * i));
	if (n_fds > 0) {
		struct cmsghdr *header;

		message.msg_control = control.bytes;
		message.msg_controllen = (socklen_t)CMSG_SPACE(n_fds * sizeof(int));
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = (socklen_t)CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(header), fds, n_fds * sizeof(int));
	}
	do
		n = sendmsg(socket_fd, &message, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static uint64_t get_number(struct nc_wire_in *in, size_t width)
{
	uint64_t value = 0;

	if (in->error < 0)
		return 0;
	if (in->left < width) {
		in->error = -EBADMSG;
		return 0;
	}
	for (size_t i = 0; i < width; i++)
		value |= (uint64_t)in->at[i] << (8 * i);
	in->at += width;
	in->left -= width;
	return value;
}

int nc_wire_open(struct nc_wire_in *in, const void *data, size_t size)
{
	uint64_t magic, body;

	*in = (struct nc_wire_in){.at = data, .left = size};
	magic = get_number(in, 2);
	in->type = (uint16_t)get_number(in, 2);
	body = get_number(in, 4);
	if (size > NC_WIRE_MESSAGE_MAX || magic != WIRE_MAGIC || body != in->left)
		in->error = -EBADMSG;
	return in->error;
}

uint8_t nc_wire_get_u8(struct nc_wire_in *in)
{
	return (uint8_t)get_number(in, 1);
}

uint16_t nc_wire_get_u16(struct nc_wire_in *in)
{
	return (uint16_t)get_number(in, 2);
}

uint32_t nc_wire_get_u32(struct nc_wire_in *in)
{
	return (uint32_t)get_number(in, 4);
}

uint64_t nc_wire_get_u64(struct nc_wire_in *in)
{
	return get_number(in, 8);
}

size_t nc_wire_get_bytes(struct nc_wire_in *in, size_t max, const void **ret_data)
{
	size_t size = nc_wire_get_u32(in);

	*ret_data = "";
	if (in->error < 0)
		return 0;
	if (size > in->left || size > max) {
		in->error = -EBADMSG;
		return 0;
	}
	*ret_data = in->at;
	in->at += size;
	in->left -= size;
	return size;
}

void nc_wire_get_text(struct nc_wire_in *in, char *out, size_t max)
{
	const void *data;
	size_t size = nc_wire_get_bytes(in, max, &data);

	if (memchr(data, '\0', size)) {
		in->error = -EBADMSG;
		size = 0;
	}
	memcpy(out, data, size);
	out[size] = '\0';
}

int nc_wire_close(const struct nc_wire_in *in)
{
	return in->error < 0 || (in->left > 0 && !in->lenient) ? -EBADMSG : 0;
}

static void close_fds(struct nc_wire_packet *packet)
{
	for (size_t i = 0; i < packet->n_fds; i++)
		packet->fds[i] = nc_fd_close(packet->fds[i]);
	packet->n_fds = 0;
}

/* Takes every descriptor out of the control data, also those beyond what the packet can hold. */
static int collect_fds(struct msghdr *message, struct nc_wire_packet *packet)
{
	int error = 0;

	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
		header = CMSG_NXTHDR(message, header)) {
		size_t n = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(fd));
			if (packet->n_fds < NC_WIRE_FDS_MAX) {
				packet->fds[packet->n_fds++] = fd;
			} else {
				(void)nc_fd_close(fd);
				error = -EBADMSG;
			}
		}
	}
	return error;
}

int nc_wire_receive(int socket_fd, struct nc_wire_packet *packet, size_t max_fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(NC_WIRE_FDS_MAX * sizeof(int))];
	} control;
	struct iovec part = {.iov_len = NC_WIRE_MESSAGE_MAX};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	ssize_t n;
	int r;

	assert(max_fds <= NC_WIRE_FDS_MAX);
	close_fds(packet);
	if (!packet->data)
		packet->data = malloc(NC_WIRE_MESSAGE_MAX);
	if (!packet->data)
		return -ENOMEM;
	part.iov_base = packet->data;
	do
		n = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	packet->size = (size_t)n;
	r = collect_fds(&message, packet);
	if (r < 0 || packet->n_fds > max_fds || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
		close_fds(packet);
		return -EBADMSG;
	}
	/* our own messages are never empty, so that nothing can be taken for the end */
	return n > 0;
}

void nc_wire_packet_done(struct nc_wire_packet *packet)
{
	close_fds(packet);
	nc_freep(&packet->data);
}
