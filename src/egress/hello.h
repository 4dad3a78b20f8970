/* The first message of TLS: which host the client greets, without taking part in the rest. */
#ifndef NC_HELLO_H
#define NC_HELLO_H

#include <stdbool.h>
#include <stddef.h>

#include "config/host.h"

struct nc_hello {
	bool named;	     /* it names a host */
	bool hidden;	     /* it may name another one, encrypted (ECH) */
	struct nc_host host; /* if it is named */
};

/*
 * 1: *ret_hello is filled; 0: more bytes are needed; -EBADMSG: this is no greeting of TLS, or one
 * that two parsers might read in two ways.
 */
int nc_hello_parse(const unsigned char *data, size_t size, struct nc_hello *ret_hello);

#endif
