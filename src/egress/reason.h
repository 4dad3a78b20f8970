/* Why something was let through the door, or not: stable ids, and words for people and programs. */
#ifndef NC_REASON_H
#define NC_REASON_H

/* X(name, id, what is the matter, what helps) */
/* clang-format off */
#define NC_REASONS(X) \
	X(ALLOWED, "network.allowed", "the list allows it", "") \
	X(NOT_LISTED, "network.not-listed", "this host is not on the box's list", \
		"ask for it to be allowed: --allow HOST[:PORT], or network.allow in the policy") \
	X(DENIED, "network.denied", "an entry of the policy denies this host", \
		"use another host; an entry that denies cannot be overruled by one that allows") \
	X(PORT, "network.port", "this host is listed, but not with this port", \
		"entries without a port mean 80 and 443: ask for HOST:PORT to be allowed") \
	X(METHOD, "network.method", "this host is listed, but not for this method", \
		"use a method that the entry allows") \
	X(PATH, "network.path", "this host is listed, but not with this path", \
		"use a path that the entry allows, written plainly") \
	X(PLAIN_ONLY, "network.plain-only", \
		"the entry allows some methods or paths only, which nobody can see in a tunnel", \
		"ask with plain HTTP (http://), or ask for the whole host to be allowed") \
	X(LITERAL, "network.literal", "addresses must be listed themselves", \
		"use the host's name, or ask for this address to be allowed") \
	X(PRIVATE, "network.private", \
		"this host has a private or reserved address", \
		"use a host on the internet; to allow this one, list it under network.inner in a " \
		"policy file and pass --policy FILE") \
	X(SPELLING, "network.spelling", "this is no host as the door reads them", \
		"write a name in letters, digits, '-' and '.', an IPv4 address as four decimal " \
		"numbers, an IPv6 address in brackets") \
	X(MALFORMED, "network.malformed", "the request breaks the rules of its protocol", \
		"send HTTP/1.1 to the proxy as RFC 9112 has it, or SOCKS5 without authentication") \
	X(NOT_FOR_PROXY, "network.not-for-proxy", \
		"this is a proxy, and the request names no host to go to", \
		"use it as a proxy: http_proxy=http://127.0.0.1:888") \
	X(SNI, "network.sni", "the TLS greeting names another host than was asked for, or none", \
		"greet the host that you connect to, without encrypted greeting") \
	X(NOT_TLS, "network.not-tls", "only TLS may go through a tunnel here", \
		"use https://, or plain HTTP without a tunnel") \
	X(CONNECTIONS, "network.connections", "too many connections at once", \
		"close some first, or ask for a higher limit") \
	X(REQUESTS, "network.requests", "all requests that the box may make were made", \
		"make fewer requests, or ask for a higher limit") \
	X(NAMES, "network.names", "the box has asked for too many different hosts", \
		"use fewer hosts, or ask for a higher limit") \
	X(BUDGET, "network.budget", "all bytes that the box may move were moved", \
		"move less, or ask for a higher limit") \
	X(MASKED, "network.masked", "the host's reply had the value of a secret, which was masked", \
		"do not ask hosts to repeat the secret; if the program must see it, say \"mask\": false " \
		"for the secret") \
	X(UNSEARCHABLE, "network.unsearchable", \
		"the reply of a host that has a secret is encoded, and cannot be searched for that", \
		"have the host reply without Content-Encoding, or say \"mask\": false for the secret") \
	X(UNKNOWN_HOST, "network.unknown-host", "there is no such host", "check the name") \
	X(RESOLVE, "network.resolve", "the name server did not answer", "try again later") \
	X(CONNECT, "network.connect-failed", "the host could not be reached", \
		"check that it listens on this port, or try again later") \
	X(UPSTREAM, "network.upstream", "the host's reply breaks the rules of HTTP", \
		"ask its operator") \
	X(UNTRUSTED, "network.untrusted", "the host has no certificate that this machine trusts", \
		"use a host with a valid certificate") \
	X(TIMEOUT, "network.timeout", "it took too long", "try again")
/* clang-format on */

enum nc_reason {
#define X(name, id, matter, help) NC_REASON_##name,
	NC_REASONS(X)
#undef X
		NC_REASON_MAX,
};

/* "network.not-listed"; what is the matter; what helps. Static. */
const char *nc_reason_id(enum nc_reason reason);
const char *nc_reason_text(enum nc_reason reason);
const char *nc_reason_remedy(enum nc_reason reason);

#endif
