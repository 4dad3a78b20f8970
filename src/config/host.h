/* Hosts that a policy allows: a name, a name below a domain, or an address, with a port or without.
 */
#ifndef NC_HOST_H
#define NC_HOST_H

#include <stdbool.h>

/* What messages say that a host must be. */
#define NC_HOST_EXPECTED                                                                           \
	"a host in lower case such as example.org, *.example.org, 192.0.2.1 or [2001:db8::1], "    \
	"with a port behind ':' if you like"

/*
 * Strict, because what is allowed by mistake is not noticed: no scheme, path or blank, no address
 * in another spelling; "*" only as the whole first label, with two labels behind it.
 */
bool nc_host_is_pattern(const char *text);

#endif
