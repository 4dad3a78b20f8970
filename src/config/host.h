/*
 * Hosts, read strictly and in one place: what a policy lists and what a program asks for are taken
 * apart by the same code, so that what is compared is what is dialled.
 */
#ifndef NC_HOST_H
#define NC_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* RFC 1035: a name with its dots. */
#define NC_HOST_TEXT_MAX 253U

enum nc_host_kind {
	NC_HOST_NAME,
	NC_HOST_V4,
	NC_HOST_V6,
	NC_HOST_KIND_MAX,
};

struct nc_host {
	enum nc_host_kind kind;
	/* a name in lower case without the dot at its end; an address as inet_ntop() writes it */
	char text[NC_HOST_TEXT_MAX + 1];
	unsigned char address[16]; /* the first 4 bytes or all, of an address */
};

/* What messages say that a host must be. */
#define NC_HOST_EXPECTED                                                                           \
	"a host in lower case such as example.org, *.example.org, 192.0.2.1 or [2001:db8::1], "    \
	"with a port behind ':' if you like"

/*
 * A host as programs write it: labels of letters, digits and '-' with dots between and perhaps one
 * behind; four decimal numbers without leading zeros; or an IPv6 address in brackets, without a
 * zone. What other parsers would take for an address (0x7f.1, 127.1, 2130706433) is nothing.
 * -EINVAL.
 */
int nc_host_parse(const char *text, size_t size, struct nc_host *ret_host);

/* The same with ":port" behind it, or without; then *ret_port is 0. -EINVAL. */
int nc_host_parse_port(const char *text, size_t size, struct nc_host *ret_host, uint16_t *ret_port);

/* A host that a policy lists; for "*.example.org" the host is example.org and wild is set. */
struct nc_host_pattern {
	struct nc_host host;
	bool wild;
	uint16_t port; /* 0: none was given */
};

/*
 * Strict, because what is allowed by mistake is not noticed: no scheme, path or blank, no capital,
 * no dot at the end; "*" only as the whole first label, with two labels behind it. -EINVAL.
 */
int nc_host_parse_pattern(const char *text, struct nc_host_pattern *ret_pattern);

/* Whether it is one. */
bool nc_host_is_pattern(const char *text);

/*
 * The host of "http://host[:port]/path" or "https://...", as a pattern with its port. Letters,
 * digits and "._~-/%+" in the path; no user, query or fragment. -EINVAL.
 */
#define NC_URL_HOST_SIZE (NC_HOST_TEXT_MAX + 16)
int nc_url_host(const char *url, char ret_host[static NC_URL_HOST_SIZE]);
bool nc_url_is_index(const char *text);

#endif
