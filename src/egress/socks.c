/* SOCKS5 (RFC 1928). */
#include "egress/socks.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define WITHOUT_PASSWORD 0
#define CONNECT 1
#define REQUEST_HEAD 4U

enum kind {
	KIND_V4 = 1,
	KIND_NAME = 3,
	KIND_V6 = 4,
};

int nc_socks_greeting(const unsigned char *data, size_t size)
{
	if (size >= 1 && data[0] != NC_SOCKS_VERSION)
		return -EBADMSG;
	if (size < 2 || size < 2U + data[1])
		return 0;
	return memchr(data + 2, WITHOUT_PASSWORD, data[1]) ? 2 + data[1] : -EBADMSG;
}

/* The bytes of the address with what stands before it; 0: not known yet. */
static int address_size(const unsigned char *data, size_t size)
{
	switch (data[3]) {
	case KIND_V4:
		return 4;
	case KIND_V6:
		return 16;
	case KIND_NAME:
		return size > REQUEST_HEAD ? 1 + data[REQUEST_HEAD] : 0;
	default:
		return -EAFNOSUPPORT;
	}
}

/* Addresses go through text, so that there is one way to read hosts. */
static int read_host(const unsigned char *data, struct nc_host *ret_host)
{
	const unsigned char *address = data + REQUEST_HEAD;
	char text[INET6_ADDRSTRLEN + 2] = "[";

	if (data[3] == KIND_NAME)
		return nc_host_parse((const char *)address + 1, address[0], ret_host);
	if (data[3] == KIND_V4) {
		if (!inet_ntop(AF_INET, address, text, sizeof(text)))
			return -EINVAL;
		return nc_host_parse(text, strlen(text), ret_host);
	}
	if (!inet_ntop(AF_INET6, address, text + 1, INET6_ADDRSTRLEN))
		return -EINVAL;
	text[strlen(text)] = ']'; /* the array was all zeros, and has one more */
	return nc_host_parse(text, strnlen(text, sizeof(text)), ret_host);
}

int nc_socks_request(
	const unsigned char *data, size_t size, struct nc_host *ret_host, uint16_t *ret_port)
{
	uint16_t port;
	int n, r;

	if ((size >= 1 && data[0] != NC_SOCKS_VERSION) || (size >= 3 && data[2] != 0))
		return -EBADMSG;
	if (size < REQUEST_HEAD)
		return 0;
	if (data[1] != CONNECT)
		return -EOPNOTSUPP;
	n = address_size(data, size);
	if (n < 0)
		return n;
	if (n == 0 || size < REQUEST_HEAD + (size_t)n + 2)
		return 0;
	port = (uint16_t)(data[REQUEST_HEAD + (size_t)n] << 8 | data[REQUEST_HEAD + (size_t)n + 1]);
	r = port == 0 ? -EINVAL : read_host(data, ret_host);
	if (r < 0)
		return r;
	*ret_port = port;
	return (int)REQUEST_HEAD + n + 2;
}

void nc_socks_answer(enum nc_socks_reply reply, unsigned char out[static NC_SOCKS_ANSWER_SIZE])
{
	memset(out, 0, NC_SOCKS_ANSWER_SIZE);
	out[0] = NC_SOCKS_VERSION;
	out[1] = (unsigned char)reply;
	out[3] = KIND_V4;
}
