/* SOCKS5 (RFC 1928): the greeting, the request and our replies. */
#ifndef NC_SOCKS_H
#define NC_SOCKS_H

#include <stddef.h>

#include "config/host.h"

#define NC_SOCKS_VERSION 5

enum nc_socks_reply {
	NC_SOCKS_DONE = 0,
	NC_SOCKS_FAILED = 1,
	NC_SOCKS_REFUSED = 2, /* "not allowed by ruleset" */
	NC_SOCKS_UNREACHABLE = 4,
	NC_SOCKS_NO_COMMAND = 7,
	NC_SOCKS_NO_ADDRESS = 8,
};

/* The bytes of the greeting; 0: more are needed; -EBADMSG: none, or it offers no way that we have:
 * without a password. */
int nc_socks_greeting(const unsigned char *data, size_t size);

/*
 * The bytes of the request; 0: more are needed. -EOPNOTSUPP: another command than CONNECT;
 * -EAFNOSUPPORT: another kind of address; -EINVAL: no host as nc_host_parse() reads them;
 * -EBADMSG.
 */
int nc_socks_request(
	const unsigned char *data, size_t size, struct nc_host *ret_host, uint16_t *ret_port);

#define NC_SOCKS_ANSWER_SIZE 10U
void nc_socks_answer(enum nc_socks_reply reply, unsigned char out[static NC_SOCKS_ANSWER_SIZE]);

#endif
